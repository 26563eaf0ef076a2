// What des does beside giving the right times (agreement_test.cpp): the same again, ends early when told to, names what is stuck.
#include "sim/engine/busiest_link.hpp"
#include "sim/engine/des/des_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::neighbour;
using testing::part;
using testing::plain_machine;
using testing::shift;
using testing::small_system;
using testing::SmallSystem;
using ::testing::StartsWith;
using testing::Writer;

// ---- The same again -------------------------------------------------------------------------------------------------------------------

void expect_same(const Timeline& one, const Timeline& other) {
  EXPECT_EQ(testing::times_of(one), testing::times_of(other));
  EXPECT_EQ(one.makespan, other.makespan);
  EXPECT_EQ(one.events, other.events);
  EXPECT_EQ(one.finished, other.finished);
}

TEST(Des, GivesTheSameTimelineAgainFoldedAndUnfolded) {
  int compared = 0;
  for (std::uint64_t seed = 0; compared < 64; ++seed) {
    ASSERT_LT(seed, 400U);
    Rng rng{seed, stream_of("again")};
    testing::RandomScheduleOptions options;
    options.careless = false;
    options.edge_chance = 0.2;
    options.axes = testing::random_axes(rng);
    options.far = true;
    const Schedule schedule = testing::random_schedule(seed, options);
    const testing::World world = testing::random_world(schedule.mesh, testing::costly_machine(rng), rng, {.symmetric = seed % 2 == 0});
    bool ran = false;
    for (const bool fold : {false, true}) {
      std::vector<Timeline> timelines;
      for (int again = 0; again < 2; ++again) {  // the model too
        const auto model = (fold ? make_folded_model : make_model)(schedule, world.machine, *world.topology, world.placement, {}, {});
        if (!model) break;
        if (auto timeline = run_des(*model, {})) timelines.push_back(*std::move(timeline));
      }
      ran = timelines.size() == 2;
      if (!ran) break;
      expect_same(timelines[0], timelines[1]);
    }
    compared += ran ? 1 : 0;
  }
}

TEST(Des, RecordsOrNotWithTheSameCounts) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng{seed, 3};
    const Schedule schedule = testing::random_schedule(seed, {.careless = false, .axes = testing::random_axes(rng), .far = true});
    const testing::World world = testing::random_world(schedule.mesh, testing::costly_machine(rng), rng);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (!model) continue;
    RunControl control;
    control.record = false;
    const auto recorded = run_des(*model, {}), counted = run_des(*model, control);
    ASSERT_EQ(recorded.has_value(), counted.has_value());
    if (!recorded) {
      EXPECT_EQ(to_text(recorded.error()), to_text(counted.error())) << "what is stuck is named all the same";
      continue;
    }
    EXPECT_EQ(counted->size(), 0U);
    EXPECT_EQ(recorded->makespan, counted->makespan);
    EXPECT_EQ(recorded->events, counted->events);
    EXPECT_EQ(recorded->finished, counted->finished);
    EXPECT_EQ(recorded->finished, static_cast<std::int64_t>(recorded->size()));
  }
}

// ---- Interrupts -----------------------------------------------------------------------------------------------------------------------

/// `steps` shifts, one after the other, on a ring: a run of many events, folded or not.
Schedule long_ring(const SmallSystem& pod, int steps) {
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  for (int s = 0; s < steps; ++s)
    w.add("step", shift(w.axis(0), 1, part(a, 0, 10), part(a, 10, 10)), s == 0 ? std::vector<Edge>{} : std::vector<Edge>{after(TaskId{s - 1})});
  return std::move(w.schedule);
}

TEST(Des, StopsAtOnceWhenTold) {
  const SmallSystem pod = small_system(plain_machine(), {64});
  const Schedule schedule = long_ring(pod, 100);
  const auto model = testing::model_of(pod, schedule);
  const std::atomic<bool> stop{true};
  for (const bool record : {true, false}) {
    RunControl control;
    control.stop = &stop;
    control.record = record;
    const auto timeline = run_des(*model, control);
    ASSERT_TRUE(timeline) << to_text(timeline.error());
    EXPECT_TRUE(timeline->interrupted);
    EXPECT_EQ(timeline->finished, 0);
    EXPECT_EQ(timeline->makespan, Picoseconds{0});
    EXPECT_EQ(timeline->size(), record ? 6400U : 0U);
  }
}

TEST(Des, StopsInTheMiddleWhenTold) {
  const SmallSystem pod = small_system(plain_machine(), {64});
  const Schedule schedule = long_ring(pod, 10000);
  const auto model = testing::model_of(pod, schedule);
  std::atomic<bool> stop{false};
  std::vector<RunProgress> reports;
  RunControl control;
  control.stop = &stop;
  control.progress = [&](const RunProgress& progress) {
    reports.push_back(progress);
    if (progress.finished > progress.activities / 3) stop = true;
  };
  const auto timeline = run_des(*model, control);
  ASSERT_TRUE(timeline) << to_text(timeline.error());
  EXPECT_TRUE(timeline->interrupted);
  EXPECT_GT(timeline->finished, 640000 / 3);
  EXPECT_LT(timeline->finished, 640000);
  EXPECT_EQ(timeline->makespan, reports.back().now) << "how far it came";
  ASSERT_GE(reports.size(), 2U);
  for (std::size_t i = 1; i < reports.size(); ++i) {
    EXPECT_GT(reports[i].now, reports[i - 1].now);
    EXPECT_GT(reports[i].finished, reports[i - 1].finished);
    EXPECT_EQ(reports[i].activities, 640000);
  }
  // What has ended until then has its times.
  std::int64_t ended = 0;
  for (std::size_t a = 0; a < timeline->size(); ++a) ended += timeline->sent(a) >= Picoseconds{} && timeline->sent(a) <= timeline->makespan;
  EXPECT_EQ(ended, timeline->finished);
}

TEST(Des, AFoldedRunStopsToo) {
  const SmallSystem pod = small_system(plain_machine(), {64});
  const Schedule schedule = long_ring(pod, 100);
  const auto model = make_folded_model(schedule, pod.machine, pod.grid, pod.placement);
  ASSERT_EQ(model->nodes(), 1U);
  std::atomic<bool> stop{false};
  RunControl control;
  control.stop = &stop;
  control.progress = [&](const RunProgress&) { stop = true; };
  const auto timeline = run_des(*model, control);
  EXPECT_TRUE(timeline->interrupted);
  EXPECT_LT(timeline->finished, 100);
}

TEST(Des, ReportsProgressAndIsNotInterruptedWithoutNeed) {
  const SmallSystem pod = small_system(plain_machine(), {4});
  const std::atomic<bool> stop{false};
  int reports = 0;
  RunControl control;
  control.stop = &stop;
  control.progress = [&](const RunProgress& progress) {
    ++reports;
    EXPECT_EQ(progress.activities, 40);
  };
  const Schedule schedule = long_ring(pod, 10);
  const auto timeline = run_des(*testing::model_of(pod, schedule), control);
  EXPECT_FALSE(timeline->interrupted);
  EXPECT_EQ(timeline->finished, 40);
  EXPECT_GE(reports, 1);
}

TEST(Des, NothingToDoIsNotInterrupted) {
  const SmallSystem pod = small_system(plain_machine(), {4});
  const std::atomic<bool> stop{true};
  RunControl control;
  control.stop = &stop;
  const Writer w{pod.mesh};
  const auto timeline = run_des(*testing::model_of(pod, w.schedule), control);
  EXPECT_FALSE(timeline->interrupted);
  EXPECT_EQ(timeline->makespan, Picoseconds{});
}

// ---- Time limits ----------------------------------------------------------------------------------------------------------------------

TEST(Des, ARunThatEndsByItsLimitIsNotTouched) {
  const SmallSystem pod = small_system(plain_machine(), {64});
  const Schedule schedule = long_ring(pod, 100);
  const auto model = testing::model_of(pod, schedule);
  const auto free = run_des(*model, {});
  ASSERT_TRUE(free);
  RunControl control;
  control.limit = free->makespan;
  const auto limited = run_des(*model, control);
  EXPECT_FALSE(limited->interrupted);
  EXPECT_EQ(limited->makespan, free->makespan);
  EXPECT_EQ(limited->events, free->events);

  control.limit = Picoseconds{free->makespan.count() / 4};
  const auto late = run_des(*model, control);
  EXPECT_TRUE(late->interrupted);
  EXPECT_LE(late->finished, free->finished / 4 + 64) << "a task is played on all devices";
  EXPECT_LE(late->events, free->events / 3);
  control.limit = Picoseconds{free->makespan.count() - 1};
  EXPECT_TRUE(run_des(*model, control)->interrupted);
}

TEST(Des, ARunEndsWhenACoreHasMoreToDoThanTimeIsLeft) {
  // A transfer, then four copies in a row; the third is present on half of the devices and does not count.
  const SmallSystem pod = small_system(plain_machine(), {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4000});
  std::vector<Edge> edges{after(w.add("move", shift(w.axis(0), 1, part(a, 0, 1000), part(a, 1000, 1000))))};
  for (int i = 0; i < 4; ++i) {
    w.add("copy", copy(part(a, 2000, 1000), part(a, 3000, 1000)), edges, i == 2 ? between(w.axis(0), 0, 2) : Guard{});
    edges.clear();
  }
  const auto model = testing::model_of(pod, w.schedule);
  const auto free = run_events(*model, {});
  ASSERT_EQ(free->makespan, Picoseconds{5'000'000});
  const auto events_within = [&](std::int64_t limit) {
    RunControl control;
    control.limit = Picoseconds{limit};
    const auto timeline = run_events(*model, control);
    EXPECT_EQ(timeline->interrupted, limit < 5'000'000) << limit;
    return timeline->events;
  };
  EXPECT_EQ(events_within(5'000'000), free->events);
  EXPECT_LE(events_within(3'999'999), 8) << "when the transfer has ended, three copies are left, and less time than they take";
  EXPECT_LT(events_within(4'999'999), free->events);
}

TEST(Des, ARunWhoseBusiestLinkNeedsMoreThanItsLimitIsNotPlayed) {
  // Everybody sends to the next and to the one after it: two flows on each link, 1000 bytes each.
  const SmallSystem pod = small_system(plain_machine(), {8});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4000});
  w.add("next", shift(w.axis(0), 1, part(a, 0, 1000), part(a, 1000, 1000)));
  w.add("second", shift(w.axis(0), 2, part(a, 0, 1000), part(a, 2000, 1000)));
  const Model unfolded = *testing::model_of(pod, w.schedule);
  for (const Model& model : {unfolded, fold(unfolded)}) {
    SCOPED_TRACE(model.nodes());
    const auto free = run_des(model, {});
    RunControl control;
    control.limit = free->makespan;
    EXPECT_FALSE(run_des(model, control)->interrupted);
    control.limit = Picoseconds{free->makespan.count() / 2};
    const auto late = run_des(model, control);
    EXPECT_TRUE(late->interrupted);
    EXPECT_EQ(late->events, 0);
  }
}

TEST(Des, ARunIsInterruptedWhenItsEventsAreMoreThanWantedAndSaysWhatItTakesAtLeast) {
  int interrupted = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, 8};
    const Schedule schedule = testing::random_schedule(seed, {.careless = false, .axes = testing::random_axes(rng), .far = true});
    const testing::World world = testing::random_world(schedule.mesh, testing::costly_machine(rng), rng);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    const auto free = model ? run_des(*model, {}) : Expected<Timeline>{Diagnostic{}};
    if (!free) continue;
    RunControl control;
    for (const std::int64_t most : {std::int64_t{2}, free->events / 2, 100 * free->events + 1000}) {
      control.most_work = most;
      const auto some = run_des(*model, control);
      ASSERT_TRUE(some);
      EXPECT_EQ(some->interrupted, some->is_long);
      if (!some->is_long) {
        expect_same(*free, *some);
        continue;
      }
      EXPECT_EQ(free->pass, "events");
      EXPECT_LE(some->makespan, free->makespan);
      EXPECT_GE(some->makespan, time_of_busiest_link(*model));
      EXPECT_LT(some->events, free->events);
      ++interrupted;
    }
  }
  EXPECT_GE(interrupted, 20);
}

TEST(Des, LimitsChangeNoRunThatKeepsThem) {
  int stopped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, 7};
    const Schedule schedule = testing::random_schedule(seed, {.careless = false, .axes = testing::random_axes(rng), .far = true});
    const testing::World world = testing::random_world(schedule.mesh, testing::costly_machine(rng), rng);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    const auto free = model ? run_des(*model, {}) : Expected<Timeline>{Diagnostic{}};
    if (!free || free->makespan == Picoseconds{}) continue;
    RunControl control;
    control.limit = free->makespan;
    const auto within = run_des(*model, control);
    ASSERT_TRUE(within && !within->interrupted);
    expect_same(*free, *within);
    control.limit = Picoseconds{free->makespan.count() - 1};
    const auto beyond = run_des(*model, control);
    ASSERT_TRUE(beyond && beyond->interrupted);
    ++stopped;
  }
  EXPECT_GE(stopped, 10);
}

// ---- Deadlocks ------------------------------------------------------------------------------------------------------------------------

/// Everybody waits for what arrives before it sends on: on a ring nobody begins.
Schedule ring_deadlock(const SmallSystem& pod) {
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  const TaskId receive = w.add("take", Recv{0, neighbour(w.axis(0), -1), part(a, 0, 10), Combine::replace});
  w.add("give", Send{0, neighbour(w.axis(0), 1), part(a, 0, 10), {}}, {after(receive)});
  return std::move(w.schedule);
}

TEST(Des, NamesTheCycleOfADeadlock) {
  const SmallSystem pod = small_system(plain_machine(), {3});
  const Schedule schedule = ring_deadlock(pod);
  const auto timeline = run_des(*testing::model_of(pod, schedule), {});
  ASSERT_FALSE(timeline);
  EXPECT_EQ(to_text(timeline.error()),
            R"(deadlock: task 1 "give" on device 0 (row=0) waits for task 1 "give" on device 2 (row=2), which waits for task 1 "give" on )"
            R"(device 1 (row=1), which waits for task 1 "give" on device 0 (row=0); 3 of 3 task instances never ran)");
}

TEST(Des, NamesRepresentativesInAFoldedDeadlock) {
  const SmallSystem pod = small_system(plain_machine(), {8});
  const Schedule schedule = ring_deadlock(pod);
  const Model model = fold(*testing::model_of(pod, schedule));
  ASSERT_EQ(model.nodes(), 1U);
  for (const bool record : {true, false}) {
    RunControl control;
    control.record = record;
    const auto timeline = run_des(model, control);
    ASSERT_FALSE(timeline);
    EXPECT_THAT(to_text(timeline.error()), StartsWith(R"(deadlock: task 1 "give" on device 0 (row=0) waits for task 1 "give" on device 0 (row=0))"));
    EXPECT_THAT(to_text(timeline.error()), EndsWith("8 of 8 task instances never ran")) << "of all devices, not of classes";
  }
}

TEST(Des, NamesTheCoreThatADeadlockGoesThrough) {
  // Device 0's core stands before `first`, which waits for what device 1 sends after what device 0 would do next.
  const SmallSystem pod = small_system(plain_machine(), {2});
  Writer w{pod.mesh};
  const AxisView x = w.axis(0);
  const BufferId a = w.scratch("a", {100});
  const TaskId arrives = w.add("arrives", Recv{0, neighbour(x, 1), part(a, 0, 10), Combine::replace}, {}, between(x, 0, 1));
  w.add("first", copy(part(a, 0, 10), part(a, 10, 10)), {after(arrives)}, between(x, 0, 1));
  const TaskId second = w.add("second", copy(part(a, 20, 10), part(a, 30, 10)), {}, between(x, 0, 1));
  w.add("forth", Send{1, neighbour(x, 1), part(a, 30, 10), {}}, {after(second)}, between(x, 0, 1));
  const TaskId got = w.add("got", Recv{1, neighbour(x, 1), part(a, 30, 10), Combine::replace}, {}, between(x, 1, 2));
  w.add("back", Send{0, neighbour(x, 1), part(a, 0, 10), {}}, {after(got)}, between(x, 1, 2));
  const auto timeline = run_des(*testing::model_of(pod, w.schedule), {});
  ASSERT_FALSE(timeline);
  EXPECT_THAT(to_text(timeline.error()), HasSubstr(R"(waits for the core, which is kept by task 1 "first" on device 0)"));
  EXPECT_THAT(to_text(timeline.error()), HasSubstr("4 of 4 task instances never ran"));
}

// ---- Limits ---------------------------------------------------------------------------------------------------------------------------

TEST(Des, ARunBeyondTheClockIsAnError) {
  const SmallSystem pod = small_system(testing::ideal_machine(1e-3), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  std::vector<Edge> edges;
  for (int step = 0; step < 12; ++step) edges = {after(w.add("slow", shift(w.axis(0), 1, part(a, 0, 450), part(a, 500, 450)), edges))};
  const auto timeline = run_des(*testing::model_of(pod, w.schedule), {});
  ASSERT_FALSE(timeline);
  EXPECT_THAT(to_text(timeline.error()), HasSubstr("106 days"));
}

}  // namespace
}  // namespace podsim
