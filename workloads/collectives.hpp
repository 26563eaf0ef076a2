// A machine's default lowering of collectives. Algorithms see no machine, so these functions turn its values into arguments.
#pragma once

#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "sim/machine/machine.hpp"

namespace podsim {

/// The number of chunks of a broadcast or reduce along a chain of neighbours that minimises (P-2+n)(alpha + V/(nB)): n = sqrt((P-2)V/(alpha B)),
/// rounded, 1 to 64; 8 if alpha = 0. alpha = per-message overhead + hop latency, B = bandwidth, both of the links of dimension x.
ChunkRule chunk_rule(const Machine& machine);

/// Applies the chooser's algorithm to the physical dimensions that a folded mesh axis consists of, instead of the axis itself, so that several
/// dimensions can be busy at once.
CollectiveChooser on_factors(CollectiveChooser chooser, std::vector<AxisView> factors);

/// Lowers collectives on a folded axis by physical dimension: with `rotations` (all dimensions at once) if the kind allows it, otherwise
/// one dimension after the other. All other collectives as in ring_or_line().
CollectiveChooser by_dimension(ChunkRule chunks);

}  // namespace podsim
