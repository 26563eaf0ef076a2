// The costs of collectives that were not observed.
#pragma once

#include <string>
#include <vector>

#include "validation/calibration/fit/identify.hpp"

namespace podsim {

/// Collective kinds with equal costs on the base machine stay equal: an unobserved kind takes the fitted launch and efficiency curve of the nearest
/// observed kind; the points of the curve move to the inputs with equal message sizes. An unobserved all-reduce beside observed reduce-scatters and
/// all-gathers gets the efficiency of the two in sequence. Records this in the sources of `machine`, and returns the values that it set. Held values,
/// and values that differ on the base machine, stay. Errors: those of setting a value.
Expected<std::vector<Undetermined>> keep_equal(const std::vector<Observation>& observations, const Fit& fit, const Machine& base,
                                               const CalibrateOptions& options, Machine& machine);

}  // namespace podsim
