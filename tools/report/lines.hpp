// Spans of time on as few lines as they need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/analysis/node_activity.hpp"

namespace podsim {

/// The line of each interval, from 0: the lowest that is free when it begins, so that the intervals of a line do not overlap; they may touch.
/// The intervals are sorted by begin and then by end: an assert.
///   cost    O(n log n); as many lines as overlap at any time
std::vector<std::uint32_t> allot_lines(std::span<const Interval> intervals);

}  // namespace podsim
