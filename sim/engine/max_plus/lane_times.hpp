// Times of several variants side by side: what is done to one is done to all with a few instructions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace podsim::max_plus {

inline constexpr std::size_t lane_count = 8;

/// Picoseconds of each lane. Doubles, as every processor has their maxima and sums in pairs: below `exact_below` they are the same whole numbers.
struct Lanes {
  typedef double Two __attribute__((vector_size(16)));
  Two of[lane_count / 2] = {};

  [[nodiscard]] double operator[](std::size_t lane) const { return of[lane / 2][lane % 2]; }
  void set(std::size_t lane, double time) { of[lane / 2][lane % 2] = time; }
  /// As an integer; only of a lane that is beyond `exact_below` it may be less.
  [[nodiscard]] std::int64_t whole(std::size_t lane) const { return static_cast<std::int64_t>(std::min((*this)[lane], 9e18)); }
};
inline constexpr double exact_below = 9007199254740992.0;  // 2^53: two and a half hours

inline Lanes::Two max_of(Lanes::Two a, Lanes::Two b) { return a > b ? a : b; }
inline Lanes max_of(const Lanes& a, const Lanes& b) {
  return {{max_of(a.of[0], b.of[0]), max_of(a.of[1], b.of[1]), max_of(a.of[2], b.of[2]), max_of(a.of[3], b.of[3])}};
}
inline Lanes::Two min_of(Lanes::Two a, Lanes::Two b) { return a < b ? a : b; }
inline Lanes min_of(const Lanes& a, const Lanes& b) {
  return {{min_of(a.of[0], b.of[0]), min_of(a.of[1], b.of[1]), min_of(a.of[2], b.of[2]), min_of(a.of[3], b.of[3])}};
}
inline Lanes operator+(const Lanes& a, const Lanes& b) { return {{a.of[0] + b.of[0], a.of[1] + b.of[1], a.of[2] + b.of[2], a.of[3] + b.of[3]}}; }
inline Lanes operator-(const Lanes& a, const Lanes& b) { return {{a.of[0] - b.of[0], a.of[1] - b.of[1], a.of[2] - b.of[2], a.of[3] - b.of[3]}}; }

/// Whether a < b, of all even lanes and of all odd ones: nonzero if so in any of them.
typedef std::int64_t TwoFlags __attribute__((vector_size(16)));
inline TwoFlags less(const Lanes& a, const Lanes& b) { return (a.of[0] < b.of[0]) | (a.of[1] < b.of[1]) | (a.of[2] < b.of[2]) | (a.of[3] < b.of[3]); }
inline bool any(TwoFlags flags) { return (flags[0] | flags[1]) != 0; }
/// Whether a < b in any lane.
inline bool any_less(const Lanes& a, const Lanes& b) { return any(less(a, b)); }

/// Whether [begin_a, end_a) and [begin_b, end_b) overlap in any lane.
inline bool any_overlap(const Lanes& begin_a, const Lanes& end_a, const Lanes& begin_b, const Lanes& end_b) {
  const auto at = [&](std::size_t i) { return (begin_a.of[i] < end_b.of[i]) & (begin_b.of[i] < end_a.of[i]); };
  return any(at(0) | at(1) | at(2) | at(3));
}

/// The same time in all lanes.
inline Lanes all_lanes(double time) {
  const Lanes::Two two{time, time};
  return {{two, two, two, two}};
}

}  // namespace podsim::max_plus
