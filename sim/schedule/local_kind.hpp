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
/// `subtract` to `relu`, the regions have equal element counts and correspond in row-major order. A sum along a dimension adds in float32, in order of
/// increasing index, and rounds to its dtype once.
///
/// Those from norm_sums to transpose are the operations of transformers between products. `x` and `dx` are [tokens, features], or [features, tokens]
/// with `features_first`. A norm is over N = `factor` features, of which a device holds a part. Its sums are [tokens, w] ([w, tokens]), of any dtype, and are all-reduced
/// between the two steps: w = 2 subtracts the mean (layer norm), w = 1 does not (RMS norm). xhat = (x - mean) / sqrt(mean square deviation + 1e-5).
/// Activations take regions of any shapes with equal element counts.
///   qkv  [sequences, sequence, groups, q + 2, head]   of each group: q heads of queries, their keys, their values
///   o    [sequences, sequence, groups, q, head]       (features_first: [groups, q + 2, head, sequences, sequence] and so on)
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
  transpose,         // [tokens, features...] -> [features..., tokens]; features_first: the reverse. Any number of feature dimensions
  join,              // no operands, free in time: waits for M tasks so that N others wait for it alone, with M + N edges instead of M * N
  add_in_switch,     // writes[0] = reads[0] + reads[1], free in time: a switch has made the sum (InSwitch)
  subtract,          // writes[0] = reads[0] - reads[1]
  multiply,          // writes[0] = reads[0] * reads[1]
  divide,            // writes[0] = reads[0] / reads[1]
  add_number,        // writes[0] = reads[0] + factor
  reciprocal,        // writes[0] = factor / reads[0]
  relu,              // writes[0] = max(reads[0], 0)
  sum_along,         // [.., d, ..] -> [.., 1, ..]: the sum along the one dimension that differs; if none does, a copy
  broadcast_in_dim,  // [.., 1 or d, ..] -> [.., d, ..]: dimensions of length 1 are repeated
  to_host,         // writes[0] = reads[0], in the memory of the chip's host
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
  int in_place = 0;     // a result may be the same region as one of the first `in_place` reads (elementwise). It may overlap no other read
  bool factor = false;  // `factor` has a meaning and is always printed
};

inline constexpr std::size_t local_kind_count = static_cast<std::size_t>(LocalKind::to_host) + 1;

/// In the order of the enumerators.
inline constexpr std::array<LocalTraits, local_kind_count> local_table{{
    {.kind = LocalKind::copy, .name = "copy", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .in_place = 1},
    {.kind = LocalKind::add, .name = "add", .reads = 2, .writes = 1, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::scale, .name = "scale", .reads = 1, .writes = 1, .flops = per_element<1>, .in_place = 1, .factor = true},
    {.kind = LocalKind::launch, .name = "launch", .reads = 0, .writes = 0, .role = LocalRole::communication, .cost = LocalCost::launch},
    {.kind = LocalKind::alias, .name = "place", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .cost = LocalCost::free,
     .in_place = 1},
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
    {.kind = LocalKind::transpose, .name = "transpose", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::transpose},
    {.kind = LocalKind::join, .name = "join", .reads = 0, .writes = 0, .role = LocalRole::order, .cost = LocalCost::free},
    {.kind = LocalKind::add_in_switch, .name = "add-in-switch", .reads = 2, .writes = 1, .cost = LocalCost::free, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::subtract, .name = "subtract", .reads = 2, .writes = 1, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::multiply, .name = "multiply", .reads = 2, .writes = 1, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::divide, .name = "divide", .reads = 2, .writes = 1, .flops = per_element<1>, .in_place = 2},
    {.kind = LocalKind::add_number, .name = "add-number", .reads = 1, .writes = 1, .flops = per_element<1>, .in_place = 1, .factor = true},
    {.kind = LocalKind::reciprocal, .name = "reciprocal", .reads = 1, .writes = 1, .flops = per_element<1>, .in_place = 1, .factor = true},
    {.kind = LocalKind::relu, .name = "relu", .reads = 1, .writes = 1, .flops = per_element<1>, .in_place = 1},
    {.kind = LocalKind::sum_along, .name = "sum-along", .reads = 1, .writes = 1, .flops = per_element<1>, .shapes = shapes::sum_along},
    {.kind = LocalKind::broadcast_in_dim, .name = "broadcast-in-dim", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy",
     .shapes = shapes::broadcast_in_dim},
    {.kind = LocalKind::to_host, .name = "to-host", .reads = 1, .writes = 1, .role = LocalRole::layout, .category = "copy", .cost = LocalCost::host},
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
