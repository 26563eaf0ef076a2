// GEMMs on R x C devices: a submesh (sim/schedule/submesh.hpp) of a mesh with any axes. Every matrix is block-partitioned P(rows, columns): device
// (r, c) holds block (r, c). Y[M,N] is the result, K the contraction; dataflow.hpp defines which matrices move along which axis.
//
// An algorithm along one axis uses R x 1 or 1 x C devices.
//
// Symbols of the closed forms (ideal machine, no contention): T = one matmul of the loop, tau(x) = alpha + bytes of x / link, AG and RdS = the
// closed forms of collectives.hpp. Launches are extra, one before each collective of a queue.
//
// Example, `collective` in OS on 2x2: every device gathers its row of X along columns and its column of W along rows, then does one matmul. Each
// source file has the example of its algorithm.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/gemm/dataflow.hpp"
#include "sim/base/expected.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {

/// Which operand of a Wang OS travels its ring; the other one is gathered first.
enum class WangOperand { x, w };

/// Options of an algorithm. Algorithms see no machine, so the caller chooses them.
struct GemmOptions {
  std::int64_t slice_count = 0;             // 0: the algorithm's default (summa: lcm(R, C); others: 1)
  std::int64_t block = 8;                   // meshslice: slices consist of interleaved blocks of this many rows or columns
  int prefetch = 1;                         // number of slices, panels or steps that run ahead; each moving operand has prefetch + 1 buffers
  bool slice_copies = true;                 // meshslice: slices are cut and joined by copies on the core; false: free in time
  std::optional<WangOperand> wang_operand;  // nullopt: the operand with more bytes . (P-1), X if equal
};

/// The numbers that m, n and k must be multiples of.
struct Multiples {
  std::int64_t m = 1, n = 1, k = 1;
};

class GemmWriter;

/// How an algorithm uses the submesh: as R x C, or as one axis (the ring) laid along columns (1 x P) or rows (P x 1).
enum class MeshUse { row_col, one_axis_as_col, one_axis_as_row };

struct GemmAlgorithmEntry {
  std::string_view name, summary;
  MeshUse mesh = MeshUse::row_col;
  bool needs_slice_count = false, takes_slice_count = false;
  std::optional<Dataflow> only;  // the dataflow that the name implies for a forward pass
  /// Errors: a slice count or mesh that the algorithm does not support.
  Expected<Multiples> (*multiples)(int R, int C, Dataflow dataflow, const GemmOptions& options) = nullptr;
  /// Writes the GEMM into the writer, whose problem is set. All extents must divide.
  void (*write)(GemmWriter& writer, const GemmProblem& problem, const GemmOptions& options) = nullptr;
};

/// The table. Each source file describes its algorithms, their cost and an example.
///   collective, meshslice            meshslice.cpp
///   summa                            summa.cpp
///   cannon                           cannon.cpp
///   wang, 1d-os, 1d-ls               wang.cpp     1d-os: OS on 1 x P, 1d-ls: LS on 1 x P
///   1d-fsdp                          meshslice.cpp: collective on P x 1; the weights are gathered
///   1d-megatron                      megatron.cpp
///   jax-ag-*, jax-rs-*               wang.cpp, meshslice.cpp: the kernels of JAX's shard_map tutorial, on P x 1
///   tp-ag-*                          wang.cpp: rows of X are gathered for columns of W; X is split by rows only, W and Y by columns only
std::span<const GemmAlgorithmEntry> gemm_algorithms();
/// Errors: no such algorithm (the message names similar ones).
Expected<const GemmAlgorithmEntry*> gemm_algorithm(std::string_view name);

/// The submesh of a mesh made for an algorithm: axes row and col of R x C devices; for an algorithm along one axis the only axis of more than one
/// device. Errors: another mesh.
Expected<Submesh> submesh_for(const GemmAlgorithmEntry& algorithm, const Mesh& mesh);

// The overloads below that take a mesh use its submesh_for(). An algorithm along one axis takes a submesh with one_device as rows or as columns.

/// Errors: the submesh does not fit the algorithm; options out of range.
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, Dataflow dataflow, const GemmOptions& options);
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow dataflow, const GemmOptions& options);

/// The problem with every extent rounded up to its multiple.
GemmProblem padded(const GemmProblem& problem, const Multiples& multiples);

/// One GEMM as one program on the submesh's devices. Errors: those of required_multiples(); an extent does not divide (the message names it and the
/// multiple). side_by_side() (program_builder.hpp) joins GEMMs on disjoint parts of one mesh; give their tensors different names (make_layer's
/// operands).
Expected<Schedule> make_gemm(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmProblem& problem, const GemmOptions& options);
Expected<Schedule> make_gemm(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options);

/// The GEMMs of a layer: the forward product, the gradients, or both in sequence (dY is available when the forward product ends).
/// DataflowTraits::gradients has their dataflows.
enum class Pass { forward, backward, both };
std::string_view name_of(Pass pass);
std::optional<Pass> pass_named(std::string_view name);

/// The three GEMMs of a layer whose forward product is `forward`: forward, dX, dW, each with its own m, n, k and dataflow.
std::vector<GemmProblem> layer_problems(const GemmProblem& forward);

/// The multiples that the extents of the FORWARD problem need so that all GEMMs of the pass divide.
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, Dataflow forward, Pass pass,
                                       const GemmOptions& options);
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow forward, Pass pass,
                                       const GemmOptions& options);

/// The names of the tensors of a layer's forward product; the gradient of X is called dX. Tensors, buffers and labels use them: a product that is
/// computed transposed binds W^T to its left operand, and its tasks are labelled "gather W" where they gather it.
struct LayerOperands {
  std::string left = "X", right = "W", out = "Y";
};

/// Errors: those of make_gemm(), for any GEMM of the pass.
Expected<Schedule> make_layer(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmProblem& forward, Pass pass,
                              const GemmOptions& options, const LayerOperands& operands = {});
Expected<Schedule> make_layer(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& forward, Pass pass,
                              const GemmOptions& options, const LayerOperands& operands = {});

}  // namespace podsim
