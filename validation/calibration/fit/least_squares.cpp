#include "validation/calibration/fit/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/statistics.hpp"

namespace podsim {

namespace {

constexpr double huber = 1.345;
constexpr int most_rounds = 12, most_steps = 60;

double scale_of(const LeastSquares& problem, const Eigen::VectorXd& residuals) {
  std::vector<double> sizes;
  for (const double r : residuals) sizes.push_back(std::abs(r));
  const double count = static_cast<double>(residuals.size()), unknowns = std::max(0.0, static_cast<double>(problem.start.size()) - static_cast<double>(problem.ratios.size()));
  const double correction = std::sqrt(count / std::max(count - unknowns, 1.0));
  return std::max(1.4826 * median(std::move(sizes)) * correction, problem.least_scale);
}

double loss_of(double r, double scale) {
  const double size = std::abs(r), knee = huber * scale;
  return size <= knee ? r * r : knee * (2 * size - knee);
}

double loss_of(const Eigen::VectorXd& residuals, double scale) {
  double sum = 0;
  for (const double r : residuals) sum += loss_of(r, scale);
  return sum;
}

Eigen::VectorXd weights_of(const Eigen::VectorXd& residuals, double scale) {
  return residuals.unaryExpr([&](double r) { return std::abs(r) <= huber * scale ? 1.0 : huber * scale / std::abs(r); });
}

/// In standard deviations.
double miss_of(const RatioPrior& ratio, const Eigen::VectorXd& x) {
  return (std::log(x[ratio.one] / (ratio.other < 0 ? 1.0 : x[ratio.other])) - ratio.expected) / ratio.sigma;
}

double prior_loss(const LeastSquares& problem, const Eigen::VectorXd& x, double scale) {
  const double sum = ((x - problem.prior).array() / problem.prior_sigma.array()).square().sum();
  double ratios = 0;
  for (const RatioPrior& ratio : problem.ratios) ratios += std::pow(miss_of(ratio, x), 2);
  return sum * scale * scale + ratios * model_error * model_error;
}

/// Adds the information of the priors of ratios at x, and their gradient.
void add_ratios(const LeastSquares& problem, const Eigen::VectorXd& x, double weight, Eigen::MatrixXd& matrix, Eigen::VectorXd* gradient) {
  for (const RatioPrior& ratio : problem.ratios) {
    const double one = 1 / (ratio.sigma * x[ratio.one]), miss = miss_of(ratio, x);
    matrix(ratio.one, ratio.one) += weight * one * one;
    if (gradient != nullptr) (*gradient)[ratio.one] += weight * one * miss;
    if (ratio.other < 0) continue;
    const double other = -1 / (ratio.sigma * x[ratio.other]);
    matrix(ratio.other, ratio.other) += weight * other * other;
    matrix(ratio.one, ratio.other) += weight * one * other;
    matrix(ratio.other, ratio.one) += weight * one * other;
    if (gradient != nullptr) (*gradient)[ratio.other] += weight * other * miss;
  }
}

/// The normal equations of the weighted problem with its priors, in units of squared residuals.
struct Normal {
  Eigen::MatrixXd matrix;
  Eigen::VectorXd gradient;
};
Normal normal_of(const LeastSquares& problem, const Eigen::VectorXd& x, const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& residuals,
                 double scale) {
  const Eigen::VectorXd weights = weights_of(residuals, scale);
  Normal normal{jacobian.transpose() * weights.asDiagonal() * jacobian, jacobian.transpose() * weights.cwiseProduct(residuals)};
  const Eigen::VectorXd pull = problem.prior_sigma.array().square().inverse() * (scale * scale);
  normal.matrix.diagonal() += pull;
  normal.gradient += pull.cwiseProduct(x - problem.prior);
  add_ratios(problem, x, model_error * model_error, normal.matrix, &normal.gradient);
  return normal;
}

/// One descent at a fixed scale.
void descend(const LeastSquares& problem, double scale, Eigen::VectorXd& x, Eigen::VectorXd& residuals) {
  double damping = 1e-3, loss = loss_of(residuals, scale) + prior_loss(problem, x, scale);
  const Eigen::Index size = x.size();
  for (int step = 0; step < most_steps; ++step) {
    const Eigen::MatrixXd jacobian = jacobian_of(problem, x, residuals);
    const Normal normal = normal_of(problem, x, jacobian, residuals, scale);
    std::vector<bool> held(static_cast<std::size_t>(size), false);
    for (Eigen::Index j = 0; j < size; ++j)
      held[static_cast<std::size_t>(j)] = (x[j] <= problem.low[j] && normal.gradient[j] > 0) || (x[j] >= problem.high[j] && normal.gradient[j] < 0);
    bool better = false;
    while (damping < 1e12) {
      Eigen::MatrixXd matrix = normal.matrix;
      Eigen::VectorXd gradient = normal.gradient;
      for (Eigen::Index j = 0; j < size; ++j) {
        matrix(j, j) += damping * std::max(normal.matrix(j, j), 1e-30);
        if (!held[static_cast<std::size_t>(j)]) continue;
        matrix.row(j).setZero();
        matrix.col(j).setZero();
        matrix(j, j) = 1;
        gradient[j] = 0;
      }
      const Eigen::VectorXd next = (x - matrix.ldlt().solve(gradient)).cwiseMax(problem.low).cwiseMin(problem.high);
      const Eigen::VectorXd at_next = problem.residuals(next);
      const double next_loss = loss_of(at_next, scale) + prior_loss(problem, next, scale);
      if (next_loss < loss) {
        better = loss - next_loss > 1e-10 * loss;
        x = next, residuals = at_next, loss = next_loss;
        damping = std::max(damping / 10, 1e-12);
        break;
      }
      damping *= 10;
    }
    if (!better) return;
  }
}

}  // namespace

Eigen::MatrixXd jacobian_of(const LeastSquares& problem, const Eigen::VectorXd& x, const Eigen::VectorXd& residuals) {
  Eigen::MatrixXd jacobian(residuals.size(), x.size());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    double h = 1e-4 * std::max(std::abs(x[j]), 1e-2);
    if (x[j] + h > problem.high[j]) h = -h;
    Eigen::VectorXd beside = x;
    beside[j] += h;
    jacobian.col(j) = (problem.residuals(beside) - residuals) / h;
  }
  return jacobian;
}

Solution solve(const LeastSquares& problem) {
  Solution solution;
  solution.x = problem.start;
  solution.residuals = problem.residuals(solution.x);
  solution.scale = scale_of(problem, solution.residuals);
  if (problem.start.size() > 0) {
    for (int round = 0; round < most_rounds; ++round) {
      descend(problem, solution.scale, solution.x, solution.residuals);
      const double scale = scale_of(problem, solution.residuals);
      const bool settled = std::abs(scale - solution.scale) < 1e-3 * solution.scale;
      solution.scale = scale;
      if (settled) break;
    }
  }
  solution.weights = weights_of(solution.residuals, solution.scale);
  solution.jacobian = jacobian_of(problem, solution.x, solution.residuals);
  solution.loss = loss_of(solution.residuals, solution.scale);
  return solution;
}

Eigen::MatrixXd covariance_of(const LeastSquares& problem, const Solution& solution) {
  const double count = static_cast<double>(solution.residuals.size());
  const double freedom = count + static_cast<double>(problem.ratios.size()) - static_cast<double>(solution.x.size());
  if (solution.x.size() == 0) return {};  // Eigen decomposes no empty matrix
  if (freedom < 1) return Eigen::MatrixXd::Constant(solution.x.size(), solution.x.size(), std::numeric_limits<double>::infinity());
  double squares = 0, inside = 0;
  for (Eigen::Index i = 0; i < solution.residuals.size(); ++i) {
    const double influence = solution.weights[i] * solution.residuals[i];
    squares += influence * influence;
    inside += solution.weights[i] == 1 ? 1 : 0;
  }
  const double share = std::max(inside / count, 0.1);
  const double correction = 1 + static_cast<double>(solution.x.size()) / count * (1 - share) / share;  // Huber 1981, 7.6.7
  const double variance = std::max(correction * correction * squares / freedom / (share * share), problem.least_scale * problem.least_scale);
  Eigen::MatrixXd information = solution.jacobian.transpose() * solution.jacobian / variance;
  information.diagonal() += problem.prior_sigma.array().square().inverse().matrix();
  add_ratios(problem, solution.x, model_error * model_error / variance, information, nullptr);
  return information.completeOrthogonalDecomposition().pseudoInverse();
}

std::vector<Dependence> dependences_of(const Eigen::MatrixXd& columns, double tolerance) {
  std::vector<Dependence> result(static_cast<std::size_t>(columns.cols()));
  std::vector<int> kept;
  for (Eigen::Index j = 0; j < columns.cols(); ++j) {
    Dependence& dependence = result[static_cast<std::size_t>(j)];
    const double length = columns.col(j).squaredNorm();
    if (length == 0) {
      dependence.dependent = true;
      continue;
    }
    Eigen::MatrixXd before(columns.rows(), static_cast<Eigen::Index>(kept.size()));
    for (std::size_t i = 0; i < kept.size(); ++i) before.col(static_cast<Eigen::Index>(i)) = columns.col(kept[i]).normalized();
    const Eigen::VectorXd unit = columns.col(j).normalized();
    Eigen::VectorXd parts = Eigen::VectorXd::Zero(before.cols());
    if (before.cols() > 0) parts = before.colPivHouseholderQr().solve(unit);
    const Eigen::VectorXd rest = before.cols() > 0 ? Eigen::VectorXd(unit - before * parts) : unit;
    if (rest.squaredNorm() > tolerance) {
      kept.push_back(static_cast<int>(j));
      continue;
    }
    dependence.dependent = true;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (std::abs(parts[static_cast<Eigen::Index>(i)]) > 0.05) dependence.with.push_back(kept[i]);
  }
  return result;
}

}  // namespace podsim
