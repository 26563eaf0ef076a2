// The split of a step: closed forms by hand, and what going through every stretch of random schedules gives. Played calls: play_calls_test.cpp.
#include "sim/analysis/step_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/peak_memory.hpp"
#include "sim/engine/table/test_line.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::after, testing::between, testing::copy, testing::Line, testing::part, testing::plain_machine, testing::shift, testing::small_system;
using testing::SmallSystem, testing::Writer;
using ::testing::ElementsAre;
using Axis = StepSplit::Axis;

constexpr Picoseconds of_ns(std::int64_t count) { return Picoseconds{1000 * count}; }

/// The split of a device, after a check that it agrees with its other figures.
StepSplit split_on(const SmallSystem& pod, const Schedule& schedule, int device) {
  const auto model = testing::model_of(pod, schedule);
  const auto timeline = testing::run(pod, schedule, "des");
  EXPECT_TRUE(model && timeline) << to_text(timeline.error());
  const StepSplit split = split_step(*model, *timeline, DeviceId{device});
  const TimeSplit whole = measure_devices(*model, *timeline)[static_cast<std::size_t>(device)].split;
  EXPECT_EQ(total(split), timeline->makespan);
  EXPECT_EQ(total(split.core), whole.compute);
  EXPECT_EQ(exposed_communication(split), whole.exposed_communication);
  EXPECT_EQ(split.bubble + split.waiting, whole.waiting);
  return split;
}

/// An addition of n elements takes 1.5 n ns on the plain machine, and so does a step of SGD.
Local add(BufferId a, std::int64_t n) { return {LocalKind::add, {part(a, 0, n), part(a, 0, n)}, {part(a, 0, n)}}; }
Local sgd(BufferId a, std::int64_t n) {
  Local step{LocalKind::sgd, {part(a, 0, n), part(a, 0, n)}, {part(a, 0, n)}};
  step.optimiser.learning_rate = 0.1;
  return step;
}

TEST(StepSplit, CoreTimeIsSplitByWhatItWorksOnAndLaunchesAreApart) {
  Machine machine = plain_machine();
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{10e-9};
  const SmallSystem pod = small_system(machine, {1});
  Line s{pod};
  s.work("copy", 100, 0);
  s.w.add("add", add(s.a, 100));
  s.w.task(s.w.add("add again", add(s.a, 200))).recompute = true;
  s.w.task(s.work("copy again", 50, 0)).recompute = true;
  s.w.add("update", sgd(s.a, 300));
  const StepSplit split = split_on(pod, s.w.schedule, 0);
  EXPECT_EQ(split, (StepSplit{{of_ns(150), of_ns(300), of_ns(450), of_ns(150), of_ns(50)}, {}, {}, {}}));
}

TEST(StepSplit, LaunchesOfSlowCoresAreSlow) {
  Machine machine = plain_machine();
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{10e-9};
  SmallSystem pod = small_system(machine, {1});
  pod.placement.speed = {0.5};
  Line s{pod};
  s.work("copy", 100, 0);
  EXPECT_EQ(split_on(pod, s.w.schedule, 0).core, (CoreParts{{}, {}, {}, of_ns(200), of_ns(20)}));
}

TEST(StepSplit, CoreSharesAreExposed) {
  Machine machine = plain_machine();
  machine.software.core_share[static_cast<std::size_t>(CostKind::permute)] = 0.25;
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.move("move", 200, 0);  // of the core 0..25 and 85..110
  s.w.add("add", add(s.a, 40), {}, between(s.x, 0, 1));
  const StepSplit split = split_on(pod, s.w.schedule, 0);
  EXPECT_EQ(split.core, (CoreParts{of_ns(60), {}, {}, {}, {}}));
  EXPECT_THAT(split.exposed, ElementsAre(Axis{0, of_ns(90 + 50)}));
}

/// A 2 x 2 mesh on which every device moves parts of one buffer.
struct Square {
  SmallSystem pod = small_system(plain_machine(), {2, 2}, true, {{"x", 2}, {"y", 2}});
  Writer w{pod.mesh};
  BufferId a = w.scratch("a", {1000});
  TaskId move(int axis, std::int64_t n, std::vector<Edge> edges = {}) {
    return w.add("move", shift(w.axis(axis), 1, part(a, 0, n), part(a, 0, n)), std::move(edges));
  }
  TaskId work(std::int64_t n, std::vector<Edge> edges = {}, Unit unit = Unit::core) {
    return w.add("work", copy(part(a, 0, n), part(a, 0, n), unit), std::move(edges));
  }
};

TEST(StepSplit, AMomentUnderTwoAxesCountsToTheTransferThatEndsLast) {
  Square s;
  const TaskId long_x = s.move(0, 300);                                  // 0..300
  const TaskId y = s.move(1, 200, {after(s.work(150, {}, Unit::dma))});  // 150..350
  s.work(20, {});                                                        // 0..20
  s.work(30, {after(long_x), after(y)});                                 // 350..380
  EXPECT_THAT(split_on(s.pod, s.w.schedule, 0).exposed, ElementsAre(Axis{0, of_ns(130)}, Axis{1, of_ns(200)}));
}

TEST(StepSplit, ATieCountsToTheFirstInProgramOrder) {
  for (const int first : {0, 1}) {
    Square s;
    s.move(first, 200);
    s.move(1 - first, 200);
    EXPECT_THAT(split_on(s.pod, s.w.schedule, 3).exposed,
                ElementsAre(Axis{0, first == 0 ? of_ns(200) : of_ns(0)}, Axis{1, first == 0 ? of_ns(0) : of_ns(200)}));
  }
}

TEST(StepSplit, OfACollectiveTheLastTransferCounts) {
  Square s;
  const TaskId one = s.move(0, 100);
  const TaskId two = s.move(0, 100, {after(one)});  // 100..200
  s.move(1, 150);                                   // ends behind the first step of the Collective, before all of it
  for (const TaskId step : {one, two}) s.w.task(step).origin = Origin{0, CollectiveKind::all_gather, s.w.axis(0), Bytes{400}};
  EXPECT_THAT(split_on(s.pod, s.w.schedule, 0).exposed, ElementsAre(Axis{0, of_ns(200)}, Axis{1, of_ns(0)}));
  for (const TaskId step : {one, two}) s.w.task(step).origin.reset();
  EXPECT_THAT(split_on(s.pod, s.w.schedule, 0).exposed, ElementsAre(Axis{0, of_ns(100)}, Axis{1, of_ns(100)}));
}

TEST(StepSplit, WhileACollectivePausesTheOtherTransferCounts) {
  Square s;
  const TaskId one = s.move(0, 100);
  const TaskId two = s.move(0, 100, {after(one), after(s.work(120, {}, Unit::dma))});  // 120..220
  s.move(1, 150);
  for (const TaskId step : {one, two}) s.w.task(step).origin = Origin{0, CollectiveKind::all_gather, s.w.axis(0), Bytes{400}};
  EXPECT_THAT(split_on(s.pod, s.w.schedule, 0).exposed, ElementsAre(Axis{0, of_ns(200)}, Axis{1, of_ns(20)}));
}

TEST(StepSplit, ALaunchOfACollectiveIsExposedOnItsAxis) {
  Machine machine = plain_machine();
  machine.software.launch[static_cast<std::size_t>(CostKind::all_gather)] = Seconds{70e-9};
  Square s;
  s.pod.machine = machine;
  s.w.task(s.w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma})).origin = Origin{0, CollectiveKind::all_gather, s.w.axis(1), Bytes{4}};
  const StepSplit split = split_on(s.pod, s.w.schedule, 0);
  EXPECT_THAT(split.exposed, ElementsAre(Axis{1, of_ns(70)}));
  EXPECT_EQ(split.core, CoreParts{});
}

/// Two ranks: 100 ns of work, 50 to the other rank, 200 there, 50 back, 30 more.
Schedule two_ranks(const SmallSystem& pod, bool offload) {
  Writer w{pod.mesh};
  const AxisView x = w.axis(0);
  BufferId a;
  const auto work = [&](std::int64_t n, std::vector<Edge> edges, Unit unit = Unit::core) {
    return w.add("work", copy(part(a, 0, n), part(a, 0, n), unit), std::move(edges));
  };
  w.program(0, 1);
  a = w.scratch("a", {1000});
  const TaskId first = work(100, {});
  if (offload) work(60, {after(w.add("send", Send{0, testing::neighbour(x, 1), part(a, 0, 50), {}}, {after(first)}))}, Unit::dma);
  if (!offload) w.add("send", Send{0, testing::neighbour(x, 1), part(a, 0, 50), {}}, {after(first)});
  work(30, {after(w.add("recv", Recv{1, testing::neighbour(x, 1), part(a, 0, 50), Combine::replace}))});
  w.program(1, 2);
  a = w.scratch("a", {1000});
  const TaskId second = work(200, {after(w.add("recv", Recv{0, testing::neighbour(x, -1), part(a, 0, 50), Combine::replace}))});
  w.add("send", Send{1, testing::neighbour(x, -1), part(a, 0, 50), {}}, {after(second)});
  return w.schedule;
}

TEST(StepSplit, TheBubbleIsIdleTimeWhileOtherProgramsOrLaterTasksAreToCome) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  const Schedule schedule = two_ranks(pod, false);
  const StepSplit first = split_on(pod, schedule, 0), second = split_on(pod, schedule, 1);
  EXPECT_EQ(first, (StepSplit{{{}, {}, {}, of_ns(130), {}}, {{0, of_ns(100)}}, of_ns(200), of_ns(0)}));
  EXPECT_EQ(second, (StepSplit{{{}, {}, {}, of_ns(200), {}}, {{0, of_ns(100)}}, of_ns(100 + 30), of_ns(0)}));
}

TEST(StepSplit, TimeOfTheDmaUnitIsNoBubble) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  const StepSplit split = split_on(pod, two_ranks(pod, true), 0);
  EXPECT_EQ(split.bubble, of_ns(140));
  EXPECT_EQ(split.waiting, of_ns(60));
}

TEST(StepSplit, BehindAllCoreWorkAndOtherProgramsTheRestIsWaiting) {
  const SmallSystem pod = small_system(plain_machine(), {3});
  Writer w{pod.mesh};
  const auto work = [&](BufferId a, std::int64_t n, Guard where = {}) { w.add("work", copy(part(a, 0, n), part(a, 0, n)), {}, std::move(where)); };
  w.program(0, 2);
  const BufferId a = w.scratch("a", {1000});
  work(a, 100, between(w.axis(0), 0, 1));
  work(a, 500, between(w.axis(0), 1, 2));
  w.program(2, 3);
  work(w.scratch("a", {1000}), 300);
  const StepSplit split = split_on(pod, w.schedule, 0);
  EXPECT_EQ(split.bubble, of_ns(200)) << "until the other program has ended";
  EXPECT_EQ(split.waiting, of_ns(200)) << "for another device of the same program";
}

TEST(StepSplit, OneProgramHasNoBubble) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  s.work("work", 100, 0);
  s.work("work", 40, 1);
  const StepSplit split = split_on(pod, s.w.schedule, 1);
  EXPECT_EQ(split.bubble, of_ns(0));
  EXPECT_EQ(split.waiting, of_ns(60));
}

TEST(StepSplit, ASendAcrossTwoAxesHasAnEntryOfItsOwn) {
  Square s;
  const AxisView x = s.w.axis(0), y = s.w.axis(1);
  s.w.program(0, 1);
  s.w.add("far", Send{0, {own(x, 1), own(y, 1)}, part(s.a, 0, 100), {}});
  s.w.add("near", Send{1, {own(x), own(y, 1)}, part(s.a, 0, 30), {}}, {after(TaskId{0})});
  s.w.program(3, 4);
  s.w.add("far", Recv{0, {own(x, 1), own(y, 1)}, part(s.w.scratch("a", {1000}), 0, 100), Combine::replace});
  s.w.program(1, 2);
  s.w.add("near", Recv{1, {own(x), own(y, 1)}, part(s.w.scratch("a", {1000}), 0, 30), Combine::replace});
  EXPECT_THAT(split_on(s.pod, s.w.schedule, 0).exposed, ElementsAre(Axis{1, of_ns(30)}, Axis{-1, of_ns(100)}));
}

TEST(StepSplit, WhatACollectiveSendsCountsToItsAxis) {
  Square s;  // a permute over both axes, as it is lowered
  const AxisView x = s.w.axis(0), y = s.w.axis(1);
  const Peer across{own(x, 1), own(y, 1)};
  const Guard first = between(x, 0, 1), second = between(x, 1, 2);
  s.w.add("send", Send{0, across, part(s.a, 0, 100), {}}, {}, first);
  s.w.add("recv", Recv{0, across, part(s.a, 100, 100), Combine::replace}, {}, second);
  for (const int t : {0, 1}) s.w.task(TaskId{t}).origin = Origin{0, CollectiveKind::permute, x, Bytes{400}};
  const auto model = testing::model_of(s.pod, s.w.schedule);
  const auto timeline = testing::run(s.pod, s.w.schedule, "des");
  ASSERT_TRUE(model && timeline) << to_text(timeline.error());
  EXPECT_THAT(split_on(s.pod, s.w.schedule, 0).exposed, ElementsAre(Axis{0, timeline->makespan}));
  const Metrics metrics = measure(*model, *timeline);
  ASSERT_EQ(metrics.axes.size(), 1U);
  EXPECT_EQ(metrics.axes.front().axis, 0);
  EXPECT_EQ(metrics.axes.front().exposed, timeline->makespan);
}

/// The exposed time of a device by axis from its spans, one stretch between two changes after the other.
std::map<int, Picoseconds> plain_exposed(const Schedule& schedule, const CostedGraph& costs, const Timeline& timeline, DeviceId device) {
  struct Stretch {
    Picoseconds begin, end, last;
    std::size_t task = 0;
    int axis = -1;
    bool core = false;
  };
  std::vector<Stretch> stretches;
  std::set<Picoseconds> changes{Picoseconds{}, timeline.makespan};
  std::map<std::size_t, Picoseconds> last;
  std::map<int, Picoseconds> exposed;
  for (const Span& span : spans_of(costs.graph, timeline)) {
    if (span.device != device || span.start == span.end) continue;
    const Op& op = schedule.programs[*program_of(schedule, device)].tasks[span.task.index()].op;
    const auto* local = std::get_if<Local>(&op);
    const bool work = span.part == Span::Part::work;
    if (work && local != nullptr && local->unit == Unit::dma) continue;
    Stretch stretch{span.start, span.end, {}, span.task.index(), -1, work};
    if (!work) {
      const Coordinates here = schedule.mesh.coordinates(device), there = schedule.mesh.coordinates(span.peer);
      int differ = 0;
      for (std::size_t a = 0; a < here.size(); ++a)
        if (here[a] != there[a]) stretch.axis = static_cast<int>(a), ++differ;
      if (differ != 1) stretch.axis = -1;
      last[stretch.task] = std::max(last[stretch.task], span.end);
      exposed[stretch.axis];
    }
    stretches.push_back(stretch);
    changes.insert({span.start, span.end});
  }
  for (auto begin = changes.begin(), end = std::next(begin); end != changes.end(); ++begin, ++end) {
    const Stretch* chosen = nullptr;
    bool core = false;
    for (const Stretch& stretch : stretches) {
      if (stretch.begin > *begin || *end > stretch.end) continue;
      core = core || stretch.core;
      if (stretch.core) continue;
      const bool later_end = chosen == nullptr || last[stretch.task] > last[chosen->task];
      if (later_end || (last[stretch.task] == last[chosen->task] && stretch.task < chosen->task)) chosen = &stretch;
    }
    if (!core && chosen != nullptr) exposed[chosen->axis] += *end - *begin;
  }
  return exposed;
}

TEST(StepSplit, OfRandomSchedulesIsWhatGoingThroughEveryStretchGives) {
  int several = 0, exchanged = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.careless = false, .most_tasks = 14, .far = seed % 2 == 0});
    if (!topological_order(unroll(schedule).graph, schedule, true).cycle.empty()) continue;
    Rng rng{seed};
    Machine machine = testing::ideal_machine(rng.between(1, 9) * 1e8, rng.between(0, 3) * 1e-8);
    machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
    machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
    machine.software.launch.fill(Seconds{rng.between(0, 3) * 1e-8});
    std::vector<int> extents;
    std::vector<std::pair<std::string, int>> sizes;
    for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    const SmallSystem pod = small_system(machine, extents, true, sizes);
    const auto costs = testing::cost(schedule, pod.machine, pod.grid, pod.placement);
    const auto model = testing::model_of(pod, schedule);
    const auto timeline = testing::run(pod, schedule, "des");
    ASSERT_TRUE(costs && model && timeline);
    const std::vector<Bytes> peaks = peak_memory(*model, *timeline);
    for (int d = 0; d < schedule.mesh.devices(); ++d) {
      const StepSplit split = split_on(pod, schedule, d);
      std::map<int, Picoseconds> exposed;
      for (const Axis& axis : split.exposed) exposed[axis.axis] = axis.exposed;
      ASSERT_EQ(exposed, plain_exposed(schedule, *costs, *timeline, DeviceId{d}));
      several += exposed.size() > 1 ? 1 : 0;
      exchanged += exposed.contains(-1) ? 1 : 0;
      Bytes live;
      for (const LiveBuffer& buffer : live_at_peak(*model, *timeline, DeviceId{d})) live += buffer.size;
      ASSERT_EQ(live, peaks[static_cast<std::size_t>(d)]);
    }
    machine.software.core_share.fill(rng.uniform());
    split_on(small_system(machine, extents, true, sizes), schedule, 0);
  }
  EXPECT_GT(several, 50);
  EXPECT_GT(exchanged, 20);
}

TEST(LiveAtPeak, NamesInputsAndTheBuffersOfThatMoment) {
  const SmallSystem pod = small_system(plain_machine(), {1});
  Writer w{pod.mesh};
  const BufferId kept = w.replicated("weights", Role::input, {100}), early = w.scratch("early", {50}), late = w.scratch("late", {60}),
                 end = w.scratch("end", {50});
  const TaskId first = w.add("first", copy(part(kept, 0, 50), part(early, 0, 50)));
  const TaskId second = w.add("second", copy(part(early, 0, 50), part(late, 0, 50)), {after(first)});
  w.add("third", copy(part(late, 0, 40), part(end, 0, 40)), {after(second)});
  const auto model = testing::model_of(pod, w.schedule);
  const auto timeline = testing::run(pod, w.schedule, "des");
  ASSERT_TRUE(model && timeline);
  std::vector<std::string> live;
  for (const LiveBuffer& buffer : live_at_peak(*model, *timeline, DeviceId{0}))
    live.push_back(buffer.name + " " + std::to_string(buffer.size.count()));
  EXPECT_THAT(live, ElementsAre("weights 400", "early 200", "late 240")) << "late and end are as large, later";
}

}  // namespace
}  // namespace podsim
