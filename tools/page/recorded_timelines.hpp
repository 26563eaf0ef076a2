// What the devices of a run do when, within its calls too.
#pragma once

#include <functional>
#include <vector>

#include "tools/page/record.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

inline constexpr std::size_t most_timelines = 16;
inline constexpr std::size_t most_bars =
    80'000;  // of all timelines but the first together: 2 MB of a page; classes beyond are left out, and `missing` says so

/// Told how many of the timelines there are yet, and of none, 0 of 0, when that is done.
using TimelineCounting = std::function<void(std::size_t done, std::size_t all)>;

/// Adds the timelines of the largest of these classes of devices, with the names and calls that their bars refer to.
///
/// A call that was played as one task is a bar of the line `calls`, named by its label and what that says: "fwd_0__3 layer 7 (forward, stage 0,
/// microbatch 3)". What a device does in it is on other lines: the stretches in which its core is busy on `compute`, those in which something is in
/// flight along an axis on `row in calls`, those of the dma unit on `dma in calls`. Where the calls of the first timeline hold more than most_bars,
/// no line has them, and `missing` says so.
///   cost    O(n log n) for the n bars of the timelines
void add_timelines(Record& record, const Run& run, std::vector<DeviceMetrics> classes, const TimelineCounting& counting = {});

}  // namespace podsim
