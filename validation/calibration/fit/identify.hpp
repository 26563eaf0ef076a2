// Which unknowns the observations can tell, and the fit of those.
#pragma once

#include <vector>

#include "validation/calibration/fit/parameters.hpp"
#include "validation/calibration/fit/least_squares.hpp"

namespace podsim {

struct Fit {
  std::vector<Parameter> parameters;  // that were fitted
  Solution solution;        // of these
  Eigen::MatrixXd covariance;
  std::vector<Parameter> zero;                  // times that were set to zero; among `undetermined` too
  std::vector<Undetermined> undetermined;  // the others
  System system;                                 // with the values
};

/// Fits what can be told of `parameters`, from the values that `system` has; the others keep them. An unknown cannot be told if it moves no prediction by
/// 0.1 %, or moves them as earlier ones do (to 0.1 % of its squared influence) and no prior is named for it. Where one ends on its bound because
/// another that moves predictions alike keeps too large a value, that other is fitted: a time is then zero, a rate keeps its value.
Fit fit(const std::vector<Parameter>& parameters, const System& system, const CalibrateOptions& options, Predictions& predictions);

/// What to measure to tell a value.
std::string probe_for(const Parameter& parameter);

}  // namespace podsim
