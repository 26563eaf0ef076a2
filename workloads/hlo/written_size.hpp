// Refuses modules that are too large to be written as a schedule, before they are.
#pragma once

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_loops.hpp"

namespace podsim {

inline constexpr std::size_t most_hlo_tasks = std::size_t{1} << 22;
inline constexpr int deepest_hlo_calls = 200;
inline constexpr std::size_t widest_hlo_value = std::size_t{1} << 15;

/// What ProgramWriter would write out: loops of the entry once and a Call for each trip, loops within loops and calls as often as they run. Errors, at the
/// instruction: more than most_hlo_tasks instructions of that; computations that call each other deeper than deepest_hlo_calls; a value of more
/// arrays than widest_hlo_value (their places take time quadratic in them). Cost O(instructions).
Status check_written_size(const HloModule& module, const HloTripCounts& trip_counts);

}  // namespace podsim
