// Parts of a workload: one stage in one pass, laid out on R x C devices (a submesh of any mesh), and its schedule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/gemm/gemm.hpp"
#include "sim/base/expected.hpp"
#include "workloads/transformer.hpp"

namespace podsim {

/// The layout of activations [tokens, features] on the mesh. Matrices are block-partitioned P(rows, columns). features_by_row: the matrix is stored
/// transposed, [features, tokens], so features are split over the rows of devices.
enum class ActivationLayout { tokens_by_row, features_by_row };
std::string_view name_of(ActivationLayout layout);  // "tokens-by-row"
inline ActivationLayout other(ActivationLayout layout) {
  return layout == ActivationLayout::tokens_by_row ? ActivationLayout::features_by_row : ActivationLayout::tokens_by_row;
}

/// How a product Y = X.W is computed: by a dataflow of algorithms/gemm on its operands (left = X, right = W, out = Y), or transposed (left = W^T,
/// right = X^T, out = Y^T). The layouts of X and Y follow:
///
///              dataflow    stationary     X                 Y
///              os          Y              tokens by row     tokens by row
///              ls          X              tokens by row     tokens by row
///              rs          W              features by row   tokens by row
///   transposed os          Y              features by row   features by row
///   transposed ls          W              tokens by row     features by row
///   transposed rs          X              features by row   features by row
///
/// The gradient of X has the layout of X, the gradient of Y that of Y.
struct ProductChoice {
  std::string algorithm;  // one of gemm_algorithms()
  Dataflow dataflow = Dataflow::os;
  bool transposed = false;
  std::int64_t slice_count = 0;  // 0: the algorithm's default
  std::string collectives{};     // the lowering of its collectives: auto_name, or the name of an algorithm; empty: as the plan says
  friend bool operator==(const ProductChoice&, const ProductChoice&) = default;
};
/// Of a product, each of whose collectives is lowered by the algorithm that is fastest for it alone, by simulation.
inline constexpr std::string_view auto_name = "auto";
ActivationLayout input_layout(Dataflow dataflow, bool transposed);
ActivationLayout output_layout(Dataflow dataflow, bool transposed);
/// Whether W is stored [outputs, inputs].
bool weights_transposed(Dataflow dataflow, bool transposed);

struct WorkloadPart {
  enum class Kind { product, norm, attention, activation, residual, relayout, dispatch, combine };
  Kind kind = Kind::product;
  std::string name;                                           // of its stage
  Pass pass = Pass::forward;                                  // forward or backward
  ActivationLayout layout = ActivationLayout::tokens_by_row;  // of its input in the forward pass
  DType dtype = DType::bf16;
  std::int64_t tokens = 0, inputs = 0, outputs = 0;              // global
  ProductChoice product{};                                       // product
  Norm norm = Norm::none;                                        // norm
  bool gated = false;                                            // activation
  bool causal = true;                                            // attention
  std::int64_t experts = 0, experts_per_token = 0;               // dispatch, combine; products of experts
  std::int64_t sequence = 0, groups = 0, queries = 0, head = 0;  // attention; queries: heads per group
  WrittenAt written_at{};                                        // in a plan's file; every task of the part has it
  friend bool operator==(const WorkloadPart&, const WorkloadPart&) = default;
};

/// Options that all parts of a plan share.
struct PartOptions {
  std::int64_t block = 8;
  int prefetch = 1;
  bool slice_copies = true;
  friend bool operator==(const PartOptions&, const PartOptions&) = default;
};
GemmOptions gemm_options(const PartOptions& options, std::int64_t slice_count);

/// The whole of a mesh with the axes row and col, in this order. Errors: other axes.
Expected<Submesh> workload_submesh(const Mesh& mesh);

/// The schedule of a part, one program. Its tensors:
///   product     X, W -> Y                  backward   dY, X, W -> dX, dW
///   norm        X -> Y, sums               backward   dY, X, sums -> dX       sums: all-reduced along the features
///   attention   X -> Y                     backward   dY, X -> dX
///   activation  X -> Y                     backward   dY, X -> dX
///   residual    X, skip -> Y               (of gradients in the backward pass)
///   relayout    X -> Y                     backward   dY -> dX                the inverse
///   dispatch    X -> Y                     backward   dY -> dX                the sum over a token's copies
///   combine     X, logits -> Y, gates, received   backward   dY, gates, received -> dX, dlogits   received: X back at the tokens
/// Only products set `computes`, those of experts not.
///
/// Experts are divided over submesh.experts; their tokens stand in [devices along it, experts of a device, C, features], first the device that they came from. dispatch
/// copies each token for its experts (balanced: LocalKind::expert_gates) and sends the copies there by an all-to-all, combine sends what became of them back. An
/// expert's product is a Matmul of its own on its [devices, C] tokens, and W of all experts of a device is [experts * inputs, outputs]. Rows and columns are one device.
///   cost    all-to-all of experts_per_token times the block + copies of as much, each way and pass; as many products as experts of a device
///
/// A re-layout from tokens by row has three steps: an all-to-all along `row` gathers tokens and splits features; an all-to-all along `col` splits
/// tokens and gathers features; each device transposes its own block. Features end in the order (col, row, own). The weights that read them have
/// their rows in that order, at no cost.
///   cost    all-to-all of the block along both axes + a copy on the core
/// Runs on all groups of the submesh: mesh axes outside its rows and columns replicate the part. Errors: extents that do not divide (the message
/// names them); those of make_layer().
Expected<Schedule> part_schedule(const Submesh& submesh, const WorkloadPart& part, const PartOptions& options);
/// The same on workload_submesh(mesh).
Expected<Schedule> part_schedule(const Mesh& mesh, const WorkloadPart& part, const PartOptions& options);

/// Makes each collective of a schedule name this algorithm, or auto_name.
void state_collectives(Schedule& schedule, const std::string& algorithm);
/// Whether any names auto_name, so that a chooser must be found for the schedule as a whole.
bool states_auto(const Schedule& schedule);

/// The forward problem of a product, for algorithms/gemm.
GemmProblem gemm_problem_of(const WorkloadPart& part);

/// A key that is equal for two parts exactly if their schedules are equal.
std::string key_of(const WorkloadPart& part);

}  // namespace podsim
