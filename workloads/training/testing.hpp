// Small training steps for tests.
#pragma once

#include "workloads/training/step_schedule.hpp"

namespace podsim::testing {

/// Four layers on every mesh of up to four devices along an axis, and 2x2 of row and col. float32.
inline TrainingModel small_model() {
  TrainingModel model;
  model.name = "small";
  model.layers = 4, model.width = 8, model.heads = 4, model.kv_heads = 4, model.head_dim = 2, model.mlp = 16, model.vocabulary = 12, model.sequence = 2;
  model.weights = model.gradients = model.activations = model.moments = DType::f32;
  return model;
}

/// The same without attention and vocabulary.
inline TrainingModel small_mlp() {
  TrainingModel model = small_model();
  model.name = "small MLP";
  model.heads = model.kv_heads = model.head_dim = 0, model.vocabulary = 0;
  return model;
}

inline TrainingStep small_step(const TrainingMesh& mesh, const std::string& pipeline = "1f1b", std::int64_t microbatches = 4) {
  TrainingStep step;
  step.model = small_model();
  step.mesh = mesh;
  step.pipeline = mesh.stage > 1 ? pipeline : "";
  step.virtual_stages = pipeline == "interleaved-1f1b" || pipeline == "kimi-k2" || pipeline == "dual-pipe-v" ? 2 : 1;
  if (mesh.stage == 1) step.virtual_stages = 1;
  step.microbatches = microbatches;
  step.batch = microbatches * mesh.batch_parts();
  return step;
}

inline Plan plan_of(const TrainingStep& step) { return default_layer_plan(*workload_of(layer_of(step.model, 1), 1)); }

}  // namespace podsim::testing
