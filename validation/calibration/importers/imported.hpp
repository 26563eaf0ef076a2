// What an importer makes of a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// Observations, and what to know about them: what was skipped and why, how a time was made out of several. A note is a sentence without a full stop.
struct Imported {
  std::vector<Observation> observations;
  std::vector<std::string> notes;
};

/// What some files leave out.
struct ImportOptions {
  std::optional<ObservedOp> op{};                        // nccl-tests: for texts that do not name the test
  int devices = 0;                                       // that take part in a collective; 0: only what the file tells
  std::map<std::string, int> axes{};                     // meshslice-log: devices along each axis, instead of `devices`
  int cores = 1;                                         // profiles of TPUs: cores of a device; FLOPs in them are of one core
  FlopsPerSecond core_peak = unlimited<FlopsPerSecond>;  // hlo-stats: rows that are faster are rejected
};

/// "1 row", "3 rows".
std::string counted(std::size_t count, std::string_view noun);

}  // namespace podsim
