#include "validation/calibration/importers/stream_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace podsim {
namespace {

using ::testing::ElementsAre;

TEST(StreamTimes, ArithmeticHidesCopiesAndBothHideCommunication) {
  // A product from 0 to 10, a copy from 5 to 15, an all-reduce from 2 to 20: exposed from 15 on.
  EXPECT_THAT(own_times({{0, 10, KernelRank::arithmetic}, {5, 15, KernelRank::copy}, {2, 20, KernelRank::communication}}), ElementsAre(10, 5, 5));
}

TEST(StreamTimes, OfOneRankTheFirstHasTheMoment) {
  EXPECT_THAT(own_times({{5, 15, KernelRank::arithmetic}, {0, 10, KernelRank::arithmetic}}), ElementsAre(5, 10));
  EXPECT_THAT(own_times({{0, 10, KernelRank::arithmetic}, {0, 10, KernelRank::arithmetic}}), ElementsAre(10, 0));
  EXPECT_THAT(own_times({{3, 3, KernelRank::arithmetic}, {3, 1, KernelRank::copy}}), ElementsAre(0, 0));
  EXPECT_TRUE(own_times({}).empty());
}

TEST(StreamTimes, TheySumToTheTimeInWhichAnythingRuns) {
  std::mt19937 random{7};
  for (int round = 0; round < 200; ++round) {
    std::vector<StreamSpan> spans;
    std::set<std::int64_t> busy, computing;
    for (int s = 0; s < 12; ++s) {
      const auto begin = static_cast<std::int64_t>(random() % 50), length = static_cast<std::int64_t>(random() % 20);
      spans.push_back({begin, begin + length, static_cast<KernelRank>(random() % 3)});
      for (std::int64_t t = begin; t < begin + length; ++t) {
        busy.insert(t);
        if (spans.back().rank != KernelRank::communication) computing.insert(t);
      }
    }
    const std::vector<std::int64_t> own = own_times(spans);
    EXPECT_EQ(std::accumulate(own.begin(), own.end(), std::int64_t{0}), static_cast<std::int64_t>(busy.size()));
    std::int64_t exposed = 0;
    for (std::size_t s = 0; s < spans.size(); ++s) {
      EXPECT_LE(own[s], spans[s].end_ps - spans[s].begin_ps);
      exposed += spans[s].rank == KernelRank::communication ? own[s] : 0;
    }
    EXPECT_EQ(exposed, static_cast<std::int64_t>(busy.size() - computing.size()));
  }
}

}  // namespace
}  // namespace podsim
