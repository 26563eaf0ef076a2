#include "workloads/training/step_weights.hpp"

#include <algorithm>

#include "workloads/part_tensors.hpp"

namespace podsim {

StepWeights embedding_weights(const StepAxes& axes, const TrainingModel& model) {
  StepWeights weights = vocabulary_weights(axes, model, "embedding");
  if (model.positions == 0) return weights;
  StepWeight positions{std::string{positions_weight}, {model.positions, model.width}};
  positions.sharding[1] = without_one_device({axes.col});
  positions.gathered = without_one_device({axes.fsdp, axes.expert});
  positions.dim = 1;
  weights.push_back(std::move(positions));
  return weights;
}

std::vector<std::int64_t> StepWeight::block() const {
  return {extents[0] / devices_along(sharding[0]), extents[1] / devices_along(sharding[1])};
}

std::vector<std::int64_t> StepWeight::shard() const {
  std::vector<std::int64_t> lengths = block();
  lengths[static_cast<std::size_t>(dim)] /= devices_along(gathered);
  return lengths;
}

std::vector<std::vector<AxisView>> StepWeight::shard_axes() const {
  std::vector<std::vector<AxisView>> axes{sharding[0], sharding[1]};
  axes[static_cast<std::size_t>(dim)].insert(axes[static_cast<std::size_t>(dim)].end(), gathered.begin(), gathered.end());
  return axes;
}

std::vector<std::int64_t> StepWeight::part() const {
  std::vector<std::int64_t> lengths = shard();
  lengths[static_cast<std::size_t>(dim)] /= devices_along(updated);
  return lengths;
}

std::vector<std::vector<AxisView>> StepWeight::part_axes() const {
  std::vector<std::vector<AxisView>> axes = shard_axes();
  axes[static_cast<std::size_t>(dim)].insert(axes[static_cast<std::size_t>(dim)].end(), updated.begin(), updated.end());
  return axes;
}

Region StepWeight::part_of(Region shard) const {
  const auto d = static_cast<std::size_t>(dim);
  if (!updated.empty()) shard.dims[d] = podsim::block(own(updated.front()), part()[d]);
  return shard;
}

Expected<StepWeights> layer_weights(const StepAxes& axes, const Submesh& submesh, const Workload& workload, const Plan& plan) {
  const auto parts = parts_of(workload, plan, submesh, Pass::forward);
  if (!parts) return parts.error();
  StepWeights weights;
  for (const WorkloadPart& part : *parts) {
    if (part.kind != WorkloadPart::Kind::product) continue;
    const bool reads_width = reads_model_width(part.name);
    if (part.experts > 0) {
      weights.push_back({part.name, {part.experts * part.inputs, part.outputs}, {without_one_device({axes.expert}), {}}, without_one_device({axes.fsdp}), reads_width ? 0 : 1});
      continue;
    }
    const auto schedule = part_schedule(submesh, part, plan.options);
    if (!schedule) return schedule.error();
    const std::vector<PartTensor> tensors = tensors_of(part, *schedule);
    const auto weight = std::find_if(tensors.begin(), tensors.end(), [](const PartTensor& tensor) { return tensor.role == TensorRole::weight; });
    weights.push_back({part.name, weight->extents, weight->sharding, without_one_device({axes.fsdp, axes.expert}), reads_width == weight->transposed ? 1 : 0});
  }
  return weights;
}

StepWeights vocabulary_weights(const StepAxes& axes, const TrainingModel& model, const std::string& name) {
  return {{name, {model.vocabulary, model.width}, {without_one_device({axes.col}), {}}, without_one_device({axes.fsdp, axes.expert, axes.row}), 1}};
}

}  // namespace podsim
