// The table of Local kinds. Every layer reads its columns here, except the numeric kernel: the schedule must not depend on it, so it stands in a
// second table with the same rows.
//
// To add a kind:
//   here          an enumerator with its formula, and a row; a function in local_shapes.hpp if its shapes follow new rules
//   numeric       a row with its kernel in sim/engine/numeric/task_kernels.cpp
//   saved files   an enumerator with a new number in sim/config/schedule.proto, named as the row with _ for -
// A row that is missing or misplaced in one of the three does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "sim/base/quantity.hpp"
#include "sim/schedule/local_shapes.hpp"

namespace podsim {

/// Reads and writes are regions. A write always replaces: to accumulate, read the sum as an operand (add). For the kinds up to `alias`, and from
/// `subtract` to `maximum`, the regions have equal element counts and correspond in row-major order. A sum along a dimension adds in float32, in order of
/// increasing index, and rounds to its dtype once.
///
/// Those from norm_sums to transpose are the operations of transformers between products. `x` and `dx` are [tokens, features], or [features, tokens]
/// with `features_first`. A norm is over N = `factor` features, of which a device holds a part. Its sums are [tokens, w] ([w, tokens]), of any dtype, and are all-reduced
/// between the two steps: w = 2 subtracts the mean (layer norm), w = 1 does not (RMS norm). xhat = (x - mean) / sqrt(mean square deviation + 1e-5).
/// Activations take regions of any shapes with equal element counts.
///   qkv  [sequences, sequence, groups, q + 2, head]   of each group: q heads of queries, their keys, their values
///   o    [sequences, sequence, groups, q, head]       (features_first: [groups, q + 2, head, sequences, sequence] and so on)
///
/// Losses are means over N = `factor` elements or tokens, of which a device holds a part: its loss is a partial sum, to be all-reduced. Losses and statistics
/// are f32. Logits are [tokens, own classes] ([own classes, tokens] with features_first), numbering: of classes, of which there are `classes`; columns with
/// higher numbers are padding. The statistics [tokens, 2] of the P devices that share the classes are all-gathered between the two steps. lse = log(sum of
/// exp(logits of all classes)). A target is the number of a class, one for each token; another number is an error of the run.
/// Optimisers update regions of equal element counts: parameters and gradient f32 or bf16, m and v f32. What `optimiser` holds is named as in PyTorch's AdamW; the
/// decay is decoupled from the gradient.
///
/// getrf_panel factors the rows from the number of its first column on; rows and those columns are numbered one after the other. Its index has three
/// rows: the pivots, as row numbers (row number c + i changes places with row number index[0, i], for i = 0, 1, .., c the number of the first column);
/// the same as a permutation: the row that comes to row number c + i, and the row number that row c + i goes to. A matrix whose every candidate for a
/// pivot is 0 is singular, an error of the run, as is an index of no row. Kinds that pick rows by an index read and write their whole regions as far as
/// races go; their cost counts the rows picked.
enum class LocalKind {
  copy,              // writes[0] = reads[0]
  add,               // writes[0] = reads[0] + reads[1]
  scale,             // writes[0] = factor * reads[0]
  launch,            // no operands: the software launch of a Collective, on the dma unit
  alias,             // writes[0] = reads[0], free in time: a copy that a real kernel does not make. Called `place` in saved schedules
  norm_sums,         // x -> sums: (sum of x,) sum of x^2 of each token
  norm,              // x, sums -> xhat
  norm_grad_sums,    // dy, x, sums -> sums of the gradient: (sum of dy,) sum of dy.xhat of each token
  norm_grad,         // dy, x, sums, sums of the gradient -> dx
  gelu,              // x -> x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
  gelu_grad,         // dy, x -> dx
  swiglu,            // gate, up -> gate / (1 + exp(-gate)) * up
  swiglu_grad,       // dy, gate, up -> dgate, dup
  attention,         // qkv -> o = softmax(q.k^T / sqrt(head)) v per sequence and head; `causal`: a token sees itself and earlier tokens
  attention_grad,    // do, qkv -> dqkv; recomputes the scores
  // Of T tokens, E experts, k of them for each token, balanced: token i has the experts k g to k g + k - 1, where g = i / C and C = T k / E.
  expert_gates,         // logits [T, E] -> gates [T, k]: the softmax of the logits of a token's experts
  expert_gates_grad,    // dgates, gates [T, k] -> dlogits [T, E]: 0 for other experts
  expert_combine,       // y [E, C, N], gates [T, k] -> x [T, N]: the sum over a token's experts of gate * y
  expert_combine_grad,  // dx [T, N], y [E, C, N], gates [T, k] -> dy [E, C, N], dgates [T, k]
  transpose,         // [tokens, features...] -> [features..., tokens]; features_first: the reverse. Any number of feature dimensions
  join,              // no operands, free in time: waits for M tasks so that N others wait for it alone, with M + N edges instead of M * N
  begin_call,        // a join on the core, where a call that inline_calls() wrote out begins: all of its tasks wait for it
  end_call,          // likewise: it waits for all of its tasks
  add_in_switch,     // writes[0] = reads[0] + reads[1], free in time: a switch has made the sum (InSwitch)
  subtract,          // writes[0] = reads[0] - reads[1]
  multiply,          // writes[0] = reads[0] * reads[1]
  divide,            // writes[0] = reads[0] / reads[1]
  add_number,        // writes[0] = reads[0] + factor
  reciprocal,        // writes[0] = factor / reads[0]
  relu,              // writes[0] = max(reads[0], 0)
  maximum,           // writes[0] = max(reads[0], reads[1]); NaN if either is
  sum_along,         // [.., d, ..] -> [.., 1, ..]: the sum along the one dimension that differs; if none does, a copy
  broadcast_in_dim,  // [.., 1 or d, ..] -> [.., d, ..]: dimensions of length 1 are repeated
  to_host,           // writes[0] = reads[0], in the memory of the chip's host
  from_host,         // writes[0] = reads[0] from the memory of the chip's host
  stack,             // writes[0] = reads[0], in the array that a loop over layers has for all of them: its pieces lie apart

  // Transforms along one dimension, dims[0] of what is read and dims[1] of what is written; the other dimensions stand in the same order.
  fft,      // x (f32 or c64) of length n -> X[k] = sum over j of x[j] exp(-2 pi i jk / n), c64
  ifft,     // the inverse, divided by n
  twiddle,  // x -> x exp(-2 pi i jk / factor): j is the number of the element along dims[0], k along dims[1]; numbering: of j, of k

  // Matrices: the first `splits` dimensions of a region are its rows, the others its columns. An index is the number of a row.
  iota,            // writes[0] = 0, 1, 2, .. from the number of the first on; s32, f32 or bf16
  getrf_panel,     // A -> P A = L U packed as LAPACK does, index [3, columns]. numbering: rows; columns. Rows above the first column's number are kept
  trsm_lower,      // L, B -> X with L X = B; L is lower triangular with ones on its diagonal, of which and above nothing is used
  trsm_upper,      // U, B -> X with U X = B; U is upper triangular
  lower_triangle,  // A -> its part below the diagonal and ones on it. numbering: rows; columns
  upper_triangle,  // A -> its part on and above the diagonal
  gather_rows,     // A, index -> row i is A's row number index[i], zeros if that is not among A's. `factor`: how many numbers there are
  scatter_rows,    // A, B, index -> A, but row number index[i] is B's row i if it is among A's. `factor` as above
  swap_rows,       // A, index -> A after rows number (second numbering's first + i) and index[i] changed places, one after the other
  solve,           // A [.., n, n], B [.., n] or [.., n, m] -> X with A X = B, by LU with partial pivoting

  // Blocks of a dimension, each brought together in memory, as all-to-alls send and receive them: the dimension of P c elements is dims[0] of what
  // pack_blocks reads, dims[1] of what unpack_blocks writes.
  pack_blocks,    // [.., P c, ..] -> [P, .., c, ..]
  unpack_blocks,  // [P, .., c, ..] -> [.., P c, ..]

  // Of training steps.
  convert,             // writes[0] = reads[0] in its own dtype, f32 or bf16
  mean_square,         // y, target -> loss: sum of (y - target)^2 / N
  mean_square_grad,    // y, target -> dy = 2 (y - target) / N
  softmax_statistics,  // logits -> of each token the maximum of its own logits, and the sum of exp(logit - maximum)
  cross_entropy,       // logits, statistics [P, tokens, 2], targets -> loss: sum of (lse - logit of the target) / N over tokens whose target is among the own classes
  cross_entropy_grad,  // logits, statistics [P, tokens, 2], targets -> dlogits = (exp(logit - lse) - 1 at the target) / N
  add_rows,            // B, index -> row number r is the sum of B's rows i with index[i] = r, in order of i, in float32: the gradient of gather_rows. `factor` as there
  one_hot,             // index -> row i is 1 in the column number index[i], if that is among its columns, else 0. numbering: of columns. `factor`: how many numbers there are
  sgd,                 // parameters, gradient -> parameters
  adamw,               // parameters, gradient, m, v -> parameters, m, v

  opaque,  // any number of operands of any shapes -> any number of results: an operation of a trace or compiled module whose arithmetic is not known.
           // `opaque` says what it costs; Schedule::source may know what it computes, else it cannot be executed numerically
};

/// The role of a kind for engines, metrics and proofs.
enum class LocalRole {
  compute,        // new values, rounded when they are stored
  layout,         // moves values within the device unchanged
  communication,  // part of a Collective: counts as in flight in metrics
  order,          // no operands: only orders other tasks
};

enum class LocalCost {
  free,    // takes no time
  launch,  // software.launch[kind of its Collective]
  host,    // its bytes over dcn.host_bandwidth, beside all else that the device does
  work,    // arithmetic, and every region once through HBM; plus software.launch[local] if an algorithm wrote the task
};

/// The arithmetic of a Local by unit: matrix products run on the matrix unit, everything else on the vector unit.
struct LocalFlops {
  Flops matrix, vector;
};
using LocalArithmetic = LocalFlops(const Local&);

/// How many elements of a region cross memory: of those that pick rows, fewer than it has. `region` counts reads first.
using LocalTraffic = std::int64_t(const Local&, std::size_t region);
std::int64_t traffic_of_region(const Local& local, std::size_t region);
std::int64_t traffic_of_rows(const Local& local, std::size_t region);     // as many elements as are picked
std::int64_t traffic_of_targets(const Local& local, std::size_t region);  // of logits one for each token

/// The dtypes that operands may have, as bits.
using DTypeSet = unsigned;
namespace dtypes {
inline constexpr DTypeSet real = 0b0000011, numbers = 0b0100011, floats = 0b0001111, any = 0b1111111;  // f32 and bf16; and c64; and 8-bit ones; all
}

/// `operations` per element of the first region; a root, an exponential or a tanh counts as one.
LocalFlops flops_per_element(const Local& local, double operations);
template <int operations>
LocalFlops per_element(const Local& local) {
  return flops_per_element(local, operations);
}
/// Two products, 4 * scores * head; the gradient has five (it recomputes the scores), 10 * scores * head. Scores per head: sequence^2, or sequence
/// (sequence + 1) / 2 if causal. The vector unit does 6 and 11 operations per score.
LocalFlops attention_flops(const Local& local);
LocalFlops attention_grad_flops(const Local& local);
/// 4 operations of the vector unit for each gate, or 2 for each element of y; the gradient of that has 4.
LocalFlops expert_gates_flops(const Local& local);
LocalFlops expert_combine_flops(const Local& local);
LocalFlops expert_combine_grad_flops(const Local& local);
/// 5 n log2 n of the vector unit for each transform of length n.
LocalFlops fft_flops(const Local& local);
/// m b^2 - b^3 / 3 of the matrix unit for the m rows of b columns that are factored, and m b of the vector unit: pivots and quotients.
LocalFlops getrf_flops(const Local& local);
/// Columns of an LU factorisation that are eliminated one after the other; of many systems those of one. 0: another kind.
std::int64_t pivots_of(const Local& local);
LocalFlops trsm_flops(const Local& local);   // n^2 m
LocalFlops solve_flops(const Local& local);  // 2/3 n^3 + 2 n^2 m for each system
/// 5 of the vector unit for each of P statistics of a token (maximum, difference, exponential, product, sum) and 3 for each token; its gradient 5 for each
/// statistic and 3 for each logit.
LocalFlops cross_entropy_flops(const Local& local);
LocalFlops cross_entropy_grad_flops(const Local& local);
LocalFlops opaque_flops(const Local& local);   // as it says itself
LocalFlops one_hot_flops(const Local& local);  // a comparison of the vector unit for each element that is written

/// A row of the table.
struct LocalTraits {
  LocalKind kind;
  std::string_view name;
  int reads, writes;
  LocalRole role = LocalRole::compute;
  std::string_view category = "elementwise";  // in OperationMetrics
  LocalCost cost = LocalCost::work;
  LocalArithmetic* flops = per_element<0>;
  LocalShapes* shapes = shapes::counts_of_result;
  DTypeSet dtypes = dtypes::real;  // that each operand may have, if `shapes` does not say more
  LocalTraffic* traffic = traffic_of_region;
  int in_place = 0;     // a result may be the same region as one of the first `in_place` reads (elementwise). It may overlap no other read, but for:
  bool over_reads = false;  // results may lie over reads in any way: a compiler has laid them there, as fusions that update a part of an array in place
  bool factor = false;  // `factor` has a meaning and is always printed
  bool any_count = false;  // it takes any number of reads and writes; `reads` and `writes` are 0
};

inline constexpr std::size_t local_kind_count = static_cast<std::size_t>(LocalKind::opaque) + 1;

/// In the order of the enumerators.
inline constexpr std::array<LocalTraits, local_kind_count> local_table{{
    {.kind = LocalKind::copy, .name = "copy", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .dtypes = dtypes::any, .in_place = 1},
    {.kind = LocalKind::add, .name = "add", .reads = 2, .writes = 1, .flops = per_element<1>, .dtypes = dtypes::any, .in_place = 2},
    {.kind = LocalKind::scale, .name = "scale", .reads = 1, .writes = 1, .flops = per_element<1>, .dtypes = dtypes::numbers, .in_place = 1, .factor = true},
    {.kind = LocalKind::launch, .name = "launch", .reads = 0, .writes = 0, .role = LocalRole::communication, .cost = LocalCost::launch, .dtypes = dtypes::any},
    {.kind = LocalKind::alias, .name = "place", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .cost = LocalCost::free,
     .dtypes = dtypes::any, .in_place = 1},
    {.kind = LocalKind::norm_sums, .name = "norm-sums", .reads = 1, .writes = 1, .flops = per_element<3>, .shapes = shapes::norm_sums},
    {.kind = LocalKind::norm, .name = "norm", .reads = 2, .writes = 1, .flops = per_element<2>, .shapes = shapes::norm, .in_place = 1,
     .factor = true},
    {.kind = LocalKind::norm_grad_sums, .name = "norm-grad-sums", .reads = 3, .writes = 1, .flops = per_element<5>,
     .shapes = shapes::norm_grad_sums, .factor = true},
    {.kind = LocalKind::norm_grad, .name = "norm-grad", .reads = 4, .writes = 1, .flops = per_element<6>, .shapes = shapes::norm_grad,
     .in_place = 2, .factor = true},
    {.kind = LocalKind::gelu, .name = "gelu", .reads = 1, .writes = 1, .flops = per_element<9>, .shapes = shapes::same_counts<"x", "the result">,
     .in_place = 1},
    {.kind = LocalKind::gelu_grad, .name = "gelu-grad", .reads = 2, .writes = 1, .flops = per_element<18>,
     .shapes = shapes::same_counts<"dy", "x", "dx">, .in_place = 2},
    {.kind = LocalKind::swiglu, .name = "swiglu", .reads = 2, .writes = 1, .flops = per_element<5>,
     .shapes = shapes::same_counts<"gate", "up", "the result">, .in_place = 2},
    {.kind = LocalKind::swiglu_grad, .name = "swiglu-grad", .reads = 3, .writes = 2, .flops = per_element<11>,
     .shapes = shapes::same_counts<"dy", "gate", "up", "dgate", "dup">, .in_place = 3},
    {.kind = LocalKind::attention, .name = "attention", .reads = 1, .writes = 1, .category = "attention", .flops = attention_flops,
     .shapes = shapes::attention},
    {.kind = LocalKind::attention_grad, .name = "attention-grad", .reads = 2, .writes = 1, .category = "attention", .flops = attention_grad_flops,
     .shapes = shapes::attention_grad},
    {.kind = LocalKind::expert_gates, .name = "expert-gates", .reads = 1, .writes = 1, .category = "experts", .flops = expert_gates_flops,
     .shapes = shapes::expert_gates},
    {.kind = LocalKind::expert_gates_grad, .name = "expert-gates-grad", .reads = 2, .writes = 1, .category = "experts", .flops = expert_gates_flops,
     .shapes = shapes::expert_gates_grad},
    {.kind = LocalKind::expert_combine, .name = "expert-combine", .reads = 2, .writes = 1, .category = "experts", .flops = expert_combine_flops,
     .shapes = shapes::expert_combine},
    {.kind = LocalKind::expert_combine_grad, .name = "expert-combine-grad", .reads = 3, .writes = 2, .category = "experts",
     .flops = expert_combine_grad_flops, .shapes = shapes::expert_combine_grad},
    {.kind = LocalKind::transpose, .name = "transpose", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::transpose, .dtypes = dtypes::any},
    {.kind = LocalKind::join, .name = "join", .reads = 0, .writes = 0, .role = LocalRole::order, .cost = LocalCost::free, .dtypes = dtypes::any},
    {.kind = LocalKind::begin_call, .name = "begin-call", .reads = 0, .writes = 0, .role = LocalRole::order, .cost = LocalCost::free, .dtypes = dtypes::any},
    {.kind = LocalKind::end_call, .name = "end-call", .reads = 0, .writes = 0, .role = LocalRole::order, .cost = LocalCost::free, .dtypes = dtypes::any},
    {.kind = LocalKind::add_in_switch, .name = "add-in-switch", .reads = 2, .writes = 1, .cost = LocalCost::free, .flops = per_element<1>, .dtypes = dtypes::any, .in_place = 2},
    {.kind = LocalKind::subtract, .name = "subtract", .reads = 2, .writes = 1, .flops = per_element<1>, .dtypes = dtypes::any, .in_place = 2},
    {.kind = LocalKind::multiply, .name = "multiply", .reads = 2, .writes = 1, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::divide, .name = "divide", .reads = 2, .writes = 1, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::add_number, .name = "add-number", .reads = 1, .writes = 1, .flops = per_element<1>, .in_place = 1, .factor = true},
    {.kind = LocalKind::reciprocal, .name = "reciprocal", .reads = 1, .writes = 1, .flops = per_element<1>, .in_place = 1, .factor = true},
    {.kind = LocalKind::relu, .name = "relu", .reads = 1, .writes = 1, .flops = per_element<1>, .in_place = 1},
    {.kind = LocalKind::maximum, .name = "maximum", .reads = 2, .writes = 1, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::sum_along, .name = "sum-along", .reads = 1, .writes = 1, .flops = per_element<1>, .shapes = shapes::sum_along, .dtypes = dtypes::any},
    {.kind = LocalKind::broadcast_in_dim, .name = "broadcast-in-dim", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::broadcast_in_dim, .dtypes = dtypes::any},
    {.kind = LocalKind::to_host, .name = "to-host", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .cost = LocalCost::host,
     .dtypes = dtypes::any},
    {.kind = LocalKind::from_host, .name = "from-host", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .cost = LocalCost::host,
     .dtypes = dtypes::any},
    {.kind = LocalKind::stack, .name = "stack", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .dtypes = dtypes::any},
    {.kind = LocalKind::fft, .name = "fft", .reads = 1, .writes = 1, .category = "fft", .flops = fft_flops, .shapes = shapes::fft,
     .dtypes = dtypes::any, .in_place = 1},
    {.kind = LocalKind::ifft, .name = "ifft", .reads = 1, .writes = 1, .category = "fft", .flops = fft_flops, .shapes = shapes::fft,
     .dtypes = dtypes::any, .in_place = 1},
    {.kind = LocalKind::twiddle, .name = "twiddle", .reads = 1, .writes = 1, .category = "fft", .flops = per_element<6>, .shapes = shapes::twiddle,
     .dtypes = dtypes::any, .in_place = 1, .factor = true},
    {.kind = LocalKind::iota, .name = "iota", .reads = 0, .writes = 1, .shapes = shapes::iota, .dtypes = dtypes::any},
    {.kind = LocalKind::getrf_panel, .name = "getrf-panel", .reads = 1, .writes = 2, .category = "factorisation", .flops = getrf_flops,
     .shapes = shapes::getrf_panel, .dtypes = dtypes::any, .in_place = 1},
    {.kind = LocalKind::trsm_lower, .name = "trsm-lower", .reads = 2, .writes = 1, .category = "factorisation", .flops = trsm_flops,
     .shapes = shapes::trsm, .dtypes = dtypes::any, .in_place = 2},
    {.kind = LocalKind::trsm_upper, .name = "trsm-upper", .reads = 2, .writes = 1, .category = "factorisation", .flops = trsm_flops,
     .shapes = shapes::trsm, .dtypes = dtypes::any, .in_place = 2},
    {.kind = LocalKind::lower_triangle, .name = "lower-triangle", .reads = 1, .writes = 1, .category = "copy", .shapes = shapes::triangle,
     .in_place = 1},
    {.kind = LocalKind::upper_triangle, .name = "upper-triangle", .reads = 1, .writes = 1, .category = "copy", .shapes = shapes::triangle,
     .in_place = 1},
    {.kind = LocalKind::gather_rows, .name = "gather-rows", .reads = 2, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::gather_rows, .dtypes = dtypes::any, .traffic = traffic_of_rows, .factor = true},
    {.kind = LocalKind::scatter_rows, .name = "scatter-rows", .reads = 3, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::scatter_rows, .dtypes = dtypes::any, .traffic = traffic_of_rows, .in_place = 1, .factor = true},
    {.kind = LocalKind::swap_rows, .name = "swap-rows", .reads = 2, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::swap_rows, .dtypes = dtypes::any, .traffic = traffic_of_rows, .in_place = 1},
    {.kind = LocalKind::solve, .name = "solve", .reads = 2, .writes = 1, .category = "factorisation", .flops = solve_flops, .shapes = shapes::solve,
     .dtypes = dtypes::any, .in_place = 2},
    {.kind = LocalKind::pack_blocks, .name = "pack-blocks", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::pack_blocks, .dtypes = dtypes::any},
    {.kind = LocalKind::unpack_blocks, .name = "unpack-blocks", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::unpack_blocks, .dtypes = dtypes::any},
    {.kind = LocalKind::convert, .name = "convert", .reads = 1, .writes = 1, .category = "copy", .shapes = shapes::convert, .dtypes = dtypes::floats},
    {.kind = LocalKind::mean_square, .name = "mean-square", .reads = 2, .writes = 1, .category = "loss", .flops = per_element<3>,
     .shapes = shapes::mean_square, .factor = true},
    {.kind = LocalKind::mean_square_grad, .name = "mean-square-grad", .reads = 2, .writes = 1, .category = "loss", .flops = per_element<2>,
     .shapes = shapes::mean_square_grad, .in_place = 2, .factor = true},
    {.kind = LocalKind::softmax_statistics, .name = "softmax-statistics", .reads = 1, .writes = 1, .category = "loss", .flops = per_element<4>,
     .shapes = shapes::softmax_statistics},
    {.kind = LocalKind::cross_entropy, .name = "cross-entropy", .reads = 3, .writes = 1, .category = "loss", .flops = cross_entropy_flops,
     .shapes = shapes::cross_entropy, .dtypes = dtypes::any, .traffic = traffic_of_targets, .factor = true},
    {.kind = LocalKind::cross_entropy_grad, .name = "cross-entropy-grad", .reads = 3, .writes = 1, .category = "loss", .flops = cross_entropy_grad_flops,
     .shapes = shapes::cross_entropy_grad, .dtypes = dtypes::any, .in_place = 1, .factor = true},
    {.kind = LocalKind::add_rows, .name = "add-rows", .reads = 2, .writes = 1, .flops = per_element<1>, .shapes = shapes::add_rows, .dtypes = dtypes::any,
     .factor = true},
    {.kind = LocalKind::one_hot, .name = "one-hot", .reads = 1, .writes = 1, .flops = one_hot_flops, .shapes = shapes::one_hot, .dtypes = dtypes::any,
     .factor = true},
    {.kind = LocalKind::sgd, .name = "sgd", .reads = 2, .writes = 1, .category = "optimiser", .flops = per_element<4>, .shapes = shapes::sgd, .in_place = 2},
    {.kind = LocalKind::adamw, .name = "adamw", .reads = 4, .writes = 3, .category = "optimiser", .flops = per_element<16>, .shapes = shapes::adamw,
     .in_place = 4},
    {.kind = LocalKind::opaque, .name = "opaque", .reads = 0, .writes = 0, .category = "opaque", .flops = opaque_flops, .shapes = shapes::opaque,
     .dtypes = dtypes::any, .over_reads = true, .any_count = true},
}};

/// Whether a table has one row per kind, in the order of the enumerators.
template <class Rows>
constexpr bool in_order_of_kinds(const Rows& rows) {
  if (rows.size() != local_kind_count) return false;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].kind) != i) return false;
  return true;
}
static_assert(in_order_of_kinds(local_table), "a row per kind, in the order of the enumerators");

constexpr const LocalTraits& traits_of(LocalKind kind) { return local_table[static_cast<std::size_t>(kind)]; }

/// The largest number of regions, reads and writes together, of any kind.
inline constexpr std::size_t most_local_regions = [] {
  int most = 0;
  for (const LocalTraits& traits : local_table) most = traits.reads + traits.writes > most ? traits.reads + traits.writes : most;
  return static_cast<std::size_t>(most);
}();

}  // namespace podsim
