// Lower bounds on the time and the memory of a training step, for pruning in its search.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "algorithms/pipeline/pipeline.hpp"
#include "workloads/scenario/training_times.hpp"

namespace podsim {

/// Tasks of a pipeline in seconds: forward and backward of a virtual stage of one microbatch, and the loss of one.
struct TaskTimes {
  double forward = 0, backward = 0, loss = 0;
};

/// What a pipeline of such tasks takes at least: the rank of the last stage does all of its own and the losses; and the rank whose first stage is the
/// latest waits for a forward of each rank before it, and leaves a backward of each if these are whole. No transfers. Cost O(1).
Seconds pipeline_bound(const TrainingStep& step, const TaskTimes& tasks);

/// Of a divided() step, arithmetic alone: products and attention (half of causal scores) at the peak times the largest efficiency of products.
TaskTimes arithmetic_times(const TrainingStep& step, const Machine& machine);
Seconds arithmetic_bound(const TrainingStep& step, const Machine& machine);

/// What the device that holds most cannot do without: weights, optimizer state and gradients, which are all there before the first update. Parameters
/// as training_schedule() has them.
Bytes state_bound(const TrainingStep& step);

/// What a rank holds at one time: (stage, microbatch) pairs whose backward is to come, or half done; stages whose gradients are begun.
struct PipelineHolding {
  int live = 0, half = 0, gradients = 0;
};
/// The order of a pipeline's tasks, and what its ranks hold.
struct PipelineShape {
  PipelineLists lists;
  std::vector<std::pair<int, int>> order;              // (rank, unit): whatever a unit waits for comes before it
  std::vector<std::vector<PipelineHolding>> holdings;  // per rank: at the ends of forwards, those that no other exceeds
};
/// Errors: those of executed_lists().
Expected<std::shared_ptr<const PipelineShape>> pipeline_shape(const TrainingStep& step, bool fuse_steady_state);

/// Time, and memory: the state of a rank, what the layers of its live forwards keep, while these are most also the gradients of stages that had a
/// backward before, and the gathered weights that the last product of a forward reads. Working memory is left out.
struct StepBound {
  Seconds time;
  Bytes memory;
};
/// pipeline_bound() of tasks that take at least what their layers take alone, and at least what the gathers and reductions beside them take, which
/// queue on one axis.
StepBound quick_bound(const TrainingStep& step, const PipelineShape& shape, const LayerTimes& layer, const WeightTimes& weights);

/// The step as a list schedule of its calls, each at least as long as its work alone and as what passes beside it. Transfers between stages are free,
/// and the sums over slices. Ranks are as in training_schedule(): which call gathers a weight and which reduces a gradient; of the sums over data the last
/// one counts. Cost O(layers * microbatches).
StepBound step_bound(const TrainingStep& step, const PipelineShape& shape, const LayerTimes& layer, const WeightTimes& weights);

}  // namespace podsim
