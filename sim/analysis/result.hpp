// The result of one run in the form that is printed and saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace podsim {

/// The trust in a result: the evidence for the machine's values, and the distance of the run from it.
struct RunTrust {
  std::string level;                     // measured | fitted | extrapolated | spec | hypothetical
  std::string dataset{};                 // of a fitted machine
  std::optional<double> error{};         // median, relative: of the dataset, or of predictions equally far beyond a dataset
  std::optional<double> p95_error{};     // of the same predictions, if the run lies beyond the dataset
  std::optional<double> fitted_error{};  // of the dataset, if `error` is not
  std::string tier{};                    // how the run lies beyond the fit: "other sizes", "other operation", "other scale", "composite"
  std::vector<std::string> beyond{};     // in which operations: "all-reduce over 1024 devices, fitted over 16"
  friend bool operator==(const RunTrust&, const RunTrust&) = default;
};

/// Plain numbers named like the JSON keys, in the units of the names; sim/analysis/metrics.hpp has the definitions.
struct Result {
  std::string engine, machine, slice, schedule;
  bool hypothetical = false;
  std::vector<std::pair<std::string, int>> mesh;
  int devices = 0, device_classes = 0;
  double makespan_s = 0, compute_s = 0, exposed_communication_s = 0, waiting_s = 0, flops = 0;
  std::optional<double> mfu;
  double link_bytes = 0;
  std::int64_t peak_memory_bytes = 0, tasks = 0, events = 0;
  std::string pass;  // of des: max-plus, without events, mixed, or events; empty for other engines
  double wall_s = 0, build_s = 0;
  RunTrust trust;
  friend bool operator==(const Result&, const Result&) = default;
};

}  // namespace podsim
