#include "validation/calibration/fit/least_squares.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

LeastSquares linear(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& right, double low = 0) {
  LeastSquares problem;
  problem.start = Eigen::VectorXd::Ones(matrix.cols());
  problem.low = Eigen::VectorXd::Constant(matrix.cols(), low);
  problem.high = Eigen::VectorXd::Constant(matrix.cols(), 1e9);
  problem.prior = problem.start;
  problem.prior_sigma = Eigen::VectorXd::Constant(matrix.cols(), std::numeric_limits<double>::infinity());
  problem.residuals = [=](const Eigen::VectorXd& x) { return Eigen::VectorXd(matrix * x - right); };
  return problem;
}

TEST(LeastSquares, OneOutlierInTwentyDoesNotMoveALine) {
  Eigen::MatrixXd matrix(20, 2);
  Eigen::VectorXd right(20);
  for (int i = 0; i < 20; ++i) {
    matrix.row(i) << 1, i;
    right[i] = 3 + 2 * i + (i % 2 == 0 ? 0.01 : -0.01);
  }
  right[7] += 50;
  const Solution solution = solve(linear(matrix, right));
  EXPECT_NEAR(solution.x[0], 3, 0.02);
  EXPECT_NEAR(solution.x[1], 2, 0.002);
  EXPECT_LT(solution.weights[7], 0.01);
}

TEST(LeastSquares, APriorOfARatioDividesWhatTheObservationsCannot) {
  LeastSquares problem = linear(Eigen::MatrixXd::Ones(4, 2), Eigen::VectorXd::Constant(4, 8), 1e-6);  // x + y = 8, four times
  problem.ratios = {{0, -1, std::log(1.0), 0.4}, {1, -1, std::log(1.0), 0.4}};
  const Solution alike = solve(problem);
  EXPECT_NEAR(alike.x[0], 4, 0.05);
  EXPECT_NEAR(alike.x[1], 4, 0.05);
  problem.ratios = {{0, 1, std::log(3.0), 0.1}};
  const Solution threefold = solve(problem);
  EXPECT_NEAR(threefold.x[0], 6, 0.05);
  EXPECT_NEAR(threefold.x[1], 2, 0.05);
}

TEST(LeastSquares, WhatWouldBeNegativeEndsOnZeroAndTheOthersAreFittedToThat) {
  Eigen::MatrixXd matrix(4, 2);
  matrix << 1, 0, 1, 1, 1, 2, 1, 3;
  const Eigen::VectorXd right = Eigen::Vector4d(4, 3, 2, 1);  // 4 - x
  const Solution solution = solve(linear(matrix, right));
  EXPECT_EQ(solution.x[1], 0);
  EXPECT_GT(solution.x[0], 1);
  EXPECT_NEAR(solve(linear(matrix, right, -10)).x[1], -1, 1e-6);
}

TEST(LeastSquares, APriorHoldsWhatTheDataDoNotTell) {
  Eigen::MatrixXd matrix(6, 2);
  for (int i = 0; i < 6; ++i) matrix.row(i) << 1, 1;
  LeastSquares problem = linear(matrix, Eigen::VectorXd::LinSpaced(6, 4.99, 5.01));
  problem.prior_sigma[0] = 1e-3;
  const Solution solution = solve(problem);
  EXPECT_NEAR(solution.x[0], 1, 1e-3);
  EXPECT_NEAR(solution.x[1], 4, 0.02);
}

TEST(LeastSquares, DependentColumnsNameTheOnesBeforeThatMakeThemUp) {
  Eigen::MatrixXd columns(5, 5);
  columns.col(0) << 1, 1, 1, 1, 1;
  columns.col(1) << 0, 1, 2, 3, 4;
  columns.col(2) << 2, 2, 2, 2, 2;
  columns.col(3) << 1, 2, 3, 4, 5;
  columns.col(4) << 0, 1, 4, 9, 16;
  const auto found = dependences_of(columns, 1e-3);
  EXPECT_FALSE(found[0].dependent || found[1].dependent || found[4].dependent);
  EXPECT_EQ(found[2].with, std::vector<int>{0});
  EXPECT_EQ(found[3].with, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace podsim
