// Robust least squares with bounds.
#pragma once

#include <functional>
#include <vector>

#include <Eigen/Dense>

namespace podsim {

/// What priors of ratios weigh against residuals: a model is no better than this, however little its residuals scatter.
inline constexpr double model_error = 0.03;

/// A prior for a ratio: ln(x[one] / x[other]) is about `expected`; one sigma weighs as much as a residual of 3 %. Without `other` for one unknown: ln(x[one]).
struct RatioPrior {
  Eigen::Index one = 0, other = -1;
  double expected = 0, sigma = 1;
};

struct LeastSquares {
  /// x is within the bounds. Returns one relative residual per observation: ln(predicted / observed).
  std::function<Eigen::VectorXd(const Eigen::VectorXd& x)> residuals;
  Eigen::VectorXd start, low, high;
  Eigen::VectorXd prior, prior_sigma;  // of each unknown, in the units of x; infinite sigma: no prior
  std::vector<RatioPrior> ratios{};
  double least_scale = 1e-4;           // smaller residuals count as exact
};

struct Solution {
  Eigen::VectorXd x, residuals, weights;  // weights: Huber's, 1 within 1.345 scales
  Eigen::MatrixXd jacobian;               // of the residuals at x
  double scale = 0;                       // robust standard deviation of the residuals
  double loss = 0;                        // sum of Huber's loss in units of squared residuals: 2 rho(r), without the priors
};

/// d residuals / dx by one-sided differences, away from a bound.
Eigen::MatrixXd jacobian_of(const LeastSquares& problem, const Eigen::VectorXd& x, const Eigen::VectorXd& residuals);

/// Levenberg-Marquardt on Huber's loss with an active set for the bounds: an unknown on its bound stays there while the gradient pushes it out. The
/// scale, 1.4826 times the median absolute residual, corrected for the number of unknowns, is updated alternately with x.
///   source  Huber: Robust Statistics (1981), 7.8; Lawson, Hanson: Solving Least Squares Problems (1974), 23.3
Solution solve(const LeastSquares& problem);

/// The covariance of x at the solution: Huber's asymptotic formula, with priors.
Eigen::MatrixXd covariance_of(const LeastSquares& problem, const Solution& solution);

/// Linearly dependent columns, in order of precedence: columns of which less than `tolerance` of the squared length remains after projection on the
/// columns before them. `with`: per column the earlier columns that it depends on; empty for independent columns.
struct Dependence {
  bool dependent = false;
  std::vector<int> with;
};
std::vector<Dependence> dependences_of(const Eigen::MatrixXd& columns, double tolerance);

}  // namespace podsim
