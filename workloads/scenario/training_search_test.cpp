#include "workloads/scenario/training_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/search_space.hpp"
#include "workloads/scenario/test_training.hpp"
#include "workloads/scenario/training_costs.hpp"

namespace podsim {
namespace {

TrainingModel random_model(Rng& rng) {
  TrainingModel model;
  model.name = "random";
  model.layers = 4 * rng.between(1, 3);
  model.heads = model.kv_heads = rng.below(2) == 0 ? 8 : 16;
  model.head_dim = 64;
  model.width = model.heads * model.head_dim;
  model.mlp = 4 * model.width;
  model.vocabulary = rng.below(3) == 0 ? 0 : 4096;
  model.tied = model.vocabulary > 0 && rng.below(2) == 0;
  model.gated = rng.below(2) == 0;
  model.sequence = 256 * rng.between(1, 3);
  return model;
}

/// A small model on 8 chips of a machine, or 8 GPUs of two nodes, whose memory holds some plans and not others.
TrainingRequest random_request(std::uint64_t seed, std::int64_t experts = 0) {
  Rng rng{seed, stream_of("training search")};
  TrainingRequest request;
  request.spec.step.model = random_model(rng);
  if (experts > 0) request.spec.step.model.experts = experts, request.spec.step.model.experts_per_token = 2;
  request.spec.step.batch = 8 << rng.below(3);
  constexpr std::array<const char*, 5> machines{"tpu_v4", "tpu_v5e", "tpu_v3", "dgx_h100", "dgx_a100"};
  Machine machine = *load_machine(machines[rng.below(machines.size())]);
  TrainingModel& model = request.spec.step.model;
  const double parameters = static_cast<double>(model.layers * (experts > 0 ? 4 + 8 * experts : 12) * model.width * model.width);
  machine.chip.hbm = Bytes{static_cast<std::int64_t>(parameters * 12 * static_cast<double>(rng.between(2, 12)) / 8) + 20'000'000};
  std::vector<Slice> slices = machine.interconnect == Interconnect::rail ? std::vector{*parse_slice("2x4", machine, {})} : *slices_of(machine, 8, machine.name == "tpu_v3");
  SearchSpace space{{std::move(machine)}, std::move(slices)};
  space.training = searched_axes(model);
  request.systems = *systems_in(space);
  // A part of the space, so that everything can be simulated.
  request.microbatches = {1 << rng.below(2), 4};
  request.remats = {Remat{}, *parse_remat(rng.below(2) == 0 ? "full" : "selected:in_proj,out_proj", {})};
  const auto all = all_pipeline_schedules();
  request.pipelines = {std::string{name_of(all[rng.below(all.size())])}, std::string{name_of(all[rng.below(all.size())])}};
  request.virtual_stages = {1, 2};
  if (test::sanitized) request.pipelines.pop_back(), request.remats.pop_back(), request.microbatches.pop_back();
  std::vector<System> few;
  for (std::size_t s = 0; s < request.systems.size(); ++s)
    if (rng.below(3) == 0) few.push_back(request.systems[s]);
  if (!few.empty()) request.systems = std::move(few);
  request.threads = 1;
  return request;
}

void expect_within_bounds(const TrainingRequest& request, const TrainingSpace& space, const TrainingLook& look, double bound_s, TrainingCosts& costs) {
  const RunOptions options;
  std::vector<TrainingLook> quick{look}, sharp = quick;
  costs.bound_quickly(quick, space);
  costs.bound_sharply(sharp, space);
  ASSERT_FALSE(quick.front().problem) << to_text(*quick.front().problem);
  ASSERT_FALSE(sharp.front().problem) << to_text(*sharp.front().problem);
  const System& system = request.systems[look.system];
  const TrainingStep& step = quick.front().divided;
  SCOPED_TRACE(system.machine.name + " " + to_text(step.mesh) + " " + step.pipeline + " x " + std::to_string(step.virtual_stages) + ", " +
               std::to_string(step.microbatches) + ", remat " + to_text(step.remat) + (step.shard_optimizer_over_data ? ", optimizer over data" : ""));
  const auto planned = choose_layers(system, {.step = quick.front().given}, options);
  ASSERT_TRUE(planned);
  const auto problem = make_problem(system, *planned);
  ASSERT_TRUE(problem) << to_text(problem.error());
  const auto run = simulate(system, *problem);
  ASSERT_TRUE(run) << to_text(run.error());
  const double time = run->row.result.makespan_s;
  const std::int64_t memory = run->row.result.peak_memory_bytes;
  EXPECT_LE(bound_s, time);
  EXPECT_LE(quick.front().bound.time.count(), time);
  EXPECT_LE(sharp.front().bound.time.count(), time);
  EXPECT_LE(state_bound(step).count(), memory);
  EXPECT_LE(quick.front().bound.memory.count(), memory);
  EXPECT_LE(sharp.front().bound.memory.count(), memory);
}

TEST(TrainingBounds, NoStepIsFasterOrNeedsLessThanItsBounds) {
  for (std::uint64_t seed = 0; seed < test::cases(6U, 2U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TrainingRequest request = random_request(seed);
    const auto space = training_space(request);
    ASSERT_TRUE(space);
    if (space->candidates.empty()) continue;
    Rng rng{seed, stream_of("candidates")};
    RunOptions options;
    ThreadPool pool{1};
    TrainingCosts costs{request, options, pool};
    for (int i = 0; i < test::cases(8, 3); ++i) {
      const std::size_t c = rng.below(space->candidates.size());
      const TrainingCandidate& candidate = space->candidates[c];
      expect_within_bounds(request, *space, {candidate.system, step_of(request, *space, candidate), {}, candidate.rings}, space->bounds_s[c], costs);
    }
  }
}

TEST(TrainingBounds, NoStepOfExpertsIsFasterOrNeedsLessThanItsBounds) {
  for (const TrainingStep& step : testing::expert_steps()) {
    TrainingRequest request;
    request.spec.step = step;
    request.systems = {testing::system_of("tpu_v4", step.mesh)};
    const RunOptions options;
    ThreadPool pool{1};
    TrainingCosts costs{request, options, pool};
    TrainingSpace space;
    space.largest = {step}, space.largest_systems = {0};
    space.largest.front().remat = {};
    expect_within_bounds(request, space, {0, step, {}, 0U}, arithmetic_bound(step, request.systems.front().machine).count(), costs);
  }
}

TEST(TrainingSearch, PrunedAndExhaustiveFindTheSamePlans) {
  int found = 0, divided = 0;
  const std::array<std::uint64_t, 2> seeds{105, 100};  // in the first some of the best are found after others that are less than a tenth slower
  for (std::size_t i = 0; i < test::cases(seeds.size(), std::size_t{1}); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seeds[i]));
    TrainingRequest request = random_request(seeds[i]);
    request.top = 2;
    const auto pruned = tune_training(request);
    request.exhaustive = true;
    const auto all = tune_training(request);
    ASSERT_EQ(pruned.has_value(), all.has_value());
    if (!pruned) continue;
    ++found;
    ASSERT_EQ(pruned->plans.size(), all->plans.size());
    for (std::size_t p = 0; p < all->plans.size(); ++p) {
      EXPECT_EQ(pruned->plans[p].row.result.makespan_s, all->plans[p].row.result.makespan_s);
      EXPECT_EQ(pruned->plans[p].system, all->plans[p].system);
      EXPECT_EQ(pruned->plans[p].step, all->plans[p].step);
      divided += all->plans[p].step.shard_optimizer_over_data ? 1 : 0;
    }
    EXPECT_LT(pruned->simulated, all->simulated);
  }
  EXPECT_GE(found, test::cases(2, 1)) << "most requests have plans that fit";
  EXPECT_GE(divided, test::cases(1, 0)) << "some of the best have an optimizer that is divided over data";
}

/// The GPT-3 step on 256 chips of TPU v4, batch 256.
struct HandWritten {
  const char *slice, *mesh;
  int microbatches;
  const char* pipeline;
  int virtual_stages;
  const char* remat;
};
// What people write down: tensor parallelism over a short ring, a pipeline of 4 to 32 stages with 1 to 4 microbatches per stage, or FSDP.
constexpr std::array<HandWritten, 20> hand_written{{
    {"4x8x8", "fsdp=256", 1, "", 1, "full"},
    {"4x8x8", "data=4,fsdp=64", 1, "", 1, "full"},
    {"4x8x8", "fsdp=32,col=8", 4, "", 1, "full"},
    {"4x8x8", "fsdp=32,col=8", 8, "", 1, "full"},
    {"8x8x4", "fsdp=64,col=4", 2, "", 1, "full"},
    {"8x8x4", "fsdp=64,col=4", 4, "", 1, "selected:in_proj,attention,out_proj"},
    {"8x8x4", "data=8,fsdp=8,col=4", 4, "", 1, "full"},
    {"4x8x8", "fsdp=4,row=8,col=8", 16, "", 1, "full"},
    {"4x8x8", "stage=4,fsdp=8,col=8", 16, "1f1b", 1, "full"},
    {"4x8x8", "stage=4,fsdp=8,col=8", 16, "gpipe", 1, "full"},
    {"4x8x8", "stage=4,fsdp=8,col=8", 16, "zero-bubble", 1, "full"},
    {"4x8x8", "stage=4,fsdp=8,col=8", 16, "interleaved-1f1b", 4, "full"},
    {"4x8x8", "stage=4,data=8,col=8", 32, "1f1b", 1, "full"},
    {"8x4x8", "stage=8,fsdp=4,col=8", 32, "1f1b", 1, "full"},
    {"8x4x8", "stage=8,fsdp=4,col=8", 32, "interleaved-1f1b", 4, "selected:in_proj,out_proj,ff1,ff2"},
    {"8x8x4", "stage=8,fsdp=8,col=4", 16, "interleaved-1f1b", 4, "full"},
    {"8x8x4", "stage=8,fsdp=8,col=4", 32, "eager-1f1b", 1, "full"},
    {"8x8x4", "stage=8,fsdp=8,col=4", 32, "kimi-k2", 2, "full"},
    {"8x8x4", "stage=8,data=8,col=4", 16, "dual-pipe-v", 2, "full"},
    {"4x8x8", "stage=32,col=8", 64, "1f1b", 1, "full"},
}};

System system_of(const HandWritten& plan, const Machine& machine) {
  SystemSpec where{machine};
  where.slice = *parse_slice(plan.slice, machine, {});
  where.mesh = *parse_mesh(plan.mesh, {});
  return *make_system(where);
}

TEST(TrainingSearch, PlansOfExpertsAreThoseOfAnExhaustiveSearch) {
  int along_expert = 0;
  const std::array<std::uint64_t, 3> seeds{1, 2, 5};
  for (std::size_t i = 0; i < test::cases(seeds.size(), std::size_t{1}); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seeds[i]));
    TrainingRequest request = random_request(seeds[i], 8);
    request.top = 3;
    request.ignore_memory = test::sanitized;  // fewer ways to recompute are tried then, and nothing might fit
    const auto pruned = tune_training(request);
    request.exhaustive = true;
    const auto all = tune_training(request);
    ASSERT_TRUE(pruned) << to_text(pruned.error());
    ASSERT_TRUE(all) << to_text(all.error());
    ASSERT_EQ(pruned->plans.size(), all->plans.size());
    for (std::size_t p = 0; p < all->plans.size(); ++p) {
      const TrainingStep& step = all->plans[p].step;
      EXPECT_EQ(pruned->plans[p].row.result.makespan_s, all->plans[p].row.result.makespan_s);
      EXPECT_EQ(pruned->plans[p].step, step) << to_text(pruned->plans[p].step.mesh) << " and " << to_text(step.mesh);
      EXPECT_EQ(step.mesh.row * step.mesh.col, 1);
      along_expert += step.mesh.expert > 1 ? 1 : 0;
    }
    EXPECT_LE(pruned->simulated, all->simulated);
  }
  EXPECT_GE(along_expert, test::cases(1, 0)) << "some of the best divide experts";
}

TEST(TrainingSearch, NoHandWrittenPlanOfGpt3On256ChipsIsFaster) {
  const Machine machine = *load_machine("tpu_v4");
  TrainingRequest request;
  request.spec.step.model = *find_training_model("gpt3-175b");
  request.spec.step.batch = 256;
  request.spec.step.pad = true;  // 50257 words are no multiple of anything
  request.top = 1;
  std::vector<HandWritten> plans(hand_written.begin(), hand_written.end());
  if (test::sanitized) {  // the mesh of two plans, with any pipeline
    plans = {hand_written[8], hand_written[9]};
    request.spec.step.model.layers = 8;
    request.systems = {system_of(plans.front(), machine)};
    request.microbatches = {16}, request.virtual_stages = {1}, request.remats = {*parse_remat("full", {})};
  } else {
    SearchSpace space{{machine}, *slices_of(machine, 256, false)};
    space.training = searched_axes(request.spec.step.model);
    request.systems = *systems_in(space);
  }
  const auto tuned = tune_training(request);
  ASSERT_TRUE(tuned) << to_text(tuned.error());
  const double best = tuned->plans.front().row.result.makespan_s;
  EXPECT_LE(tuned->plans.front().row.result.peak_memory_bytes, machine.chip.hbm.count());
  int fit = 0;
  for (const HandWritten& plan : plans) {
    SCOPED_TRACE(std::string{plan.slice} + " " + plan.mesh + " " + plan.pipeline + " " + plan.remat);
    const System system = system_of(plan, machine);
    TrainingSpec spec = request.spec;
    spec.step.microbatches = plan.microbatches, spec.step.virtual_stages = plan.virtual_stages;
    spec.step.pipeline = plan.pipeline, spec.step.remat = *parse_remat(plan.remat, {});
    const auto planned = choose_layers(system, spec, {});
    ASSERT_TRUE(planned) << to_text(planned.error());
    const auto run = simulate(system, *make_problem(system, *planned));
    ASSERT_TRUE(run) << to_text(run.error());
    if (run->row.over_hbm) continue;
    ++fit;
    EXPECT_GE(run->row.result.makespan_s, best);
  }
  EXPECT_GE(fit, test::cases(12, 1)) << "most of them are plans that could be used";
}

TEST(TrainingSearch, FindsPlansThatFitOnlyWithADividedOptimizer) {
  TrainingRequest request;
  TrainingModel& model = request.spec.step.model;
  model.layers = 4, model.heads = model.kv_heads = 8, model.head_dim = 64, model.width = 512, model.mlp = 2048, model.sequence = 256;
  model.master_weights = true;
  request.spec.step.batch = 8;
  Machine machine = *load_machine("tpu_v4");
  SystemSpec where{machine};
  where.slice = *parse_slice("2x2x1", machine, {});
  where.mesh = *parse_mesh("data=4", {});
  request.remats = {*parse_remat("full", {})}, request.microbatches = {1};
  request.threads = 1;
  const auto tuned = [&](std::optional<bool> shard, Bytes hbm) {
    where.machine.chip.hbm = hbm;
    request.systems = {*make_system(where)};
    request.shard_optimizer_over_data = shard;
    return tune_training(request);
  };
  const Bytes plenty{1'000'000'000};
  const auto off = tuned(false, plenty), on = tuned(true, plenty), open = tuned({}, plenty);
  ASSERT_TRUE(off && on && open);
  EXPECT_EQ(open->candidates, 2);
  const auto memory = [](const auto& tuning) { return tuning->plans.front().row.result.peak_memory_bytes; };
  const auto time = [](const auto& tuning) { return tuning->plans.front().row.result.makespan_s; };
  ASSERT_LT(memory(on), memory(off));
  EXPECT_EQ(time(open), std::min(time(off), time(on)));
  const Bytes between{memory(off) - 1};
  EXPECT_FALSE(tuned(false, between));
  const auto only = tuned({}, between);
  ASSERT_TRUE(only) << to_text(only.error());
  EXPECT_TRUE(only->plans.front().step.shard_optimizer_over_data);
  EXPECT_EQ(time(only), time(on));
}

TEST(TrainingSearch, ThreadsDoNotChangeWhatIsFound) {
  TrainingRequest request = random_request(7);
  const auto one = tune_training(request);
  request.threads = 3;
  const auto three = tune_training(request);
  ASSERT_TRUE(one && three);
  ASSERT_EQ(one->plans.size(), three->plans.size());
  for (std::size_t p = 0; p < one->plans.size(); ++p) {
    EXPECT_EQ(one->plans[p].step, three->plans[p].step);
    EXPECT_EQ(one->plans[p].row.result.makespan_s, three->plans[p].row.result.makespan_s);
  }
  EXPECT_EQ(one->simulated, three->simulated);
  EXPECT_EQ(one->layers, three->layers);
  EXPECT_EQ(one->over_memory, three->over_memory);
}

/// A small step on two nodes of GPUs.
TrainingRequest request_on_gpus(std::initializer_list<const char*> meshes) {
  const Machine machine = *load_machine("dgx_h100");
  TrainingRequest request;
  Rng rng{3, stream_of("layers of GPUs")};
  request.spec.step.model = random_model(rng);
  request.spec.step.batch = 16;
  request.microbatches = {1};
  request.remats = {Remat{}};
  request.top = 1;
  for (const char* mesh : meshes) {
    SystemSpec where{machine};
    where.slice = *parse_slice("2x8", machine, {});
    where.mesh = *parse_mesh(mesh, {});
    request.systems.push_back(*make_system(where));
  }
  return request;
}

TEST(TrainingSearch, OnGpusMeshesWithTheSameGroupsShareLayers) {
  const auto tuned = tune_training(request_on_gpus({"data=16", "data=8,fsdp=2", "data=2,fsdp=8", "fsdp=16"}));
  ASSERT_TRUE(tuned) << to_text(tuned.error());
  const std::int64_t weights = 4 + 3;  // of each mesh, and of the three whose optimizer may be divided over data
  EXPECT_LE(tuned->layers, 2 + weights) << "one layer, of the quick bounds and of the sharp ones, serves all meshes";
}

TEST(TrainingSearch, BeginsWithPlansWhoseLayersLieOnOneDevice) {
  TrainingRequest request = request_on_gpus({"col=16", "row=4,col=4", "fsdp=16"});
  std::optional<TrainingTuning> first;
  request.improved = [&](const std::function<TrainingTuning()>& so_far) {
    if (!first) first = so_far();
  };
  ASSERT_TRUE(tune_training(request));
  ASSERT_TRUE(first && !first->plans.empty());
  EXPECT_EQ(first->plans.front().system, 2U);
  EXPECT_LE(first->layers, 3) << "its own layer, of either bound, and its weights: none of the others";
}

TEST(TrainingSearch, AStoppedSearchTellsThatItWas) {
  TrainingRequest request = random_request(7);
  std::atomic<bool> stop = false;
  request.stop = &stop;
  request.progress = [&](const TrainingRequest::Progress& progress) { stop = progress.best_s.has_value(); };
  const auto tuned = tune_training(request);
  ASSERT_TRUE(tuned) << to_text(tuned.error());
  EXPECT_TRUE(tuned->interrupted);
  EXPECT_FALSE(tuned->plans.empty());
}

}  // namespace
}  // namespace podsim
