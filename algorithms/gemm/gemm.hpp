// Two-dimensional GEMMs on a mesh of R x C devices (axes `row` of size R and `col` of size C). Every matrix is block-partitioned P(row, col):
// device (r, c) holds block (r, c). Y[M,N] is the result, K the contraction.
//
//   dataflow                computes                    moves
//   OS, output-stationary   Y = X.W    X[M,K] W[K,N]    X along col, W along row
//   LS, left-stationary     Y = X.W^T  X[M,K] W[N,K]    W along row, Y (partial sums) along col
//   RS, right-stationary    Y = X^T.W  X[K,M] W[K,N]    X along col, Y (partial sums) along row
//
// Symbols of the closed forms (ideal machine, nothing shares a link): T one matmul of the loop, tau(x) = alpha + bytes of x / link, AG and RdS
// the closed forms of collectives.hpp. Launches come on top, one before each collective of a queue.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

enum class Dataflow { os, ls, rs };
std::string_view name_of(Dataflow dataflow);  // "os"
std::optional<Dataflow> dataflow_named(std::string_view name);

struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::bf16;
  Dataflow dataflow = Dataflow::os;
  friend bool operator==(const GemmProblem&, const GemmProblem&) = default;
};

/// Which operand of a Wang OS travels its ring; the other one is gathered first.
enum class WangOperand { x, w };

/// What an algorithm may be told. Algorithms see no machine: the caller knows what suits it.
struct GemmOptions {
  std::int64_t slice_count = 0;             // 0: the algorithm's own (summa: lcm(R, C); others have one slice)
  std::int64_t block = 8;                   // meshslice: slices are cut of interleaved blocks of this many rows or columns
  int prefetch = 1;                         // slices, panels or steps that run ahead; prefetch + 1 buffers of each moving operand
  bool slice_copies = true;                 // meshslice: cuts and joins of slices are copies on the core; false: free
  std::optional<WangOperand> wang_operand;  // none: the one with more bytes . (P-1), X if equal
};

/// What each extent must be a multiple of.
struct Multiples {
  std::int64_t m = 1, n = 1, k = 1;
};

class GemmWriter;

/// How the mesh is used: R x C, or all devices along one axis, the only one of more than one device.
enum class MeshUse { row_col, one_axis_as_col, one_axis_as_row };

struct GemmAlgorithmEntry {
  std::string_view name, summary;
  MeshUse mesh = MeshUse::row_col;
  bool needs_slice_count = false, takes_slice_count = false;
  std::optional<Dataflow> only;  // the dataflow that the name implies for a forward pass
  /// Errors: the slice count or the mesh does not suit.
  Expected<Multiples> (*multiples)(int R, int C, Dataflow dataflow, const GemmOptions& options) = nullptr;
  /// Writes the GEMM that the writer has begun; its extents divide.
  void (*write)(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) = nullptr;
};

/// The table; what each algorithm does and costs stands in its source file.
///   collective, meshslice            meshslice.cpp
///   summa                            summa.cpp
///   cannon                           cannon.cpp
///   wang, 1d-os, 1d-ls               wang.cpp     1d-os: OS on 1 x P, 1d-ls: LS on 1 x P
///   1d-fsdp                          meshslice.cpp: collective on P x 1, the weights are gathered
///   1d-megatron                      megatron.cpp
///   jax-ag-*, jax-rs-*               wang.cpp, meshslice.cpp: the kernels of JAX's shard_map tutorial, on P x 1
///   tp-ag-*                          wang.cpp: rows of X gathered for columns of W; X is split by rows only, W and Y by columns only
std::span<const GemmAlgorithmEntry> gemm_algorithms();
/// Errors: no such algorithm (names the near ones).
Expected<const GemmAlgorithmEntry*> gemm_algorithm(std::string_view name);

/// Errors: the mesh is not what the algorithm uses; options out of range.
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow dataflow, const GemmOptions& options);

/// The problem with every extent rounded up to its multiple.
GemmProblem padded(const GemmProblem& problem, const Multiples& multiples);

/// One GEMM. Errors: as required_multiples; an extent does not divide (names it and the multiple).
Expected<Schedule> make_gemm(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options);

/// The same by a one-axis algorithm along one axis of a larger mesh: the devices of every group along it compute the product, each group by itself.
/// Errors: as make_gemm; an algorithm of two axes.
Expected<Schedule> make_gemm_along(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const AxisView& axis, const GemmProblem& problem,
                                   const GemmOptions& options);

/// A layer's GEMMs: the forward product, the gradients, or both one after the other (dY is there when the forward product is done).
///   forward OS(X, W): dX = LS(dY, W), dW = RS(X, dY)      forward LS(X, W): dX = OS(dY, W), dW = RS(dY, X)
///   forward RS(X, W): dX = LS(W, dY), dW = OS(X, dY)
enum class Pass { forward, backward, both };
std::optional<Pass> pass_named(std::string_view name);

/// The three GEMMs of a layer whose forward product is `forward`: forward, dX, dW, each with its own m, n, k and dataflow.
std::vector<GemmProblem> layer_problems(const GemmProblem& forward);

/// What the extents of the FORWARD problem must be multiples of, so that all GEMMs of the pass divide.
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow forward, Pass pass,
                                       const GemmOptions& options);

/// The tensors that are bound to the operands of a layer's forward product; the gradient of X is called dX. Tensors, buffers and labels take
/// their names from here: a product that is computed transposed binds W^T to its left operand, and its tasks say "gather W" where they gather it.
struct LayerOperands {
  std::string left = "X", right = "W", out = "Y";
};

/// Errors: as make_gemm, of any GEMM of the pass.
Expected<Schedule> make_layer(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& forward, Pass pass,
                              const GemmOptions& options, const LayerOperands& operands = {});

}  // namespace podsim
