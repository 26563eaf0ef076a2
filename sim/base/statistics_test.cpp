#include "sim/base/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace podsim {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 2}), 3);
}

TEST(Percentile, IsASampleThatTheShareDoesNotExceed) {
  std::vector<double> samples(20);
  std::iota(samples.rbegin(), samples.rend(), 1.0);
  EXPECT_EQ(percentile({}, 0.95), 0);
  EXPECT_EQ(percentile({7}, 0.95), 7);
  EXPECT_EQ(percentile(samples, 0), 1);
  EXPECT_EQ(percentile(samples, 0.5), 10);
  EXPECT_EQ(percentile(samples, 0.95), 19);
  EXPECT_EQ(percentile(samples, 0.951), 20);
  EXPECT_EQ(percentile(samples, 1), 20);
}

TEST(StudentQuantile, IsThatOfTables) {
  EXPECT_NEAR(student_quantile(0.95, 1), 12.706, 0.001);
  EXPECT_NEAR(student_quantile(0.95, 2), 4.303, 0.001);
  EXPECT_NEAR(student_quantile(0.95, 3), 3.182, 0.02);
  EXPECT_NEAR(student_quantile(0.95, 10), 2.228, 0.001);
  EXPECT_NEAR(student_quantile(0.99, 30), 2.750, 0.001);
  EXPECT_TRUE(std::isinf(student_quantile(0.95, 0)));
}

}  // namespace
}  // namespace podsim
