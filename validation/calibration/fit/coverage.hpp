// The operations that a fit covers.
#pragma once

#include <vector>

#include "validation/calibration/fit/predict.hpp"

namespace podsim {

/// The coverage of a fit to these observations, in the terms of operations_in(). Errors: those of schedule_of().
Expected<std::vector<Coverage>> coverage_of(const std::vector<Observation>& observations, const System& system, const PredictOptions& options = {});

}  // namespace podsim
