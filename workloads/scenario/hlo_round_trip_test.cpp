// Schedules of ours, written as HLO and read back: the same collectives, the same time.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/unroll.hpp"
#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/test_schedule_as_hlo.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using testing::Blank;
using testing::schedule_as_hlo;
using testing::system_with;

const CollectivePolicy by_dimension{std::string{by_dimension_name}, {}};

/// One line for each collective: kind, axes, distance of a permute, bytes.
using Collectives = std::vector<std::string>;

/// `trivial`: also those along one device, which send nothing.
Collectives collectives_of(const Schedule& schedule, bool trivial = true) {
  Collectives lines;
  const Program& program = schedule.programs.at(0);
  for (const Task& task : program.tasks) {
    if (const auto* shift = std::get_if<Shift>(&task.op))
      lines.push_back(fmt::format("collective-permute {} by {} {}", schedule.mesh.name(shift->axis), shift->axis.size == 2 ? 1 : shift->by.constant, bytes_of(program, shift->source).count()));
    if (const auto* collective = std::get_if<Collective>(&task.op)) {
      std::string axes;
      for (const AxisView& view : collective->axes)
        if (view.size > 1) axes += ' ' + schedule.mesh.name(view);
      if (axes.empty() && !trivial) continue;
      const bool is_broadcast = collective->kind == CollectiveKind::broadcast;
      lines.push_back(fmt::format("{}{}{} {}", is_broadcast ? "collective-" : "", name_of(collective->kind), axes, bytes_of(program, collective->input).count()));
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

Collectives collectives_of(const HloModule& module, const System& system) {
  Collectives lines;
  const auto summary = summary_of(module, system.machine);
  EXPECT_TRUE(summary) << to_text(summary.error());
  for (const HloCollectiveCount& collective : summary->collectives) {
    const HloInstruction& at = module.computations[static_cast<std::size_t>(collective.place.computation)].instructions[static_cast<std::size_t>(collective.place.instruction)];
    const auto axes = collective_axes(module, at, &system.mesh);
    EXPECT_TRUE(axes && axes->axes) << at.name;
    EXPECT_TRUE(collective.asynchronous) << at.name;
    std::string along;
    for (const std::string& axis : axes->axes.value_or(std::vector<std::string>{})) along += ' ' + axis;
    if (axes->shift) along += fmt::format(" by {}", axes->shift->by);
    for (std::int64_t i = 0; i < collective.count; ++i) lines.push_back(fmt::format("{}{} {}", name_of(collective.kind), along, collective.bytes.count()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

HloModule module_of(const std::string& text) {
  auto module = parse_hlo(text, "m");
  EXPECT_TRUE(module) << to_text(module.error()) << '\n' << text;
  return module ? *std::move(module) : HloModule{};
}

Schedule schedule_of(const HloModule& module, const Mesh& mesh) {
  auto schedule = hlo_schedule(module, mesh);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  return schedule ? std::move(schedule->schedule) : Schedule{};
}

podsim::Run run_of(const System& system, const Schedule& schedule) {
  auto run = simulate(system, schedule, {}, by_dimension);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

/// When each task of a schedule begins on device 0. Collectives: 0.
std::vector<Picoseconds> begins_of(const System& system, const Schedule& schedule) {
  RunOptions options;
  options.fold = false;
  const auto run = simulate(system, schedule, options, by_dimension);
  EXPECT_TRUE(run) << to_text(run.error());
  const std::vector<Task>& lowered = run->lowered->programs.at(0).tasks;
  std::vector<Picoseconds> begins_lowered(lowered.size()), begins;
  for (const Span& span : spans_of(unroll(*run->lowered).graph, run->timeline))
    if (span.device == DeviceId{} && span.part != Span::Part::receive) begins_lowered[span.task.index()] = span.start;
  // What lowering leaves as it is stands in the same order.
  std::size_t next = 0;
  for (const Task& task : schedule.programs.at(0).tasks) {
    begins.emplace_back();
    if (std::holds_alternative<Collective>(task.op)) continue;
    while (lowered[next].origin) ++next;
    begins.back() = begins_lowered[next++];
  }
  return begins;
}

struct Case {
  std::string algorithm;
  Dataflow dataflow;
  std::string slice;
  std::int64_t slice_count = 0;
  GemmProblem problem;
};

std::string text_of(const Case& what) {
  const GemmProblem& p = what.problem;
  return fmt::format("{} {} {} S={} {}x{}x{}", what.algorithm, name_of(what.dataflow), what.slice, what.slice_count, p.m, p.n, p.k);
}

std::vector<Case> cases_of(const std::vector<std::string>& algorithms, const std::vector<std::int64_t>& extents) {
  std::vector<Case> all;
  for (const std::string& algorithm : algorithms)
    for (const char* slice : {"2x2", "4x2", "8x1"})
      for (const Dataflow dataflow : all_dataflows)
        for (const std::int64_t extent : extents) {
          std::vector<std::int64_t> slice_counts{0};
          if (algorithm == "meshslice") slice_counts = {2, 4};
          if (algorithm == "summa") slice_counts = {8, 16};
          for (const std::int64_t S : slice_counts) all.push_back({algorithm, dataflow, slice, S, {extent, extent, extent, DType::bf16, dataflow}});
        }
  return all;
}

/// `block`: of meshslice.
Schedule ours(const System& system, const Case& what, std::int64_t block = 8) {
  GemmOptions options;
  options.slice_count = what.slice_count;
  options.block = block;
  auto made = make_gemm(**gemm_algorithm(what.algorithm), system.mesh, what.problem, options);
  EXPECT_TRUE(made) << to_text(made.error());
  Schedule schedule = *std::move(made);
  if (what.algorithm == "summa" && what.dataflow != Dataflow::os) schedule = testing::with_all_reduces(std::move(schedule));
  return testing::in_order_of_time(schedule, begins_of(system, schedule));
}

System system_of(const std::string& machine, const std::string& slice) { return system_with({{"machine", machine}, {"slice", slice}}); }

/// Matched, free of deadlocks and races.
void expect_sound(const System& system, const Schedule& schedule) {
  const auto lowered = lower_problem(system, Problem{schedule, by_dimension, {}}, {});
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  CheckOptions how;
  how.structure_only = true;
  const auto report = check(lowered->lowered, how);
  ASSERT_TRUE(report) << to_text(report.error());
  EXPECT_TRUE(report->ok) << to_text(report->problems);
}

void expect_same(const podsim::Run& after, const podsim::Run& before) {
  EXPECT_EQ(after.metrics.makespan.count(), before.metrics.makespan.count());
  EXPECT_EQ(after.metrics.split.compute.count(), before.metrics.split.compute.count());
  EXPECT_EQ(after.metrics.link_bytes, before.metrics.link_bytes);
  EXPECT_EQ(after.metrics.flops.count(), before.metrics.flops.count());
}

// 512: transfers take longer than products; 4096: products take longer.
const std::vector<std::int64_t> sizes{512, 4096};

void expect_round_trips(const std::vector<std::string>& algorithms, std::size_t at_least) {
  const std::vector<Case> cases = cases_of(algorithms, sizes);
  EXPECT_GE(cases.size(), at_least);
  for (const Case& what : cases) {
    SCOPED_TRACE(text_of(what));
    const System system = system_of("ideal", what.slice);
    const Schedule schedule = ours(system, what);
    const HloModule module = module_of(schedule_as_hlo(schedule).text);
    const Schedule back = schedule_of(module, system.mesh);
    EXPECT_EQ(collectives_of(module, system), collectives_of(schedule));
    EXPECT_EQ(collectives_of(back), collectives_of(schedule, false));
    expect_same(run_of(system, back), run_of(system, schedule));
    expect_sound(system, back);
  }
}

TEST(HloRoundTrip, MeshSliceTakesTheSameTimeByTheSameCollectives) { expect_round_trips({"meshslice"}, 36); }
TEST(HloRoundTrip, CollectiveGemmsTakeTheSameTimeByTheSameCollectives) { expect_round_trips({"collective"}, 18); }
TEST(HloRoundTrip, WangTakesTheSameTimeByTheSameCollectives) { expect_round_trips({"wang"}, 18); }
/// In LS and RS the panels of Y are all-reduced in both forms: HLO has no reduce to one device.
TEST(HloRoundTrip, SummaTakesTheSameTimeByTheSameCollectives) { expect_round_trips({"summa"}, 36); }

}  // namespace
}  // namespace podsim
