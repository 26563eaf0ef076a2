#include "sim/base/rng.hpp"

#include <set>

#include <gtest/gtest.h>

namespace podsim {
namespace {

// Inputs of the numeric engine and all random test cases follow from these: changing the function changes every recorded result.
static_assert(counter_hash(0, 0, 0) == counter_hash(0, 0, 0));
static_assert(stream_of("") == 0xcbf29ce484222325ULL && stream_of("a") == 0xaf63dc4c8601ec8cULL);  // the published FNV-1a vectors

TEST(CounterHash, DependsOnEveryArgument) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (std::uint64_t stream = 0; stream < 10; ++stream)
      for (std::uint64_t counter = 0; counter < 100; ++counter) seen.insert(counter_hash(seed, stream, counter));
  EXPECT_EQ(seen.size(), 10'000u);
}

TEST(CounterHash, FlippingOneInputBitFlipsAboutHalfOfTheOutput) {
  for (int bit = 0; bit < 64; ++bit) {
    int flipped = 0;
    for (std::uint64_t n = 0; n < 200; ++n) flipped += __builtin_popcountll(counter_hash(1, 2, n) ^ counter_hash(1, 2, n ^ (1ULL << bit)));
    EXPECT_NEAR(flipped / 200.0, 32, 2) << "bit " << bit;
  }
}

TEST(Rng, CountsThroughTheHash) {
  Rng rng{7, 9};
  for (std::uint64_t n = 0; n < 5; ++n) EXPECT_EQ(rng.next(), counter_hash(7, 9, n));
}

TEST(Rng, StaysInItsBoundsAndReachesThem) {
  Rng rng{3};
  std::set<int> seen;
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const int value = rng.between(-4, 4);
    EXPECT_TRUE(-4 <= value && value <= 4);
    seen.insert(value);
    const double unit = rng.uniform();
    EXPECT_TRUE(0 <= unit && unit < 1);
    sum += unit;
  }
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
  EXPECT_EQ(unit_interval(0), 0);
  EXPECT_LT(unit_interval(~0ULL), 1);
}

}  // namespace
}  // namespace podsim
