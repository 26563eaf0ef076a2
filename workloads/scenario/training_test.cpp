// Simulated training steps: calls played and inlined, engines, the parts of a step's time and memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/base/test_cases.hpp"
#include "sim/engine/table/engines.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/test_training.hpp"

namespace podsim {
namespace {

using testing::random_training_step, testing::small_step, testing::system_of;
using ::testing::HasSubstr;

Expected<Run> run_of(const System& system, const TrainingSpec& spec, const RunOptions& options = {}) {
  const auto posed = pose(system, spec, options);
  if (!posed) return posed.error();
  return simulate(posed->system, posed->problem, options);
}

Run expect_run(const System& system, const TrainingSpec& spec, const RunOptions& options = {}) {
  auto run = run_of(system, spec, options);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

void expect_parts_and_kinds(const TrainingStep& step) {
  const podsim::Run run = expect_run(system_of("tpu_v4", step.mesh), {step});
  const TrainingResult& result = *run.row.training;
  const TrainingSplit& split = result.split;
  double sum = split.compute + split.recompute + split.bubble + split.optimizer + split.copies + split.launch + split.waiting;
  for (const auto& [axis, time] : split.exposed) sum += time;
  EXPECT_NEAR(sum, result.step_s, 1e-12 * result.step_s + 1e-15);
  EXPECT_EQ(split.recompute > 0, step.remat.kind == Remat::Kind::full);
  EXPECT_EQ(split.copies > 0, step.scan || step.model.weights != step.model.activations);
  EXPECT_GT(split.optimizer, 0);
  if (step.mesh.stage > 1) {
    EXPECT_TRUE(std::ranges::any_of(result.stages, [](const RankFigures& rank) { return rank.bubble_s > 0; })) << "on the busiest rank something may always be in flight";
  }
  EXPECT_EQ(result.memory.total(), run.metrics.peak_memory);
  ASSERT_EQ(result.stages.size(), static_cast<std::size_t>(step.mesh.stage));
  // AdamW's two moments, in float32, of what a device has: at least the layers of a rank.
  const TrainingCounts counts = counts_of(step);
  std::int64_t of_layers = 0;
  for (const PartCount& part : counts.parts)
    if (part.name == "in_proj" || part.name == "out_proj" || part.name == "router" || part.name == "ff1" || part.name == "ff2") of_layers += part.parameters;
  EXPECT_GE(result.memory.optimizer.count(), 2 * 4 * of_layers / (step.mesh.devices() / (step.shard_optimizer_over_data ? 1 : step.mesh.data)));
}

TEST(TrainingStep, PartsSumToTheStepAndKindsToTheMemory) {
  for (const std::uint64_t seed : {5, 6, 7, 8, 9, 10}) {
    SCOPED_TRACE(seed);
    expect_parts_and_kinds(random_training_step(seed));
  }
  for (const TrainingStep& step : testing::expert_steps()) {
    SCOPED_TRACE(to_text(step.mesh) + ", remat " + to_text(step.remat));
    expect_parts_and_kinds(step);
  }
}

/// With and without experts, of the same extents. Of experts the formulas take gradients, which are larger than activations, to be there with all that is computed again.
TEST(TrainingStep, MemoryByFormulasIsNearTheSimulatedPeak) {
  for (const std::int64_t experts : {0, 8})
    for (const TrainingMesh& mesh : {TrainingMesh{}, {.fsdp = 4}, {.expert = 2}, {.expert = 4}, {.fsdp = 2, .expert = 2}, {.data = 2, .expert = 4}})
      for (const Remat::Kind remat : {Remat::Kind::none, Remat::Kind::full})
        for (const DType weights : {DType::bf16, DType::f32}) {
          if (experts == 0 && mesh.expert > 1) continue;
          TrainingStep step = small_step(mesh, "", 2);
          TrainingModel& model = step.model;
          model.width = 512, model.heads = 8, model.kv_heads = 8, model.head_dim = 64, model.mlp = 1024, model.gated = true, model.norm = Norm::rms;
          model.sequence = 256, model.vocabulary = 2048, model.experts = experts, model.experts_per_token = experts > 0 ? 2 : 0;
          model.activations = DType::bf16, model.weights = model.gradients = weights;
          step.remat.kind = remat, step.batch *= 4;
          SCOPED_TRACE(fmt::format("{}, {} experts, remat {}, weights {}", to_text(mesh), experts, to_text(step.remat), name_of(weights)));
          const auto peak = static_cast<double>(expect_run(system_of("tpu_v4", mesh), {step}).metrics.peak_memory.count());
          EXPECT_NEAR(static_cast<double>(memory_of(step, {}, 1).total().count()) / peak, 1, experts > 0 ? 0.03 : 0.01);
        }
}

/// Nothing but products and attention at the peak: a machine with memory, links and vector units that take no time. Of a long sequence, where half of the
/// scores that MFU counts are not computed.
TEST(TrainingStep, NoMachineComputesMoreThanItsPeak) {
  TrainingStep step = small_step({}, "", 1);
  step.model.sequence = 4096, step.model.width = 64, step.model.heads = 4, step.model.kv_heads = 4, step.model.head_dim = 16, step.model.mlp = 256, step.model.vocabulary = 0;
  step.model.causal = true;
  step.batch = 1;
  for (const auto remat : {Remat::Kind::none, Remat::Kind::full}) {
    step.remat.kind = remat;
    const TrainingResult result = training_result(expect_run(system_of("ideal", step.mesh), {step}));
    EXPECT_GT(result.mfu, 1);  // as published figures count
    EXPECT_LE(result.hfu, 1);
    EXPECT_GT(result.hfu, 0.8);  // attention's backward pass computes the scores again, which counts nowhere
  }
}

/// Products of one device, forward once and backward twice, and recomputed once more but for the last of each layer.
TEST(TrainingStep, ComputesWhatTheCountsSay) {
  TrainingStep step = small_step({}, "", 1);
  step.model.sequence = 128, step.model.width = 256, step.model.heads = 4, step.model.kv_heads = 4, step.model.head_dim = 64, step.model.mlp = 1024, step.model.vocabulary = 512;
  step.batch = 2;
  const System system = system_of("ideal", step.mesh);
  for (const auto remat : {Remat::Kind::none, Remat::Kind::full}) {
    step.remat.kind = remat;
    const TrainingCounts counts = counts_of(step);
    double products = 0;
    for (const PartCount& part : counts.parts)
      if (part.name != "attention") products += (part.forward + part.backward + part.recomputed).count();
    EXPECT_DOUBLE_EQ(expect_run(system, {step}).metrics.flops.count(), products);
  }
}

/// On every device its part: products of a router and of experts, which take two copies of each token. Of one that is computed again no last product.
TEST(TrainingStep, OfExpertsComputesWhatTheCountsSay) {
  for (const TrainingStep& step : testing::expert_steps()) {
    SCOPED_TRACE(to_text(step.mesh) + ", remat " + to_text(step.remat));
    double products = 0;
    for (const PartCount& part : counts_of(step).parts)
      if (part.name != "attention") products += (part.forward + part.backward + part.recomputed).count();
    EXPECT_DOUBLE_EQ(expect_run(system_of("ideal", step.mesh), {step}).metrics.flops.count(), products);
  }
}

TEST(TrainingStep, OfExpertsHasNoErrorOfPublishedSteps) {
  TrainingStep step = small_step({.fsdp = 2}, "", 1);
  const System system = system_of("tpu_v5e", step.mesh);
  EXPECT_EQ(expect_run(system, {step}).row.result.trust.tier, "training steps");
  step.model.experts = 2, step.model.experts_per_token = 1;
  EXPECT_NE(expect_run(system, {step}).row.result.trust.tier, "training steps");
}

TEST(TrainingStep, MoreMicrobatchesMakeTheBubbleSmaller) {
  TrainingStep step = random_training_step(3);
  step.mesh = {.stage = 4}, step.pipeline = "1f1b", step.virtual_stages = 1, step.model.layers = 4;
  step.model.vocabulary = 0;
  step.batch = 32;
  const System system = system_of("ideal", step.mesh);
  double before = 1;
  for (const std::int64_t microbatches : {4, 8, 16, 32}) {
    step.microbatches = microbatches;
    const TrainingResult result = *expect_run(system, {step}).row.training;
    const double share = result.stages[0].bubble_s / result.step_s;
    EXPECT_LT(share, before);
    // (S - 1) / (m + S - 1) of a pipeline whose tasks have equal times; the optimiser at the end makes it smaller.
    EXPECT_NEAR(share, 3.0 / (static_cast<double>(microbatches) + 3), 0.06);
    before = share;
  }
}

TEST(TrainingStep, TooLargeIsSaidByKind) {
  TrainingResult result;
  result.hbm = Bytes{100};
  result.memory = {Bytes{40}, Bytes{20}, Bytes{80}, Bytes{10}, Bytes{5}};
  TrainingStep step = small_step({});
  const std::string why = why_too_large(result, step);
  EXPECT_THAT(why, HasSubstr("155 B of a device's 100 B"));
  EXPECT_THAT(why, HasSubstr("optimizer 80 B"));
  EXPECT_THAT(why, HasSubstr("more devices along fsdp"));
  EXPECT_THAT(why, ::testing::Not(HasSubstr("shard-optimizer")));
  step.mesh.data = 2;
  EXPECT_THAT(why_too_large(result, step), HasSubstr("--shard-optimizer-over-data on"));
  step.shard_optimizer_over_data = true;
  EXPECT_THAT(why_too_large(result, step), ::testing::Not(HasSubstr("shard-optimizer")));
  result.hbm = Bytes{155};
  EXPECT_EQ(why_too_large(result, step), "");
}

TEST(TrainingStep, LayersAreComputedByTheFastestOfThoseThatFit) {
  TrainingStep step = random_training_step(2);
  step.mesh = {.row = 2, .col = 2}, step.pipeline = "", step.virtual_stages = 1, step.microbatches = 1, step.batch = 4;
  const System system = system_of("tpu_v4", step.mesh);
  const auto chosen = choose_layers(system, {step}, {});
  ASSERT_TRUE(chosen) << to_text(chosen.error());
  std::optional<Picoseconds> best;
  for (const char* algorithm : {"collective", "wang"}) {
    TrainingSpec spec{step};
    spec.layers.algorithm = algorithm;
    const podsim::Run run = expect_run(system, spec);
    EXPECT_EQ(run.row.problem.training->layers, algorithm);
    best = std::min(best.value_or(run.metrics.makespan), run.metrics.makespan);
  }
  EXPECT_LE(expect_run(system, {step}).metrics.makespan, *best);
}

}  // namespace
}  // namespace podsim
