// What a training step consists of, as a table, JSON and CSV.
#pragma once

#include <optional>
#include <string>

#include "tools/report/json.hpp"
#include "workloads/training/counts.hpp"

namespace podsim {

struct TrainingReport {
  TrainingStep given;
  DividedStep divided;  // of it
  AttentionFlops attention = AttentionFlops::whole;
  std::optional<std::int64_t> live_forwards;  // with several stages; left out: all microbatches of all virtual stages, as many as can be
};

/// The step, its parts, the waste of padding, the memory of the devices of each kind of rank.
std::string training_table(const TrainingReport& report);

/// `name, parameters, ..., parts: [ {name, parameters, forward_flops, backward_flops, recomputed_flops, in_model} ], memory: [ {ranks, layers,
/// live_forwards, memory_bytes{weights, gradients, optimizer, activations, working, total}} ], padding, padding_waste, maxtext`.
Json training_json(const TrainingReport& report);

/// "174.6e9"; "-" for none.
std::string parameters_text(std::int64_t count);

/// A row per part.
std::string training_csv(const TrainingReport& report);

}  // namespace podsim
