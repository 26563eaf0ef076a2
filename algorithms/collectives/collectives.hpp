// The algorithms that lowering may choose for a Collective. Each is a pure function of the schedule: it never sees a machine or a clock.
//
// Symbols: P = devices on the axis, c = own coordinate, V = bytes of one shard (all-gather: the input; reduce-scatter: the output; all-reduce:
// 1/P of the input; broadcast, reduce: all of it), E = bytes of one block of an all-to-all (1/P of the input), alpha = per-message overhead +
// hop latency (alpha_k: with k hops), beta = seconds per byte of one link direction. The closed forms hold where the axis has its links to
// itself and reduction is free; closed_form.hpp computes them, and tests hold every timing engine to it. A Collective's own launch comes on top.
//
// Examples: rank r of 4 holds shard A, B, C or D of an all-gather, r = 0 .. 3, and has all of them at the end; A1 and A2 are the halves of A. A
// reduce-scatter runs backwards.
//
// The functions below work along one axis (in_phases() makes several of it). All-reduce is a reduce-scatter, then an all-gather, and costs
// both; it works in the output, and its `dim` must divide by P.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/collectives/closed_form.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim {

/// Into how many chunks a broadcast or reduce of `payload` bytes along a chain of devices is cut.
using ChunkRule = std::function<int(int devices, Bytes payload)>;

// ---- Rings and lines: all-gather, reduce-scatter, all-reduce --------------------------------------------------------------------------

/// Ring, one direction: every shard travels P-1 hops to +1.
///
///   all-gather      step i: send block c-i, receive block c-1-i             modulo P
///   reduce-scatter  step i: send block c-1-i, receive and add block c-2-i; the last lands on the own block
///   all-reduce      both
///   cost            (P-1) * (alpha + V * beta); all-reduce twice that
///   errors          an open axis (names `line`), several axes, another kind
///   source          the classic ring algorithm; JAX shard_map collective-permute loops
///   example         rank 1 holds B; step 0 brings A from rank 0 (which goes on to rank 2 next), step 1 brings D, step 2 C
Expected<Expansion> ring_one_way(const Mesh& mesh, const Program& program, const Collective& collective);

/// Ring, both directions at once: the shard is halved along the outermost dimension that is not gathered and longer than 1 (else along
/// the gathered one); the first ceil half goes +1, the rest -1. Two devices share one cable: one whole transfer each. In an all-reduce each
/// direction gathers as soon as it has reduced, without waiting for the other. All-to-all is ring_all_to_all().
///
///   cost    (P-1) * (alpha + ceil(V/2) * beta); P = 2: alpha + V * beta; all-reduce twice that
///   errors  as ring_one_way
///   source  JAX Pallas TPU all-gather (both ICI directions); the scaling book, "How is an AllGather actually performed?"
///   example rank 1 sends B1 to rank 2 and B2 to rank 0. Step 0 brings A1 from rank 0 and C2 from rank 2, step 1 D1 and D2, step 2 C1 and A2
Expected<Expansion> ring(const Mesh& mesh, const Program& program, const Collective& collective);

/// Ring, both directions, whole shards, each the short way: half the steps of `ring`, for small messages. With P even the antipodal shard
/// goes +1 only. A reduce-scatter's -1 stream ends in scratch, and a dma `add` joins it.
///
///   cost    floor(P/2) * (alpha + V * beta); the reduce-scatter's add on top where Locals take time
///   errors  as ring_one_way
///   example rank 1 sends B to ranks 2 and 0. Step 0 brings A and C, step 1 D from rank 0 only
Expected<Expansion> ring_shortest(const Mesh& mesh, const Program& program, const Collective& collective);

/// Open axis: shards travel from every device to both ends. All-to-all is line_all_to_all().
///
///   all-gather      step i: +1 sends block c-i from devices c >= i, -1 sends block c+i from devices c <= P-1-i
///   reduce-scatter  the same backwards: partial sums travel from the ends to their block's device; what comes from -1 ends in scratch, and
///                   a dma `add` joins it
///   cost            (P-1) * (alpha + V * beta), all-reduce twice that; the reduce-scatter's add on top where Locals take time
///   errors          several axes, another kind
///   example         step 0 brings A from rank 0 and C from rank 2 to rank 1, step 1 D from rank 2: it has all. Ranks 0 and 3 need step 2 too
Expected<Expansion> line(const Mesh& mesh, const Program& program, const Collective& collective);

/// Recursive halving (reduce-scatter) and doubling (all-gather) on the axis viewed as 2x2x...x2: with bit j of the coordinate flipped, a shift
/// by 1 on a factor of size 2. Blocks stay together in memory: halving starts with the highest bit, doubling with the lowest.
///
///   all-gather      j = 0 .. log2(P)-1: exchange the 2^j blocks held with the device at distance 2^j
///   reduce-scatter  j = log2(P)-1 .. 0: give away the half of 2^j blocks that the other side keeps, receive and add the own one
///   cost            sum over j of (alpha_(2^j) + 2^j * V * beta) without contention (a switch); on a ring up to 2^j flows share a link
///   errors          P is no power of two, several axes, another kind
///   source          Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH (2005)
///   example         rank 1 swaps with rank 0 and has A B, then swaps these with rank 3 and has A B C D
Expected<Expansion> halving_doubling(const Mesh& mesh, const Program& program, const Collective& collective);

/// Every pair at once, for switches. All kinds; permute is permute().
///
///   all-gather      own shard to everybody;   reduce-scatter  block b to device b, arrivals land in scratch, adds in a chain
///   all-to-all      block b to device b;      broadcast, reduce  the root to everybody, everybody to the root
///   cost            all-gather, reduce-scatter, all-to-all, broadcast: alpha + (P-1) * V * beta, beta that of a device's own link into the
///                   switch (injection; reduce: ejection at the root); alpha + V * beta with P-1 links of its own
///   errors          several axes
///   example         rank 1 sends B to ranks 0, 2 and 3 at once, and gets A, C and D
Expected<Expansion> direct(const Mesh& mesh, const Program& program, const Collective& collective);

// ---- All-to-all -----------------------------------------------------------------------------------------------------------------------

/// Store and forward on a ring, both ways: in step s the bundle of blocks with s or more hops still ahead of their first goes one hop on,
/// and the block with displacement s has arrived. The antipodal block of an even ring goes half each way where it has two elements (P = 2: all
/// of it +1). Bundles are laid out by free places.
///
///   cost    h = floor(P/2) steps; P odd: h*alpha + h(h+1)/2 * E*beta; P even: h*alpha + h^2/2 * E*beta (P = 2: alpha + E*beta)
///   errors  an open axis, several axes
///   example 4 ranks, rank 1. Step 1: to rank 2 its block for 2 and the first half of that for 3; to rank 0 its block for 0 and the other half of
///   that
///           for 3. Step 2: it passes on the half block from 0 for 2, and the one from 2 for 0
Expected<Expansion> ring_all_to_all(const Mesh& mesh, const Program& program, const Collective& collective);

/// Open axis: in step k everybody sends to c+k and to c-k at once, where they exist; every block is routed.
///
///   cost    at least floor(P^2/4) * E*beta, which the middle links carry whatever the algorithm; at most the sum of alpha_k, k = 1 .. P-1, more
///   example 4 ranks, rank 1: step 1 sends to ranks 2 and 0, step 2 to rank 3, step 3 nothing
Expected<Expansion> line_all_to_all(const Mesh& mesh, const Program& program, const Collective& collective);

/// Step k = 1 .. P-1: everybody sends to c+k, one step after the other; k > P/2 goes -(P-k), the antipodal step half each way.
///
///   cost    on a switch: (P-1) * (alpha + E*beta)
///           on a ring every flow of step k shares its links with d-1 others: sum over k of (alpha_d + d*E*beta), d = min(k, P-k), and
///           alpha_d + d*E/2*beta for the antipodal step of P > 2
///   errors  several axes, another kind
///   example 4 ranks, rank 1: step 1 sends to rank 2 and gets from 0, step 2 swaps with rank 3, step 3 sends to rank 0 and gets from 2
Expected<Expansion> pairwise(const Mesh& mesh, const Program& program, const Collective& collective);

// ---- Broadcast, reduce, permute -------------------------------------------------------------------------------------------------------

/// Broadcast and reduce in n chunks along neighbours: `around` a ring (from the root in + direction; a reduce from root+1 to the root), else
/// from and to both ends of an open axis. A chunk goes on once it is here and the one before is gone. Chunks cut the outermost dimension
/// longer than 1, at most into single elements. The root writes its own output by a free place. A reduce accumulates in the input if that is
/// scratch, else in a scratch copy, and touches no output but the root's; on an open axis a dma `add` joins both sides there.
///
///   cost    (H-1+n) * (alpha + V/n * beta), H = hops to the far end: P-1 on a ring, max(root, P-1-root) on an open axis
///   errors  `around` an open axis, several axes, a rule that names fewer than one chunk
///   source  pipelined broadcast of SUMMA (van de Geijn, Watts 1997)
///   example broadcast from rank 1 of 4 in 2 chunks round a ring: 1 > 2 > 3 > 0. Step 1: chunk 0 to rank 2. Step 2: chunk 1 to rank 2, chunk 0 on
///   to 3.
///           Step 3: chunk 1 on to 3, chunk 0 to 0. Step 4: chunk 1 to 0. On an open axis rank 1 sends to 0 and 2 at once, and 2 to 3
Expected<Expansion> chain(const Mesh& mesh, const Program& program, const Collective& collective, bool around, const ChunkRule& chunks);

/// Permute, along any number of axes: one Send and one Recv per pair; where the pairs are one rotation along one axis, a Shift the short way
/// round. A device that sends to itself has a free place.
///
///   cost    alpha_d + V * (most flows on a link) * beta, d = the longest way
///   example 0>1 1>2 2>3 3>0 is one Shift by 1; 0>2 alone a Send on rank 0 and a Recv on rank 2
Expected<Expansion> permute(const Mesh& mesh, const Program& program, const Collective& collective);
/// Position i to i + by, modulo `devices`.
std::vector<Collective::Pair> shift_pairs(std::int64_t devices, std::int64_t by);

// ---- Schedules of real kernels --------------------------------------------------------------------------------------------------------

/// All-gather of the Pallas TPU tutorial: a blocking local copy, then ring_one_way: each step waits for its send and its receive.
///
///   cost    copy(V) + (P-1) * (alpha + V * beta)
///   source  jax docs/pallas/tpu/distributed.md
///   example rank 1 copies B to its place; then A, D and C arrive from rank 0, one a step
Expected<Expansion> pallas_ring(const Mesh& mesh, const Program& program, const Collective& collective);

/// all_gather of JAX's Pallas TPU library: a blocking local copy, then the first half of the shard's rows goes left (-1), the second right.
///
///   cost    copy(V) + (P-1) * (alpha + ceil(V/2) * beta); P = 2: a whole shard
///   source  jax/experimental/pallas/ops/tpu/all_gather.py
///   example rank 1 copies B to its place; step 0 brings C1 from rank 2 and A2 from rank 0, step 1 D1 and D2, step 2 A1 and C2
Expected<Expansion> pallas_bidirectional(const Mesh& mesh, const Program& program, const Collective& collective);

/// Reduce-scatter of the Pallas TPU tutorial, which alternates directions. Blocks are halved; accumulators of the first half travel left, of
/// the second right, N = P hops back to the device they started from. After a prologue (one copy left) come 2N phases: while one half is on
/// its way, the other is added to; the last two phases only store. N+1 half-blocks go left (the last is never used), N go right.
///
///   cost    3h + (2N-2) * max(h, add(V/2)), h = alpha + V/2 * beta: about 2N * max(copy, add), as the source has it
///   errors  an open axis, several axes, a block of one element, an output that is not shaped like a block
///   source  jax docs/pallas/tpu/distributed.md, "Bi-directional communication"
///   example 4 ranks: the left half of block 1 starts with the share of rank 1 and goes 1 > 0 > 3 > 2 > 1; ranks 0, 3 and 2 add theirs on the way.
///   The
///           right half goes 1 > 2 > 3 > 0 > 1
Expected<Expansion> pallas_alternating(const Mesh& mesh, const Program& program, const Collective& collective);

// ---- Several axes ---------------------------------------------------------------------------------------------------------------------

/// One axis after the other, first most significant. All-gather: the last axis first; reduce-scatter: the first first; all-reduce: reduce-
/// scatters, then all-gathers; all three work on blocks nested in one buffer. All-to-all: axis by axis in scratch [P of each axis..., block],
/// with free places around it: an axis of size p moves (p-1)/p of the data. Broadcast: the first axis from the root, then the next from all that
/// have it; reduce backwards. Permute is handed on. Axes of size 1 are left out.
///
///   cost    the sum of the phases, with the bytes of each: all-gather along axis i: V_i = V times the sizes of the axes after it
///   example all-gather on 2x2, shards A B of row 0, C D of row 1: device (0, 0) gathers A B along columns, then swaps that for C D along rows
Expected<Expansion> in_phases(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& on_one_axis);

/// Half of the data (along a dimension that is not gathered, where one is longer than 1) in the order of in_phases(), the other half in the
/// opposite order, so that two axes are busy at once. Free places rearrange.
///
///   cost    two axes of size p, ring: all-gather (p-1)(alpha + V/4 beta) + (p-1)(alpha + pV/4 beta): half of the phases' bytes
///   errors  fewer than two axes with more than one device; kinds other than all-gather, reduce-scatter, all-reduce; blocks of input and output
///           that differ in shape
///   example all-gather on 2x2, shards A B of row 0, C D of row 1: device (0, 0) gets B1 along columns and C2 along rows, then C1 D1 along rows and
///   B2 D2
///           along columns
Expected<Expansion> halves(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& on_one_axis);

/// An all-reduce along one or several axes, of an algorithm that does reduce-scatter and all-gather along one.
///
///   example 4 ranks: after the reduce-scatter rank 1 has block 1 of the sum, after the all-gather all four
Expected<Expansion> reduce_scatter_all_gather(const Mesh& mesh, const Program& program, const Collective& collective,
                                              const CollectiveAlgorithm& algorithm);

// ---- The table ------------------------------------------------------------------------------------------------------------------------

class CollectiveKinds {
 public:
  constexpr CollectiveKinds(std::initializer_list<CollectiveKind> kinds) {
    for (const CollectiveKind kind : kinds) bits_ |= 1U << static_cast<unsigned>(kind);
  }
  [[nodiscard]] constexpr bool has(CollectiveKind kind) const { return (bits_ >> static_cast<unsigned>(kind) & 1U) != 0; }

 private:
  unsigned bits_ = 0;
};

/// What the axes have to be, those with one device aside. Two devices count as wrapped.
struct AxisNeeds {
  bool wraps = false, power_of_two = false;  // each of them
  int axes = 1;                              // so many at least
};

/// How broadcast and reduce are pipelined: not at all, or as a chain() of chunks around a ring, or from and to both ends of a line.
enum class Pipeline { none, around_ring, to_both_ends };

/// A row: all that the rest of podsim knows of an algorithm. To add one: its function above, its formula in closed_form.hpp, a row.
struct CollectiveAlgorithmEntry {
  std::string_view name, summary;
  CollectiveKinds kinds;
  AxisNeeds needs;
  Expected<Expansion> (*on_one_axis)(const Mesh&, const Program&, const Collective&);  // of a kind that is no chain; several axes in phases
  CollectiveForm* closed_form;
  Pipeline pipeline = Pipeline::none;
};
std::span<const CollectiveAlgorithmEntry> collective_algorithms();
/// The row of that name; null: there is none.
const CollectiveAlgorithmEntry* collective_algorithm_named(std::string_view name);
/// The row that ring_or_line() takes along an axis.
const CollectiveAlgorithmEntry& usual_algorithm(CollectiveKind kind, bool wraps);

/// Whether it does this kind along such axes, if sizes divide.
bool applies(const CollectiveAlgorithmEntry& algorithm, CollectiveKind kind, const std::vector<CollectiveAxis>& axes);

/// A row as one function, along any number of axes.
CollectiveAlgorithm expansion_by(const CollectiveAlgorithmEntry& algorithm, ChunkRule chunks);

/// The named algorithm for every Collective. Errors: no such algorithm (names the near ones).
Expected<CollectiveChooser> always(std::string_view name, ChunkRule chunks = {});

/// `ring` on axes that wrap, `line` on open ones, permute direct: what a GEMM's collectives use unless told otherwise.
CollectiveChooser ring_or_line(ChunkRule chunks = {});

/// A schedule of one collective, every device of the mesh taking part in its group along `axes`; `bytes` is the input on each device
/// (broadcast: the root's). Buffers are [block of the group, data of a block], preceded by one dimension of size 1 per mesh axis that tells
/// the devices' data apart.
///
///   errors   `bytes` is not positive, not whole elements of `dtype`, or (reduce-scatter, all-reduce, all-to-all) does not divide by the
///            devices of a group; a root or pair that is not among them; pairs that send or receive twice
struct CollectiveDetails {
  std::int64_t root = 0;                  // broadcast, reduce
  std::vector<Collective::Pair> pairs{};  // permute; none: a shift by 1
};
Expected<Schedule> collective_schedule(const Mesh& mesh, CollectiveKind kind, const std::vector<AxisView>& axes, Bytes bytes, DType dtype,
                                       const CollectiveDetails& details = {});

}  // namespace podsim
