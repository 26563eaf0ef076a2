// Training steps for tests of their simulation.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "topologies/machines.hpp"
#include "topologies/system.hpp"
#include "workloads/training/testing.hpp"

namespace podsim::testing {

/// A slice with a dimension for each axis of several devices.
inline System system_of(Machine machine, const TrainingMesh& mesh) {
  SystemSpec spec;
  spec.machine = std::move(machine);
  std::vector<int> extents;
  for (const std::string_view axis : training_axes)
    if (const std::int64_t size = size_of(mesh, axis); size > 1) spec.mesh.emplace_back(axis, static_cast<int>(size)), extents.push_back(static_cast<int>(size));
  if (extents.empty()) spec.mesh.emplace_back("data", 1), extents.push_back(1);
  spec.slice = Slice{extents, false};
  auto system = make_system(spec);
  EXPECT_TRUE(system) << to_text(system.error());
  return *std::move(system);
}
inline System system_of(const std::string& machine, const TrainingMesh& mesh) { return system_of(*find_machine(machine), mesh); }

/// On a mesh of stages and at most two other axes; a small one has two stages of one layer each (and each virtual stage) and at most one other axis, of two devices.
inline TrainingStep random_training_step(std::uint64_t seed, bool small = false) {
  Rng rng{seed, stream_of("training steps")};
  constexpr std::array<const char*, 7> pipelines{"gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "kimi-k2", "zero-bubble", "dual-pipe-v"};
  TrainingMesh mesh;
  mesh.stage = rng.between(2, small ? 2 : 4);
  mesh.fsdp = std::int64_t{1} << rng.between(0, 1);
  mesh.col = std::int64_t{1} << rng.between(0, small ? (mesh.fsdp == 1 ? 1 : 0) : 2);
  if (rng.between(0, 1) == 1 && (!small || mesh.fsdp * mesh.col == 1)) (mesh.fsdp == 1 ? mesh.data : mesh.col == 1 ? mesh.data : mesh.fsdp) = 2;
  const std::string pipeline = pipelines[static_cast<std::size_t>(rng.between(0, 6))];
  TrainingStep step = small_step(mesh, pipeline, 0);
  step.microbatches = pipeline == "dual-pipe-v" ? 2 * mesh.stage : mesh.stage * rng.between(1, 2);
  step.batch = step.microbatches * mesh.batch_parts() * rng.between(1, 2);
  TrainingModel& model = step.model;
  model.layers = mesh.stage * step.virtual_stages * rng.between(1, small ? 1 : 2);
  model.width = 256 * rng.between(1, 4), model.heads = 8, model.kv_heads = 8, model.head_dim = model.width / 8, model.mlp = 4 * model.width;
  model.sequence = 64 * rng.between(1, 4), model.vocabulary = 512;
  model.activations = DType::bf16;
  step.scan = rng.between(0, 1) == 1;
  if (rng.between(0, 1) == 1) step.remat.kind = Remat::Kind::full;
  return step;
}

/// Four experts, of which a token takes two, on every kind of mesh that has the axis expert; nothing and everything is computed again.
inline std::vector<TrainingStep> expert_steps() {
  std::vector<TrainingStep> steps;
  for (const TrainingMesh& mesh : {TrainingMesh{.expert = 2}, {.expert = 4}, {.fsdp = 2, .expert = 2}, {.data = 2, .fsdp = 2, .expert = 2}, {.stage = 2, .expert = 2}, {.fsdp = 2}})
    for (const Remat::Kind remat : {Remat::Kind::none, Remat::Kind::full}) {
      TrainingStep step = small_step(mesh, "1f1b", 2);
      TrainingModel& model = step.model;
      model.width = 256, model.heads = 8, model.kv_heads = 4, model.head_dim = 32, model.mlp = 512, model.gated = true;
      model.sequence = 64, model.vocabulary = 512, model.experts = 4, model.experts_per_token = 2;
      model.activations = mesh.data > 1 ? DType::f32 : DType::bf16;  // weights that are not converted, and ones that are
      step.shard_optimizer_over_data = mesh.data > 1 && remat == Remat::Kind::full;
      step.scan = mesh.fsdp > 1;
      step.remat.kind = remat;
      steps.push_back(std::move(step));
    }
  return steps;
}

}  // namespace podsim::testing
