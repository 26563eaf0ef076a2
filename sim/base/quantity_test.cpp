#include "sim/base/quantity.hpp"

#include <gmock/gmock.h>

#include <type_traits>

#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class Q>
concept CanBeUnlimited = requires {
  unlimited<Q>;
};

// What must not compile: mixed dimensions, raw numbers that slip in or out, products without a physical meaning.
static_assert(!Addable<Seconds, Bytes> && !Addable<Seconds, Picoseconds> && !Addable<Seconds, double> && !Addable<Bytes, int>);
static_assert(!Subtractable<BytesPerSecond, FlopsPerSecond> && !Subtractable<Bytes, Flops>);
static_assert(!Comparable<Seconds, Picoseconds> && !Comparable<Bytes, int> && !Comparable<Seconds, double>);
static_assert(!Multipliable<Seconds, Seconds> && !Multipliable<Bytes, Bytes> && !Multipliable<Seconds, BytesPerSecond>);
static_assert(!Divisible<Bytes, FlopsPerSecond> && !Divisible<Flops, BytesPerSecond> && !Divisible<BytesPerSecond, Bytes>);
static_assert(!std::is_convertible_v<double, Seconds> && !std::is_convertible_v<Seconds, double>);
static_assert(!std::is_convertible_v<std::int64_t, Bytes> && !std::is_convertible_v<Bytes, std::int64_t>);
static_assert(!std::is_convertible_v<Seconds, Picoseconds> && !std::is_constructible_v<Picoseconds, Seconds>);
static_assert(!CanBeUnlimited<Seconds> && !CanBeUnlimited<Bytes> && CanBeUnlimited<BytesPerSecond>);

// What must: the same concepts, so that a misspelt one cannot pass for a refusal.
static_assert(Addable<Seconds, Seconds> && Subtractable<Bytes, Bytes> && Comparable<Flops, Flops> && Multipliable<double, Seconds>);
static_assert(Divisible<Bytes, BytesPerSecond> && Divisible<Flops, FlopsPerSecond> && Divisible<Seconds, double>);
static_assert(std::is_same_v<decltype(Bytes{1} / BytesPerSecond{1}), Seconds> && std::is_same_v<decltype(Flops{1} / FlopsPerSecond{1}), Seconds>);
static_assert(sizeof(Seconds) == sizeof(double) && sizeof(Bytes) == 8 && std::is_trivially_copyable_v<Seconds>);
static_assert(Seconds{} == Seconds{0} && Bytes{3} + Bytes{4} == Bytes{7} && std::int64_t{3} * Bytes{4} == Bytes{12} && Bytes{7} / 2 == Bytes{3});

TEST(Quantity, DataOverRateIsTime) {
  EXPECT_DOUBLE_EQ((Bytes{45'000'000'000} / BytesPerSecond{90e9}).count(), 0.5);
  EXPECT_DOUBLE_EQ((Flops{1e12} / FlopsPerSecond{2e12}).count(), 0.5);
}

TEST(Quantity, AnUnlimitedRateTakesNoTime) {
  EXPECT_EQ(Bytes{1} / unlimited<BytesPerSecond>, Seconds{});
  EXPECT_EQ(Flops{1e30} / unlimited<FlopsPerSecond>, Seconds{});
  EXPECT_TRUE(is_unlimited(unlimited<FlopsPerSecond>));
  EXPECT_FALSE(is_unlimited(BytesPerSecond{1e300}));
}

TEST(Quantity, CompoundAssignmentAccumulates) {
  Bytes total{10};
  total += Bytes{5};
  total -= Bytes{1};
  EXPECT_EQ(total, Bytes{14});
}

TEST(CeilToClock, RoundsUpToWholePicoseconds) {
  EXPECT_EQ(ceil_to_clock(Seconds{}), Picoseconds{0});
  EXPECT_EQ(ceil_to_clock(Seconds{1e-12}), Picoseconds{1});
  EXPECT_EQ(ceil_to_clock(Seconds{1.001e-12}), Picoseconds{2});
  EXPECT_EQ(ceil_to_clock(Seconds{1e-6 + 0.1e-12}), Picoseconds{1'000'001});
}

TEST(CeilToClock, TheShortestPositiveDurationTakesOnePicosecond) { EXPECT_EQ(ceil_to_clock(Seconds{1e-300}), Picoseconds{1}); }

TEST(CeilToClock, FloatingPointNoiseDoesNotAddAPicosecond) {
  // 0.1 + 0.2 is above 0.3 and 3 * 1.1e-6 above 3.3e-6 in doubles.
  EXPECT_EQ(ceil_to_clock(Seconds{0.1 + 0.2}), Picoseconds{300'000'000'000});
  EXPECT_EQ(ceil_to_clock(3.0 * Seconds{1.1e-6}), Picoseconds{3'300'000});
  for (std::int64_t ps : {1LL, 7LL, 999LL, 4'500'000LL, 123'456'789LL, 5'607'405'187LL, 86'400'000'000'000'000LL})
    EXPECT_EQ(ceil_to_clock(to_seconds(Picoseconds{ps})), Picoseconds{ps});
}

TEST(Later, StopsAtTheEndOfTheClock) {
  EXPECT_EQ(later(Picoseconds{3}, Picoseconds{4}), Picoseconds{7});
  EXPECT_EQ(later(end_of_clock - Picoseconds{4}, Picoseconds{3}), end_of_clock - Picoseconds{1});
  EXPECT_EQ(later(end_of_clock - Picoseconds{4}, Picoseconds{4}), end_of_clock);
  EXPECT_EQ(later(end_of_clock - Picoseconds{4}, Picoseconds{5}), end_of_clock);
  EXPECT_EQ(later(end_of_clock, end_of_clock), end_of_clock);
  EXPECT_EQ(later(end_of_clock, Picoseconds{0}), end_of_clock);
}

TEST(FitsClock, LeavesRoomForASumOfAFew) {
  EXPECT_TRUE(fits_clock(Seconds{}));
  EXPECT_TRUE(fits_clock(Seconds{1.9e6}));
  EXPECT_LT(4 * ceil_to_clock(Seconds{1.9e6}), end_of_clock);
  EXPECT_FALSE(fits_clock(Seconds{2e6}));
  EXPECT_FALSE(fits_clock(Seconds{std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(fits_clock(Seconds{std::numeric_limits<double>::quiet_NaN()}));
}

TEST(CeilToClock, NegativeAndEndlessDurationsAreBugs) {
  EXPECT_THAT([] { static_cast<void>(ceil_to_clock(Seconds{-1e-12})); }, ::testing::ThrowsMessage<InternalError>(::testing::HasSubstr("not negative")));
  EXPECT_THAT([] { static_cast<void>(ceil_to_clock(Bytes{1} / BytesPerSecond{0})); }, ::testing::ThrowsMessage<InternalError>(::testing::HasSubstr("finite")));
}

}  // namespace
}  // namespace podsim
