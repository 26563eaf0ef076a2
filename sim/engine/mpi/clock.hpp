// The clock of the MPI runner.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/quantity.hpp"

namespace podsim {

/// A time of CLOCK_MONOTONIC in nanoseconds. All ranks must run on one host: clocks of different hosts are not synchronised.
struct Moment {
  std::int64_t ns = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};
Moment now();

inline Seconds operator-(Moment end, Moment begin) { return Seconds{static_cast<double>(end.ns - begin.ns) / 1e9}; }

}  // namespace podsim
