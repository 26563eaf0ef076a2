// Units as types: a bare double or int never means time, data, work or rate outside sim/base.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace podsim {

/// An amount of one dimension. Zero by default; raw numbers enter and leave only by name.
template <class Dimension, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_{count} {}
  [[nodiscard]] constexpr Rep count() const { return count_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.count_ + b.count_}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.count_ - b.count_}; }
  friend constexpr Quantity operator*(Rep k, Quantity q) { return Quantity{k * q.count_}; }
  friend constexpr Quantity operator/(Quantity q, Rep k) { return Quantity{q.count_ / k}; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  Rep count_{};
};

using Seconds = Quantity<struct TimeDimension, double>;
using Picoseconds = Quantity<struct ClockDimension, std::int64_t>;  // the clock of every timeline: an integer, good for 106 days
using Bytes = Quantity<struct DataDimension, std::int64_t>;         // 64 bits: 32 overflow at real tensor sizes
using Flops = Quantity<struct WorkDimension, double>;               // an amount; the rate is FlopsPerSecond
using BytesPerSecond = Quantity<struct DataRateDimension, double>;  // ONE direction of ONE link
using FlopsPerSecond = Quantity<struct WorkRateDimension, double>;

// The physical products. Dividing by an infinite rate (one that the machine does not limit) gives zero time.
constexpr Seconds operator/(Bytes data, BytesPerSecond rate) { return Seconds{static_cast<double>(data.count()) / rate.count()}; }
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return Seconds{work.count() / rate.count()}; }

template <class Rate>
  requires std::is_same_v<Rate, BytesPerSecond> || std::is_same_v<Rate, FlopsPerSecond>
inline constexpr Rate unlimited{std::numeric_limits<double>::infinity()};

template <class Rate>
constexpr bool is_unlimited(Rate rate) {
  return rate.count() == std::numeric_limits<double>::infinity();
}

/// A duration in whole picoseconds, rounded UP, so that nothing ends before its data has arrived. A duration within 1 part in 1e12 of a whole number
/// of picoseconds (floating-point noise) becomes that number; above half a second this is rounding to nearest.
/// The duration must be between 0 and 106 days: an assert.
Picoseconds ceil_to_clock(Seconds duration);

/// The last picosecond that the clock can represent. Longer times saturate here.
inline constexpr Picoseconds end_of_clock{std::numeric_limits<std::int64_t>::max()};
/// Whether a duration fits the clock, with headroom for a sum of a few such durations.
constexpr bool fits_clock(Seconds duration) { return duration.count() >= 0 && duration.count() < 2e6; }
/// time + duration, neither negative; end_of_clock if the sum is larger.
constexpr Picoseconds later(Picoseconds time, Picoseconds duration) { return duration > end_of_clock - time ? end_of_clock : time + duration; }

constexpr Seconds to_seconds(Picoseconds time) { return Seconds{static_cast<double>(time.count()) * 1e-12}; }

}  // namespace podsim
