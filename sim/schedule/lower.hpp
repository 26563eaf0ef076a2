// Lowering: every Collective becomes the tasks of an algorithm.
#pragma once

#include <functional>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

/// An algorithm of algorithms/collectives. Errors: it does not fit the mesh axis, the kind, or the extents.
using CollectiveAlgorithm = std::function<Expected<Expansion>(const Mesh&, const Program&, const Collective&)>;

/// Names the algorithm for each Collective. Errors: none fits.
using CollectiveChooser = std::function<Expected<CollectiveAlgorithm>(const Schedule&, const Collective&)>;

/// A pass: pure. Every Collective is replaced by one Local{launch} (dma) and its expansion:
///   * the launch waits for the Collective's edges and for the queue of its axes: the last tasks of the previous Collective on each axis;
///   * every task without an unguarded predecessor in the expansion, and every guarded one, waits for the launch;
///   * an edge to the Collective becomes edges to all of its tasks that no other of its tasks follows. (A guarded follower may be absent on
///     a device, so it does not hide its predecessor.)
///   * lowered tasks keep their Origin.
/// Errors: the chooser's and the algorithm's. A schedule without Collectives comes back equal.
Expected<Schedule> lower(const Schedule& schedule, const CollectiveChooser& chooser);

}  // namespace podsim
