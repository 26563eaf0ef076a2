// What a search leaves out of all that `run` offers, for its output.
#pragma once

#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/training_search.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// A line for each, with the option that changes it: "slice counts above 64 (--max-slice-count)". A run by hand that none of them describes is never faster than the best plan.
std::vector<std::string> not_searched(const Options& options, const TuningRequest& request);
std::vector<std::string> not_searched(const Options& options, const TrainingRequest& request);

}  // namespace podsim
