// No run by hand is faster than the plan that the tuner finds where it says that it has searched.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/base/test_asked.hpp"
#include "sim/base/test_cases.hpp"
#include "topologies/machines.hpp"
#include "workloads/scenario/collective_choice.hpp"
#include "workloads/scenario/search_space.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {
namespace {

struct SearchedSlice {
  const char *machine, *slice;
};
constexpr std::array<SearchedSlice, 8> searched_slices{{{"tpu_v4", "2x4"}, {"tpu_v4", "2x2x2"}, {"tpu_v5e", "4x4"}, {"tpu_v5p", "2x2x4"}, {"dgx_h100", "1x8"}, {"dgx_a100", "2x8"}, {"gb200_nvl72", "1x8"}, {"ideal", "4x4"}}};

/// What `podsim tune --gemm` asks for up to 16 devices, but for slice counts above 16.
TuningRequest request_of_search(Rng& rng) {
  const SearchedSlice& where = searched_slices[rng.below(searched_slices.size())];
  TuningRequest request;
  SystemSpec base;
  base.machine = *find_machine(where.machine);
  const auto slice = parse_slice(where.slice, base.machine, {});
  EXPECT_TRUE(slice) << where.machine;
  request.systems = *systems_in({base, {*slice}});
  const auto extent = [&] { return std::int64_t{1} << rng.between(7, 13); };
  request.workload = *workload_of(std::vector<NamedProduct>{{extent(), extent(), extent(), DType::bf16}});
  constexpr std::array passes{Pass::forward, Pass::forward, Pass::backward, Pass::both};
  request.pass = passes[rng.below(passes.size())];
  request.algorithms = {"collective", "meshslice", "wang"};
  request.collectives = {"", "ring", std::string{auto_name}};
  request.choose_auto = auto_chooser();
  request.options = {8, 1, base.machine.slice_copies};
  request.largest_slice_count = 16;
  request.top = 1;
  request.engine = &des_engine();
  request.threads = 1;
  return request;
}

/// Both passes one after the other, as a plan's time is: that a run overlaps them is said to be not searched. nullopt: its extents do not divide.
std::optional<Picoseconds> time_of(const System& system, Pass asked, const RunOptions& options, const std::function<ProblemSpec(Pass)>& spec_of) {
  Picoseconds time;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (asked != Pass::both && asked != pass) continue;
    const auto problem = make_problem(system, spec_of(pass));
    if (!problem) return std::nullopt;
    const auto run = simulate(system, *problem, options);
    if (!run) return std::nullopt;
    time = time + run->metrics.makespan;
  }
  return time;
}

/// A run that somebody may write, in what was searched. nullopt: its extents do not divide.
std::optional<Picoseconds> random_run(const TuningRequest& request, Rng& rng, const RunOptions& options, std::string& text) {
  const Stage& product = request.workload.stages.front();
  GemmSpec spec;
  spec.algorithm = *gemm_algorithm(request.algorithms[rng.below(request.algorithms.size())]);
  spec.problem = {product.tokens, product.outputs, product.inputs, DType::bf16, all_dataflows[rng.below(all_dataflows.size())]};
  spec.pass = request.pass;
  spec.options = gemm_options(request.options, spec.algorithm->needs_slice_count ? rng.between(1, static_cast<int>(request.largest_slice_count)) : 0);
  const std::array<const char*, 4> policies{"", "by-dimension", "ring", "auto"};
  spec.collectives.algorithm = policies[rng.below(policies.size())];
  const System& system = request.systems[rng.below(request.systems.size())];
  text = std::string{spec.algorithm->name} + " " + std::string{name_of(spec.problem.dataflow)} + " S=" + std::to_string(spec.options.slice_count) + " collectives " + spec.collectives.algorithm + " on " + to_text(system);
  return time_of(system, request.pass, options, [&](Pass pass) {
    spec.pass = pass;
    return ProblemSpec{spec};
  });
}

void expect_never_beaten(std::uint64_t problems, int runs) {
  std::int64_t compared = 0, by_auto = 0;
  for (std::uint64_t seed = 0; seed < problems; ++seed) {
    Rng rng{seed, 21};
    const TuningRequest request = request_of_search(rng);
    const auto tuning = tune(request);
    ASSERT_TRUE(tuning) << to_text(tuning.error());
    const TunedPlan& best = tuning->plans.front();
    by_auto += best.plan.stages.front().product->collectives == auto_name;
    RunOptions options;
    EXPECT_EQ(time_of(request.systems[best.system], request.pass, options, [&](Pass pass) { return ProblemSpec{PlannedWorkload{request.workload, best.plan, pass}}; }), best.time)
        << "seed " << seed << ": the best plan is a run that somebody may write";
    for (int r = 0; r < runs; ++r) {
      std::string text;
      const auto time = random_run(request, rng, options, text);
      if (!time) continue;
      ++compared;
      EXPECT_GE(*time, best.time) << "seed " << seed << ": " << text << "; the plan is " << best.plan.stages.front().product->algorithm << " on " << to_text(request.systems[best.system]);
    }
  }
  EXPECT_GT(compared, static_cast<std::int64_t>(problems) * runs / 2);
  EXPECT_GT(by_auto, 0);
  ::testing::Test::RecordProperty("compared", std::to_string(compared));
}

/// The bounds of products whose collectives are lowered by any algorithm exceed none of their times.
TEST(Tuner, PruningByAnyAlgorithmChangesNoPlan) {
  std::int64_t fewer = 0;
  for (std::uint64_t seed = 0; seed < test::cases(16U, 1U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, 22};
    TuningRequest request = request_of_search(rng);
    request.largest_slice_count = 4;
    const auto pruned = tune(request);
    request.exhaustive = true;
    const auto all = tune(request);
    ASSERT_TRUE(pruned && all);
    EXPECT_EQ(pruned->plans.front().time, all->plans.front().time);
    EXPECT_EQ(pruned->plans.front().plan, all->plans.front().plan);
    EXPECT_EQ(pruned->plans.front().system, all->plans.front().system);
    fewer += pruned->simulated < all->simulated;
  }
  EXPECT_GE(fewer, test::cases(6, 0));
}

/// A dozen problems (one where there are sanitizers), 40 runs each. PODSIM_TUNED_PROBLEMS=100 tries so many, 400 runs each.
TEST(Tuner, IsNotBeatenByRunsByHand) {
  const auto problems = test::asked<std::uint64_t>("PODSIM_TUNED_PROBLEMS", test::cases<std::uint64_t>(12, 1));
  expect_never_beaten(problems, problems > 12 ? 400 : 40);
}

}  // namespace
}  // namespace podsim
