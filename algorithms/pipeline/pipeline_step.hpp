// A whole training step of a pipeline: what each rank does before, in and after the loop over microbatches, with every transfer and every deletion.
//
// Values, with their names; s is a stage, k a microbatch:
//
//   inputs__k, targets__k    a microbatch of the batch, on the ranks of the first and the last stage
//   act_s__k                 output of stage s, input of stage s + 1. The last stage has none: its forward ends in the loss
//   res_s__k                 residuals: what the forward keeps for the backward
//   dact_s__k                gradient of act_s__k
//   resW_s__k                split backward: what bwdA leaves for bwdW
//   grads_s                  sum of the gradients of stage s's parameters over all microbatches
//
// State that lives from step to step is no such value and is never deleted: parameters and optimizer state of a stage on its rank, scalars on all.
#pragma once

#include <string>
#include <vector>

#include "algorithms/pipeline/pipeline.hpp"

namespace podsim {

struct PipelineValue {
  enum class Kind : std::uint8_t { inputs, targets, activation, residuals, activation_gradient, weight_residuals, gradients, loss };
  Kind kind = Kind::activation;
  int stage = 0, microbatch = 0;  // 0 where the value has none
  friend bool operator==(const PipelineValue&, const PipelineValue&) = default;
  friend auto operator<=>(const PipelineValue&, const PipelineValue&) = default;
};
std::string name_of(const PipelineValue& value);

/// What a task reads and makes. Backward passes of parameters also add to grads_s, and the last stage's forward to the loss.
std::vector<PipelineValue> read_by(const PipelineTask& task, const PipelineSpec& spec);
std::vector<PipelineValue> made_by(const PipelineTask& task, const PipelineSpec& spec);

/// One thing that a rank does.
struct PipelineCommand {
  enum class Kind : std::uint8_t {
    split_inputs,    // makes inputs__k of all microbatches
    split_targets,   // makes targets__k of all microbatches
    zero_gradients,  // makes grads_s of `task.stage`
    zero_loss,
    execute,  // `task`
    send,
    receive,    // `value`, to or from `peer`
    erase,      // `value` of this rank
    mean_loss,  // divides the sum over microbatches by their number
    update,     // the optimizer, on the parameters of `task.stage`: reads grads_s
  };
  Kind kind = Kind::execute;
  PipelineTask task{};
  PipelineValue value{};
  int peer = -1;
};
/// "fwd_0__3", "send act_0__3 to 1", "recv act_0__3 from 0", "delete act_0__3", "split_inputs", "zero_grads_2", "update_2"
std::string name_of(const PipelineCommand& command);

struct PipelineTransfer {
  int from = 0, to = 0;
  PipelineValue value;
};

struct PipelineStep {
  PipelineLists lists;  // what is executed
  int layers = 0;
  std::vector<std::vector<PipelineCommand>> before, loop, after;  // per rank
  std::vector<PipelineTransfer> transfers;                        // of the loop, in the order in which the units that send them start
};

/// The scalars, which live on all ranks: "step", "learning_rate", "loss".
std::vector<std::string_view> pipeline_scalars();

/// Layers are divided evenly: stage s has the layers s L/S .. (s+1) L/S - 1.
int stage_of_layer(const PipelineStep& step, int layer);

/// Completes lists of tasks. A value that a stage on another rank reads is sent to it right after the task that makes it, also from the middle of a
/// fused unit, and is received just before the unit that first reads it or a later value of the same sender: receives are in the order of the sends,
/// per pair of ranks. On one rank stages share values. A value is deleted on each rank right after its last use there; sending is a use.
///   cost     O(tasks log ranks)
///   errors   those of pipeline_times(); layers that are no multiple of the stages
Expected<PipelineStep> pipeline_step(const PipelineLists& lists, int layers);

}  // namespace podsim
