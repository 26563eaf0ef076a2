// A machine's default lowering of collectives. Algorithms see no machine, so these functions turn its values into arguments.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/collectives/axis_cells.hpp"
#include "algorithms/collectives/collectives.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// The number of chunks, 1 to 64, with which a pipeline takes the least time: the first chunk passes all stages, then one chunk after the other the
/// slowest one. A stage's latency and bandwidth are those of the routes between neighbours along its axis, on the chips where they stand; other
/// traffic on these links does not count. A chain of P-1 equal hops: the n that minimises (P-2+n)(alpha + V/(nB)).
///   cost    one route per device along the axis, per call
ChunkRule chunk_rule(const System& system);

/// Seconds before the first byte of a transfer from each device of the first group along the axis to the next one, with the per-message overhead; on an
/// axis that wraps, from the last to the first too.
std::vector<double> latencies_along(const System& system, const Mesh& mesh, const AxisView& axis);

/// Applies the chooser's algorithm to the physical dimensions that a folded mesh axis consists of, instead of the axis itself, so that several
/// dimensions can be busy at once.
CollectiveChooser on_factors(CollectiveChooser chooser, std::vector<AxisView> factors);

/// Lowers collectives on a folded axis by physical dimension: with `rotations` (all dimensions at once) if the kind allows it, otherwise
/// one dimension after the other. A collective that names its algorithm is lowered by that, where its kind and sizes allow it; `rotations` along one axis that is
/// not folded by in_cells(), where `cells` knows the dimensions under it. All others as in ring_or_line().
CollectiveChooser by_dimension(ChunkRule chunks, CellRule cells = {});

/// Whether the algorithm goes through the dimensions under one axis that is not folded, by in_cells(): `rotations` and `hamiltonian-ring`.
bool goes_through_cells(const CollectiveAlgorithmEntry& algorithm);

/// The dimensions under the axes of the system's mesh that are not folded: boxes of an unchanged slice whose chips have one device.
///   cost    the devices of the mesh, per call
///   example v5e 4x4 as data=16 in JAX's order: 4x4, cells 0 4 8 12 13 9 5 6 10 14 15 11 7 3 2 1
CellRule cells_along(const System& system);

/// Lowers collectives along one axis whose devices are all in different slices by `direct`: each device sends to all others at once, so that a doubling
/// of the slices adds its latency (dcn.sync) twice to an all-reduce, where a ring would add it in each of its steps. All other collectives by `otherwise`.
/// As a policy of runs, with by_dimension() for all others: "direct-between-slices".
inline constexpr std::string_view direct_between_slices_name = "direct-between-slices";
CollectiveChooser direct_between_slices(const System& system, CollectiveChooser otherwise);

/// As NCCL does it. All-to-alls by `direct`, as it makes them of sends and receives. The ranks of a collective that has several in each of several nodes by `hierarchical`, in chunks: NCCL's
/// rings enter and leave each node by all of its network cards at once, which chunks that go within nodes and between them do as well. All others as in ring_or_line().
/// Of rings and trees NCCL takes the faster one; trees are left out here. As a policy of runs: "nccl".
inline constexpr std::string_view nccl_name = "nccl";
CollectiveChooser as_nccl(ChunkRule chunks);

/// Whether a policy of runs has that name and chooses by a rule, without simulating: by-dimension, direct-between-slices, nccl.
bool is_rule(std::string_view policy);

}  // namespace podsim
