// One run's result, as much of it as was asked for: a table for people, JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/json.hpp"
#include "workloads/scenario/explain.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// What a run is asked to tell beside its figures.
struct Details {
  std::optional<Explanation> explanation;
  std::vector<DeviceMetrics> devices;
  std::vector<LinkMetrics> links;
  std::optional<double> healthy_s;  // beside broken or slow links and devices: the time without them
  std::vector<CableLoss> losses;    // --fail any, worst first
  std::vector<std::string> notes;   // on what was asked for
};

std::string result_table(const Run& run, const Details& details);
/// One JSON object, with a newline behind it.
std::string result_json(const Run& run, const Details& details);

/// The figures that every verb prints of a run.
Json row_json(const Row& row);

/// level, dataset, error; of a machine that was fitted also fitted_error, and of a run beyond that p95_error, rung, beyond.
Json trust_json(const RunTrust& trust);
/// batch, sequence, tokens
Json tokens_json(const TokenCount& tokens);

}  // namespace podsim
