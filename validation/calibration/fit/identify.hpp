// Identifies the unknowns that the observations determine, and fits those.
#pragma once

#include <vector>

#include "validation/calibration/fit/parameters.hpp"
#include "validation/calibration/fit/least_squares.hpp"

namespace podsim {

struct Fit {
  std::vector<Parameter> parameters;  // that were fitted
  Solution solution;        // of these
  Eigen::MatrixXd covariance;
  std::vector<Parameter> zero;                  // times set to zero; also in `undetermined`
  std::vector<Undetermined> undetermined;  // unknowns that were not fitted
  System system;                                 // with the fitted values
};

/// Fits the identifiable ones of `parameters`; the others keep the values of `system`. An unknown is not identifiable if it changes no prediction by
/// 0.1 %, or if 99.9 % of its squared influence is a combination of earlier unknowns and it has no prior. If an unknown ends on its bound because
/// another one with the same influence keeps too large a value, that other one is fitted instead and this one is fixed: a time at zero, a rate at its
/// value.
Fit fit(const std::vector<Parameter>& parameters, const System& system, const CalibrateOptions& options, Predictions& predictions);

/// The measurement that would identify a value.
std::string probe_for(const Parameter& parameter);

}  // namespace podsim
