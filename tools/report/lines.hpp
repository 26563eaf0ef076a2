// Arranges intervals on as few lines as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/analysis/node_activity.hpp"

namespace podsim {

/// The line of each interval, from 0: the lowest that is free when the interval begins. Intervals of a line may touch but not overlap.
/// The intervals must be sorted by begin, then by end: an assert.
///   cost    O(n log n); as many lines as the most intervals that overlap at one time
std::vector<std::uint32_t> allot_lines(std::span<const Interval> intervals);

}  // namespace podsim
