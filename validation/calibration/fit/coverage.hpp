// What a fit covers.
#pragma once

#include <vector>

#include "validation/calibration/fit/predict.hpp"

namespace podsim {

/// What a fit to these observations covers, in the terms of operations_in(). Errors: those of schedule_of().
Expected<std::vector<Coverage>> coverage_of(const std::vector<Observation>& observations, const System& system, const PredictOptions& options = {});

}  // namespace podsim
