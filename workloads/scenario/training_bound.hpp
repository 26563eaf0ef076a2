// Lower bounds on the time and the memory of a training step, for pruning in its search.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/pipeline/pipeline.hpp"
#include "workloads/scenario/training_problem.hpp"

namespace podsim {

/// What the arithmetic of a divided() step takes at least: of the rank of the last stage
///   microbatches * virtual stages * (forward + backward) of a virtual stage, at the peak times the largest efficiency of products,
///   the logits of every microbatch, forward and backward,
///   and of the rank whose first stage is the latest, the forwards before its first task and, where backward passes are whole, the backwards after its last.
/// No transfer, no memory traffic, no launch. Cost O(stages of a layer).
Seconds arithmetic_bound(const TrainingStep& step, const Machine& machine);

/// What no schedule of a divided() step can do without on the device that holds most: weights, optimizer state and gradients, which are all there before
/// the first update. Parameters as training_schedule() has them.
Bytes state_bound(const TrainingStep& step);

/// The order of a pipeline's tasks, and what its ranks hold.
struct PipelineShape {
  PipelineLists lists;
  std::vector<std::pair<int, int>> order;  // (rank, unit) so that whatever a unit waits for comes before it
};
/// Errors: those of executed_lists().
Expected<std::shared_ptr<const PipelineShape>> pipeline_shape(const TrainingStep& step, bool fuse_steady_state);

/// The calls of a step by themselves, in seconds: by des, on this system or one with equal axes.
struct LayerTimes {
  double forward = 0, backward = 0, inputs = 0, weights = 0;  // of a layer
  double embed = 0, loss = 0, embed_gradient = 0;
  Bytes kept;              // of a layer and microbatch between its forward and backward, its input among it
  Bytes kept_for_weights;  // between the halves of a split backward
};
struct WeightTimes {
  std::array<double, 4> fetch{}, reduce{}, update{};  // by WeightGroup: gathers; reductions without the sum over data; the optimiser
  std::array<bool, 4> fetched{};                      // whether a block is not what the shard is
  std::array<Bytes, 4> weights{}, optimizer{}, gradients{}, block{};
};
/// Simulates each call alone. Errors: those of the model; cancelled work.
Expected<LayerTimes> layer_times(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options);
Expected<WeightTimes> weight_times(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options);

/// Times are equal for equal keys: those of the axes over which layers, or weights, are divided. With the machine's torus undamaged and its links alike in all
/// directions a key says only which rings lie under an axis, else it names the system.
std::string layer_key(const System& system, std::size_t number, const TrainingStep& divided);
std::string weight_key(const System& system, std::size_t number, const TrainingStep& divided, const Plan& plan);

struct StepBound {
  Seconds time;
  Bytes memory;
};
/// The step as a list schedule of its calls. A call takes at least what its work takes alone, and at least what the gathers and reductions beside it take,
/// which queue on one axis; transfers between stages are free; the sums over data and slices too. Ranks are as in training_schedule(): weights are gathered
/// unless they were gathered last, gradients are reduced during the next call.
/// Memory: the state of a rank, and the layers' inputs and kept outputs of its live forwards; while these are most, also the gradients of the stages that
/// had a backward before, and two layers' gathered weights. Working memory is left out.
StepBound step_bound(const TrainingStep& step, const PipelineShape& shape, const LayerTimes& layer, const WeightTimes& weights);

}  // namespace podsim
