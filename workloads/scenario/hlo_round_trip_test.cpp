// Schedules of ours, written as HLO and read back: the same collectives, the same time.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/engine/numeric/check.hpp"
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

struct Case {
  std::string algorithm;
  Dataflow dataflow;
  std::string slice;
  std::int64_t slice_count;
  std::int64_t m, n, k;
};

Schedule made(const System& system, const Case& what, const GemmOptions& given) {
  GemmOptions options = given;
  options.slice_count = what.slice_count;
  auto schedule = make_gemm(**gemm_algorithm(what.algorithm), system.mesh, {what.m, what.n, what.k, DType::bf16, what.dataflow}, options);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  return *std::move(schedule);
}

System ideal(const std::string& slice) { return system_with({{"machine", "ideal"}, {"slice", slice}}); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* slice : {"2x2", "4x2", "8x1"})
    for (const Dataflow dataflow : all_dataflows)
      for (const std::int64_t extent : {512, 4096}) {
        all.push_back({"collective", dataflow, slice, 0, extent, extent, extent});
        all.push_back({"wang", dataflow, slice, 0, extent, extent, extent});
        for (const std::int64_t S : {2, 4}) all.push_back({"meshslice", dataflow, slice, S, extent, extent, extent});
        for (const std::int64_t S : {8, 16}) all.push_back({"summa", dataflow, slice, S, extent, extent, extent});
      }
  return all;
}

std::string text_of(const Case& what) { return fmt::format("{} {} {} S={} {}x{}x{}", what.algorithm, name_of(what.dataflow), what.slice, what.slice_count, what.m, what.n, what.k); }

TEST(HloRoundTrip, SchedulesOfOursWrittenAsHloTakeTheSameTime) {
  for (const Case& what : cases()) {
    SCOPED_TRACE(text_of(what));
    const System system = ideal(what.slice);
    Schedule ours = made(system, what, {});
    if (what.algorithm == "summa") ours = testing::with_all_reduces(std::move(ours));
    const testing::WrittenHlo written = schedule_as_hlo(ours);
    if (getenv("TRIP_SHOW")) fprintf(stderr, "=== %s\n%s\n", text_of(what).c_str(), written.text.c_str());
    const HloModule module = module_of(written.text);
    const Schedule back = schedule_of(module, system.mesh);
    EXPECT_EQ(collectives_of(module, system), collectives_of(ours));
    EXPECT_EQ(collectives_of(back), collectives_of(ours, false));
    const podsim::Run before = run_of(system, ours), after = run_of(system, back);
    EXPECT_EQ(after.metrics.makespan.count(), before.metrics.makespan.count());
    EXPECT_EQ(after.metrics.split.compute, before.metrics.split.compute);
    EXPECT_EQ(after.metrics.link_bytes, before.metrics.link_bytes);
    EXPECT_EQ(after.metrics.flops.count(), before.metrics.flops.count());
  }
}

}  // namespace
}  // namespace podsim
