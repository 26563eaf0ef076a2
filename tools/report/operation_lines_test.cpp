// The operations of a device in time, and by the names that XLA would give them.
#include "tools/report/operation_lines.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "sim/engine/table/testing.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"
#include "tools/report/hlo_names.hpp"
#include "validation/calibration/importers/hlo_op.hpp"
#include "validation/calibration/importers/step_category.hpp"

namespace podsim {
namespace {

using Part = OperationEvent::Part;

/// A random schedule of lowered tasks on a machine with launches and core shares. The schedule outlives what is found.
struct RandomRun {
  explicit RandomRun(std::uint64_t seed) : schedule{testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false})} {
    if (!topological_order(unroll(schedule).graph, schedule, true).cycle.empty()) return;
    machine = testing::ideal_machine(3e8, 1e-8);
    machine.chip.hbm_bandwidth = BytesPerSecond{5e8};
    machine.software.launch.fill(Seconds{2e-8});
    if (seed % 3 == 0) machine.software.core_share.fill(0.4);
    std::vector<int> extents;
    std::vector<std::pair<std::string, int>> sizes;
    for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
    pod = testing::small_system(machine, extents, true, sizes);
    auto made = testing::model_of(*pod, schedule);
    auto times = testing::run(*pod, schedule, "des");
    if (!made || !times) return;
    model = *std::move(made);
    timeline = *std::move(times);
    ran = true;
  }
  Schedule schedule;
  Machine machine;
  std::optional<testing::SmallSystem> pod{};
  Model model{};
  Timeline timeline{};
  bool ran = false;
};

/// Tells what is wrong with a device's lines; empty: nothing.
std::string fault_in(const OperationLines& lines) {
  const OperationTimeline& all = lines.timeline;
  std::vector<Picoseconds> sums(all.operations.size());
  std::vector<std::array<int, 4>> parts(all.occurrences.size());
  Picoseconds free;
  for (const OperationEvent& event : lines.core) {
    sums[all.occurrences[event.occurrence].operation] += event.end - event.begin;
    ++parts[event.occurrence][static_cast<std::size_t>(event.part)];
    if (event.end == event.begin) continue;
    if (event.begin < free) return "events overlap";
    free = event.end;
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != all.operations[i].busy + all.operations[i].exposed) return "the times of " + all.operations[i].name + " differ";
  for (std::size_t o = 0; o < parts.size(); ++o) {
    const bool asynchronous = lines.asynchronous[all.occurrences[o].operation];
    const auto& [whole, start, update, done] = parts[o];
    if (asynchronous ? whole != 0 || start != 1 || done != 1 : whole != 1 || start + update + done != 0) return "parts are missing";
  }
  return {};
}

TEST(OperationLines, SumToTheOperationsOfEveryDeviceOnRandomPrograms) {
  std::array<int, 4> seen{};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomRun run{seed};
    if (!run.ran) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(run.schedule));
    for (int device = 0; device < run.schedule.mesh.devices(); ++device) {
      const OperationLines lines = operation_lines(run.model, run.timeline, DeviceId{device});
      ASSERT_EQ(fault_in(lines), "");
      for (const OperationEvent& event : lines.core) ++seen[static_cast<std::size_t>(event.part)];
    }
  }
  for (const int count : seen) EXPECT_GT(count, 10) << "every part occurs";
}

TEST(HloNames, AreReadBackAsTheCategoryAndSizeOfTheOperation) {
  int collectives = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomRun run{seed};
    if (!run.ran) continue;
    for (int device = 0; device < run.schedule.mesh.devices(); ++device) {
      const std::uint32_t program = run.model.deployment.places[run.model.node_of[static_cast<std::size_t>(device)]].program;
      const OperationTimeline all = operation_timeline(run.model, run.timeline, DeviceId{device});
      for (const OperationOccurrence& occurrence : all.occurrences) {
        const OperationMetrics& operation = all.operations[occurrence.operation];
        const HloName name = hlo_name(run.model, program, operation, occurrence.first, all.views[occurrence.operation]);
        for (const Part part : {Part::whole, Part::start}) {
          const std::string text = name.text(part, 7);
          const auto parsed = parse_hlo_op(text);
          ASSERT_TRUE(parsed) << text;
          EXPECT_EQ(parsed->name, name.name(part, 7));
          EXPECT_EQ(step_category(*parsed, text, name.category_of(part)), operation.category) << text;
        }
        for (const Part part : {Part::update, Part::done})
          EXPECT_EQ(start_of_done(name.name(part, 7), name.text(part, 7)), name.name(Part::start, 7)) << name.text(part, 7);
        if (operation.category != "permute") continue;
        const auto row = observation_of(*parse_hlo_op(name.text(Part::whole, 7)), {name.category, {}, Seconds{1}}, {});
        if (!row) continue;  // no ring
        EXPECT_EQ(row->bytes, operation.bytes) << name.text(Part::whole, 7);
        ++collectives;
      }
    }
  }
  EXPECT_GT(collectives, 10);
}

}  // namespace
}  // namespace podsim
