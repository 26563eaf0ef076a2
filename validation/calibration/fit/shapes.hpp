// The number of points of efficiency curves and the matmul table.
#pragma once

#include "validation/calibration/fit/identify.hpp"

namespace podsim {

/// Whether a fit with more values is justified, by the Bayesian information criterion on Cauchy's loss.
bool is_better(const Fit& more, const Fit& fewer, const CalibrateOptions& options);

/// The fit with as many points as the observations justify. It starts without points. An operation with residuals above options.noise gets another
/// point at the size with the largest residual; a curve's first point comes together with one at its largest size. The stage with the best criterion
/// is kept. chip.overlap_hbm is fitted only if the criterion improves.
Fit fit_shapes(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options, Predictions& predictions);

}  // namespace podsim
