// Why one plan is faster than another, and what would turn that round.
#pragma once

#include <string>
#include <vector>

#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// A stage that two plans have in common, in one pass; what is in one alone counts as zero in the other. Re-layouts count to the stage behind them.
struct PartDifference {
  std::string name;
  Pass pass = Pass::forward;
  Picoseconds first, second;  // what each plan needs
};

/// Where `second` spends more or less than `first`, the largest difference first; what is equal is left out.
std::vector<PartDifference> differences(const TunedPlan& first, const TunedPlan& second);

/// How the core of the busiest device spends the time of a plan: summed over its parts, each simulated once more. Errors: those of a run.
Expected<TimeSplit> split_of(const TuningRequest& request, const TunedPlan& plan);

/// A value of the machine at which two plans change places.
struct Flip {
  std::string parameter;  // "link bandwidth"
  double factor = 1;      // of its value, to 3 %: from there on the other plan is faster
};

/// Scales one value after the other: link bandwidth, hop latency and per-message overhead, launches, peak, HBM bandwidth, from 1/8 to 8 times, and
/// finds the change nearest to 1 at which `second` is faster than `first`. Both plans stay as they are. What does not flip is left out.
/// Errors: those of a run; interrupted.
Expected<std::vector<Flip>> what_flips(const TuningRequest& request, const TunedPlan& first, const TunedPlan& second);

}  // namespace podsim
