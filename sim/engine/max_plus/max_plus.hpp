// Starts as maxima, ends as sums: the timeline of a model in which no flow is held back by another one, task by task over all devices, without events.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// start = the latest of what a task waits for, end = start + its duration alone. A run of des is just that where flows fit their links at all times.
/// The pass proves this as it goes; where it cannot, it gives up, and the timeline is left to events.
///   result   des's to the picosecond; nullopt: flows meet, or may, or the order of tasks differs from device to device
///   cost     2 to 8 ns per task instance; besides the recorded timeline, the times of the tasks that others still ask for
std::optional<Timeline> run_max_plus(const Model& model, const RunControl& control);

}  // namespace podsim
