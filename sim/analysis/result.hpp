// The result of one run, as it is printed and saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace podsim {

/// How far a result can be trusted.
struct RunTrust {
  std::string level;                     // measured | fitted | extrapolated | spec | hypothetical
  std::string dataset{};                 // of a machine that was fitted
  std::optional<double> error{};         // median, relative: of the dataset, or of predictions that go as far beyond one
  std::optional<double> p95_error{};     // of the same predictions, where they go beyond
  std::optional<double> fitted_error{};  // of the dataset, where `error` is not
  std::string tier{};                    // how far beyond what was fitted: "other sizes", "other operation", "other scale", "composite"
  std::vector<std::string> beyond{};     // in what: "all-reduce over 1024 devices, fitted over 16"
  friend bool operator==(const RunTrust&, const RunTrust&) = default;
};

/// Plain numbers in the units of the names, as the JSON keys; definitions in sim/analysis/metrics.hpp.
struct Result {
  std::string engine, machine, slice, schedule;
  bool hypothetical = false;
  std::vector<std::pair<std::string, int>> mesh;
  int devices = 0, device_classes = 0;
  double makespan_s = 0, compute_s = 0, exposed_communication_s = 0, waiting_s = 0, flops = 0;
  std::optional<double> mfu;
  double link_bytes = 0;
  std::int64_t peak_memory_bytes = 0, tasks = 0, events = 0;
  double wall_s = 0, build_s = 0;
  RunTrust trust;
  friend bool operator==(const Result&, const Result&) = default;
};

}  // namespace podsim
