// Training steps as schedules: their numbers against one device in float64, and mistakes made on purpose.
#include "workloads/training/step_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/lower.hpp"
#include "workloads/training/testing.hpp"

namespace podsim {
namespace {

using testing::plan_of;
using testing::small_step;

/// With large steps of the optimiser, so that a wrong gradient shows in the parameters.
TrainingScheduleOptions with_claims(int steps) {
  TrainingScheduleOptions options;
  options.steps = steps;
  options.optimiser = {0.02, 0.9, 0.95, 1e-3, 0.1};
  options.claims = true;
  return options;
}

Schedule claimed(const TrainingStep& step, int steps) {
  const auto whole = divided(step);
  EXPECT_TRUE(whole) << to_text(whole.error());
  auto made = training_schedule(whole->step, mesh_of(step.mesh), plan_of(whole->step), with_claims(steps));
  EXPECT_TRUE(made) << to_text(made.error());
  return made ? std::move(made->schedule) : Schedule{};
}

CheckReport report_of(const Schedule& schedule) {
  const auto lowered = lower(schedule, ring_or_line());
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  const auto report = check(*lowered, {});
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

TEST(TrainingSchedule, OneDevice) {
  const CheckReport report = report_of(claimed(small_step({}), 2));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_LE(report.max_rel_error, 1e-5);
}

TEST(TrainingSchedule, EveryAxisGivesTheNumbersOfOneDevice) {
  for (const TrainingMesh& mesh : {TrainingMesh{.data = 2}, {.fsdp = 2}, {.col = 2}, {.row = 2}, {.slice = 2}, {.stage = 2}, {.stage = 2, .fsdp = 2}, {.slice = 2, .data = 2, .fsdp = 2},
                                   {.stage = 2, .row = 2, .col = 2}, {.stage = 4}}) {
    SCOPED_TRACE(to_text(mesh));
    const CheckReport report = report_of(claimed(small_step(mesh), 2));
    EXPECT_TRUE(report.ok) << to_text(report.problems);
    EXPECT_LE(report.max_rel_error, 1e-5);
  }
}

TEST(TrainingSchedule, SumsOverSlicesGiveTheSameNumbersWhereverTheyAre) {
  for (const SliceSums sums : {SliceSums::each, SliceSums::beside})
    for (const TrainingMesh& mesh : {TrainingMesh{.slice = 2}, {.slice = 2, .data = 2}, {.slice = 2, .stage = 2}}) {
      SCOPED_TRACE(to_text(mesh));
      const TrainingStep step = small_step(mesh);
      TrainingScheduleOptions options = with_claims(2);
      options.slice_sums = sums;
      const auto made = training_schedule(divided(step)->step, mesh_of(mesh), plan_of(step), options);
      ASSERT_TRUE(made) << to_text(made.error());
      const auto joins = std::count_if(made->schedule.functions.begin(), made->schedule.functions.end(), [](const Function& f) { return f.name.find("over slices") != std::string::npos; });
      EXPECT_EQ(joins > 0, sums == SliceSums::each);
      const CheckReport report = report_of(made->schedule);
      EXPECT_TRUE(report.ok) << to_text(report.problems);
      EXPECT_LE(report.max_rel_error, 1e-5);
    }
}

/// The core works in program order, so a conversion behind a layer would hold up the gather until the layer has ended.
TEST(TrainingSchedule, WeightsOfTheNextLayerAreConvertedAndGatheredBeforeTheWorkOfThisOne) {
  TrainingStep step = small_step({.fsdp = 2});
  step.model.activations = DType::bf16;
  const Schedule schedule = claimed(step, 1);
  int functions = 0;
  for (const Function& function : schedule.functions) {
    if (function.name.find("layer forward + gather layer") == std::string::npos) continue;
    ++functions;
    std::size_t last_gather = 0, first_work = function.body.tasks.size();
    for (std::size_t t = 0; t < function.body.tasks.size(); ++t) {
      const Task& task = function.body.tasks[t];
      if (task.label.starts_with("gather ")) last_gather = t;
      if (task.label.starts_with("norm1")) first_work = std::min(first_work, t);
    }
    EXPECT_LT(0U, last_gather);
    EXPECT_LT(last_gather, first_work);
  }
  EXPECT_GE(functions, 1);
}

}  // namespace
}  // namespace podsim
