// How many points efficiency curves and the matmul table need.
#pragma once

#include "validation/calibration/fit/identify.hpp"

namespace podsim {

/// Whether a fit with more values is worth them, by the Bayesian information criterion on Cauchy's loss.
bool is_better(const Fit& more, const Fit& fewer, const CalibrateOptions& options);

/// The fit with as many points as the observations call for. It begins without any. Where an operation is missed by more than options.noise it gets
/// another point at the size that is missed most; the first point of a curve comes with one at its largest size. Of all stages the one with the best
/// criterion is kept. chip.overlap_hbm is fitted only where that is worth it.
Fit fit_shapes(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options, Predictions& predictions);

}  // namespace podsim
