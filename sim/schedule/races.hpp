// Races: what makes the result of a schedule depend on the order of its tasks, or on how a task goes about its own work.
#pragma once

#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

struct Races {
  std::vector<Diagnostic> found;  // in the order in which the later task of each comes
  bool all = true;                // false: the search ended early, with enough
  std::uint64_t waits_looked_at = 0;  // what it cost, beside the looks at pairs of accesses
};

/// Two tasks touch overlapping regions, one of them writes, and neither happens before the other; or two results of one task overlap; or a result
/// overlaps what the task reads, other than as LocalTraits::in_place allows: a blocked product or a copy would read what it has written already.
///
/// `order` is a complete topological order of the graph. The search ends after 100 races.
/// Cost: a look at each pair of accesses that overlap in one buffer, or are near each other, and for those that conflict a search backwards, short
/// where edges are direct. Where ways are long, thousands of questions are answered together by HappensBefore::together(): a wrong schedule takes
/// about as long as a right one. Told to end, it has not found all.
Races find_races(const Schedule& lowered, const ActivityGraph& graph, const std::vector<std::uint32_t>& order, Cancellation stop = {});

}  // namespace podsim
