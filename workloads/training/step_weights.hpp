// The weight matrices of a training step, as devices keep them and as products read them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "workloads/plan.hpp"
#include "workloads/training/step_axes.hpp"

namespace podsim {

/// A matrix that is stored in shards, and gathered along one dimension before it is used.
struct StepWeight {
  std::string name;                                 // "in_proj", "embedding", "logits"
  std::array<std::int64_t, 2> extents{};            // of the whole matrix, as it is stored
  std::array<std::vector<AxisView>, 2> sharding{};  // of the block that products read
  std::vector<AxisView> gathered{};                 // the axes with several devices over which the block is stored in shards
  int dim = 0;                                      // along which
  std::vector<AxisView> updated{};                  // the axes over which the update of a shard is divided, along `dim` too

  [[nodiscard]] std::vector<std::int64_t> block() const;
  [[nodiscard]] std::vector<std::int64_t> shard() const;
  [[nodiscard]] std::vector<std::vector<AxisView>> shard_axes() const;
  /// What a device updates of its shard: all of it, or its part over `updated`.
  [[nodiscard]] std::vector<std::int64_t> part() const;
  [[nodiscard]] std::vector<std::vector<AxisView>> part_axes() const;
  [[nodiscard]] Region part_of(Region shard) const;
};

/// Weights that are used together.
enum class WeightGroup { none, layer, embedding, logits };
using StepWeights = std::vector<StepWeight>;

/// The products of a layer, in order: blocks as the plan stores them, shards over fsdp and expert along the model's width. Those of experts are one below the
/// other, [experts * inputs, outputs]: blocks over expert, shards over fsdp. Errors: those of parts_of() and
/// part_schedule().
Expected<StepWeights> layer_weights(const StepAxes& axes, const Submesh& submesh, const Workload& workload, const Plan& plan);

/// [vocabulary, width]: rows over col, shards over fsdp, expert and row along the width. The embedding, or the weights of the logits.
StepWeights vocabulary_weights(const StepAxes& axes, const TrainingModel& model, const std::string& name);

/// The embedding, and learned positions if the model has them: [positions, width], the width over col, shards over fsdp and expert along it; every row has them.
StepWeights embedding_weights(const StepAxes& axes, const TrainingModel& model);
inline constexpr std::string_view positions_weight = "positions";

}  // namespace podsim
