// A whole training step as a schedule: a program for each rank of the pipeline, which calls functions for its layers.
//
// Each microbatch of a stage runs its layers in order. While one weight is used, the next one is gathered over fsdp, also across layers and tasks of the
// pipeline, and the gradients that are made are scattered. The gradients of a layer are complete with its last microbatch; then they are added up
// over data, beside the calls that follow. After the loop, slices add up theirs in one array, and the optimiser updates the shards of each layer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "algorithms/pipeline/pipeline_step.hpp"
#include "sim/schedule/reference_program.hpp"
#include "workloads/training/step_functions.hpp"

namespace podsim {

struct TrainingScheduleOptions {
  int steps = 1;                   // on one batch
  Optimiser optimiser{3e-4, 0.9, 0.95, 1e-8, 0.1};
  bool fuse_steady_state = false;  // PipelineSpec
  bool claims = false;             // the parameters after the last step, all losses and gradients are outputs, and `computes` says what they are
};

/// What a buffer of a program holds.
enum class MemoryKind { weights, gradients, optimizer, activations, working };

/// What a claimed output is.
enum class TrainingOutput { loss, gradient, parameter };
using TrainingOutputs = std::map<std::string, TrainingOutput>;  // by tensor

struct TrainingSchedule {
  Schedule schedule;
  PipelineStep pipeline;
  std::vector<std::vector<MemoryKind>> memory;  // by program and buffer. The scratch buffers of functions are working memory
  TrainingOutputs outputs{};                    // with claims
};

/// Layers times microbatches times steps: so many take about ten seconds and 2 GB. 128 layers of 512 microbatches, as the largest published steps have.
inline constexpr std::int64_t most_layer_passes = 1 << 16;

/// The pipeline of a step: 1f1b where it has one stage. Errors: those of executed_lists() and pipeline_step().
Expected<PipelineStep> pipeline_of(const TrainingStep& step, bool fuse_steady_state);

/// Tensors: "inputs__k" and "targets__k" of microbatch k: numbers of tokens, or without a vocabulary activations; the parameters, "layer3.ff1.W",
/// "embedding.W", with ".m", ".v", ".master"; with claims also their new values ("new layer3.ff1.W"), "d layer3.ff1.W 1" and "loss 1" of step 1.
///
/// The step must be divided() (an assert), and `mesh` has its axes. Left out: biases and the parameters of norms, the clipping of
/// gradients, checkpoints and input.
/// Errors: those of step_parts(), pipeline_of() and write_pipeline(); more than most_layer_passes. Cost O(layers * microbatches * steps) tasks.
Expected<TrainingSchedule> training_schedule(const TrainingStep& step, const Mesh& mesh, const Plan& plan, const TrainingScheduleOptions& options = {});

/// What its outputs are, on whole arrays, from the plain layers.
struct TrainingReference {
  ReferenceProgram program;
  TrainingOutputs outputs;
};
TrainingReference training_reference(const StepParts& parts, int steps);

/// How layers are computed along row and col if nothing else is asked for: activations stay tokens by row. Products of the model's width gather
/// activations, those that give it scatter their sums (os and ls, "collective"). source: Korthikanti et al. 2022, section 4.2.2, for one axis
Plan default_layer_plan(const Workload& layer);

}  // namespace podsim
