// Robust least squares within bounds.
#pragma once

#include <functional>
#include <vector>

#include <Eigen/Dense>

namespace podsim {

struct LeastSquares {
  /// Before: x within the bounds. One residual per observation, in relative terms: ln(predicted / observed).
  std::function<Eigen::VectorXd(const Eigen::VectorXd& x)> residuals;
  Eigen::VectorXd start, low, high;
  Eigen::VectorXd prior, prior_sigma;  // of each unknown; an infinite sigma: no prior. Same units as x
  double least_scale = 1e-4;           // residuals below this are as good as none
};

struct Solution {
  Eigen::VectorXd x, residuals, weights;  // Huber's, 1 within 1.345 scales
  Eigen::MatrixXd jacobian;               // of the residuals at x
  double scale = 0;                       // robust standard deviation of the residuals
  double loss = 0;                        // sum of Huber's loss in units of squared residuals: 2 rho(r), without the priors
};

/// d residuals / dx, one side differences, away from a bound.
Eigen::MatrixXd jacobian_of(const LeastSquares& problem, const Eigen::VectorXd& x, const Eigen::VectorXd& residuals);

/// Levenberg-Marquardt on Huber's loss with an active set for the bounds: what lies on one and is pushed out stays there. The scale is 1.4826 times
/// the median absolute residual, corrected for the unknowns; it is found in turns with x.
///   source  Huber: Robust Statistics (1981), 7.8; Lawson, Hanson: Solving Least Squares Problems (1974), 23.3
Solution solve(const LeastSquares& problem);

/// Covariance of x at the solution: Huber's asymptotic formula, priors included.
Eigen::MatrixXd covariance_of(const LeastSquares& problem, const Solution& solution);

/// Which columns, in order of precedence, cannot be told from the ones before them: what is left of a column after projection on those has less than
/// `tolerance` of its squared length. `with`: for each column the earlier ones that make it up; empty for independent columns.
struct Dependence {
  bool dependent = false;
  std::vector<int> with;
};
std::vector<Dependence> dependences_of(const Eigen::MatrixXd& columns, double tolerance);

}  // namespace podsim
