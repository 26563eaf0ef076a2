// Why one plan is faster than another, and which changes of the machine would reverse that.
#pragma once

#include <string>
#include <vector>

#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// A stage in one pass of two plans; a stage that only one plan has counts as zero in the other. A re-layout counts to the stage after it.
struct PartDifference {
  std::string name;
  Pass pass = Pass::forward;
  Picoseconds first, second;  // the time in each plan
};

/// The stages on which the plans differ, the largest difference first.
std::vector<PartDifference> differences(const TunedPlan& first, const TunedPlan& second);

/// The time of a plan split by what the core of the busiest device does, summed over its parts, which are simulated again. Errors: those of a run.
Expected<TimeSplit> split_of(const TuningRequest& request, const TunedPlan& plan);

/// A change of a machine value at which the order of two plans reverses.
struct Flip {
  std::string parameter;  // "link bandwidth"
  double factor = 1;      // of the value, to 3 %: from there on the other plan is faster
};

/// Scales one value at a time from 1/8 to 8 times (link bandwidth, hop latency and per-message overhead, launches, peak, HBM bandwidth) and finds the
/// factor nearest to 1 at which `second` is faster than `first`. The plans stay unchanged. Values that reverse nothing are left out.
/// Errors: those of a run; cancelled work.
Expected<std::vector<Flip>> what_flips(const TuningRequest& request, const TunedPlan& first, const TunedPlan& second);

}  // namespace podsim
