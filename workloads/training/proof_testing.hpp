// Proofs of training steps for tests: their numbers against one device in float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/lower.hpp"
#include "workloads/training/testing.hpp"

namespace podsim::testing {

/// With large steps of the optimiser, so that a wrong gradient shows in the parameters.
inline TrainingScheduleOptions with_claims(int steps) {
  TrainingScheduleOptions options;
  options.steps = steps;
  options.optimiser = {0.005, 0.9, 0.95, 1e-3, 0.1};
  options.claims = true;
  return options;
}

inline Schedule claimed(const TrainingStep& step, int steps) {
  const auto whole = divided(step);
  EXPECT_TRUE(whole) << to_text(whole.error());
  auto made = training_schedule(whole->step, mesh_of(step.mesh), plan_of(whole->step), with_claims(steps));
  EXPECT_TRUE(made) << to_text(made.error());
  return made ? std::move(made->schedule) : Schedule{};
}

inline Schedule lowered_step(const Schedule& schedule) {
  auto lowered = lower(schedule, ring_or_line());
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return lowered ? *std::move(lowered) : Schedule{};
}

inline CheckReport report_of(const Schedule& schedule, int orders = 1) {
  CheckOptions options;
  options.random_orders = orders;
  const auto report = check(lowered_step(schedule), options);
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

/// Of the outputs whose names begin so, on uniform data: the largest difference, relative to the largest element of the output.
inline double error_of(const CheckReport& report, std::string_view begin) {
  double worst = 0;
  int outputs = 0;
  for (const OutputError& output : report.errors)
    if (output.name.starts_with(begin)) worst = std::max(worst, output.max_rel_error), ++outputs;
  EXPECT_GT(outputs, 0) << begin;
  return worst;
}

inline void expect_one_device(const TrainingStep& step, int steps) {
  SCOPED_TRACE(to_text(step.mesh) + " " + step.pipeline + " " + std::to_string(step.microbatches) + " microbatches, " + to_text(step.remat) +
               (step.model.heads > 0 ? "" : ", MLP"));
  const CheckReport report = report_of(claimed(step, steps));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_LE(error_of(report, "loss"), 1e-6);
  EXPECT_LE(error_of(report, "d "), 1e-5);
}

}  // namespace podsim::testing
