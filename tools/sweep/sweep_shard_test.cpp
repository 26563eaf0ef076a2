// Shards: every point is of exactly one, and bad ones are told.
#include "tools/sweep/sweep_shard.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/sweep/test_sweep.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::Outcome;

TEST(SweepShard, EveryPointIsOfOneShardAndSizesDifferByAtMostOne) {
  for (const std::size_t points : {0U, 1U, 2U, 7U, 64U, 1000U, 9973U})
    for (const std::size_t count : {1U, 2U, 3U, 8U, 100U}) {
      SCOPED_TRACE(std::to_string(points) + " points, " + std::to_string(count) + " shards");
      std::vector<std::size_t> times(points);
      for (std::size_t index = 1; index <= count; ++index) {
        const std::vector<std::size_t> positions = positions_of({index, count}, points);
        EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
        EXPECT_GE(positions.size(), points / count);
        EXPECT_LE(positions.size(), (points + count - 1) / count);
        for (const std::size_t position : positions) {
          ASSERT_LT(position, points);
          ++times[position];
        }
      }
      EXPECT_EQ(std::count(times.begin(), times.end(), 1U), static_cast<std::ptrdiff_t>(points));
    }
}

TEST(SweepShard, IsTheSameOnAllHosts) { EXPECT_EQ(positions_of({3, 8}, 64), (std::vector<std::size_t>{1, 11, 16, 31, 36, 44, 50, 57})); }

TEST(SweepShard, WhatIsNoShardIsToldBeforeAnythingIsWritten) {
  const Folder folder;
  const std::string file =
      folder.file("s.textproto", "format_version: 1\nsweep { machine: 'ideal' slice: '4' collective: 'all-gather' axis: 'row' bytes: '16' }");
  for (const auto& [shard, message] :
       std::vector<std::pair<std::string, std::string>>{{"0/4", "expected a shard from 1 to 4, found 0"},
                                                        {"5/4", "expected a shard from 1 to 4, found 5"},
                                                        {"1/0", "expected 1 to 1000000 shards, found 0"},
                                                        {"1/1000001", "expected 1 to 1000000 shards, found 1000001"},
                                                        {"a/b", "expected I/N, such as 3/8, found \"a/b\""},
                                                        {"3", "expected I/N, such as 3/8, found \"3\""},
                                                        {"3/", "expected I/N, such as 3/8, found \"3/\""},
                                                        {"/8", "expected I/N, such as 3/8, found \"/8\""},
                                                        {"-1/8", "expected I/N, such as 3/8, found \"-1/8\""},
                                                        {"1/2/3", "expected I/N, such as 3/8, found \"1/2/3\""},
                                                        {"1 / 2", "expected I/N, such as 3/8, found \"1 / 2\""},
                                                        {"1.5/2", "expected I/N, such as 3/8, found \"1.5/2\""},
                                                        {"99999999999999999999/4", "expected I/N, such as 3/8, found \"99999999999999999999/4\""}}) {
    const Outcome outcome = test::run_words({"sweep", file, "--store", folder.file("s.sqlite"), "--shard", shard});
    EXPECT_EQ(outcome.status, exit_bad_input) << shard;
    EXPECT_EQ(outcome.err, "podsim: error: --shard: " + message + "\n");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"s.textproto"});
}

TEST(SweepShard, BelongsToASweepThatRuns) {
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"sweep --store s.sqlite --shard 1/2 --export csv", "--shard: belongs to a sweep that runs; a store tells of all points that are in it"},
           {"sweep --store s.sqlite --shard 1/2 --status", "--shard: belongs to a sweep that runs; a store tells of all points that are in it"},
           {"sweep --merge p.sqlite --store s.sqlite --shard 1/2", "--shard: belongs to a sweep that runs; --merge runs none"}}) {
    const Outcome outcome = test::podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.err, "podsim: error: " + message + "\n") << line;
  }
}

}  // namespace
}  // namespace podsim
