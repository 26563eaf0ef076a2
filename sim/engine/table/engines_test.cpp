// What validate() promises about a schedule, every timing engine keeps.
#include "sim/engine/table/engines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/model/costed_graph.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using testing::random_schedule;
using ::testing::StartsWith;

/// A machine on which everything takes time.
Machine random_machine(Rng& rng) {
  Machine machine = testing::ideal_machine(rng.between(1, 20) * 1e8, rng.between(0, 3) * 1e-7);
  machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.chip.peak.fill(FlopsPerSecond{rng.between(1, 9) * 1e8});
  machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.chip.overlap_hbm = rng.uniform();
  if (rng.below(2) == 0) machine.chip.injection_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.software.per_message = Seconds{rng.between(0, 3) * 1e-7};
  machine.software.launch.fill(Seconds{rng.between(0, 3) * 1e-7});
  return machine;
}

/// The schedule's mesh as a grid of its own shape.
testing::SmallSystem pod_for(const Schedule& schedule, const Machine& machine) {
  std::vector<int> extents;
  std::vector<std::pair<std::string, int>> sizes;
  for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
  return testing::small_system(machine, extents, true, sizes);
}

TEST(TimingEngines, FinishWhatValidatesAndCallADeadlockADeadlock) {
  int finished = 0, deadlocked = 0, refused = 0, raced = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Schedule schedule = random_schedule(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    const Validation validation = validate(schedule);
    ASSERT_TRUE(validation.shapes.empty()) << to_text(validation.shapes);
    const Unrolled unrolled = unroll(schedule);
    ASSERT_EQ(unrolled.problems.empty(), validation.unmatched.empty());
    const bool cycle = !topological_order(unrolled.graph, schedule, true).cycle.empty();
    ASSERT_EQ(cycle, !validation.deadlocks.empty());
    raced += !validation.races.empty();

    Rng rng{seed, stream_of("machine")};
    const testing::SmallSystem pod = pod_for(schedule, random_machine(rng));
    for (const EngineEntry& entry : all_timing_engines()) {
      const auto timeline = testing::run(pod, schedule, entry.name);
      if (!validation.unmatched.empty()) {
        ASSERT_FALSE(timeline) << entry.name;
        ASSERT_EQ(to_text(timeline.error()), to_text(validation.unmatched.front())) << entry.name;
        ++refused;
      } else if (cycle) {
        ASSERT_FALSE(timeline) << entry.name;
        ASSERT_THAT(to_text(timeline.error()), StartsWith("deadlock: task ")) << entry.name;
        ASSERT_THAT(to_text(timeline.error()), HasSubstr("on device ")) << entry.name;
        ASSERT_EQ(to_text(timeline.error()), to_text(testing::run(pod, schedule, "des").error())) << entry.name;
        ++deadlocked;
      } else {
        ASSERT_TRUE(timeline) << entry.name << ": " << to_text(timeline.error());
        ASSERT_EQ(timeline->size(), unrolled.graph.activities.size());
        ++finished;
      }
    }
  }
  EXPECT_GT(finished, 100);
  EXPECT_GT(deadlocked, 20);
  EXPECT_GT(refused, 20);
  EXPECT_GT(raced, 50) << "a race is no obstacle to a timing engine";
}

/// Every wait of the graph and the core's program order, held against the times.
void expect_lawful(const Schedule& schedule, const CostedGraph& costs, const Timeline& timeline, Picoseconds tolerance) {
  const ActivityGraph& graph = costs.graph;
  for (std::size_t a = 0; a < graph.activities.size(); ++a) {
    const ActivityTimes times = timeline.at(a);
    for (const Gate gate : {Gate::start, Gate::receive})
      for (const Dependency& wait : graph.waits_for(a, gate))
        ASSERT_GE(times.start + tolerance, wait.received ? timeline.at(wait.activity).received : timeline.at(wait.activity).sent) << a;
    if (graph.activities[a].kind == Activity::Kind::work) {
      ASSERT_EQ(times.sent, times.received);
      ASSERT_LE((times.start + ceil_to_clock(costs.work_time[a])).count(), (times.sent + tolerance).count()) << a;
    } else {
      ASSERT_LE(times.sent, times.received);
      ASSERT_LE((times.start + ceil_to_clock(uncontended(costs, costs.transfers[a]))).count(), (times.received + Picoseconds{3} + tolerance).count())
          << a;
    }
  }
  for (int d = 0; d < schedule.mesh.devices(); ++d) {
    Picoseconds free;
    for (const std::uint32_t a : graph.program_order(DeviceId{d})) {
      if (!on_core(schedule, graph.activities[a])) continue;
      ASSERT_GE(timeline.at(a).start + tolerance, free) << "device " << d << " activity " << a;
      free = timeline.at(a).sent;
    }
  }
}

TEST(TimingEngines, KeepEveryWaitAndAnalyticIsNeverLater) {
  int compared = 0, shared = 0;
  for (std::uint64_t seed = 1000; seed < 1250; ++seed) {
    const Schedule schedule = random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    if (!validate(schedule).deadlocks.empty()) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    Rng rng{seed, stream_of("machine")};
    const testing::SmallSystem pod = pod_for(schedule, random_machine(rng));
    const auto costs = testing::cost(schedule, pod.machine, pod.grid, pod.placement);
    ASSERT_TRUE(costs) << to_text(costs.error());
    const auto analytic = testing::run(pod, schedule, "analytic");
    ASSERT_TRUE(analytic) << to_text(analytic.error());
    expect_lawful(schedule, *costs, *analytic, {});
    for (const EngineEntry& entry : all_timing_engines()) {
      const auto timeline = testing::run(pod, schedule, entry.name);
      ASSERT_TRUE(timeline) << entry.name << to_text(timeline.error());
      const Picoseconds tolerance =
          ceil_to_clock(1e-6 * to_seconds(timeline->makespan)) + Picoseconds{static_cast<std::int64_t>(4 * timeline->size())};
      expect_lawful(schedule, *costs, *timeline, tolerance);
      for (std::size_t a = 0; a < timeline->size(); ++a) {
        ASSERT_LE(analytic->at(a).start, timeline->at(a).start + tolerance) << entry.name << " " << a;
        ASSERT_LE(analytic->at(a).received, timeline->at(a).received + tolerance) << entry.name << " " << a;
      }
      shared += timeline->makespan > analytic->makespan + tolerance;
    }
    ++compared;
  }
  EXPECT_GT(compared, 150);
  EXPECT_GT(shared, 10) << "links are shared now and then, or the test compares little";
}

TEST(TimingEngines, GiveTheSameTimesAgain) {
  for (std::uint64_t seed = 2000; seed < 2020; ++seed) {
    const Schedule schedule = random_schedule(seed, {.exchanges = false, .careless = false});
    Rng rng{seed, stream_of("machine")};
    const testing::SmallSystem pod = pod_for(schedule, random_machine(rng));
    for (const EngineEntry& entry : all_timing_engines()) {
      const auto model = testing::model_of(pod, schedule);
      ASSERT_TRUE(model);
      const auto first = entry.run(*model, {}), second = entry.run(*model, {});
      ASSERT_TRUE(first && second);
      EXPECT_EQ(testing::times_of(*first), testing::times_of(*second)) << entry.name;
      EXPECT_EQ(first->makespan, second->makespan) << entry.name;
    }
  }
}

TEST(TimingEngines, AreFoundByName) {
  for (const EngineEntry& entry : all_timing_engines()) {
    const auto found = timing_engine(entry.name);
    ASSERT_TRUE(found);
    EXPECT_EQ((*found)->name, entry.name);
    EXPECT_FALSE(entry.summary.empty());
  }
  EXPECT_EQ(to_text(timing_engine("simgird").error()), "there is no engine \"simgird\", did you mean \"simgrid\"?");
  EXPECT_THAT(to_text(timing_engine("").error()), StartsWith("there is no engine \"\""));
}

TEST(Validate, SurvivesThousandsOfRandomSchedules) {
  std::array<int, 4> sorts{};
  for (std::uint64_t seed = 10'000; seed < 14'000; ++seed) {
    const Validation validation = validate(random_schedule(seed, {.edge_chance = static_cast<double>(seed % 10) / 9}));
    sorts[0] += validation.ok(), sorts[1] += !validation.unmatched.empty(), sorts[2] += !validation.races.empty(),
        sorts[3] += !validation.deadlocks.empty();
  }
  for (const int count : sorts) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace podsim
