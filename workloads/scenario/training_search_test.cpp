#include "workloads/scenario/training_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/base/rng.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/search_space.hpp"
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

/// A small model on 8 chips of a machine whose memory holds some plans and not others.
TrainingRequest random_request(std::uint64_t seed) {
  Rng rng{seed, stream_of("training search")};
  TrainingRequest request;
  request.spec.step.model = random_model(rng);
  request.spec.step.batch = 8 << rng.below(3);
  constexpr std::array<const char*, 3> machines{"tpu_v4", "tpu_v5e", "tpu_v3"};
  Machine machine = *load_machine(machines[rng.below(machines.size())]);
  TrainingModel& model = request.spec.step.model;
  const double parameters = static_cast<double>(model.layers * 12 * model.width * model.width);
  machine.chip.hbm = Bytes{static_cast<std::int64_t>(parameters * 12 * static_cast<double>(rng.between(2, 12)) / 8) + 20'000'000};
  std::vector<Slice> slices = *slices_of(machine, 8, machine.name == "tpu_v3");
  SearchSpace space{{std::move(machine)}, std::move(slices)};
  space.training = true;
  request.systems = *systems_in(space);
  // A part of the space, so that everything can be simulated.
  request.microbatches = {1 << rng.below(2), 4};
  request.remats = {Remat{}, *parse_remat(rng.below(2) == 0 ? "full" : "selected:in_proj,out_proj", {})};
  const auto all = all_pipeline_schedules();
  request.pipelines = {std::string{name_of(all[rng.below(all.size())])}, std::string{name_of(all[rng.below(all.size())])}};
  request.virtual_stages = {1, 2};
  std::vector<System> few;
  for (std::size_t s = 0; s < request.systems.size(); ++s)
    if (rng.below(3) == 0) few.push_back(request.systems[s]);
  if (!few.empty()) request.systems = std::move(few);
  request.threads = 1;
  return request;
}

TEST(TrainingBounds, NoStepIsFasterOrNeedsLessThanItsBounds) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TrainingRequest request = random_request(seed);
    const auto space = training_space(request);
    ASSERT_TRUE(space);
    if (space->candidates.empty()) continue;
    Rng rng{seed, stream_of("candidates")};
    RunOptions options;
    ThreadPool pool{1};
    TrainingCosts costs{request, options, pool};
    for (int i = 0; i < 12; ++i) {
      const std::size_t c = rng.below(space->candidates.size());
      const TrainingCandidate& candidate = space->candidates[c];
      std::vector<TrainingLook> quick{{candidate.system, step_of(request, *space, candidate), {}, candidate.rings}}, sharp = quick;
      costs.bound_quickly(quick, *space);
      costs.bound_sharply(sharp, *space);
      ASSERT_FALSE(quick.front().problem) << to_text(*quick.front().problem);
      ASSERT_FALSE(sharp.front().problem) << to_text(*sharp.front().problem);
      const System& system = request.systems[candidate.system];
      const TrainingStep& step = quick.front().divided;
      SCOPED_TRACE(system.machine.name + " " + to_text(step.mesh) + " " + step.pipeline + " x " + std::to_string(step.virtual_stages) + ", " + std::to_string(step.microbatches) + ", remat " +
                   to_text(step.remat));
      const auto planned = choose_layers(system, {.step = quick.front().given}, options);
      ASSERT_TRUE(planned);
      const auto problem = make_problem(system, *planned);
      ASSERT_TRUE(problem) << to_text(problem.error());
      const auto run = simulate(system, *problem);
      ASSERT_TRUE(run) << to_text(run.error());
      const double time = run->row.result.makespan_s;
      const std::int64_t memory = run->row.result.peak_memory_bytes;
      EXPECT_LE(space->bounds_s[c], time);
      EXPECT_LE(quick.front().bound.time.count(), time);
      EXPECT_LE(sharp.front().bound.time.count(), time);
      EXPECT_LE(state_bound(step).count(), memory);
      EXPECT_LE(quick.front().bound.memory.count(), memory);
      EXPECT_LE(sharp.front().bound.memory.count(), memory);
      RecordProperty("sharp " + std::to_string(seed) + " " + std::to_string(i), std::to_string(sharp.front().bound.time.count() / time));
      if (std::getenv("SHOW") != nullptr)
        std::printf("%s %s x %ld m=%ld %s: arithmetic %.3f quick %.3f sharp %.3f; memory %.3f\n", to_text(step.mesh).c_str(), step.pipeline.c_str(), step.virtual_stages, step.microbatches,
                    to_text(step.remat).c_str(), space->bounds_s[c] / time, quick.front().bound.time.count() / time, sharp.front().bound.time.count() / time,
                    static_cast<double>(sharp.front().bound.memory.count()) / static_cast<double>(memory));
    }
  }
}

TEST(TrainingSearch, PrunedAndExhaustiveFindTheSamePlans) {
  int found = 0;
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TrainingRequest request = random_request(seed);
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
    }
    EXPECT_LT(pruned->simulated, all->simulated);
  }
  EXPECT_GE(found, 4) << "most requests have plans that fit";
}

}  // namespace
}  // namespace podsim
