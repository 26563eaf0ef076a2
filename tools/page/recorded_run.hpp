// The record of a run.
#pragma once

#include <string>

#include "tools/page/record.hpp"
#include "tools/page/recorded_timelines.hpp"
#include "tools/report/run_report.hpp"

namespace podsim {

inline constexpr std::size_t most_changes =
    60'000;  // of live memory, of all timelines together: 2 MB of a page; devices beyond have none, and `missing` says so
inline constexpr int most_drawn_nodes = 8192;  // of a network; a larger one is left out, and `missing` says so

/// Of a run whose timeline is recorded; `details` have its devices, `command` is what a shell takes. Cost O(n log n) for the n tasks of each device
/// that it shows, and that of an unfolded model's routes.
/// Errors: cancelled work.
Expected<Record> record_of(const Run& run, const Details& details, std::string command, std::string podsim_version, Cancellation stop = {},
                           const TimelineCounting& counting = {});

}  // namespace podsim
