// How a machine suggests to lower collectives. Algorithms see no machine; who knows it tells them.
#pragma once

#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// Chunks of a broadcast or reduce along a chain of neighbours: what minimises (P-2+n)(alpha + V/(nB)), n = sqrt((P-2)V/(alpha B)), rounded,
/// 1 to 64; 8 where alpha = 0. alpha = overhead per message + hop latency, B = bandwidth, of the links of dimension x.
ChunkRule chunk_rule(const Machine& machine);

/// The chooser's algorithm on the physical dimensions that a single mesh axis folds, rather than on the axis: several of them can then be used at
/// once.
CollectiveChooser on_factors(CollectiveChooser chooser, std::vector<AxisView> factors);

/// An axis that folds several physical dimensions is used by dimension: `halves` (both orders at once, half of the data each) where the
/// kind allows it, else one after the other; everything else as ring_or_line().
CollectiveChooser by_dimension(ChunkRule chunks);

}  // namespace podsim
