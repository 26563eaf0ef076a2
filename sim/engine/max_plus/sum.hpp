// Times as the pass computes with them.
#pragma once

#include <cstdint>

#include "sim/base/quantity.hpp"

namespace podsim::max_plus {

inline std::int64_t sum(std::int64_t time, std::int64_t duration) { return later(Picoseconds{time}, Picoseconds{duration}).count(); }

/// Of an activity that has no times.
inline constexpr Picoseconds not_yet{-1};

/// A time that waits for something of which the end is not known yet.
inline constexpr std::int64_t unknown = end_of_clock.count();

}  // namespace podsim::max_plus
