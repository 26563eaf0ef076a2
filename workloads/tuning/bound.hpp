// A lower bound on the time of a product, without building its schedule: what the tuner prunes with.
#pragma once

#include <optional>
#include <vector>

#include "sim/base/quantity.hpp"
#include "topologies/system.hpp"
#include "workloads/part.hpp"

namespace podsim {

/// The physical dimensions that the axes of a mesh are laid over.
struct AxisRings {
  struct Ring {
    int size = 1;
    bool wraps = false;
    LinkParameters link;
  };
  std::vector<Ring> row, col;  // without dimensions of one chip
};
/// nullopt: not an undamaged grid of chips with one device each, or an axis takes a part of a dimension.
std::optional<AxisRings> axis_rings(const System& system);

/// No longer than the part takes on the system by des, its collectives lowered by dimension. Per pass, the longest of
///   core   its matmuls and slice copies; before the first matmul the first gathers, as far as cuts do not hide them; after the last one the last
///          reduce-scatter, as far as joins do not
///   axis   the collectives of an axis one after the other, each at least as long as uncontended; what has to come before the first and after the
///          last
/// For collective and meshslice close to des where nothing is exposed but what is longest; for wang the exposed gather and the hops; for other
/// algorithms, and where the rings are not known, the arithmetic alone.
Seconds product_bound(const WorkloadPart& part, const PartOptions& options, const System& system, const std::optional<AxisRings>& rings);

}  // namespace podsim
