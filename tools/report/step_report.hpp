// A simulated training step, as part of the report of its run.
#pragma once

#include <string>
#include <vector>

#include "tools/report/json.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// step_s, tokens_per_s, tflops_per_chip, mfu, hfu, split, memory_bytes, stages, paddings, training, layers_algorithm. The row has a training step.
Json step_json(const Row& row);

/// The MFU of a step in a cell of a table. Above 100 % it says why: it counts all scores of causal attention, of which half are computed.
std::string mfu_text(const TrainingResult& result);

/// Rows of the run's table.
std::vector<std::vector<std::string>> step_rows(const Row& row);
/// The split, and the ranks if there are several.
std::string step_tables(const Row& row);

}  // namespace podsim
