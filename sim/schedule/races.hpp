// Races: accesses that make the result depend on the order of tasks, or on the order of work within a task.
#pragma once

#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

struct Races {
  std::vector<Diagnostic> found;  // in topological order of the later task of each race
  bool all = true;                // false: the search stopped early, after enough races
  std::uint64_t waits_looked_at = 0;  // the cost, beside the comparisons of accesses
};

/// A race: two tasks touch overlapping regions, one of them writes, and neither happens before the other; or two results of one task overlap; or a
/// result overlaps an operand that LocalTraits::in_place and over_reads do not allow (a blocked product or a copy would read its own writes).
///
/// `order` is a complete topological order of the graph. The search ends after 100 races.
/// Cost: one comparison per pair of accesses to one buffer that overlap or lie near each other, and a backward search per conflict, short where edges
/// are direct. Where paths are long, HappensBefore::together() answers thousands of questions at once: a wrong schedule takes about as long as a
/// right one. If cancelled, the list is incomplete.
Races find_races(const Schedule& lowered, const ActivityGraph& graph, const std::vector<std::uint32_t>& order, Cancellation stop = {});

}  // namespace podsim
