#include "workloads/training/rank_items.hpp"

#include <fmt/format.h>

namespace podsim {

std::string prefix_of(const WeightInstance& of) { return of.group == WeightGroup::layer ? fmt::format("layer{}.", of.layer) : ""; }

std::string label_of(const StepItem& item) {
  switch (item.work) {
    case StepWork::embed:
    case StepWork::embed_gradient: return "embedding";
    case StepWork::loss: return "loss";
    default: return fmt::format("layer {}", item.layer);
  }
}

namespace {

void add_task(const PipelineTask& task, const PipelineSpec& spec, int layers, bool has_vocabulary, std::vector<StepItem>& items) {
  const int first = task.stage * layers, end = first + layers;
  const bool embeds = task.stage == 0 && has_vocabulary;
  const WeightInstance embedding{WeightGroup::embedding, 0}, logits = has_vocabulary ? WeightInstance{WeightGroup::logits, 0} : WeightInstance{};
  const auto add_layers = [&](StepWork work, bool forwards, bool reads, bool differentiates) {
    for (int i = first; i < end; ++i) {
      const int layer = forwards ? i : first + end - 1 - i;
      const WeightInstance weights{WeightGroup::layer, layer};
      items.push_back({task, work, layer, reads ? weights : WeightInstance{}, differentiates ? weights : WeightInstance{}});
    }
  };
  if (task.kind == PipelineTaskKind::forward) {
    if (embeds) items.push_back({task, StepWork::embed, 0, embedding, {}});
    return add_layers(StepWork::layer_forward, true, true, false);
  }
  if (task.kind == PipelineTaskKind::backward_weights) return add_layers(StepWork::layer_weights, false, false, true);
  if (task.stage + 1 == spec.stages) items.push_back({task, StepWork::loss, 0, logits, logits});
  const bool whole = task.kind == PipelineTaskKind::backward;
  add_layers(whole ? StepWork::layer_backward : StepWork::layer_inputs, false, true, whole);
  if (embeds) items.push_back({task, StepWork::embed_gradient, 0, {}, embedding});
}

}  // namespace

std::vector<StepItem> items_of(const PipelineStep& pipeline, int rank, bool has_vocabulary) {
  std::vector<StepItem> items;
  for (const PipelineUnit& unit : pipeline.lists.ranks[static_cast<std::size_t>(rank)])
    for (const PipelineTask& task : unit) add_task(task, pipeline.lists.spec, pipeline.layers / pipeline.lists.spec.stages, has_vocabulary, items);
  return items;
}

}  // namespace podsim
