// The result of one run, as it is printed and saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace podsim {

/// Plain numbers in the units of the names, as the JSON keys; definitions in sim/engine/metrics.hpp.
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
  std::string trust_level, trust_dataset;  // measured | fitted | spec | hypothetical
  std::optional<double> trust_error;
  friend bool operator==(const Result&, const Result&) = default;
};

}  // namespace podsim
