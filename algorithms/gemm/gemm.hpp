// GEMMs on R x C devices: a submesh (sim/schedule/submesh.hpp) of a mesh of any axes. Every matrix is block-partitioned P(rows, columns): device (r,
// c) holds block (r, c). Y[M,N] is the result, K the contraction; dataflow.hpp says which matrices move, and along which axis.
//
// An algorithm along one axis is one of two axes, one of which has one device.
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

#include "algorithms/gemm/dataflow.hpp"
#include "sim/base/expected.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {

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

/// How the submesh is used: R x C, or its devices along one axis, the ring, as columns (1 x P) or as rows (P x 1).
enum class MeshUse { row_col, one_axis_as_col, one_axis_as_row };

struct GemmAlgorithmEntry {
  std::string_view name, summary;
  MeshUse mesh = MeshUse::row_col;
  bool needs_slice_count = false, takes_slice_count = false;
  bool needs_rings = false;      // axes must wrap
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

/// Where an algorithm runs on a mesh that is made for it: axes row and col of R x C devices; for one axis, the only one of more than one device.
/// Errors: another mesh.
Expected<Submesh> submesh_for(const GemmAlgorithmEntry& algorithm, const Mesh& mesh);

// Below, a mesh stands for its submesh_for(). An algorithm along one axis takes a submesh with one_device in place of rows or of columns, whichever.

/// Errors: the submesh is not what the algorithm uses; options out of range.
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, Dataflow dataflow, const GemmOptions& options);
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow dataflow, const GemmOptions& options);

/// The problem with every extent rounded up to its multiple.
GemmProblem padded(const GemmProblem& problem, const Multiples& multiples);

/// One GEMM, as one program of the submesh's devices. Errors: as required_multiples; an extent does not divide (names it and the multiple).
/// Several on parts of one mesh become one schedule by side_by_side() (program_builder.hpp), their tensors named apart (make_layer's operands).
Expected<Schedule> make_gemm(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmProblem& problem, const GemmOptions& options);
Expected<Schedule> make_gemm(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options);

/// A layer's GEMMs: the forward product, the gradients, or both one after the other (dY is there when the forward product is done).
/// Their dataflows: DataflowTraits::gradients.
enum class Pass { forward, backward, both };
std::string_view name_of(Pass pass);
std::optional<Pass> pass_named(std::string_view name);

/// The three GEMMs of a layer whose forward product is `forward`: forward, dX, dW, each with its own m, n, k and dataflow.
std::vector<GemmProblem> layer_problems(const GemmProblem& forward);

/// What the extents of the FORWARD problem must be multiples of, so that all GEMMs of the pass divide.
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, Dataflow forward, Pass pass,
                                       const GemmOptions& options);
Expected<Multiples> required_multiples(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, Dataflow forward, Pass pass,
                                       const GemmOptions& options);

/// The tensors that are bound to the operands of a layer's forward product; the gradient of X is called dX. Tensors, buffers and labels take
/// their names from here: a product that is computed transposed binds W^T to its left operand, and its tasks say "gather W" where they gather it.
struct LayerOperands {
  std::string left = "X", right = "W", out = "Y";
};

/// Errors: as make_gemm, of any GEMM of the pass.
Expected<Schedule> make_layer(const GemmAlgorithmEntry& algorithm, const Submesh& submesh, const GemmProblem& forward, Pass pass,
                              const GemmOptions& options, const LayerOperands& operands = {});
Expected<Schedule> make_layer(const GemmAlgorithmEntry& algorithm, const Mesh& mesh, const GemmProblem& forward, Pass pass,
                              const GemmOptions& options, const LayerOperands& operands = {});

}  // namespace podsim
