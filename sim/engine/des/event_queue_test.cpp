// The queue against std::multimap.
#include "sim/engine/des/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/base/rng.hpp"

namespace podsim::des {
namespace {

/// How far ahead: now, near, or anywhere up to 2^62.
std::int64_t random_distance(Rng& rng) {
  switch (rng.below(4)) {
    case 0: return 0;
    case 1: return rng.between(0, 3);
    case 2: return rng.between(0, 100000);
    default: return static_cast<std::int64_t>(rng.next() >> rng.between(2, 60));
  }
}

TEST(EventQueue, GivesWhatAMultimapGives) {
  constexpr std::int64_t farthest = std::int64_t{1} << 62;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed};
    EventQueue<int> queue;
    std::multimap<std::int64_t, int> expected;
    int next = 0;
    const auto push = [&] {
      const std::int64_t room = farthest - queue.now(), time = queue.now() + std::min(room, random_distance(rng));
      queue.push(time, next);
      expected.emplace(time, next++);
    };
    for (int count = rng.between(1, 40); count > 0; --count) push();
    for (int steps = 0; !queue.empty(); ++steps) {
      if (!queue.due()) {
        queue.advance();
        ASSERT_EQ(queue.now(), expected.begin()->first);
      }
      std::vector<int> taken, due;
      while (queue.due()) {
        taken.push_back(queue.take());
        if (steps < 300 && rng.below(3) == 0) push();  // at now() too, while it is taken from
      }
      const auto end = expected.upper_bound(queue.now());
      for (auto entry = expected.begin(); entry != end; ++entry) due.push_back(entry->second);
      expected.erase(expected.begin(), end);
      std::sort(taken.begin(), taken.end());
      std::sort(due.begin(), due.end());
      ASSERT_EQ(taken, due) << "at " << queue.now();
      for (int count = steps < 300 ? rng.between(0, 2) : 0; count > 0; --count) push();
    }
    ASSERT_TRUE(expected.empty());
  }
}

TEST(EventQueue, EntriesOfOneTimeComeInTheOrderOfPushing) {
  EventQueue<int> queue;
  queue.push(5, 1);
  queue.push(7, 4);
  queue.push(5, 2);
  queue.push(5, 3);
  queue.advance();
  for (int expected = 1; expected <= 3; ++expected) EXPECT_EQ(queue.take(), expected);
  EXPECT_FALSE(queue.due());
  EXPECT_FALSE(queue.empty());
  queue.push(5, 9);
  EXPECT_EQ(queue.take(), 9);
  queue.advance();
  EXPECT_EQ(queue.now(), 7);
  EXPECT_EQ(queue.take(), 4);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace podsim::des
