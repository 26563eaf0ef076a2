// The operations of a run in the terms of a fit's coverage: tells whether a prediction goes beyond what the machine was fitted to.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/machine/machine.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// The products and the communication of a schedule before lowering: one range of sizes per operation, number of devices and set of dimensions. A Shift
/// or Send of an algorithm counts as a permute. Copies in memory count only in schedules without products and communication. Groups are taken from the
/// first device; groups of one device move nothing.
std::vector<Coverage> operations_in(const Schedule& schedule, const System& system);

/// Adds operations; those of the same kind become one range.
void merge(std::vector<Coverage>& into, const std::vector<Coverage>& more);

/// The smallest range that contains both.
inline void widen(SizeRange& range, const SizeRange& by) { range = {std::min(range.least, by.least), std::max(range.most, by.most)}; }

}  // namespace podsim
