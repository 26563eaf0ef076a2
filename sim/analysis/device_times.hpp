// What one device of a run does, and when: units at work and operations in flight. The tasks that played Calls stand for are among it.
#pragma once

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

/// Of the device, or class of devices, that a node stands for. The timeline must be recorded and complete. A Send or Recv that an
/// algorithm wrote moves along a mesh axis if sender and receiver differ on that axis alone. All times are 0 for a device without a program.
///   cost    O(n log n) for the n tasks of the device's program, those of played calls counted by their merged flights
DeviceTimes device_times(const Model& model, const Timeline& timeline, std::uint32_t node);

/// The time in which the core of a node is busy: total(device_times().parts), without what that costs.
Picoseconds core_time(const Model& model, const Timeline& timeline, std::uint32_t node);

/// What the core works on in a part of its time; `launch` is a part of `time`.
CoreParts core_parts(const Task& task, Picoseconds time, Picoseconds launch);

}  // namespace podsim
