// Lowering: replaces every Collective by the tasks of an algorithm.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

/// An algorithm of algorithms/collectives. Errors: it does not support the mesh axis, the kind or the extents.
using CollectiveAlgorithm = std::function<Expected<Expansion>(const Mesh&, const Program&, const Collective&)>;

/// Chooses the algorithm for each Collective. Errors: none applies.
using CollectiveChooser = std::function<Expected<CollectiveAlgorithm>(const Schedule&, const Program&, const Collective&)>;

/// The bytes that a device copies from the input of an out-of-place collective to its output, because it has them already: the input of an all-gather, an
/// n-th of the input of a reduce-scatter, all-reduce (rounded up to elements) or all-to-all of n devices. Nothing if input and output share a buffer.
Bytes own_block_of(const Program& program, const Collective& collective);

/// The label of the Collective that tasks were lowered from, by the first of them.
std::string_view label_of_collective(const Task& first);

/// Replaces every Collective by one Local{launch} (dma) and its expansion. A pure function:
///   * The launch waits for the Collective's edges, and for the last tasks of the previous Collective on each of its axes (one queue per axis).
///   * Every task of the expansion that has no unguarded predecessor in it waits for the launch, and so does every guarded one.
///   * An edge to the Collective becomes edges to the last tasks of its expansion: those that no other of its tasks follows unconditionally.
///     A guarded follower may be absent on a device, so its predecessor counts as a last task.
///   * A Collective's guard becomes one of all its tasks: it is the same on all devices of a group. Where it does not hold, the next Collective on the
///     axis waits for the one before.
///   * Lowered tasks record their Origin. The launch takes the time of copying the own block, too.
/// Example: task 1 follows an all-gather on a ring of 2. Lowered, the launch comes first, then the alias of the own block, then a Shift by +1, then
/// task 1; each waits for the one before it.
/// Functions are lowered once, each on its own: queues of axes do not lead across calls. Then calls are inlined (calls.hpp).
/// Errors: those of the chooser and the algorithm. A schedule without Collectives and Calls is returned unchanged.
Expected<Schedule> lower(const Schedule& schedule, const CollectiveChooser& chooser);
/// The same, but the result has its calls and functions. Proofs, numeric and all engines but des need them inlined.
Expected<Schedule> lower_with_calls(const Schedule& schedule, const CollectiveChooser& chooser);

}  // namespace podsim
