// A simulated step beside a measured one, on one device: what is what, and what is late. The matching is that of diff_steps().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"
#include "validation/calibration/importers/profile_operations.hpp"
#include "validation/diff/step_diff.hpp"

namespace podsim {

/// An event of an operation, on the line of what the core is busy with or waits for.
struct ComparedEvent {
  Picoseconds begin, end;             // from the beginning of the step
  std::uint32_t name = 0;             // in SideBySide::names
  std::uint32_t category = 0;         // likewise
  bool matched = false;               // the operation has a counterpart
  Pace pace{};                        // of its occurrence, of measured ones that are matched
  std::optional<Picoseconds> late{};  // by how much the occurrence takes longer than predicted, negative: shorter. Of its first event only
};

struct SideBySide {
  std::string measured_as;  // "/device:TPU:3"
  std::vector<std::string> names;
  std::vector<ComparedEvent> simulated, measured;              // by begin; events of a side nest
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // events of both sides with which an occurrence and its counterpart begin
  StepDiff diff;
};

/// Occurrences of matched operations are paired in the order of time. If as many occur as were predicted, the lateness of each is its own time less
/// that of its partner; else all of a group are predicted to take an equal part. So the lateness of a group's occurrences sums to the gap of its row,
/// exactly. `layers`: as in diff_steps(); the occurrences of all layers are paired with those of the block, and only those of the first are in
/// `pairs`.
///   cost    O(n log n) for the device's tasks and the step's events, and that of diff_steps()
SideBySide beside(const Model& model, const Timeline& timeline, DeviceId device, const ProfiledDeviceStep& measured,
                  const std::vector<std::string>& names, std::int64_t layers = 1);

}  // namespace podsim
