// The clock of the runner.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/quantity.hpp"

namespace podsim {

/// A moment of CLOCK_MONOTONIC in nanoseconds. All ranks of one host read the same clock; those of several hosts do not, so the runner is for one.
struct Moment {
  std::int64_t ns = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};
Moment now();

inline Seconds operator-(Moment end, Moment begin) { return Seconds{static_cast<double>(end.ns - begin.ns) / 1e9}; }

}  // namespace podsim
