// What collectives cost that nobody observed.
#pragma once

#include <string>
#include <vector>

#include "validation/calibration/fit/identify.hpp"

namespace podsim {

/// Kinds of collectives that cost the same on the base machine keep equal costs: one that was not observed takes the fitted launch, and the
/// efficiency curve, of the one nearest to it that was; of a curve the points move to where its messages are as large. An all-reduce beside observed
/// reduce-scatters and all-gathers has the efficiency of the two one after the other. Says so in the sources of `machine`, and returns
/// what it set. What is held, and what the base machine tells apart, stays. Errors: those of setting a value.
Expected<std::vector<Undetermined>> keep_equal(const std::vector<Observation>& observations, const Fit& fit, const Machine& base,
                                               const CalibrateOptions& options, Machine& machine);

}  // namespace podsim
