#include "tools/report/lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

std::vector<Interval> intervals(const std::vector<std::pair<int, int>>& pairs) {
  std::vector<Interval> result;
  for (const auto& [begin, end] : pairs) result.push_back({Picoseconds{begin}, Picoseconds{end}});
  return result;
}

TEST(Lines, WhatTouchesSharesALineAndWhatOverlapsDoesNot) {
  EXPECT_THAT(allot_lines({}), ElementsAre());
  EXPECT_THAT(allot_lines(intervals({{0, 5}, {5, 9}, {9, 9}, {9, 12}})), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(allot_lines(intervals({{0, 5}, {4, 9}, {5, 6}, {8, 10}, {9, 11}})), ElementsAre(0, 1, 0, 0, 1));
}

TEST(Lines, OneWithinAnotherDoesNotShareItsLineEvenWithoutLength) {
  EXPECT_THAT(allot_lines(intervals({{0, 9}, {3, 4}, {5, 5}, {9, 9}})), ElementsAre(0, 1, 1, 0));
}

TEST(Lines, AsManyAsOverlapAtATime) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed};
    std::vector<std::pair<int, int>> pairs;
    for (int i = 0, count = rng.between(0, 40); i < count; ++i) {
      const int begin = rng.between(0, 50);
      pairs.emplace_back(begin, begin + rng.between(1, 12));
    }
    std::sort(pairs.begin(), pairs.end());
    const auto lines = allot_lines(intervals(pairs));
    std::uint32_t used = 0, most = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::uint32_t at_once = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        if (pairs[j].second <= pairs[i].first) continue;
        ++at_once;
        ASSERT_TRUE(i == j || lines[i] != lines[j]);
      }
      most = std::max(most, at_once);
      used = std::max(used, lines[i] + 1);
    }
    ASSERT_EQ(used, most);
  }
}

}  // namespace
}  // namespace podsim
