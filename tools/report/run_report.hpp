// The result of one run, with optional details: a table for people, JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/json.hpp"
#include "workloads/advice/advice.hpp"
#include "workloads/scenario/explain.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/hlo_orders.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// The optional details of a run's report.
struct Details {
  std::optional<Explanation> explanation;
  std::optional<Advice> advice;
  std::vector<DeviceMetrics> devices;
  std::vector<LinkMetrics> links;
  std::optional<double> healthy_s;  // with faults: the time without them
  std::optional<HloOrderTimes> orders;  // of a module that is not scheduled
  std::vector<CableLoss> losses;    // --fail any, worst first
  std::vector<std::string> notes;   // on the request
};

/// What a terminal has beside what a pipe or a file gets.
struct TerminalStyle {
  bool bars = false;     // how much of the run something is in flight along each axis
  bool colours = false;
};
std::string result_table(const Run& run, const Details& details, TerminalStyle style = {});
/// One JSON object, followed by a newline.
std::string result_json(const Run& run, const Details& details);

/// The figures of a run that all verbs print.
Json row_json(const Row& row);

/// level, dataset, error; for a fitted machine also fitted_error, and for a run beyond the fit p95_error, rung, beyond.
Json trust_json(const RunTrust& trust);
/// batch, sequence, tokens
Json tokens_json(const TokenCount& tokens);

}  // namespace podsim
