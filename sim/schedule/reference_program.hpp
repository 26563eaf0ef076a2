// What a schedule computes, as a small graph of operations on whole arrays. The numeric engine evaluates it in float64 and compares; nothing that
// lowers, times or executes a schedule reads it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/mesh/mesh.hpp"
#include "sim/mesh/sharding.hpp"
#include "sim/schedule/collective_kind.hpp"

namespace podsim {

/// Operands are a, b. Elementwise operations of two operands broadcast as numpy does: dimensions are aligned at the last one, and those of length 1
/// or missing are repeated.
enum class ReferenceKind {
  input,             // the global array `tensor`, which input buffers shard
  product,           // a @ b of the last two dimensions, transposed first if so marked; equal leading dimensions
  add,               // a + b
  subtract,          // a - b
  multiply,          // a * b
  divide,            // a / b
  scale,             // number * a
  add_number,        // a + number
  reciprocal,        // number / a
  relu,              // max(a, 0)
  gelu,              // a (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))) / 2
  sum,               // along dimension `dim`, which disappears
  transpose,         // dimension i of the result is dimension permutation[i] of a; no permutation: the dimensions in reverse
  block_collective,  // the collective on the local blocks of a, as inside shard_map

  // Of transformers: formulas in LocalKind, here on whole arrays with tokens first. N features per token; w = 2 subtracts the mean, w = 1 does not.
  reshape,         // the same elements in other extents
  slice,           // elements from `offset` on of dimension `dim`; the extents say how many
  concatenate,     // b behind a along `dim`
  gelu_slope,      // the derivative of gelu at a
  silu,            // a / (1 + exp(-a))
  silu_slope,      // its derivative at a
  norm_sums,       // x [tokens, N] -> [tokens, w]: (sum of x,) sum of x^2
  norm,            // x, sums -> xhat
  norm_grad,       // dy, x, sums -> dx
  attention,       // qkv [sequences, sequence, groups, q + 2, head] -> o [.., q, head]; `causal`
  attention_grad,  // do, qkv -> dqkv

  fft,        // of a along `dims`, complex; `inverse`: divided by the number of points
  lu_pivots,  // P of P a = L U with partial pivoting: row i of P a is row P[i] of a
  lu_lower,   // L, ones on its diagonal
  lu_upper,   // U
  solve,      // x with a x = b: a [.., n, n], b [.., n] or [.., n, m]

  // Of training steps. An index holds whole numbers; one that names no row is an error of the evaluation.
  square_root,  // elementwise
  softmax,      // exp(a) / sum of exp(a), along the last dimension
  log_sum_exp,  // log(sum of exp(a)) along the last dimension, which disappears
  one_hot,      // index [..] -> [.., n]: 1 at the index, 0 elsewhere
  take_rows,    // a [rows, ..], index [i..] -> [i.., ..]: the rows of a that the index names
  add_rows,     // b [i.., ..], index [i..] -> [rows, ..]: row r is the sum of the rows of b whose index is r

  iota,  // no operands: 0, 1, 2, .. along dimension `dim`
};
inline constexpr std::size_t reference_kind_count = static_cast<std::size_t>(ReferenceKind::iota) + 1;

struct ReferenceTraits {
  ReferenceKind kind;
  std::string_view name;
  int operands;
  bool exact;               // integers stay integers: exact while they are small
  bool levels_off = false;  // nearly linear or nearly constant far from 0
};
inline constexpr std::array<ReferenceTraits, reference_kind_count> reference_table{{
    {ReferenceKind::input, "input", 0, true},
    {ReferenceKind::product, "product", 2, true},
    {ReferenceKind::add, "add", 2, true},
    {ReferenceKind::subtract, "subtract", 2, true},
    {ReferenceKind::multiply, "multiply", 2, true},
    {ReferenceKind::divide, "divide", 2, false},
    {ReferenceKind::scale, "scale", 1, true},
    {ReferenceKind::add_number, "add-number", 1, true},
    {ReferenceKind::reciprocal, "reciprocal", 1, false},
    {ReferenceKind::relu, "relu", 1, true},
    {ReferenceKind::gelu, "gelu", 1, false, true},
    {ReferenceKind::sum, "sum", 1, true},
    {ReferenceKind::transpose, "transpose", 1, true},
    {ReferenceKind::block_collective, "block-collective", 1, true},
    {ReferenceKind::reshape, "reshape", 1, true},
    {ReferenceKind::slice, "slice", 1, true},
    {ReferenceKind::concatenate, "concatenate", 2, true},
    {ReferenceKind::gelu_slope, "gelu-slope", 1, false, true},
    {ReferenceKind::silu, "silu", 1, false, true},
    {ReferenceKind::silu_slope, "silu-slope", 1, false, true},
    {ReferenceKind::norm_sums, "norm-sums", 1, false},
    {ReferenceKind::norm, "norm", 2, false},
    {ReferenceKind::norm_grad, "norm-grad", 3, false},
    {ReferenceKind::attention, "attention", 1, false, true},
    {ReferenceKind::attention_grad, "attention-grad", 2, false, true},
    {ReferenceKind::fft, "fft", 1, false},
    {ReferenceKind::lu_pivots, "lu-pivots", 1, false},
    {ReferenceKind::lu_lower, "lu-lower", 1, false},
    {ReferenceKind::lu_upper, "lu-upper", 1, false},
    {ReferenceKind::solve, "solve", 2, false},
    {ReferenceKind::square_root, "square-root", 1, false},
    {ReferenceKind::softmax, "softmax", 1, false, true},
    {ReferenceKind::log_sum_exp, "log-sum-exp", 1, false, true},
    {ReferenceKind::one_hot, "one-hot", 1, true},
    {ReferenceKind::take_rows, "take-rows", 2, true},
    {ReferenceKind::add_rows, "add-rows", 2, true},
    {ReferenceKind::iota, "iota", 0, true},
}};
constexpr const ReferenceTraits& traits_of(ReferenceKind kind) { return reference_table[static_cast<std::size_t>(kind)]; }
static_assert(
    [] {
      for (std::size_t i = 0; i < reference_kind_count; ++i)
        if (static_cast<std::size_t>(reference_table[i].kind) != i) return false;
      return true;
    }(),
    "a row per kind, in the order of the enumerators");
std::optional<ReferenceKind> reference_kind_named(std::string_view name);

/// A collective inside shard_map. Every device takes the block of the operand that `from` gives it. The devices along `axes` (first most significant,
/// P of them) are a group; its members' results are written where `to` says. Devices that `to` gives the same block must have the same result.
///   all-gather      the blocks of the group, one after the other along `dim`
///   all-reduce      their sum, or the largest elements (`reduction`)
///   reduce-scatter  piece (own position) of P along `dim` of their sum
///   all-to-all      piece (own position) of P along `split_dim` of every block, one after the other along `dim`, in the order of the senders
///   permute         the block of the device at position - shift, cyclically; with `pairs` that of the position that sends to this one, zeros if none does
struct BlockCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<int> axes{};
  int dim = 0, split_dim = 0;
  std::int64_t shift = 0;
  Sharding from{}, to{};
  Reduction reduction = Reduction::sum;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs{};  // sender, receiver; each at most once
  friend bool operator==(const BlockCollective&, const BlockCollective&) = default;
};

struct ReferenceNode {
  ReferenceKind kind = ReferenceKind::input;
  std::vector<int> operands{};                           // earlier nodes
  Extents extents{};                                     // of the result
  std::string tensor{};                                  // input
  std::string name{};                                    // for messages; the tensor or the statement that it is
  double number = 1;                                     // scale, add-number, reciprocal
  int dim = 0;                                           // sum, slice, concatenate, iota
  std::int64_t offset = 0;                               // slice
  bool causal = false;                                   // attention: a token sees itself and earlier tokens
  bool transpose_left = false, transpose_right = false;  // product
  std::vector<int> permutation{};                        // transpose
  BlockCollective collective{};                          // block-collective
  std::vector<int> dims{};                               // fft: of the operand
  bool inverse = false;                                  // fft
  bool complex = false;                                  // whether the elements of the result are
  std::int64_t below = 0;                                // input: filled with whole numbers from 0 to below - 1, whatever the filling; 0: with any
  friend bool operator==(const ReferenceNode&, const ReferenceNode&) = default;
};

struct ReferenceProgram {
  std::vector<ReferenceNode> nodes{};                  // operands before what uses them
  std::vector<std::pair<std::string, int>> outputs{};  // tensor, node
  std::string claim{};                                 // in words: "C = A @ B"; empty: made from the nodes
  friend bool operator==(const ReferenceProgram&, const ReferenceProgram&) = default;
};

/// The limits of what is accepted; saved files come from anywhere.
inline constexpr std::size_t most_reference_nodes = 1 << 16;
inline constexpr std::size_t most_reference_dimensions = 8;

/// What is wrong with the graph, one text per node or output: operands that are missing, too many or not earlier; extents that do not follow from
/// those of the operands; a tensor with two ranges of whole numbers; complex operands where real ones are needed; axes that the mesh lacks; blocks that do not divide; an array of more than 2^58 elements; no output, or one twice.
std::vector<std::string> check_reference(const ReferenceProgram& program, const Mesh& mesh);

/// The extents of the block of an array that a sharding gives each device. The sharding passed check_reference().
Extents block_extents(const Extents& extents, const Sharding& sharding, const Mesh& mesh);

std::int64_t element_count(const Extents& extents);

/// Of elementwise operations on two operands; nullopt: the dimensions do not meet.
std::optional<Extents> broadcast_extents(const Extents& a, const Extents& b);

/// "Y = X W^T, Z = relu(Y)", by tensors and names of nodes; a graph that is too large to read is counted: "Y of 40 operations".
std::string claim_of(const ReferenceProgram& program);

/// `node 3 (product "C")`
std::string node_name(const ReferenceProgram& program, std::size_t node);

}  // namespace podsim
