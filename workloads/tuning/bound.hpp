// A lower bound on the time of a product without building its schedule, for pruning in the tuner.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/base/quantity.hpp"
#include "topologies/system.hpp"
#include "workloads/part.hpp"

namespace podsim {

/// The physical dimensions under the axes of a mesh.
struct AxisRings {
  struct Ring {
    int size = 1;
    bool wraps = false;
    LinkParameters link;
  };
  std::vector<Ring> row, col;  // without dimensions of one chip
};
/// nullopt: the system is not an undamaged grid of chips with one device each, or an axis covers part of a dimension.
std::optional<AxisRings> axis_rings(const System& system);

/// The GEMMs of a product's pass, in order: the forward one, or those of both gradients.
std::vector<GemmProblem> gemms_of(const WorkloadPart& part);

/// What a collective of one slice of a GEMM takes at least, by axis; none: only the formulas say.
struct SliceCollectives {
  Seconds row, col;
};

/// A lower bound on the part's des time on the system, with its collectives lowered by dimension; where the part names another lowering, by whatever algorithm, from what each
/// device must receive (all-gather) or send (reduce-scatter). Per pass, the larger of
///   core   matmuls and slice copies; plus the first gathers before the first matmul, as far as cuts do not hide them; plus the last reduce-scatter
///          after the last matmul, as far as joins do not hide it. On the slowest device matmuls take longer, and what follows the last one may not
///   axis   the uncontended durations of the collectives of an axis in sequence; plus what must precede the first and follow the last
/// Close to des for collective and meshslice if only the longest of these is exposed. For wang it has the exposed gather and the hops; for other
/// algorithms, and where the rings are unknown, only the arithmetic. Along an axis over several unlike dimensions the formula may be half of what the
/// collective takes; `known`, one per GEMM of gemms_of(), may say more (lone_collectives.hpp).
Seconds product_bound(const WorkloadPart& part, const PartOptions& options, const System& system, const std::optional<AxisRings>& rings,
                      std::span<const SliceCollectives> known = {});

}  // namespace podsim
