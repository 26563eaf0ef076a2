// A plan: how a workload is computed on a mesh. Data that the tuner writes, a file holds, and `run` simulates.
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
  std::string name;                                           // of the stage
  ActivationLayout layout = ActivationLayout::tokens_by_row;  // of what it reads; where the stage before left another one, a re-layout comes first
  std::optional<ProductChoice> product{};                     // of a product
  WrittenAt written_at{};
  friend bool operator==(const StagePlan&, const StagePlan&) = default;
};

/// How all collectives of a plan are lowered: "by-dimension" (workloads/collectives.hpp), or the name of an algorithm.
inline constexpr std::string_view by_dimension_name = "by-dimension";

struct Plan {
  PartOptions options;
  std::string collectives{by_dimension_name};
  std::vector<StagePlan> stages;  // as many as the workload has
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// How many devices share rows and columns of matrices. All that the parts of a plan depend on, of where it runs.
struct DeviceGrid {
  int rows = 1, columns = 1;
  DeviceGrid(const Submesh& submesh) : rows{submesh.rows.size}, columns{submesh.columns.size} {}  // NOLINT(google-explicit-constructor)
  /// Of a mesh of the axes row and col.
  DeviceGrid(const Mesh& mesh) : rows{mesh.axes().at(0).size}, columns{mesh.axes().at(1).size} {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] int devices() const { return rows * columns; }
};

/// What the plan has to do: the parts of the forward pass in order, then those of the backward pass, or one of them. Errors: stages that are not the
/// workload's; layouts that do not meet where a residual joins; heads that the devices along the features cannot share.
Expected<std::vector<WorkloadPart>> parts_of(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass);
/// On workload_submesh(mesh).
Expected<std::vector<WorkloadPart>> parts_of(const Workload& workload, const Plan& plan, const Mesh& mesh, Pass pass);

/// One stage in one pass; `layout` is of what it reads. Errors: heads that the devices along the features cannot share.
Expected<WorkloadPart> part_of(const Workload& workload, std::size_t stage, ActivationLayout layout, const std::optional<ProductChoice>& product,
                               const DeviceGrid& grid, Pass pass);

/// The re-layout before a stage. `layout`: what is there. Errors: attention that would need other copies of keys and values after it.
Expected<WorkloadPart> relayout_before(const Workload& workload, std::size_t stage, ActivationLayout layout, const DeviceGrid& grid, Pass pass);

/// The stages that a residual joins: [first, last) come before it and after the join before.
struct Branch {
  std::size_t first = 0, last = 0;
};
/// By residual, in order.
std::vector<Branch> branches_of(const Workload& workload);

/// All parts, one after the other, as one program: every task of a part waits for the last tasks of the one before on its device. Where parts view a
/// tensor differently (slices of another width), it is placed, free in time. On a symmetric torus the whole takes as long as its parts together;
/// where devices end a part at different times, it may take less, or a little more where a re-layout that starts so finds its links shared otherwise.
///
/// Tensors: X (what the block reads) -> Y; dY -> dX; <stage>.W -> <stage>.dW. `computes` is empty.
/// The block has R x C devices, rows and columns of the submesh; the mesh may have any other axes. Every group of the submesh's devices holds the
/// same tensors and computes the whole block, so that along axes that the submesh does not name the block is replicated, its batch not split: with
/// devices of one coordinate on them (devices_where()) it runs there alone. Groups share no data; where they share no links either, the block takes
/// the time of a mesh of its own.
///
/// Errors: those of parts_of() and part_schedule().
Expected<Schedule> block_schedule(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass);
/// On workload_submesh(mesh).
Expected<Schedule> block_schedule(const Mesh& mesh, const Workload& workload, const Plan& plan, Pass pass);

/// What a device must hold. All of `layers` blocks, activations as well: nothing is computed twice.
struct MemoryUse {
  Bytes weights, gradients, optimizer;
  Bytes activations;  // kept for the backward pass: what products, norms, attention and activations read
  Bytes working;      // of the part that needs most beside these: gathered operands, partial sums, gradients of activations
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + working; }
};
/// All but `working`. Without a backward pass: the weights alone.
MemoryUse resident_memory(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass);

}  // namespace podsim
