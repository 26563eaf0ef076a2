// Proofs of training steps for tests: their numbers against one device in float64, and the bytes of their buffers.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"
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

/// The values of an output, put together from its shards.
inline std::vector<double> output_of(const Schedule& lowered, const Tensors& found, const std::string& tensor, std::size_t elements) {
  std::vector<double> values(elements, std::nan(""));
  for (std::size_t d = 0; d < found.values.size(); ++d) {
    const DeviceId device{static_cast<int>(d)};
    const auto program = program_of(lowered, device);
    if (!program) continue;
    const std::vector<Buffer>& buffers = lowered.programs[*program].buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].role != Role::output || buffers[b].tensor != tensor) continue;
      const ShardData data = data_of_shard(lowered.mesh, buffers[b], device);
      for_each_run<2>({&data.in_buffer, &data.in_tensor}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
        for (std::int64_t i = 0; i < count; ++i)
          values[static_cast<std::size_t>(at[1].offset() + i * at[1].stride())] =
              static_cast<double>(found.values[d][b][static_cast<std::size_t>(at[0].offset() + i * at[0].stride())]);
      });
    }
  }
  return values;
}

/// Of the gradients of all steps, on uniform data: the largest difference from float64, where what float32 roundings of one device do to the same gradient is 1: the most
/// of eight random ones. float64 goes on from the gradients that were found in the steps before: errors that an optimiser, or a deep model, enlarges from step to step
/// are left out, what a step adds to them is not.
inline double error_in_roundings(const Schedule& schedule, int steps) {
  const Schedule lowered = lowered_step(schedule);
  const NumericOptions options{.filling = Filling::uniform};
  const auto found = make_numeric_engine(options)->run(lowered);
  EXPECT_TRUE(found) << to_text(found.error());
  const auto& program = std::get<ReferenceProgram>(lowered.computes);
  const InputMaker inputs{lowered, options.seed, options.filling};
  ThreadPool pool{1};
  const ReferenceInputs input = [&](const ReferenceNode& node) {
    for (const Program& one : lowered.programs)
      for (const Buffer& buffer : one.buffers)
        if (buffer.role == Role::input && buffer.tensor == node.tensor) return inputs.global_tensor(buffer, false, pool);
    ADD_FAILURE() << "no input " << node.tensor;
    return std::vector<double>{};
  };
  const auto difference = [](const std::vector<double>& a, const std::vector<double>& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (const double own = std::abs(a[i] - b[i]); !(own <= largest)) largest = own;  // a NaN, too
    return largest;
  };
  GivenArrays given;
  double worst = 0;
  for (int step = 1; step <= steps; ++step) {
    const auto outputs = [&](Noise noise) { return *evaluate(program, lowered.mesh, input, pool, {}, noise, given); };
    const std::vector<std::vector<double>> expected = outputs({});
    std::vector<std::vector<std::vector<double>>> rounded;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) rounded.push_back(outputs({seed, 0x1p-24}));
    GivenArrays gradients;
    for (std::size_t o = 0; o < program.outputs.size(); ++o) {
      const auto& [tensor, node] = program.outputs[o];
      if (!tensor.starts_with("d ") || !tensor.ends_with(fmt::format(" {}", step))) continue;
      std::vector<double> values = output_of(lowered, *found, tensor, expected[o].size());
      double roundings = 0;
      for (const auto& one : rounded) roundings = std::max(roundings, difference(one[o], expected[o]));
      const double error = difference(values, expected[o]);
      EXPECT_FALSE(std::isnan(error)) << tensor;
      if (error > 0) worst = std::max(worst, error / roundings);
      gradients.emplace(node, std::move(values));
    }
    EXPECT_FALSE(gradients.empty()) << step;
    given.merge(gradients);
  }
  return worst;
}

inline void expect_one_device(const TrainingStep& step, int steps) {
  SCOPED_TRACE(to_text(step.mesh) + " " + step.pipeline + " " + std::to_string(step.microbatches) + " microbatches, " + to_text(step.remat) +
               (step.model.heads > 0 ? "" : ", MLP"));
  const CheckReport report = report_of(claimed(step, steps));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_LE(error_of(report, "loss"), 1e-6);
  // That the gradients keep it is in `ok`. How far they are below depends on the processor, for which a BLAS adds up in orders of its own.
  EXPECT_LE(report.tolerance, 2e-4) << "far below what a microbatch adds to a gradient";
}

/// Bytes of the buffers of a program by kind.
inline std::map<MemoryKind, std::int64_t> bytes_by_kind(const TrainingStep& step) {
  const TrainingSchedule made = *training_schedule(step, mesh_of(step.mesh), plan_of(step));
  std::map<MemoryKind, std::int64_t> bytes;
  const std::vector<Buffer>& buffers = made.schedule.programs.front().buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : buffers[b].extents) elements *= extent;
    bytes[made.memory.front()[b]] += elements * size_of(buffers[b].dtype).count();
  }
  return bytes;
}

}  // namespace podsim::testing
