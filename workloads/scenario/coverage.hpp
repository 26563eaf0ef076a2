// What a run asks of a machine, in the terms in which a fit says what it covers: so that a prediction beyond the fit is recognised.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/machine/machine.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// The products and the communication of a schedule before it is lowered, a range of sizes for each operation on so many devices along the same
/// dimensions. A Shift or Send that an algorithm wrote is a permute; copies in memory count where they are all there is. Groups are looked at on one
/// device, the first; groups of one device move nothing.
std::vector<Coverage> operations_in(const Schedule& schedule, const System& system);

/// Adds operations to others, those of the same kind to one range.
void merge(std::vector<Coverage>& into, const std::vector<Coverage>& more);

/// Makes a range at least as wide as both.
inline void widen(SizeRange& range, const SizeRange& by) { range = {std::min(range.least, by.least), std::max(range.most, by.most)}; }

}  // namespace podsim
