// Dataflows as data: which operand of Y = X.W is stationary on an R x C mesh, and what follows from it.
//
//   dataflow                computes                    moves
//   OS, output-stationary   Y = X.W    X[M,K] W[K,N]    X along columns, W along rows
//   LS, left-stationary     Y = X.W^T  X[M,K] W[N,K]    W along rows, Y (partial sums) along columns
//   RS, right-stationary    Y = X^T.W  X[K,M] W[K,N]    X along columns, Y (partial sums) along rows
//
// Every matrix is block-partitioned P(rows, columns), so the two extents of the stationary matrix are split over the rows and the columns of devices.
// The third extent, called moving, is a dimension of both other matrices. Each of them travels along the mesh axis that splits it there: dimension 0
// along rows, dimension 1 along columns. Inputs are gathered; the output's partial sums are reduced.
//
// Example, OS on 2x2: Y is stationary, K moves. Device (0, 1) gathers block (0, 0) of X from device (0, 0) and block (1, 1) of W from device (1, 1),
// and computes block (0, 1) of Y.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/schedule/schedule.hpp"

namespace podsim {

enum class Dataflow { os, ls, rs };
inline constexpr std::array all_dataflows{Dataflow::os, Dataflow::ls, Dataflow::rs};

/// A matrix of a product: X, W, Y.
enum class Operand { left, right, out };
inline constexpr std::array all_operands{Operand::left, Operand::right, Operand::out};

struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::bf16;  // of X and W; Y and its partial sums are product_result(dtype)
  Dataflow dataflow = Dataflow::os;
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
};
constexpr DType dtype_of(DType operands, Operand operand) { return operand == Operand::out ? product_result(operands) : operands; }
/// A pointer to m, n or k of a problem.
using Extent = std::int64_t GemmProblem::*;

/// A matrix that moves. The moving extent is its dimension `dim`, so it travels along rows (0) or columns (1).
struct Move {
  Operand operand = Operand::left;
  std::size_t dim = 0;
};

/// The gradient of an input of the product, itself a product; Operand::out stands for the gradient of the output.
struct GradientRule {
  Dataflow dataflow = Dataflow::os;
  Operand left = Operand::left, right = Operand::right;
};

struct DataflowTraits {
  std::string_view name;  // "os"
  Operand stationary = Operand::out;
  Extent by_rows, by_columns, moving;                    // split over the rows, split over the columns of devices; cut into the pieces that move
  bool transpose_left = false, transpose_right = false;  // X is stored [K,M]; W is stored [N,K]
  std::array<Move, 2> moves;                             // in operand order; the first is gathered
  bool reduces = false;                                  // the second is the output, whose partial sums are reduced; false: it is gathered too
  std::array<GradientRule, 2> gradients;                 // of X, of W
};

namespace dataflow_rows {
using enum Operand;
inline constexpr Extent m = &GemmProblem::m, n = &GemmProblem::n, k = &GemmProblem::k;
inline constexpr DataflowTraits os{
    "os", out, m, n, k, false, false, {{{left, 1}, {right, 0}}}, false, {{{Dataflow::ls, out, right}, {Dataflow::rs, left, out}}}};
inline constexpr DataflowTraits ls{
    "ls", left, m, k, n, false, true, {{{right, 0}, {out, 1}}}, true, {{{Dataflow::os, out, right}, {Dataflow::rs, out, left}}}};
inline constexpr DataflowTraits rs{
    "rs", right, k, n, m, true, false, {{{left, 1}, {out, 0}}}, true, {{{Dataflow::ls, right, out}, {Dataflow::os, left, out}}}};
}  // namespace dataflow_rows

inline constexpr std::array dataflow_table{dataflow_rows::os, dataflow_rows::ls, dataflow_rows::rs};
constexpr const DataflowTraits& traits_of(Dataflow dataflow) { return dataflow_table[static_cast<std::size_t>(dataflow)]; }

std::string_view name_of(Dataflow dataflow);  // "os"
std::optional<Dataflow> dataflow_named(std::string_view name);

/// The extents of a matrix as stored, and the extent that it lacks.
struct OperandShape {
  Extent rows, columns, absent;
};
constexpr OperandShape shape_of(Dataflow dataflow, Operand operand) {
  constexpr Extent m = &GemmProblem::m, n = &GemmProblem::n, k = &GemmProblem::k;
  const DataflowTraits& flow = traits_of(dataflow);
  if (operand == Operand::left) return flow.transpose_left ? OperandShape{k, m, n} : OperandShape{m, k, n};
  if (operand == Operand::right) return flow.transpose_right ? OperandShape{n, k, m} : OperandShape{k, n, m};
  return {m, n, k};
}

}  // namespace podsim
