// The schedules of the Pallas kernels: steps, bytes per step and overlap as the kernels have them.
#include <algorithm>
#include <map>

#include "algorithms/collectives/testing.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

constexpr double link_rate = 45e9;
constexpr std::int64_t V = 1 << 20;  // bytes of a shard or block
const double whole_copy = 1e-6 + static_cast<double>(V) / link_rate, half_copy = 1e-6 + static_cast<double>(V) / 2 / link_rate;

SmallSystem ring_of(int devices, double hbm) {
  Machine machine = ideal_machine(link_rate, 1e-6);
  machine.chip.hbm_bandwidth = BytesPerSecond{hbm};
  machine.chip.memory_shared = false;  // the closed forms share nothing
  return small_system(machine, {devices});
}

/// Per direction, the bytes of each Shift in order.
std::map<int, std::vector<std::int64_t>> sent(const Schedule& schedule) {
  std::map<int, std::vector<std::int64_t>> bytes;
  const Program& program = schedule.programs.front();
  for (const Task& task : program.tasks)
    if (const auto* shift = std::get_if<Shift>(&task.op)) bytes[static_cast<int>(shift->by.constant)].push_back(bytes_of(program, shift->source).count());
  return bytes;
}

struct Interval {
  Picoseconds start, end;
  bool adds;  // an add; else a transfer
  int by;     // of a transfer
};

/// What device 0 does, by start.
std::vector<Interval> intervals(const SmallSystem& pod, const Schedule& schedule, std::string_view engine) {
  const auto timeline = testing::run(pod, schedule, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  const Unrolled unrolled = unroll(schedule);
  std::vector<Interval> found;
  for (std::size_t a = 0; a < unrolled.graph.activities.size(); ++a) {
    const Activity& activity = unrolled.graph.activities[a];
    if (activity.device != DeviceId{0}) continue;
    const Task& task = schedule.programs.front().tasks[activity.task.index()];
    const auto* shift = std::get_if<Shift>(&task.op);
    const auto* local = std::get_if<Local>(&task.op);
    if (shift || (local && local->kind == LocalKind::add))
      found.push_back({timeline->at(a).start, timeline->at(a).received, !shift, shift ? static_cast<int>(shift->by.constant) : 0});
  }
  std::stable_sort(found.begin(), found.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  return found;
}

TEST(Pallas, TutorialAllGatherCopiesAndThenTakesSerialStepsOneWay) {
  for (const int N : {2, 3, 4, 8}) {
    const SmallSystem pod = ring_of(N, 800e9);
    const Schedule schedule = testing::lowered_collective(pod, CollectiveKind::all_gather, {"row"}, Bytes{V}, "pallas-ring");
    EXPECT_EQ(sent(schedule), (std::map<int, std::vector<std::int64_t>>{{1, std::vector<std::int64_t>(static_cast<std::size_t>(N - 1), V)}}));
    const double expected = 2.0 * V / 800e9 + (N - 1) * whole_copy;  // the copy reads and writes HBM
    for (const EngineEntry& engine : all_timing_engines()) {
      EXPECT_NEAR(testing::seconds_of(pod, schedule, engine.name), expected, 50e-12) << engine.name;
      const auto steps = intervals(pod, schedule, engine.name);
      for (std::size_t i = 1; i < steps.size(); ++i) EXPECT_GE(steps[i].start, steps[i - 1].end);
    }
  }
}

TEST(Pallas, LibraryAllGatherSendsHalvesBothWaysAtOnce) {
  for (const int N : {3, 4, 8}) {
    const SmallSystem pod = ring_of(N, 800e9);
    const Schedule schedule = testing::lowered_collective(pod, CollectiveKind::all_gather, {"row"}, Bytes{V}, "pallas-bidirectional");
    const std::vector<std::int64_t> halves(static_cast<std::size_t>(N - 1), V / 2);
    EXPECT_EQ(sent(schedule), (std::map<int, std::vector<std::int64_t>>{{-1, halves}, {1, halves}}));
    for (const Task& task : schedule.programs.front().tasks)  // rows [0..V/2) go left, the others right
      if (const auto* shift = std::get_if<Shift>(&task.op)) {
        EXPECT_EQ(shift->source.dims.back().offset, shift->by.constant < 0 ? 0 : V / 2 / 4);
      }
    const double expected = 2.0 * V / 800e9 + (N - 1) * half_copy;
    for (const EngineEntry& engine : all_timing_engines()) {
      EXPECT_NEAR(testing::seconds_of(pod, schedule, engine.name), expected, 50e-12) << engine.name;
      const auto steps = intervals(pod, schedule, engine.name);
      ASSERT_EQ(steps.size(), 2U * static_cast<std::size_t>(N - 1));
      for (std::size_t i = 0; i < steps.size(); i += 2) {  // in each step, both at once
        EXPECT_EQ(steps[i].start, steps[i + 1].start);
        EXPECT_EQ(steps[i].by, -steps[i + 1].by);
      }
    }
  }
}

TEST(Pallas, AlternatingReduceScatterHasTwoNPhasesOfOneDirectionAndOneAdd) {
  for (const int N : {2, 3, 4, 8})
    for (const double hbm : {10e12, 40e9}) {  // adds shorter and longer than copies
      const SmallSystem pod = ring_of(N, hbm);
      const Schedule schedule = testing::lowered_collective(pod, CollectiveKind::reduce_scatter, {"row"}, Bytes{N * V}, "pallas-alternating");
      // N useful half-blocks and one more go left, N right.
      const auto n = static_cast<std::size_t>(N);
      EXPECT_EQ(sent(schedule), (std::map<int, std::vector<std::int64_t>>{{-1, std::vector<std::int64_t>(n + 1, V / 2)}, {1, std::vector<std::int64_t>(n, V / 2)}}));
      const double half_add = 3.0 * V / 2 / hbm;  // two reads and a write
      const double expected = half_copy + (2 * N - 2) * std::max(half_copy, half_add) + 2 * half_copy;
      for (const EngineEntry& engine : all_timing_engines()) {
        SCOPED_TRACE(std::string{engine.name} + " N=" + std::to_string(N));
        EXPECT_NEAR(testing::seconds_of(pod, schedule, engine.name), expected, 50e-12);
        std::vector<Interval> copies, adds;
        for (const Interval& interval : intervals(pod, schedule, engine.name)) (interval.adds ? adds : copies).push_back(interval);
        ASSERT_EQ(copies.size(), 2 * n + 1);
        ASSERT_EQ(adds.size(), 2 * (n - 1));
        for (std::size_t i = 1; i < copies.size(); ++i) {
          EXPECT_GE(copies[i].start, copies[i - 1].end);  // one direction at a time
          EXPECT_EQ(copies[i].by, -copies[i - 1].by);   // in turn
          if (i - 1 < adds.size()) {
            EXPECT_EQ(copies[i].start, adds[i - 1].start);  // while the other half is added to
          }
        }
      }
    }
}

}  // namespace
}  // namespace podsim
