// A plan: how a workload is computed on a mesh. The tuner writes plans, files store them, `run` simulates them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/part.hpp"
#include "workloads/transformer.hpp"

namespace podsim {

struct StagePlan {
  std::string name;                                           // the name of the stage
  ActivationLayout layout = ActivationLayout::tokens_by_row;  // of its input; if the stage before has another output layout, a re-layout is inserted
  std::optional<ProductChoice> product{};                     // for products
  WrittenAt written_at{};
  friend bool operator==(const StagePlan&, const StagePlan&) = default;
};

/// The lowering of all collectives of a plan: "by-dimension" (workloads/collectives.hpp), or the name of an algorithm.
inline constexpr std::string_view by_dimension_name = "by-dimension";

struct Plan {
  PartOptions options;
  std::string collectives{by_dimension_name};
  std::vector<StagePlan> stages;  // one per stage of the workload
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The numbers of devices along rows and columns of matrices. The parts of a plan depend on the mesh only through them.
struct DeviceGrid {
  int rows = 1, columns = 1;
  DeviceGrid(const Submesh& submesh) : rows{submesh.rows.size}, columns{submesh.columns.size} {}  // NOLINT(google-explicit-constructor)
  /// For a mesh with the axes row and col.
  DeviceGrid(const Mesh& mesh) : rows{mesh.axes().at(0).size}, columns{mesh.axes().at(1).size} {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] int devices() const { return rows * columns; }
};

/// The part behind the router's backward pass: adds the gradients of its tokens and of those that were dispatched.
inline constexpr std::string_view router_join = "router join";

/// The parts of a plan: the forward pass in order, then the backward pass, or one of them. Errors: stages other than the workload's; layouts that
/// differ at a residual; heads that cannot be split over the devices along the features.
Expected<std::vector<WorkloadPart>> parts_of(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass);
/// The same on workload_submesh(mesh).
Expected<std::vector<WorkloadPart>> parts_of(const Workload& workload, const Plan& plan, const Mesh& mesh, Pass pass);

/// One stage in one pass; `layout` is that of its input. Errors: heads that cannot be split over the devices along the features.
Expected<WorkloadPart> part_of(const Workload& workload, std::size_t stage, ActivationLayout layout, const std::optional<ProductChoice>& product,
                               const DeviceGrid& grid, Pass pass);

/// The re-layout before a stage; `layout` is the present one. Errors: attention would need different copies of keys and values after it.
Expected<WorkloadPart> relayout_before(const Workload& workload, std::size_t stage, ActivationLayout layout, const DeviceGrid& grid, Pass pass);

/// The stages of a residual branch: [first, last), from after the previous residual to this one.
struct Branch {
  std::size_t first = 0, last = 0;
};
/// One branch per residual, in order.
std::vector<Branch> branches_of(const Workload& workload);

/// All parts in sequence as one program: every task of a part waits for the last tasks of the part before on its device. If two parts view a tensor
/// differently (slices of different width), an alias, free in time, converts it. On a symmetric torus the block takes the sum of its parts' times. If
/// devices end a part at different times, it may take less, or slightly more where an early re-layout meets other flows on its links.
///
/// Tensors: X (what the block reads) -> Y; dY -> dX; <stage>.W -> <stage>.dW. `computes` is block_reference().
/// The block has R x C devices, the rows and columns of the submesh; the mesh may have other axes. Every group of the submesh's devices holds the
/// same tensors and computes the whole block: along axes that the submesh does not name, the block is replicated and its batch is not split. Restrict
/// the submesh to devices of one coordinate on those axes (devices_where()) to run it once. Groups share no data; if they share no links either, the
/// block takes the same time as on a mesh of its own.
///
/// Errors: those of parts_of() and part_schedule().
Expected<Schedule> block_schedule(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass);
/// The same on workload_submesh(mesh).
Expected<Schedule> block_schedule(const Mesh& mesh, const Workload& workload, const Plan& plan, Pass pass);

/// The memory that a device needs, for all of `layers` blocks. Activations are included: nothing is recomputed.
struct MemoryUse {
  Bytes weights, gradients, optimizer;
  Bytes activations;  // kept for the backward pass: inputs of products, norms, attention and activations
  Bytes working;      // of the part that needs most besides these: gathered operands, partial sums, gradients of activations
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + working; }
};
/// Everything but `working`. Without a backward pass: only the weights.
MemoryUse resident_memory(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass);

}  // namespace podsim
