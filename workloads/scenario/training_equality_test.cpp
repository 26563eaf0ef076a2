// A step takes the same time, and the same memory, however it is simulated: calls played or written out, folded or not, by des or by SimGrid.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/analysis/peak_memory.hpp"
#include "sim/analysis/step_split.hpp"
#include "sim/base/test_asked.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/table/engines.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/test_training.hpp"

namespace podsim {
namespace training_equality {

using testing::random_training_step, testing::system_of;

/// PODSIM_TRAINING_STEPS=10000 tries so many, from the seed PODSIM_TRAINING_FIRST on, so that a campaign can be run in pieces. One in twenty is not small.
std::uint64_t steps_to_try() { return test::asked<std::uint64_t>("PODSIM_TRAINING_STEPS", test::cases(1000U, 8U)); }
std::uint64_t first_step() { return test::asked<std::uint64_t>("PODSIM_TRAINING_FIRST", 0U); }

/// A machine whose memory is short beside transfers, at times; one in four takes time of the core for its transfers.
Machine random_machine(std::uint64_t seed) {
  Rng rng{seed, stream_of("machines of training steps")};
  constexpr std::array<const char*, 3> names{"ideal", "tpu_v4", "tpu_v5p"};
  Machine machine = *find_machine(names[static_cast<std::size_t>(rng.between(0, 2))]);
  if (rng.between(0, 1) == 1) machine.chip.hbm_bandwidth = BytesPerSecond{1e11 * static_cast<double>(rng.between(1, 8))};
  if (rng.between(0, 3) == 0)
    for (double& share : machine.software.core_share) share = 0.05 * static_cast<double>(rng.between(0, 6));
  return machine;
}

RunOptions options_of(bool inlined, bool fold = true, std::string_view engine = "des") {
  RunOptions options;
  options.inline_calls = inlined;
  options.fold = fold;
  options.engine = *timing_engine(engine);
  return options;
}

podsim::Run run_of(const System& system, const LoweredProblem& lowered, const RunOptions& options) {
  auto run = simulate(system, lowered, options);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

void expect_equal(const podsim::Run& run, const podsim::Run& flat) {
  EXPECT_EQ(run.metrics.makespan, flat.metrics.makespan);
  EXPECT_EQ(run.metrics.split, flat.metrics.split);
  EXPECT_EQ(run.metrics.peak_memory, flat.metrics.peak_memory);
  EXPECT_EQ(run.metrics.link_bytes, flat.metrics.link_bytes);
  EXPECT_EQ(run.metrics.tasks, flat.metrics.tasks);
  const auto ranks = measure_programs(run.model, run.timeline), of_flat = measure_programs(flat.model, flat.timeline);
  ASSERT_EQ(ranks.size(), of_flat.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_EQ(ranks[r].busiest, of_flat[r].busiest) << r;
    EXPECT_EQ(ranks[r].split, of_flat[r].split) << r;
    EXPECT_EQ(ranks[r].peak_memory, of_flat[r].peak_memory) << r;
  }
}

/// What is left out where not all calls that share their memory are written out is no more than the run says, and less than a thousandth. Each call may be rounded by a picosecond.
void expect_little_left_out(const System& system, const LoweredProblem& with_calls, const podsim::Run& flat) {
  RunOptions options = options_of(false);
  options.most_written_out = 1;
  const podsim::Run run = run_of(system, with_calls, options);
  const double time = to_seconds(run.metrics.makespan).count(), more = to_seconds(flat.metrics.makespan).count() - time, bound = run.row.calls.beside_at_most_s.value_or(0);
  const double rounding = 1e-12 * static_cast<double>(1 + run.row.calls.beside);
  EXPECT_LE(more, bound + rounding);
  EXPECT_GE(more, -1e-3 * time) << "a wait may keep transfers apart that meet without it";
  EXPECT_LE(bound, 1e-3 * time);
}

/// Calls played, in the model that this returns the run of, and the same step with nothing called, nothing folded, by SimGrid and by the analytic engine.
struct Played {
  podsim::Run called, flat;
};
Played expect_one_time(const System& system, const TrainingSpec& spec) {
  const auto posed = pose(system, spec, options_of(false));
  EXPECT_TRUE(posed) << to_text(posed.error());
  const auto with_calls = lower_problem(posed->system, posed->problem, options_of(false)), inlined = lower_problem(posed->system, posed->problem, options_of(true));
  EXPECT_TRUE(with_calls) << to_text(with_calls.error());
  EXPECT_TRUE(inlined) << to_text(inlined.error());
  const auto run = [&](const RunOptions& options) { return run_of(posed->system, options.inline_calls ? *inlined : *with_calls, options); };
  Played runs{run(options_of(false)), run(options_of(true))};
  const auto& [called, flat] = runs;
  const CallSummary& calls = called.row.calls;
  EXPECT_EQ(calls.played == 0, !calls.why_inlined.empty() && called.model.calls == nullptr);
  expect_equal(called, flat);
  if (calls.inlined > 0) expect_little_left_out(posed->system, *with_calls, flat);
  expect_equal(called, run(options_of(false, false)));
  const podsim::Run referee = run(options_of(true, false, "simgrid"));
  std::size_t tasks = 0;  // of which each that precedes another may be rounded by a picosecond
  for (const Program& program : flat.lowered->programs) tasks += program.tasks.size();
  const auto time = static_cast<double>(flat.metrics.makespan.count());
  EXPECT_NEAR(time, static_cast<double>(referee.metrics.makespan.count()), 1e-6 * time + static_cast<double>(tasks));
  EXPECT_LE(run(options_of(true, false, "analytic")).metrics.makespan, flat.metrics.makespan);
  return runs;
}

TEST(TrainingStep, IsTheSameHoweverItIsSimulated) {
  std::uint64_t played = 0, some_inlined = 0, with_shares = 0;
  const std::uint64_t steps = steps_to_try(), first = first_step();
  for (std::uint64_t seed = first; seed < first + steps && !::testing::Test::HasFailure(); ++seed) {
    const TrainingStep step = random_training_step(seed, seed % 20 != 0);
    const Machine machine = random_machine(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}, {}, {}, {} microbatches", seed, machine.name, to_text(step.mesh), step.pipeline, step.microbatches));
    const System system = system_of(machine, step.mesh);
    TrainingSpec spec{step};
    spec.layers.algorithm = seed % 4 == 0 && machine.name == "ideal" ? "wang" : "collective";  // whose rings wrap
    const auto [called, flat] = expect_one_time(system, spec);
    const CallSummary& calls = called.row.calls;
    played += calls.inlined == 0 ? 1U : 0U, some_inlined += calls.played > 0 && calls.inlined > 0 ? 1U : 0U, with_shares += flat.model.core_shares.empty() ? 0U : 1U;
  }
  EXPECT_GT(12 * played, steps);
  EXPECT_GT(12 * some_inlined, steps);
  EXPECT_GT(12 * with_shares, steps);
}

TEST(TrainingStep, WithExpertsIsTheSameHoweverItIsSimulated) {
  std::int64_t played = 0;
  std::uint64_t seed = 0;
  for (const TrainingStep& step : testing::expert_steps()) {
    const Machine machine = random_machine(seed++);
    SCOPED_TRACE(fmt::format("{}, {}, remat {}", machine.name, to_text(step.mesh), to_text(step.remat)));
    played += expect_one_time(system_of(machine, step.mesh), {step}).called.row.calls.played;
  }
  EXPECT_GT(played, 0);
}

}  // namespace training_equality
}  // namespace podsim
