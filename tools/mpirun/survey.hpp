// What to measure on a host, so that a machine can be calibrated to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/engine/mpi/measure.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// An observation that has no time yet, and the schedule that gives it one.
struct SurveyPoint {
  Observation observation;
  Schedule lowered;
};

/// Collectives of 1 KiB to `most` (the input of a device), each size twice the one before, as `podsim run` lowers them on a ring, permutes, products on every rank at once, copies,
/// and products with an all-gather or a reduce-scatter, one after the other (plain) and overlapped: JAX's two schedules of each. All float32. With
/// one rank only products and copies. Errors: the ranks are more than a ring may have (4096).
Expected<std::vector<SurveyPoint>> survey_points(int ranks, Bytes most);

/// How long to measure: `rounds` times over all points, so that a disturbance does not hit all runs of one, and `each` per point and round. How ranks wait: Pacing.
struct SurveyEffort {
  int rounds = 3;
  Seconds each{0.2};
  Seconds between_looks{};
};

/// The time of a point: the least of all its runs, at least 10 a round. `progress` after each point of each round.
/// Errors: those of RankRunner::make().
Expected<std::vector<Observation>> survey(const std::vector<SurveyPoint>& points, const Team& team, Bytes limit, const SurveyEffort& effort,
                                          const std::function<void(int round, std::size_t point, Seconds least)>& progress);

}  // namespace podsim
