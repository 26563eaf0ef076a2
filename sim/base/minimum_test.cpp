#include "sim/base/minimum.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace podsim {
namespace {

TEST(FindMinimum, OfAParabolaAndOfACorner) {
  const auto [at, least] = find_minimum([](double x) { return (x - 0.3) * (x - 0.3) + 2; }, 0, 1, 16, 50);
  EXPECT_NEAR(at, 0.3, 1e-3);
  EXPECT_NEAR(least, 2, 1e-5);
  EXPECT_NEAR(find_minimum([](double x) { return std::abs(x - 0.7); }, 0, 1, 10, 50).first, 0.7, 1e-2);
}

TEST(FindMinimum, StopsAfterAsManyStepsAsItMayTake) {
  int calls = 0;
  find_minimum([&calls](double x) { return ++calls, std::cos(x); }, 0, 6, 50, 5);
  EXPECT_LE(calls, 7);
}

}  // namespace
}  // namespace podsim
