// The result of an importer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/expected.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// Where the rows were measured, as far as the file says: of those on most devices.
struct MeasuredOn {
  int devices = 0, nodes = 0;  // nodes of equally many devices; 0: not told, or they differ
  std::string gpu{};           // "NVIDIA H100 80GB HBM3"; empty: not told, or they differ
};

/// Observations and notes about them: rows skipped and why, times combined from several. A note is a sentence without a full stop.
struct Imported {
  std::vector<Observation> observations;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, int>> mesh{};  // the axes of the device mesh and their sizes, where the file tells them; JAX laid it
  SourceLocation mesh_at{};
  MeasuredOn on{};
};

/// Facts that some files omit.
struct ImportOptions {
  std::optional<ObservedOp> op{};                        // nccl-tests: for texts that do not name the test
  int devices = 0;                                       // devices that take part in a collective; 0: only what the file states
  std::map<std::string, int> axes{};                     // meshslice-log: devices along each axis, instead of `devices`
  int cores = 1;                                         // TPU profiles: cores per device; their FLOPs are of one core
  FlopsPerSecond core_peak = unlimited<FlopsPerSecond>;  // hlo-stats: faster rows are rejected
};

}  // namespace podsim
