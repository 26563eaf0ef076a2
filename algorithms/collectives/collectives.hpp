// The algorithms that lowering may choose for a Collective. Each is a pure function of the schedule: it never sees a machine or a clock.
//
// Symbols: P = devices on the axis, V = bytes of one shard (all-gather: the input; reduce-scatter: the output), alpha = per-message overhead +
// hop latency, beta = seconds per byte of one link direction. The closed forms hold where the axis has its links to itself and reduction is
// free; tests hold every timing engine to them. A Collective's own launch comes on top.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/schedule/lower.hpp"

namespace podsim {

/// Ring, one direction: every shard travels P-1 hops to +1.
///
///   all-gather      step i: send block c-i, receive block c-1-i             c = own coordinate, modulo P
///   reduce-scatter  step i: send block c-1-i, receive and add block c-2-i; the last lands on the own block
///   cost            (P-1) * (alpha + V * beta)
///   errors          an open axis (names `line`), several axes, another kind
///   source          the classic ring algorithm; JAX shard_map collective-permute loops
Expected<Expansion> ring_one_way(const Schedule& schedule, const Program& program, const Collective& collective);

/// Ring, both directions at once: the shard is halved along the outermost dimension that is not gathered and longer than 1 (else along
/// the gathered one); the first ceil half goes +1, the rest -1. Two devices share one cable: one whole transfer each.
///
///   cost    (P-1) * (alpha + ceil(V/2) * beta); P = 2: alpha + V * beta
///   errors  as ring_one_way
///   source  JAX Pallas TPU all-gather (both ICI directions); the scaling book, "How is an AllGather actually performed?"
Expected<Expansion> ring(const Schedule& schedule, const Program& program, const Collective& collective);

/// Open axis: shards travel from every device to both ends.
///
///   all-gather      step i: +1 sends block c-i from devices c >= i, -1 sends block c+i from devices c <= P-1-i
///   reduce-scatter  the same backwards: partial sums travel from the ends to their block's device; what comes from -1 ends in scratch, and
///                   a dma `add` joins it
///   cost            (P-1) * (alpha + V * beta); the reduce-scatter's add on top where Locals take time
///   errors          several axes, another kind
Expected<Expansion> line(const Schedule& schedule, const Program& program, const Collective& collective);

struct CollectiveAlgorithmEntry {
  std::string_view name, summary;
  Expected<Expansion> (*expand)(const Schedule&, const Program&, const Collective&);
};
std::span<const CollectiveAlgorithmEntry> collective_algorithms();

/// The named algorithm for every Collective. Errors: no such algorithm (names the near ones).
Expected<CollectiveChooser> always(std::string_view name);

/// A schedule of one collective, every device of the mesh taking part in its group along `axes`; `bytes` is the input on each device.
/// Buffers are [block of the group, data of a block], preceded by one dimension of size 1 per mesh axis that tells the devices' data apart.
///
///   errors   `bytes` is not positive, not whole elements of `dtype`, or (reduce-scatter, all-to-all) does not divide by the devices of a group
Expected<Schedule> collective_schedule(const Mesh& mesh, CollectiveKind kind, const std::vector<AxisView>& axes, Bytes bytes, DType dtype);

/// `ring` on axes that wrap, `line` on open ones: what a GEMM's collectives use unless told otherwise.
CollectiveChooser ring_or_line();

}  // namespace podsim
