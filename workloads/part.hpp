// Parts of a workload: one stage in one pass, as it is laid out on R x C devices (a submesh of any mesh), and the schedule that it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/gemm/gemm.hpp"
#include "sim/base/expected.hpp"
#include "workloads/transformer.hpp"

namespace podsim {

/// How activations [tokens, features] lie on the mesh. A matrix is block-partitioned P(rows, columns); held transposed, [features, tokens], the
/// features are along the rows of devices.
enum class ActivationLayout { tokens_by_row, features_by_row };
std::string_view name_of(ActivationLayout layout);  // "tokens-by-row"
inline ActivationLayout other(ActivationLayout layout) {
  return layout == ActivationLayout::tokens_by_row ? ActivationLayout::features_by_row : ActivationLayout::tokens_by_row;
}

/// How a product Y = X.W is computed: by a dataflow of algorithms/gemm on the operands as they are (left = X, right = W, out = Y), or transposed
/// (left = W^T, right = X^T, out = Y^T). The layouts of X and Y follow:
///
///              dataflow    stands still   X                 Y
///              os          Y              tokens by row     tokens by row
///              ls          X              tokens by row     tokens by row
///              rs          W              features by row   tokens by row
///   transposed os          Y              features by row   features by row
///   transposed ls          W              tokens by row     features by row
///   transposed rs          X              features by row   features by row
///
/// The gradient of X lies as X does, that of Y as Y.
struct ProductChoice {
  std::string algorithm;  // of gemm_algorithms()
  Dataflow dataflow = Dataflow::os;
  bool transposed = false;
  std::int64_t slice_count = 0;  // 0: the algorithm takes none, or its own
  friend bool operator==(const ProductChoice&, const ProductChoice&) = default;
};
ActivationLayout input_layout(Dataflow dataflow, bool transposed);
ActivationLayout output_layout(Dataflow dataflow, bool transposed);

struct WorkloadPart {
  enum class Kind { product, norm, attention, activation, residual, relayout };
  Kind kind = Kind::product;
  std::string name;                                           // of its stage
  Pass pass = Pass::forward;                                  // forward or backward
  ActivationLayout layout = ActivationLayout::tokens_by_row;  // of what it reads in the forward pass
  DType dtype = DType::bf16;
  std::int64_t tokens = 0, inputs = 0, outputs = 0;              // of all devices
  ProductChoice product{};                                       // product
  Norm norm = Norm::none;                                        // norm
  bool gated = false;                                            // activation
  bool causal = true;                                            // attention
  std::int64_t sequence = 0, groups = 0, queries = 0, head = 0;  // attention; queries: heads per group
  WrittenAt written_at{};                                        // in a plan's file; that of every task of the part
  friend bool operator==(const WorkloadPart&, const WorkloadPart&) = default;
};

/// What the parts of a plan have in common.
struct PartOptions {
  std::int64_t block = 8;
  int prefetch = 1;
  bool slice_copies = true;
  friend bool operator==(const PartOptions&, const PartOptions&) = default;
};
GemmOptions gemm_options(const PartOptions& options, std::int64_t slice_count);

/// All of a mesh of the axes row and col, in this order. Errors: other axes.
Expected<Submesh> workload_submesh(const Mesh& mesh);

/// A part as a schedule of one program. Its tensors:
///   product     X, W -> Y                  backward   dY, X, W -> dX, dW
///   norm        X -> Y, sums               backward   dY, X, sums -> dX       sums: all-reduced along the features
///   attention   X -> Y                     backward   dY, X -> dX
///   activation  X -> Y                     backward   dY, X -> dX
///   residual    X, skip -> Y               (of gradients in the backward pass)
///   relayout    X -> Y                     backward   dY -> dX                the inverse
/// `computes` is set for products alone.
///
/// A re-layout from tokens by row: along `row`, tokens are gathered and features split; then along `col`, tokens are split and features
/// gathered; then the own block is transposed. Features come out in the order (col, row, own): the weights that read them have their rows in that
/// order, which costs nothing.
///   cost    all-to-all of the block along both axes + a copy on the core
/// On all groups of the submesh: what is left out of its rows and columns replicates the part. Errors: extents that do not divide (names them); those
/// of make_layer().
Expected<Schedule> part_schedule(const Submesh& submesh, const WorkloadPart& part, const PartOptions& options);
/// On workload_submesh(mesh).
Expected<Schedule> part_schedule(const Mesh& mesh, const WorkloadPart& part, const PartOptions& options);

/// The problem of a product's forward pass as algorithms/gemm sees it.
GemmProblem gemm_problem_of(const WorkloadPart& part);

/// Everything that tells the schedules of two parts apart, in one line.
std::string key_of(const WorkloadPart& part);

}  // namespace podsim
