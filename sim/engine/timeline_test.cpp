#include "sim/engine/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/deadlock.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after, testing::between, testing::copy, testing::ideal_machine;
using testing::part, testing::shift, testing::small_system, testing::SmallSystem, testing::Writer;

ActivityTimes at(std::int64_t start, std::int64_t sent, std::int64_t received) {
  return {Picoseconds{start}, Picoseconds{sent}, Picoseconds{received}};
}

/// Two devices: each works, then sends to the other.
Schedule work_and_swap() {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  const BufferId a = w.scratch("a", {4});
  const TaskId work = w.add("work", copy(part(a, 0, 1), part(a, 1, 1)));
  w.add("swap", shift(w.axis(0), 1, part(a, 1, 1), part(a, 2, 1)), {after(work)});
  return w.schedule;
}

TEST(Timeline, EndsWithTheLastHalf) {
  const ActivityGraph graph = unroll(work_and_swap()).graph;
  const Timeline timeline = *make_timeline({at(0, 5, 5), at(0, 7, 7), at(7, 10, 30), at(7, 12, 20)}, {}, 9);
  EXPECT_EQ(timeline.makespan, Picoseconds{30});
  EXPECT_EQ(timeline.events, 9);
  EXPECT_EQ(make_timeline({}, {}, 0)->makespan, Picoseconds{0});
}

TEST(Timeline, ARunBeyondTheClockIsAnErrorNotANumber) {
  // 15 steps one after the other: of 4.6 days, of 11.6 and of 46 days.
  for (const auto& [bandwidth, error] : std::vector<std::pair<double, std::string>>{
           {1e6, ""},
           {4e5, "the run takes more than 106 days, which is as far as the clock goes"},
           {1e5, "task 0 \"step 0\" on device 0 (row=0) takes 4000000 s; expected less than 2000000 s, as the clock goes to 106 days"}}) {
    const SmallSystem pod = small_system(ideal_machine(bandwidth), {16});
    Writer w{pod.mesh};
    const std::int64_t elements = 100'000'000'000;
    const BufferId a = w.scratch("a", {2 * elements});
    for (int i = 0; i < 15; ++i)
      w.add("step " + std::to_string(i), shift(w.axis(0), 1, part(a, 0, elements), part(a, elements, elements)),
            i == 0 ? std::vector<Edge>{} : std::vector<Edge>{after(TaskId{i - 1})});
    for (const EngineEntry& entry : all_timing_engines()) {
      const auto timeline = testing::run(pod, w.schedule, entry.name);
      ASSERT_EQ(timeline.has_value(), error.empty()) << entry.name << " " << bandwidth;
      if (timeline)
        EXPECT_NEAR(to_seconds(timeline->makespan).count(), 15 * 4e11 / bandwidth, 1) << entry.name;
      else
        EXPECT_EQ(to_text(timeline.error()), error) << entry.name;
    }
  }
}

TEST(Timeline, SpansAreOrderedByStartDeviceTaskAndPart) {
  const ActivityGraph graph = unroll(work_and_swap()).graph;
  const Timeline timeline = *make_timeline({at(0, 5, 5), at(0, 7, 7), at(7, 10, 30), at(7, 12, 20)}, {}, 0);
  const auto span = [](std::int64_t start, std::int64_t end, int device, int task, int peer, Span::Part part) {
    return Span{Picoseconds{start}, Picoseconds{end}, DeviceId{device}, TaskId{task}, DeviceId{peer}, part};
  };
  EXPECT_THAT(spans_of(graph, timeline), ::testing::ElementsAre(span(0, 5, 0, 0, 0, Span::Part::work), span(0, 7, 1, 0, 1, Span::Part::work),
                                                                span(7, 10, 0, 1, 1, Span::Part::send), span(7, 20, 0, 1, 1, Span::Part::receive),
                                                                span(7, 12, 1, 1, 0, Span::Part::send), span(7, 30, 1, 1, 0, Span::Part::receive)));
}

TEST(Timeline, AtOneTimeDevicesComeBeforeTasks) {
  const ActivityGraph graph = unroll(work_and_swap()).graph;
  std::vector<std::pair<int, int>> places;
  for (const Span& span : spans_of(graph, *make_timeline({at(3, 5, 5), at(3, 5, 5), at(3, 5, 5), at(3, 5, 5)}, {}, 0)))
    places.emplace_back(span.device.value, span.task.value);
  EXPECT_THAT(places, ::testing::ElementsAre(std::pair{0, 0}, std::pair{0, 1}, std::pair{0, 1}, std::pair{1, 0}, std::pair{1, 1}, std::pair{1, 1}));
}

TEST(Timeline, AReceivedHalfIsItsOwnTask) {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  const BufferId a = w.scratch("a", {4});
  w.add("in", Recv{0, {Affine{0}}, part(a, 0, 1), Combine::replace}, {}, between(w.axis(0), 1, 2));
  w.add("out", Send{0, {Affine{1}}, part(a, 0, 1), {}}, {}, between(w.axis(0), 0, 1));
  const ActivityGraph graph = unroll(w.schedule).graph;
  const auto spans = spans_of(graph, *make_timeline({at(0, 5, 6)}, {}, 0));
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0], (Span{Picoseconds{0}, Picoseconds{5}, DeviceId{0}, TaskId{1}, DeviceId{1}, Span::Part::send}));
  EXPECT_EQ(spans[1], (Span{Picoseconds{0}, Picoseconds{6}, DeviceId{1}, TaskId{0}, DeviceId{0}, Span::Part::receive}));
}

TEST(Timeline, GoldenText) {
  // 4 bytes at 1 GB/s; copies of 8 bytes in memory at 2 GB/s; a microsecond per hop; sums at 1 GB/s.
  Machine machine = ideal_machine(1e9, 1e-6);
  machine.chip.hbm_bandwidth = BytesPerSecond{2e9};
  machine.chip.reduce_bandwidth = BytesPerSecond{1e9};
  const SmallSystem pod = small_system(machine, {3}, false);
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4});
  const TaskId work = w.add("work", copy(part(a, 0, 1), part(a, 1, 1)));
  const TaskId pass = w.add("pass on", shift(w.axis(0), 1, part(a, 1, 1), part(a, 2, 1), Combine::add), {after(work)}, between(w.axis(0), 0, 2));
  w.add("use", copy(part(a, 2, 1), part(a, 3, 1)), {after(pass, Half::receive)}, between(w.axis(0), 1, 2));
  const auto timeline = testing::run(pod, w.schedule, "analytic");
  ASSERT_TRUE(timeline) << to_text(timeline.error());
  EXPECT_EQ(to_text(*timeline, w.schedule), R"(makespan 1016000 ps
           0         4000 device 0 task 0 "work"
           0         4000 device 1 task 0 "work"
           0         4000 device 2 task 0 "work"
        4000      1008000 device 0 task 1 "pass on" send to 1
        4000      1008000 device 1 task 1 "pass on" send to 2
        4000      1012000 device 1 task 1 "pass on" receive from 0
        4000      1012000 device 2 task 1 "pass on" receive from 1
     1012000      1016000 device 1 task 2 "use"
)");
}

// ---- What is said of a run that cannot go on ------------------------------------------------------------------------------------------

std::string said_of(const SmallSystem& pod, const Schedule& schedule, const std::vector<bool>& finished) {
  const auto model = testing::model_of(pod, schedule);
  EXPECT_TRUE(model) << to_text(model.error());
  return to_text(deadlock(*model, finished));
}

/// Everybody receives before sending on: a cycle of edges.
Schedule receive_first(const SmallSystem& pod) {
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4});
  const TaskId in = w.add("in", Recv{0, testing::neighbour(w.axis(0), -1), part(a, 0, 1), Combine::replace});
  w.add("out", Send{0, testing::neighbour(w.axis(0), 1), part(a, 1, 1), {}}, {after(in)});
  w.add("free", copy(part(a, 2, 1), part(a, 3, 1)));
  return w.schedule;
}

TEST(Stuck, NamesTheCycleAndCountsWhatNeverRan) {
  const SmallSystem pod = small_system(ideal_machine(), {2});
  EXPECT_EQ(said_of(pod, receive_first(pod), {false, false, true, true}),
            "deadlock: task 1 \"out\" on device 0 (row=0) waits for task 1 \"out\" on device 1 (row=1), which waits for task 1 \"out\" on device 0 "
            "(row=0); 2 of 4 task instances never ran");
}

TEST(Stuck, WhatMerelyWaitsForTheCycleIsNotInIt) {
  // Device 0's first task waits for the ring of the others.
  const SmallSystem pod = small_system(ideal_machine(), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {8});
  const AxisView x = w.axis(0);
  w.add("last", Recv{5, testing::neighbour(x, 1), part(a, 4, 1), Combine::replace});
  const TaskId in = w.add("in", Recv{0, testing::neighbour(x, 1), part(a, 0, 1), Combine::replace});
  const TaskId out = w.add("out", Send{0, testing::neighbour(x, 1), part(a, 1, 1), {}}, {after(in)});
  w.add("after", Send{5, testing::neighbour(x, 1), part(a, 1, 1), {}}, {after(out)});
  EXPECT_EQ(said_of(pod, w.schedule, {false, false, false, false}),
            "deadlock: task 2 \"out\" on device 0 (row=0) waits for task 2 \"out\" on device 1 (row=1), which waits for task 2 \"out\" on device 0 "
            "(row=0); 4 of 4 task instances never ran");
}

TEST(Stuck, ALongCycleNamesItsBeginning) {
  const SmallSystem pod = small_system(ideal_machine(), {9});
  const std::string text = said_of(pod, receive_first(pod), std::vector<bool>(18, false));
  EXPECT_THAT(text, ::testing::StartsWith("deadlock: task 1 \"out\" on device 0 (row=0) waits for task 1 \"out\" on device 8 (row=8), which waits for "));
  EXPECT_THAT(text, ::testing::EndsWith("; and so on through 3 more, back to the first; 18 of 18 task instances never ran"));
}

TEST(Stuck, EveryTimingEngineSaysWhoKeepsTheCore) {
  const SmallSystem pod = small_system(ideal_machine(), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {8});
  const AxisView x = w.axis(0);
  const TaskId in = w.add("in", Recv{0, testing::neighbour(x, 1), part(a, 0, 1), Combine::replace});
  w.add("use", copy(part(a, 0, 1), part(a, 1, 1)), {after(in)});
  const TaskId make = w.add("make", copy(part(a, 2, 1), part(a, 3, 1)));
  w.add("out", Send{0, testing::neighbour(x, 1), part(a, 3, 1), {}}, {after(make)});
  for (const EngineEntry& entry : all_timing_engines()) {
    const auto timeline = testing::run(pod, w.schedule, entry.name);
    ASSERT_FALSE(timeline) << entry.name;
    EXPECT_EQ(to_text(timeline.error()),
              "deadlock: task 1 \"use\" on device 0 (row=0) waits for task 3 \"out\" on device 1 (row=1), which waits for task 2 \"make\" on device 1 "
              "(row=1), which waits for the core, which is kept by task 1 \"use\" on device 1 (row=1), which waits for task 3 \"out\" on device 0 "
              "(row=0), which waits for task 2 \"make\" on device 0 (row=0), which waits for the core, which is kept by task 1 \"use\" on device 0 "
              "(row=0); 6 of 6 task instances never ran")
        << entry.name;
  }
}

TEST(Stuck, ACoreShareDeadlocksNothing) {
  // On device 0 the first send waits for device 1, which waits for the second send. The core waits for neither.
  Machine machine = ideal_machine();
  machine.software.core_share[static_cast<std::size_t>(CostKind::permute)] = 0.1;
  const SmallSystem shared = small_system(machine, {2});
  const auto make = [&](const SmallSystem& pod) {
    Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {8});
    const AxisView x = w.axis(0);
    const TaskId in = w.add("in", Recv{0, {Affine{1}}, part(a, 0, 1), Combine::replace}, {}, between(x, 0, 1));
    w.add("forward", Send{1, {Affine{1}}, part(a, 0, 1), {}}, {after(in)}, between(x, 0, 1));
    w.add("request", Send{2, {Affine{1}}, part(a, 1, 1), {}}, {}, between(x, 0, 1));
    const TaskId asked = w.add("asked", Recv{2, {Affine{0}}, part(a, 2, 1), Combine::replace}, {}, between(x, 1, 2));
    w.add("answer", Send{0, {Affine{0}}, part(a, 2, 1), {}}, {after(asked)}, between(x, 1, 2));
    w.add("end", Recv{1, {Affine{0}}, part(a, 3, 1), Combine::replace}, {}, between(x, 1, 2));
    return w.schedule;
  };
  for (const EngineEntry& entry : all_timing_engines()) EXPECT_TRUE(testing::run(shared, make(shared), entry.name)) << entry.name;
}

}  // namespace
}  // namespace podsim
