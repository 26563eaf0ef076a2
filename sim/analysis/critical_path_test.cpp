#include "sim/analysis/critical_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/table/testing.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::after, testing::between, testing::copy, testing::ideal_machine, testing::part;
using testing::plain_machine, testing::shift, testing::small_system, testing::SmallSystem, testing::Writer;

constexpr Picoseconds ns(std::int64_t count) { return Picoseconds{1000 * count}; }

struct Explained {
  std::vector<PathStep> steps;
  Picoseconds makespan;
};
Explained explained(const SmallSystem& pod, const Schedule& schedule, bool folded = false) {
  const auto model = folded ? make_folded_model(schedule, pod.machine, pod.grid, pod.placement) : testing::model_of(pod, schedule);
  EXPECT_TRUE(model) << to_text(model.error());
  const auto timeline = (*timing_engine("des"))->run(*model, {});
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return {critical_path(*model, *timeline), timeline->makespan};
}

TimeParts sum(const std::vector<PathStep>& steps) {
  TimeParts parts;
  for (const PathStep& step : steps) parts = parts + step.parts;
  return parts;
}

TEST(CriticalPath, ATransferSplitsIntoItsCosts) {
  Machine machine = plain_machine();  // 4 bytes a nanosecond
  machine.link.fill({BytesPerSecond{4e9}, Seconds{20e-9}});
  machine.software.per_message = Seconds{30e-9};
  machine.software.launch[static_cast<std::size_t>(CostKind::permute)] = Seconds{40e-9};
  machine.chip.reduce_bandwidth = BytesPerSecond{8e9};
  const SmallSystem pod = small_system(machine, {4}, false);
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("two hops", shift(w.axis(0), 2, part(a, 0, 100), part(a, 100, 100), Combine::add), {}, between(w.axis(0), 0, 1));
  const auto [steps, makespan] = explained(pod, w.schedule);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].parts, (TimeParts{.launch = ns(40), .per_message = ns(30), .latency = ns(40), .bandwidth = ns(100), .reduction = ns(50)}));
  EXPECT_EQ(steps[0].device, DeviceId{0});
  EXPECT_EQ(steps[0].receiver, DeviceId{2});
  EXPECT_EQ(steps[0].axis, 0);
  EXPECT_EQ(makespan, ns(260));
}

TEST(CriticalPath, WhatOthersOnTheLinkCostIsSharing) {
  // Two flows over the link from 1 to 2: each takes twice as long.
  const SmallSystem pod = small_system(plain_machine(), {4}, false);
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("short", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)), {}, between(w.axis(0), 1, 2));
  w.add("long", shift(w.axis(0), 2, part(a, 0, 100), part(a, 300, 100)), {}, between(w.axis(0), 0, 1));
  EXPECT_EQ(sum(explained(pod, w.schedule).steps), (TimeParts{.bandwidth = ns(100), .sharing = ns(100)}));
}

TEST(CriticalPath, GoesThroughTheCoreTheReceiverAndTheSender) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  const AxisView x = w.axis(0);
  const TaskId slot = w.add("slot", copy(part(a, 0, 200), part(a, 200, 200)), {}, between(x, 1, 2));                 // device 1: 0..200
  const TaskId move = w.add("move", shift(x, 1, part(a, 0, 50), part(a, 50, 50)), {after(slot)}, between(x, 0, 1));  // the receiver is late
  w.add("first", copy(part(a, 0, 10), part(a, 10, 10)), {after(move)}, between(x, 1, 2));
  w.add("second", copy(part(a, 0, 20), part(a, 20, 20)), {}, between(x, 1, 2));  // waits for the core
  const auto [steps, makespan] = explained(pod, w.schedule);
  std::vector<std::pair<int, int>> found;
  for (const PathStep& step : steps) found.emplace_back(step.task.value, step.device.value);
  EXPECT_THAT(found, ::testing::ElementsAre(std::pair{0, 1}, std::pair{1, 0}, std::pair{2, 1}, std::pair{3, 1}));
  EXPECT_EQ(makespan, ns(280));
}

TEST(CriticalPath, ACoreShareIsNamed) {
  Machine machine = plain_machine();
  machine.software.core_share[static_cast<std::size_t>(CostKind::permute)] = 0.5;
  const SmallSystem pod = small_system(machine, {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("move", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)));
  w.add("work", copy(part(a, 200, 100), part(a, 300, 100)));
  EXPECT_EQ(sum(explained(pod, w.schedule).steps), (TimeParts{.compute = ns(100), .core_share = ns(50)}));
}

/// On random schedules and machines: no gap, no overlap, nothing unexplained; also where classes stand for devices.
TEST(CriticalPath, LeadsFromTheStartToTheEndWithoutAGap) {
  int transfers = 0, folded_ones = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    Rng rng{seed, stream_of("machine")};
    Machine machine = ideal_machine(rng.between(1, 20) * 1e8, rng.between(0, 3) * 1e-7);
    machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
    machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
    machine.software.per_message = Seconds{rng.between(0, 3) * 1e-7};
    machine.software.launch.fill(Seconds{rng.between(0, 3) * 1e-7});
    if (seed % 3 == 0) machine.software.core_share.fill(0.25);
    std::vector<int> extents;
    std::vector<std::pair<std::string, int>> sizes;
    for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
    const SmallSystem pod = small_system(machine, extents, true, sizes);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    for (const bool fold : {false, true}) {
      const auto model = fold ? make_folded_model(schedule, pod.machine, pod.grid, pod.placement) : testing::model_of(pod, schedule);
      if (!model) continue;
      const auto timeline = (*timing_engine("des"))->run(*model, {});
      if (!timeline) continue;  // deadlocks
      const std::vector<PathStep> steps = critical_path(*model, *timeline);
      folded_ones += fold && model->folded();
      if (steps.empty()) {
        EXPECT_EQ(timeline->makespan, Picoseconds{});
        continue;
      }
      EXPECT_EQ(steps.front().start, Picoseconds{});
      EXPECT_EQ(steps.back().end, timeline->makespan);
      EXPECT_EQ(total(sum(steps)), timeline->makespan);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].parts.waiting, Picoseconds{});
        EXPECT_EQ(total(steps[i].parts), steps[i].end - steps[i].start);
        if (i > 0) {
          EXPECT_EQ(steps[i].start, steps[i - 1].end);
        }
        transfers += steps[i].axis >= 0;
      }
    }
  }
  EXPECT_GT(transfers, 100);
  EXPECT_GT(folded_ones, 50);
}

}  // namespace
}  // namespace podsim
