// The algorithms that lowering may choose for a Collective. Each is a pure function of the schedule: it never sees a machine or a clock.
//
// Symbols: P = devices on the axis, c = own coordinate, V = bytes of one shard (all-gather: the input; reduce-scatter: the output; all-reduce:
// 1/P of the input; broadcast, reduce: all of it), E = bytes of one block of an all-to-all (1/P of the input), alpha = per-message overhead +
// hop latency (alpha_k: with k hops), beta = seconds per byte of one link direction. The closed forms hold if the axis's links carry nothing else
// and reduction is free. closed_form.hpp computes them, and tests compare every timing engine to them. A Collective's own launch is extra.
//
// Examples: rank r = 0 .. 3 of 4 holds shard A, B, C or D before an all-gather, and all four after it; A1 and A2 are the halves of A. A
// reduce-scatter runs the same steps backwards.
//
// The functions below work along one axis; in_phases() extends them to several. All-reduce is a reduce-scatter, then an all-gather, and costs
// both; it works in the output, and the extent of its `dim` must be a multiple of P.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/collectives/closed_form.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim {

/// Stages that every chunk of a collective passes one after the other: `times` of them in a row along one axis, such as the hops of a chain.
struct PipelineStage {
  AxisView axis;
  int times = 1;
  int steps = 1;     // transfers one after the other in each stage
  double bytes = 0;  // of all chunks together, over one direction of the busiest link, in all steps of a stage
};
/// The number of chunks in which a collective passes such stages.
using ChunkRule = std::function<int(const Mesh& mesh, const std::vector<PipelineStage>& stages)>;
/// Always so many.
ChunkRule in_chunks(int count);

/// The axes of a collective as levels of a network, outermost (slowest) first.
using Levels = std::vector<AxisView>;

// ---- Rings and lines: all-gather, reduce-scatter, all-reduce --------------------------------------------------------------------------

/// Ring, one direction: every shard travels P-1 hops in + direction.
///
///   all-gather      step i: send block c-i, receive block c-1-i             modulo P
///   reduce-scatter  step i: send block c-1-i, receive and add block c-2-i; the last one received is the own block
///   all-reduce      both
///   cost            (P-1) * (alpha + V * beta); all-reduce twice that
///   errors          an open axis (the message names `line`), several axes, another kind
///   source          the classic ring algorithm; JAX shard_map collective-permute loops
///   example         rank 1 holds B; step 0 brings A from rank 0 (and rank 1 passes it to rank 2 in step 1), step 1 brings D, step 2 C
Expected<Expansion> ring_one_way(const Mesh& mesh, const Program& program, const Collective& collective);

/// Ring, both directions at once. The shard is halved along the outermost dimension that is not gathered and even (else the longest, else the gathered
/// one); the larger half goes +1, the other -1. Two devices share one cable: one transfer of the whole shard each. In an all-reduce each direction
/// gathers as soon as it has reduced, without waiting for the other. For all-to-all it is ring_all_to_all().
///
///   cost    (P-1) * (alpha + ceil(V/2) * beta); P = 2: alpha + V * beta; all-reduce twice that
///   errors  as ring_one_way
///   source  JAX Pallas TPU all-gather (both ICI directions); the scaling book, "How is an AllGather actually performed?"
///   example rank 1 sends B1 to rank 2 and B2 to rank 0. Step 0 brings A1 from rank 0 and C2 from rank 2, step 1 D1 and D2, step 2 C1 and A2
Expected<Expansion> ring(const Mesh& mesh, const Program& program, const Collective& collective);

/// Ring, both directions, whole shards, each the short way round: half the steps of `ring`, for small messages. With even P the antipodal shard goes
/// +1 only. In a reduce-scatter the -1 stream ends in scratch, and a dma `add` combines the two.
///
///   cost    floor(P/2) * (alpha + V * beta); plus the reduce-scatter's add where Locals take time
///   errors  as ring_one_way
///   example rank 1 sends B to ranks 2 and 0. Step 0 brings A and C, step 1 D from rank 0 only
Expected<Expansion> ring_shortest(const Mesh& mesh, const Program& program, const Collective& collective);

/// Open axis: shards travel from every device to both ends. For all-to-all it is line_all_to_all().
///
///   all-gather      step i: +1 sends block c-i from devices c >= i, -1 sends block c+i from devices c <= P-1-i
///   reduce-scatter  the same backwards: partial sums travel from the ends to their block's device; the stream from the + side ends in
///                   scratch, and a dma `add` combines the two
///   cost            (P-1) * (alpha + V * beta), all-reduce twice that; plus the reduce-scatter's add where Locals take time
///   errors          several axes, another kind
///   example         step 0 brings A from rank 0 and C from rank 2 to rank 1, step 1 D from rank 2: complete. Ranks 0 and 3 need step 2 too
Expected<Expansion> line(const Mesh& mesh, const Program& program, const Collective& collective);

/// A ring on an open axis: the order 0, 2, 4, ..., 5, 3, 1, in which neighbours are at most two hops apart. Every link carries one block per step, so
/// one way round is all that the links allow; both ways with half blocks would take as long. An open ring in the order of coordinates would have one
/// step of P-1 hops. In place of line() it needs no addition at the end, and its shifts all have the same size; its latencies are of two hops.
///
///   cost    (P-1) * (alpha_2 + V * beta), all-reduce twice that; P = 2: alpha_1
///   errors  several axes, another kind
///   source  the interleaved placement of MeshGEMM (WaferLLM: Large Language Model Inference at Wafer Scale, 2025)
///   example 5 ranks, rank 2, ring 0 2 4 3 1. Step 0 brings A from rank 0, step 1 B, which rank 0 has from rank 1, step 2 D, step 3 E; each time rank 2
///           passes on to rank 4 what it had before
Expected<Expansion> folded_ring(const Mesh& mesh, const Program& program, const Collective& collective);

/// Recursive halving (reduce-scatter) and doubling (all-gather). The axis is viewed as 2x2x...x2; an exchange across bit j of the coordinate is a
/// shift by 1 on a factor of size 2. Halving starts with the highest bit and doubling with the lowest, so blocks stay contiguous.
///
///   all-gather      j = 0 .. log2(P)-1: exchange the 2^j blocks held with the device at distance 2^j
///   reduce-scatter  j = log2(P)-1 .. 0: send the half (2^j blocks) that the partner keeps, receive and add the own half
///   cost            sum over j of (alpha_(2^j) + 2^j * V * beta) without contention (a switch); on a ring up to 2^j flows share a link
///   errors          P is not a power of two, several axes, another kind
///   source          Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in MPICH (2005)
///   example         rank 1 exchanges with rank 0 and has A B, then exchanges these with rank 3 and has A B C D
Expected<Expansion> halving_doubling(const Mesh& mesh, const Program& program, const Collective& collective);

/// All pairs at once, for switches. Supports all kinds; its permute is permute().
///
///   all-gather      the own shard to every device;   reduce-scatter  block b to device b, arrivals land in scratch, adds in a chain
///   all-to-all      block b to device b;             broadcast, reduce  the root to every device, every device to the root
///   cost            all-gather, reduce-scatter, all-to-all, broadcast: alpha + (P-1) * V * beta, with beta of the device's link into the switch
///                   (injection; reduce: the root's ejection); alpha + V * beta if a device has P-1 separate links
///   errors          several axes
///   example         rank 1 sends B to ranks 0, 2 and 3 at once, and gets A, C and D
Expected<Expansion> direct(const Mesh& mesh, const Program& program, const Collective& collective);

/// A switch that adds up and copies (InSwitch): every device's link carries each block of a reduce-scatter or all-gather once. All-reduce is both, in
/// chunks: while a chunk is copied the next one is added up.
///
///   reduce-scatter  every device sends block b towards device b; the switch passes on the sum
///   all-gather      every device sends its shard once; the switch passes it on to all
///   cost            beta of links at in_switch_efficiency of their bandwidth: alpha_2 + (P-1) * V * beta; all-reduce in n chunks
///                   (n+1) * alpha_2 + (2 * (P-1) + (n-1) * P) * V/n * beta, about P * V * beta, as the links carry P-1 blocks of one chunk and one of another
///   errors          a line; several axes, another kind. The model refuses a switch that cannot (link[..].in_switch_efficiency = 0)
///   source          NCCL's NVLS; Graham et al.: Scalable Hierarchical Aggregation Protocol (2016)
///   example         4 devices: device 1 sends block 0 towards device 0, which gets A0 + B0 + C0 + D0 once, adds nothing and sends it to the switch once
Expected<Expansion> in_switch(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& chunks);
/// What a chunk of an in-switch all-reduce of so many bytes passes.
std::vector<PipelineStage> in_switch_stages(const AxisView& axis, Bytes input);

// ---- All-to-all -----------------------------------------------------------------------------------------------------------------------

/// Store and forward on a ring, both ways. A block with displacement s moves one hop per step and arrives in step s; blocks that move in the same
/// direction travel as one bundle. The antipodal block of an even ring goes half each way if it has two or more elements (P = 2: all of it +1).
/// Aliases, free in time, lay out the bundles.
///
///   cost    h = floor(P/2) steps; P odd: h*alpha + h(h+1)/2 * E*beta; P even: h*alpha + h^2/2 * E*beta (P = 2: alpha + E*beta)
///   errors  an open axis, several axes
///   example 4 ranks, rank 1. Step 1: to rank 2 its block for 2 and the first half of its block for 3; to rank 0 its block for 0 and the other half
///           for 3. Step 2: it forwards the half block from rank 0 to rank 2, and the half block from rank 2 to rank 0
Expected<Expansion> ring_all_to_all(const Mesh& mesh, const Program& program, const Collective& collective);

/// Open axis: in step k every device sends to c+k and to c-k at once, if they exist; every block is routed.
///
///   cost    at least floor(P^2/4) * E*beta, the traffic of the middle links under any algorithm; at most that plus the sum of alpha_k, k = 1 .. P-1
///   example 4 ranks, rank 1: step 1 sends to ranks 2 and 0, step 2 to rank 3, step 3 nothing
Expected<Expansion> line_all_to_all(const Mesh& mesh, const Program& program, const Collective& collective);

/// Step k = 1 .. P-1: every device sends to c+k, one step after the other; k > P/2 goes -(P-k), the antipodal step half each way.
///
///   cost    on a switch: (P-1) * (alpha + E*beta)
///           on a ring every flow of step k shares its links with d-1 others: sum over k of (alpha_d + d*E*beta), d = min(k, P-k), and
///           alpha_d + d*E/2*beta for the antipodal step of P > 2
///   errors  several axes, another kind
///   example 4 ranks, rank 1: step 1 sends to rank 2 and receives from 0, step 2 exchanges with rank 3, step 3 sends to 0 and receives from 2
Expected<Expansion> pairwise(const Mesh& mesh, const Program& program, const Collective& collective);

// ---- Broadcast, reduce, permute -------------------------------------------------------------------------------------------------------

/// Pipelined broadcast or reduce in n chunks along neighbours. `around` true: around a ring, a broadcast from the root in + direction, a reduce from
/// root+1 to the root. False: on an open axis, from the root to both ends or back. A device forwards a chunk once it has arrived and the one before
/// it has left. Chunks cut the outermost dimension longer than 1, at most into single elements. The root's own output is an alias, free in time. A
/// reduce accumulates in the input if that is scratch, otherwise in a scratch copy, and writes only the root's output; on an open axis a dma `add`
/// combines both sides there.
///
///   cost    (H-1+n) * (alpha + V/n * beta), H = hops to the far end: P-1 on a ring, max(root, P-1-root) on an open axis
///   errors  `around` an open axis, several axes, a chunk rule that returns less than 1
///   source  pipelined broadcast of SUMMA (van de Geijn, Watts 1997)
///   example broadcast from rank 1 of 4 in 2 chunks around a ring: 1 > 2 > 3 > 0. Step 1: chunk 0 to rank 2. Step 2: chunk 1 to rank 2, chunk 0 to
///           rank 3. Step 3: chunk 1 to rank 3, chunk 0 to rank 0. Step 4: chunk 1 to rank 0. On an open axis rank 1 sends to 0 and 2 at once, and 2
///           to 3
Expected<Expansion> chain(const Mesh& mesh, const Program& program, const Collective& collective, bool around, const ChunkRule& chunks);

/// Permute along any number of axes: one Send and one Recv per pair. Pairs that form one rotation along one axis, or move all positions that have a target along it
/// (i to i + 1 but for the last one), become a Shift the short way round. A device that sends to itself gets an alias, free in time.
///
///   cost    alpha_d + V * (largest number of flows on a link) * beta, d = hops of the longest route
///   example 0>1 1>2 2>3 3>0 is one Shift by 1; 0>1 1>2 2>3 one on ranks 0 to 2; 0>2 alone, of 4, a Send on rank 0 and a Recv on rank 2
Expected<Expansion> permute(const Mesh& mesh, const Program& program, const Collective& collective);
/// The pairs from position i to i + by, modulo `devices`.
std::vector<Collective::Pair> shift_pairs(std::int64_t devices, std::int64_t by);

// ---- Schedules of real kernels --------------------------------------------------------------------------------------------------------

/// All-gather of the Pallas TPU tutorial: a blocking local copy, then ring_one_way(); each step waits for its send and its receive.
///
///   cost    copy(V) + (P-1) * (alpha + V * beta)
///   source  jax docs/pallas/tpu/distributed.md
///   example rank 1 copies B to its position; then A, D and C arrive from rank 0, one per step
Expected<Expansion> pallas_ring(const Mesh& mesh, const Program& program, const Collective& collective);

/// all_gather of JAX's Pallas TPU library: a blocking local copy, then the first half of the shard's rows goes left (-1), the second right.
///
///   cost    copy(V) + (P-1) * (alpha + ceil(V/2) * beta); P = 2: a whole shard
///   source  jax/experimental/pallas/ops/tpu/all_gather.py
///   example rank 1 copies B to its position; step 0 brings C1 from rank 2 and A2 from rank 0, step 1 D1 and D2, step 2 A1 and C2
Expected<Expansion> pallas_bidirectional(const Mesh& mesh, const Program& program, const Collective& collective);

/// Reduce-scatter of the Pallas TPU tutorial, with alternating directions. Blocks are halved; accumulators of the first half travel left, of the
/// second right, N = P hops back to the device they started from. After a prologue (one copy left) come 2N phases: while one half travels, the other
/// is added to; the last two phases only store. N+1 half-blocks go left (the last is never used), N go right.
///
///   cost    3h + (2N-2) * max(h, add(V/2)), h = alpha + V/2 * beta: about 2N * max(copy, add), as the source states
///   errors  an open axis, several axes, a block of one element, an output whose shape is not a block's
///   source  jax docs/pallas/tpu/distributed.md, "Bi-directional communication"
///   example 4 ranks: the left half of block 1 starts with the contribution of rank 1 and goes 1 > 0 > 3 > 2 > 1; ranks 0, 3 and 2 add theirs on the
///           way. The right half goes 1 > 2 > 3 > 0 > 1
Expected<Expansion> pallas_alternating(const Mesh& mesh, const Program& program, const Collective& collective);

/// Double binary tree, pipelined in n chunks. Ranks count from the root (all-reduce: from 0). Each of two trees carries half of the data; in both the
/// root has one child and every other device up to two, and what is a leaf in one tree is an inner device of the other. A device's partial sum goes
/// to its parent at distance 1, 2, 4, ...; its second child's lands beside it, and a dma `add` combines both. All-reduce: up, then down, chunk by
/// chunk.
///
///   cost    about (h-1+n) * (alpha + V/n * beta) with h = ceil(log2 P), on a switch; all-reduce 2h instead of h. It grows with log2(P)
///   errors  several axes, another kind, a chunk rule that returns less than 1
///   source  Sanders, Speck, Traff: Two-tree algorithms for full bandwidth broadcast, reduction and scan (2009); NCCL since 2.4
///   example 4 ranks, root 0. First tree: 0 > 2 > 1 and 3; second tree: 0 > 1 > 2 > ... with the labels 1, 2, 3 on the ranks 3, 1, 2: 0 > 1 > 3 and 2
Expected<Expansion> tree(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& chunks);

// ---- Several axes ---------------------------------------------------------------------------------------------------------------------

/// One axis after the other. All-gather starts with the last axis (the least significant), reduce-scatter with the first; all-reduce does the
/// reduce-scatters, then the all-gathers. All three work on blocks nested in one buffer. All-to-all goes axis by axis through scratch [P of each
/// axis..., block], with aliases around it: an axis of size p moves (p-1)/p of the data. Broadcast: from the root along the first axis, then along
/// the next from all devices that have the data; reduce backwards. Permute is done in one piece. Axes of size 1 are left out.
///
///   cost    the sum of the phases, each with its bytes: all-gather along axis i has V_i = V times the sizes of the axes after it
///   example all-gather on 2x2, shards A B in row 0, C D in row 1: device (0, 0) gathers A B along its row, then exchanges A B for C D along its
///   column
Expected<Expansion> in_phases(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& on_one_axis);

/// d axes at once: d parts of the data, each with the phases of in_phases() in an order of its own, rotated by one axis from part to part, so that in
/// every phase each axis carries another part. A folded axis counts as its physical dimensions. Where the axes are alike (in size, and in being open)
/// the parts are equal. Otherwise they are cut so that all axes have equally much to carry if their links are equally fast, and each part goes in
/// three or more chunks of sizes 1:2:3:..., phase by phase, two at a time on an axis; in one, if `chunks` allows fewer. The data is cut along its longest dimension that is not gathered, else
/// along the gathered one. Aliases, free in time, rearrange it. (2d parts, each one way round its rings, would send the same messages.)
///
///   cost    d rings of size p, P = p^d: all-gather d(p-1) alpha + (P-1) V/(2d) beta, which is what the 2d links into a device take at least;
///           all-to-all: 1/d of the phases' bytes
///           other axes: (P-1) V beta / (links into a device) * 1.01 to 1.2 (4x8: 1.02, 4x4x8: 1.01, 2x16: 1.06; open 2x4: 1.11, its reduce-scatter 1.17),
///           and some of the latencies
///   errors  fewer than two axes with more than one device; kinds other than all-gather, reduce-scatter, all-reduce, all-to-all; input and output
///           blocks of different shapes
///   example all-gather on 2x2, shards A B in row 0, C D in row 1: device (0, 0) gets B1 along its row and C2 along its column, then C1 D1 along its
///           column and B2 D2 along its row
///   source  several orders of a torus's dimensions at once: Jain, Sabharwal: Optimal Bucket Algorithms for Large MPI Collectives on Torus
///           Interconnects (2010)
Expected<Expansion> rotations(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& on_one_axis,
                              const ChunkRule& chunks = {});

/// A ring of neighbours through all dimensions, both directions, half a shard each: a Hamiltonian cycle of their grid, which goes out through rows there and
/// back without their first cells, and home through the first cells. A folded axis counts as its physical dimensions; no wrap is used. A step is a
/// shift per run of devices in a row whose blocks follow each other: one to three for each row, so there is a limit.
///
///   cost    P = the product of the sizes: (P-1) * (alpha + ceil(V/2) * beta), all-reduce twice that
///   errors  fewer than two dimensions with more than one device, an odd P (such a grid has no cycle), P > 64; another kind
///   source  Kumar, Jouppi: Highly Available Data Parallel ML Training on Mesh Networks (2020): the ring on a 2-D mesh
///   example 2x4, positions 0 to 3 in row 0, 4 to 7 in row 1: the ring 0 1 2 3 7 6 5 4. Rank 3 sends D1 to rank 7 and D2 to rank 2; step 0 brings C1 from
///           rank 2 and H2 from rank 7, step 1 B1 and G2
Expected<Expansion> hamiltonian_ring(const Mesh& mesh, const Program& program, const Collective& collective);
inline constexpr int most_on_hamiltonian_ring = 64;

/// Levels of a network, from the innermost to the outermost, pipelined in n chunks. A reduce-scatter begins inside, so that the slow levels carry
/// only what the fast ones have reduced; an all-gather begins outside. All-reduce: reduce-scatters from the inside out, an all-reduce along the
/// outermost level (on all rails at once), all-gathers back. All-to-all: by rail, first to the own node's device of the rail. Phase p of a chunk
/// follows phase p of the chunk before, so that inner and outer levels work at the same time. The blocks of the result are in the order of the
/// collective's axes whatever the levels.
///
///   cost    n = 1: the sum of the phases; large n: the longest phase of all data, and the others' of one chunk
///   errors  fewer than two axes with more than one device; broadcast, reduce, permute; levels that are not the collective's axes
///   source  NCCL's trees and PAT, MSCCL's hierarchical all-reduce; Cho et al.: BlueConnect (2019)
///   example all-reduce on 2 nodes of 2: devices 0 and 1 of a node each reduce one half of the data, exchange it with the same number in the other
///           node, and gather the halves
Expected<Expansion> hierarchical(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels,
                                 const CollectiveAlgorithm& inside, const CollectiveAlgorithm& outermost, const ChunkRule& chunks);

/// A ring per device of a node through all N nodes of G devices, each with 1/G of the data, which leaves nodes on different rails: all network
/// interfaces work. Channel c walks even nodes upwards from device c to c-1 and odd nodes back from c-1 to c, and stays on its rail between nodes (of
/// an odd number of nodes it changes the rail once).
///
///   cost    on switches: (N G - 1) * (alpha + V/G * beta of the rail), all-reduce twice that, if the node's links carry G-1 such flows as fast
///   errors  other than two axes with more than one device; kinds other than all-gather, reduce-scatter, all-reduce
///   source  NCCL's rings
///   example 2 nodes of 4. Channel 1: (0,1) (0,2) (0,3) (0,0), over rail 0 to (1,0) (1,3) (1,2) (1,1), and over rail 1 back
Expected<Expansion> channels(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels);

/// An all-reduce along one or several axes from an algorithm's reduce-scatter and all-gather along one axis.
///
///   example 4 ranks: after the reduce-scatter rank 1 has block 1 of the sum, after the all-gather all four blocks
Expected<Expansion> reduce_scatter_all_gather(const Mesh& mesh, const Program& program, const Collective& collective,
                                              const CollectiveAlgorithm& algorithm);

/// An all-reduce of any number of elements by an algorithm that cuts them into equal blocks. Where the algorithm fails and the collective's dimension is no
/// multiple of the P devices, the data is placed in scratch of ceil(n/P) P elements, reduced there, and placed in the output, both free in time;
/// everything else is left as it is. The padding is never read into the result. A kernel would send uneven blocks: the largest has ceil(n/P)
/// elements, as all have here, so steps take as long.
///
///   before   n elements; device i has its own                 after   every device has their sums
///   cost     that of the algorithm for ceil(n/P) P elements
///   errors   those of the algorithm
///   example  a scalar on 8 devices: 8 elements, of which seven are padding; device 0 reduces the scalar and the gather hands it to all
Expected<Expansion> of_any_size(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& algorithm);

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

/// Requirements on the axes with more than one device. Two devices count as wrapped.
struct AxisNeeds {
  bool wraps = false, power_of_two = false;  // every axis
  int axes = 1;                              // the least number of axes
  bool even = false;                         // the number of devices along all axes
  int most = 0;                              // devices along all axes; 0: any number
  bool in_switch = false;                    // the devices along an axis are on a switch that adds up and copies
};

/// The pipelining of broadcast and reduce: none, or a chain() of chunks around a ring, or a chain() from and to both ends of a line.
enum class Pipeline { none, around_ring, to_both_ends };

/// A row of the table: everything that podsim knows of an algorithm. To add one: its function above, its formula in closed_form.hpp, a row.
struct CollectiveAlgorithmEntry {
  std::string_view name, summary;
  CollectiveKinds kinds;
  AxisNeeds needs;
  Expected<Expansion> (*on_one_axis)(const Mesh&, const Program&, const Collective&);  // kinds other than chain(); several axes in phases
  CollectiveForm* closed_form;
  Pipeline pipeline = Pipeline::none;
  /// Along all axes in one piece, instead of in phases; not null: `on_one_axis` is not used.
  Expected<Expansion> (*on_all_axes)(const Mesh&, const Program&, const Collective&, const Levels&, const ChunkRule&) = nullptr;
  bool has_levels = false;  // the order of levels matters to it
};
std::span<const CollectiveAlgorithmEntry> collective_algorithms();
/// The row of that name; null if there is none.
const CollectiveAlgorithmEntry* collective_algorithm_named(std::string_view name);
/// The row that ring_or_line() chooses along an axis.
const CollectiveAlgorithmEntry& usual_algorithm(CollectiveKind kind, bool wraps);

/// Whether the algorithm supports this kind along such axes, provided that the sizes divide (an all-reduce takes any).
bool applies(const CollectiveAlgorithmEntry& algorithm, CollectiveKind kind, const std::vector<CollectiveAxis>& axes);

/// The algorithm of a row as one function, along any number of axes, all-reduces of any size. `levels`: empty, the collective's axes.
CollectiveAlgorithm expansion_by(const CollectiveAlgorithmEntry& algorithm, ChunkRule chunks, Levels levels = {});

/// Chooses the named algorithm for every Collective. Errors: no such algorithm (the message names similar ones).
Expected<CollectiveChooser> always(std::string_view name, ChunkRule chunks = {});

/// Chooses `ring` on wrapped axes, `line` on open ones, and `direct` for permute: the default for a GEMM's collectives.
CollectiveChooser ring_or_line(ChunkRule chunks = {});

/// A schedule of one collective. Every device of the mesh takes part in its group along `axes`; `bytes` is the input per device (broadcast: the
/// root's). Buffers are [block of the group, data of a block], preceded by one dimension of size 1 per mesh axis that distinguishes the devices'
/// data. An all-reduce that the group does not divide has one block.
///
///   errors   `bytes` is not positive, not whole elements of `dtype`, or (reduce-scatter, all-to-all) not a multiple of the group's size;
///            a root or pair outside the group; pairs that send or receive twice
struct CollectiveDetails {
  std::int64_t root = 0;                  // broadcast, reduce
  std::vector<Collective::Pair> pairs{};  // permute; empty: a shift by 1
};
Expected<Schedule> collective_schedule(const Mesh& mesh, CollectiveKind kind, const std::vector<AxisView>& axes, Bytes bytes, DType dtype,
                                       const CollectiveDetails& details = {});

}  // namespace podsim
