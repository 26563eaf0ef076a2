// What one rank of the pipeline has to do in a training step, in order: the embedding, layers and the loss. Internal to workloads/training.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "algorithms/pipeline/pipeline_step.hpp"
#include "workloads/training/step_functions.hpp"

namespace podsim {

/// A group of weights: of one layer, or at an end of the model.
struct WeightInstance {
  WeightGroup group = WeightGroup::none;
  int layer = 0;
  friend auto operator<=>(const WeightInstance&, const WeightInstance&) = default;
};
/// "layer3."; nothing for an end of the model.
std::string prefix_of(const WeightInstance& of);

/// One piece of a task of the pipeline.
struct StepItem {
  PipelineTask task;
  StepWork work = StepWork::nothing;
  int layer = 0;
  WeightInstance reads{}, differentiates{};  // weights
};
/// "embedding", "loss", "layer 3".
std::string label_of(const StepItem& item);

/// Those of a rank, in the order of its list.
std::vector<StepItem> items_of(const PipelineStep& pipeline, int rank, bool has_vocabulary);

}  // namespace podsim
