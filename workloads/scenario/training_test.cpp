// Simulated training steps: calls played and inlined, engines, the parts of a step's time and memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/table/engines.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/training/testing.hpp"

namespace podsim {
namespace {

using testing::small_step;
using ::testing::HasSubstr;

System system_of(const std::string& machine, const TrainingMesh& mesh) {
  SystemSpec spec;
  spec.machine = *find_machine(machine);
  std::vector<int> extents;
  for (const std::string_view axis : training_axes)
    if (const std::int64_t size = size_of(mesh, axis); size > 1) spec.mesh.emplace_back(axis, static_cast<int>(size)), extents.push_back(static_cast<int>(size));
  if (extents.empty()) spec.mesh.emplace_back("data", 1), extents.push_back(1);
  spec.slice = Slice{extents, false};
  auto system = make_system(spec);
  EXPECT_TRUE(system) << to_text(system.error());
  return *std::move(system);
}

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

RunOptions inlined() {
  RunOptions options;
  options.inline_calls = true;
  return options;
}

TrainingStep random_training_step(std::uint64_t seed) {
  Rng rng{seed, stream_of("training steps")};
  constexpr std::array<const char*, 7> pipelines{"gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "kimi-k2", "zero-bubble", "dual-pipe-v"};
  TrainingMesh mesh;
  mesh.stage = rng.between(2, 4);
  mesh.fsdp = std::int64_t{1} << rng.between(0, 1);
  mesh.col = std::int64_t{1} << rng.between(0, 2);
  const std::string pipeline = pipelines[static_cast<std::size_t>(rng.between(0, 6))];
  TrainingStep step = small_step(mesh, pipeline, 0);
  step.microbatches = pipeline == "dual-pipe-v" ? 2 * mesh.stage : mesh.stage * rng.between(1, 2);
  step.batch = step.microbatches * mesh.batch_parts() * rng.between(1, 2);
  TrainingModel& model = step.model;
  model.layers = mesh.stage * step.virtual_stages * rng.between(1, 2);
  model.width = 256 * rng.between(1, 4), model.heads = 8, model.kv_heads = 8, model.head_dim = model.width / 8, model.mlp = 4 * model.width;
  model.sequence = 64 * rng.between(1, 4), model.vocabulary = 512;
  model.activations = DType::bf16;
  step.scan = rng.between(0, 1) == 1;
  if (rng.between(0, 1) == 1) step.remat.kind = Remat::Kind::full;
  return step;
}

/// On ideal nothing crosses the end of a call but activations along stages, on links of their own.
TEST(TrainingStep, CalledAndInlinedTakeTheSameTime) {
  int played = 0;
  for (std::uint64_t seed = 0; seed < test::cases(40U, 4U); ++seed) {
    const TrainingStep step = random_training_step(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}, {}, {} microbatches", seed, to_text(step.mesh), step.pipeline, step.microbatches));
    const System system = system_of("ideal", step.mesh);
    TrainingSpec spec{step};
    spec.layers.algorithm = seed % 4 == 0 ? "wang" : "collective";
    const podsim::Run called = expect_run(system, spec), flat = expect_run(system, spec, inlined());
    played += called.row.calls.played > 0 ? 1 : 0;
    EXPECT_EQ(called.metrics.makespan, flat.metrics.makespan);
    EXPECT_TRUE(called.metrics.split == flat.metrics.split);
    EXPECT_EQ(called.metrics.link_bytes, flat.metrics.link_bytes);
    EXPECT_EQ(called.metrics.tasks, flat.metrics.tasks);
  }
  EXPECT_GT(played, test::cases(35, 2)) << "else there is little to compare";
}

/// Each event that precedes another may be rounded up by a picosecond.
TEST(TrainingStep, EnginesAgree) {
  for (std::uint64_t seed = 1; seed <= test::cases(4U, 1U); ++seed) {
    TrainingStep step = random_training_step(seed);
    step.model.layers = step.mesh.stage * step.virtual_stages;
    const System system = system_of("ideal", step.mesh);
    RunOptions referee = inlined();
    referee.engine = *timing_engine("simgrid");
    const podsim::Run run = expect_run(system, {step}, inlined());
    const auto des = static_cast<double>(run.metrics.makespan.count());
    const auto simgrid = static_cast<double>(expect_run(system, {step}, referee).metrics.makespan.count());
    std::size_t tasks = 0;
    for (const Program& program : run.lowered->programs) tasks += program.tasks.size();
    EXPECT_NEAR(des, simgrid, 1e-6 * des + static_cast<double>(tasks)) << seed;
  }
}

TEST(TrainingStep, PartsSumToTheStepAndKindsToTheMemory) {
  for (const std::uint64_t seed : {5, 6, 7, 8, 9, 10}) {
    const TrainingStep step = random_training_step(seed);
    SCOPED_TRACE(seed);
    const podsim::Run run = expect_run(system_of("tpu_v4", {.stage = step.mesh.stage, .fsdp = step.mesh.fsdp, .col = step.mesh.col}), {step});
    const TrainingResult& result = *run.row.training;
    const TrainingSplit& split = result.split;
    double sum = split.compute + split.recompute + split.bubble + split.optimizer + split.copies + split.launch + split.waiting;
    for (const auto& [axis, time] : split.exposed) sum += time;
    EXPECT_NEAR(sum, result.step_s, 1e-12 * result.step_s + 1e-15);
    EXPECT_EQ(split.recompute > 0, step.remat.kind == Remat::Kind::full);
    EXPECT_EQ(split.copies > 0, step.scan || step.model.weights != step.model.activations);
    EXPECT_GT(split.optimizer, 0);
    EXPECT_GT(split.bubble, 0);
    EXPECT_EQ(result.memory.total(), run.metrics.peak_memory);
    ASSERT_EQ(result.stages.size(), static_cast<std::size_t>(step.mesh.stage));
    // AdamW's two moments, in float32, of what a device has: at least the layers of a rank.
    const TrainingCounts counts = counts_of(step);
    std::int64_t of_layers = 0;
    for (const PartCount& part : counts.parts)
      if (part.name == "in_proj" || part.name == "out_proj" || part.name == "ff1" || part.name == "ff2") of_layers += part.parameters;
    EXPECT_GE(result.memory.optimizer.count(), 2 * 4 * of_layers / step.mesh.devices());
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
