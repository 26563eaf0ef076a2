// Starts as maxima, ends as sums: the timeline of a model in which few flows are held back by others, task by task over all devices, without events.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// Up to where the pass takes flows that meet. Beyond, events are as fast.
struct MeetingLimits {
  std::int64_t fewest_activities = 20'000;  // of a model; less are not worth it
  double links = 0.03;                      // on which flows meet, of all links that transfers use
  double flows = 0.05;                      // that cross such links, of all activities
  double corrections = 0.25;                // in one play, of all activities
  int plays = 6;
};

/// start = the latest of what a task waits for, end = start + its duration alone. A run of des is just that where flows fit their links at all times.
/// The pass proves this as it goes. Where flows do not fit, they are played exactly by themselves, and what follows from them is corrected, as long as
/// they are few ("pass": "mixed"). Otherwise the pass gives up, and the timeline is left to events.
///   result   des's to the picosecond; nullopt: too many flows meet, or may, or instances wait for each other
///   cost     2 to 8 ns per task instance and play; besides the recorded timeline, the times of the tasks that others still ask for; if flows meet, a
///            few plays, and 16 bytes per instance even if nothing is recorded
std::optional<Timeline> run_max_plus(const Model& model, const RunControl& control, const MeetingLimits& limits = {});

}  // namespace podsim
