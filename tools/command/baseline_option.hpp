// `podsim tune --baseline`: a published tuner's plan beside the ones that are found.
#pragma once

#include "tools/command/options.hpp"
#include "tools/report/tuning_report.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// --baseline
OptionGroup baseline_option();

/// Where --baseline is given: the published tuner's choice, among the plans of the request too. Errors: no such baseline; what that tuner does not take.
Status add_baseline(const Options& options, TuningRequest& request, TuningReport& found);

}  // namespace podsim
