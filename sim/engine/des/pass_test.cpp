// The max-plus pass gives the picoseconds of events, wherever it gives any, and gives up wherever a flow is held back.
#include <gtest/gtest.h>

#include <atomic>

#include "sim/base/test_cases.hpp"
#include "sim/engine/des/des_engine.hpp"
#include "sim/engine/max_plus/analytic_engine.hpp"
#include "sim/engine/max_plus/max_plus.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/model/task_cost.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::RandomScheduleOptions;
using testing::World;

struct Flow {
  std::int64_t begin = 0, end = 0;
  double draw = 0;
};

/// Looks at a timeline of events only: whether the flows on each link fit it at all times, memories apart, and no transfer was held back anywhere.
::testing::AssertionResult nobody_was_held_back(const Model& model, const Timeline& timeline) {
  const CostedGraph costs = write_out(model);
  std::vector<std::vector<Flow>> on_link(costs.links.size());
  for (std::size_t a = 0; a < costs.graph.activities.size(); ++a) {
    const TransferCost& transfer = costs.transfers[a];
    if (costs.graph.activities[a].kind != Activity::Kind::transfer || transfer.flow_bytes == 0) continue;
    const BytesPerSecond alone = costs.bottlenecks[transfer.route];
    if (is_unlimited(alone)) continue;
    const std::int64_t begin = (timeline.start(a) + ceil_to_clock(transfer.delay)).count(), end = timeline.sent(a).count();
    if (end > begin + ceil_to_clock(Seconds{transfer.flow_bytes / alone.count()}).count() + 1)
      return ::testing::AssertionFailure() << "activity " << a << " takes " << end - begin << " ps on its route";
    for (const LinkId link : costs.routes[transfer.route]) on_link[link.index()].push_back({begin, end, alone.count()});
  }
  for (std::size_t l = 0; l < on_link.size(); ++l) {
    if (is_unlimited(costs.links[l]) || model.links[l].is_memory) continue;
    for (const Flow& at : on_link[l]) {
      double sum = 0;
      for (const Flow& flow : on_link[l])
        if (flow.begin <= at.begin && at.begin < flow.end) sum += flow.draw;
      if (sum > costs.links[l].count() * (1 + 1e-9)) return ::testing::AssertionFailure() << "link " << l << " at " << at.begin << " ps: " << sum << " B/s";
    }
  }
  return ::testing::AssertionSuccess();
}

struct Seen {
  int passed = 0, mixed = 0, met = 0, needless = 0, slowed_works = 0;  // needless: nobody was held back, but the pass could not tell
};

/// Takes all meetings, however many.
constexpr MeetingLimits any_meetings{0, 1, 1, 1e9, 64};

/// Looks at a timeline of events only: a transfer that was held back crosses a link that was full at some time while it was there.
::testing::AssertionResult only_full_links_hold_back(const Model& model, const Timeline& timeline) {
  const CostedGraph costs = write_out(model);
  struct On {
    std::int64_t begin, end;
    double alone;
  };
  std::vector<std::vector<On>> on_link(costs.links.size());
  std::vector<std::size_t> slow;
  std::vector<On> flows(costs.graph.activities.size());
  for (std::size_t a = 0; a < flows.size(); ++a) {
    const TransferCost& transfer = costs.transfers[a];
    if (costs.graph.activities[a].kind != Activity::Kind::transfer || transfer.flow_bytes == 0 || is_unlimited(costs.bottlenecks[transfer.route])) continue;
    const BytesPerSecond alone = costs.bottlenecks[transfer.route];
    flows[a] = {(timeline.start(a) + ceil_to_clock(transfer.delay)).count(), timeline.sent(a).count(), alone.count()};
    if (flows[a].end > flows[a].begin + ceil_to_clock(Seconds{transfer.flow_bytes / alone.count()}).count() + 1) slow.push_back(a);
    for (const LinkId link : costs.routes[transfer.route]) on_link[link.index()].push_back(flows[a]);
  }
  for (const std::size_t a : slow) {
    bool met = false;
    for (const LinkId link : costs.routes[costs.transfers[a].route]) {
      if (is_unlimited(costs.links[link.index()]) || model.links[link.index()].is_memory) continue;
      double sum = 0;
      for (const On& flow : on_link[link.index()])
        if (flow.begin < flows[a].end && flows[a].begin < flow.end) sum += flow.alone;
      met |= sum > costs.links[link.index()].count() * (1 + 1e-9);
    }
    if (!met) return ::testing::AssertionFailure() << "activity " << a << " is slow, and nothing is in its way";
  }
  return slow.empty() ? ::testing::AssertionFailure() << "no transfer is held back" : ::testing::AssertionSuccess();
}

/// Both ways of one model.
void compare(const Model& model, Seen& seen) {
  const auto events = run_events(model, {});
  ASSERT_TRUE(events) << to_text(events.error());
  const auto alone = run_analytic(model, {});
  ASSERT_TRUE(alone) << to_text(alone.error());
  EXPECT_LE(alone->makespan, events->makespan);
  EXPECT_EQ(alone->makespan, least_makespan(model));
  EXPECT_LE(least_core_time(*model.machine, *model.schedule), alone->makespan);
  const auto passed = run_max_plus(model, {}, any_meetings);
  RunControl only_makespan;
  only_makespan.record = false;
  const auto quiet = run_max_plus(model, only_makespan, any_meetings);
  ASSERT_EQ(quiet.has_value(), passed.has_value());
  if (quiet) {
    EXPECT_EQ(quiet->pass, passed->pass);
    EXPECT_EQ(quiet->makespan, passed->makespan);
    EXPECT_EQ(quiet->size(), 0U);
  }
  if (!passed) {
    ++(nobody_was_held_back(model, *events) ? seen.needless : seen.met);
    return;
  }
  ++(passed->pass == "mixed" ? seen.mixed : seen.passed);
  EXPECT_EQ(passed->makespan, events->makespan);
  EXPECT_EQ(passed->finished, events->finished);
  ASSERT_EQ(passed->size(), events->size());
  for (std::size_t a = 0; a < events->size(); ++a) ASSERT_EQ(passed->at(a), events->at(a)) << "activity " << a;
  if (passed->pass == "max-plus") {
    if (model.memory_paths.empty()) {
      EXPECT_EQ(testing::times_of(*alone), testing::times_of(*events)) << "nobody is held back, so nothing is lost by not looking";
    }
    ASSERT_TRUE(nobody_was_held_back(model, *events));
  } else if (!nobody_was_held_back(model, *events)) {  // else works were, or flows fit at last
    ASSERT_TRUE(only_full_links_hold_back(model, *events));
  }
  const CostedGraph costs = write_out(model);
  for (std::size_t a = 0; a < events->size(); ++a)
    if (costs.graph.activities[a].kind == Activity::Kind::work && events->sent(a) - events->start(a) > ceil_to_clock(costs.work_time[a]) + Picoseconds{2}) {
      ++seen.slowed_works;
      break;
    }
}

/// Split, so that they run beside each other.
class MaxPlusIsDes : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, MaxPlusIsDes, ::testing::Range<std::uint64_t>(0, test::cases(1600, 400), 400));

TEST_P(MaxPlusIsDes, OnRandomSchedules) {
  Seen seen;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 400; ++seed) {
    Rng rng{seed, stream_of("pass")};
    RandomScheduleOptions options;
    options.exchanges = seed % 3 > 0;
    options.careless = false;
    options.guards = seed % 2 == 0;
    options.edge_chance = seed % 4 * 0.15;
    options.axes = testing::random_axes(rng);
    options.most_tasks = 12;
    options.far = seed % 5 == 0;
    options.scale = seed % 2 == 0 ? 1 : 64;
    options.every_kind = seed % 7 == 0;
    Schedule schedule = testing::random_schedule(seed, options);
    const World world = testing::random_world(schedule.mesh, testing::costly_machine(rng, static_cast<double>(options.scale)), rng, {.symmetric = seed % 4 > 1});
    if (seed % 7 == 3) testing::split_program(schedule, !options.exchanges, rng);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (!model || !run_events(*model, {})) continue;  // guards that disagree; chips that do not reach each other; deadlocks
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    compare(*model, seen);
    if (HasFatalFailure()) return;
  }
  RecordProperty("passed", seen.passed);
  RecordProperty("mixed", seen.mixed);
  RecordProperty("met", seen.met);
  RecordProperty("needless", seen.needless);
  EXPECT_GE(seen.passed, 75);
  EXPECT_GE(seen.mixed, 75);
}

/// Memory that a work on the core fills alone, beside slower links: the work gets what transfers leave.
TEST_P(MaxPlusIsDes, WhereTransfersSlowWorks) {
  Seen seen;
  for (std::uint64_t seed = 50000 + GetParam(); seed < 50000 + GetParam() + 400; ++seed) {
    Rng rng{seed, stream_of("slowed")};
    RandomScheduleOptions options;
    options.careless = false;
    options.exchanges = false;
    options.guards = seed % 2 == 0;
    options.edge_chance = 0.2 + seed % 4 * 0.15;
    options.axes = testing::random_axes(rng);
    for (MeshAxis& axis : options.axes) axis.wraps = true;
    options.most_tasks = 10;
    options.scale = 4096;
    const Schedule schedule = testing::random_schedule(seed, options);
    Machine machine = testing::overhead_machine();
    machine.software.core_share.fill(0);
    machine.chip.memory_shared = true;
    machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(600, 2000) * 1e9};
    machine.chip.overlap_hbm = rng.uniform();
    World world = testing::random_world(schedule.mesh, machine, rng, {.symmetric = true});
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (!model || !run_events(*model, {})) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    compare(*model, seen);
    if (HasFatalFailure()) return;
  }
  RecordProperty("slowed works", seen.slowed_works);
  EXPECT_GE(seen.slowed_works, 5);
}

/// On a line of three, device 0 sends 1000 elements to device 2, 1 ns each, while device 1 copies `copied` elements, 1 ns each, and then sends to device 2.
/// Each hop takes `latency`.
struct TwoFlows {
  testing::SmallSystem pod;
  Schedule schedule;

  TwoFlows(std::int64_t copied, Seconds latency) : pod{system(latency)} {
    testing::Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {4000}), b = w.scratch("b", {4000});
    const AxisView x = w.axis(0);
    w.add("far", testing::shift(x, Affine{{}, 2}, testing::part(a, 0, 1000), testing::part(b, 0, 1000)), {}, testing::between(x, 0, 1));
    const TaskId wait = w.add("wait", testing::copy(testing::part(a, 0, copied), testing::part(b, 2000, copied)), {}, testing::between(x, 1, 2));
    w.add("near", testing::shift(x, Affine{{}, 1}, testing::part(a, 0, 500), testing::part(b, 1000, 500)), {testing::after(wait)}, testing::between(x, 1, 2));
    schedule = std::move(w.schedule);
  }
  static testing::SmallSystem system(Seconds latency) {
    Machine machine = testing::plain_machine();
    for (LinkParameters& link : machine.link) link.latency = latency;
    return testing::small_system(machine, {3}, false);
  }
};

TEST(MaxPlus, FlowsMayTouchInAPicosecond) {
  const TwoFlows touching{1000, Seconds{}};
  const auto model = testing::model_of(touching.pod, touching.schedule);
  ASSERT_TRUE(model) << to_text(model.error());
  const auto events = run_events(*model, {});
  const auto passed = run_max_plus(*model, {});
  ASSERT_TRUE(passed && events);
  EXPECT_EQ(passed->pass, "max-plus");
  EXPECT_EQ(testing::times_of(*passed), testing::times_of(*events));
  EXPECT_EQ(passed->makespan, Picoseconds{1'500'000});
}

TEST(MaxPlus, FlowsThatOverlapByAPicosecondMeet) {
  const TwoFlows overlapping{1000, Seconds{1e-12}};  // the far flow begins behind two hops, the near one behind one
  const auto model = testing::model_of(overlapping.pod, overlapping.schedule);
  ASSERT_TRUE(model) << to_text(model.error());
  const auto events = run_events(*model, {});
  ASSERT_TRUE(events);
  EXPECT_FALSE(run_max_plus(*model, {}));  // so few activities are left to events
  const auto mixed = run_max_plus(*model, {}, any_meetings);
  ASSERT_TRUE(mixed);
  EXPECT_EQ(mixed->pass, "mixed");
  EXPECT_EQ(testing::times_of(*mixed), testing::times_of(*events));
  EXPECT_GT(events->sent(0), Picoseconds{1'000'002});
}

/// The row of the transfer comes after those of twelve copies, the first of which it slows.
TEST(MaxPlus, ATransferFoundLateMeetsAWorkOfLongAgo) {
  Machine machine = testing::plain_machine();
  machine.chip.memory_shared = true;
  machine.chip.hbm_bandwidth = BytesPerSecond{80e9};
  const testing::SmallSystem pod = testing::small_system(machine, {4});
  testing::Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {2000}), b = w.scratch("b", {40000});
  for (int i = 0; i < 12; ++i) w.add("copy", testing::copy(testing::part(b, 0, 20000), testing::part(b, 20000, 20000)));
  w.add("shift", testing::shift(w.axis(0), Affine{{}, 1}, testing::part(a, 0, 1000), testing::part(a, 1000, 1000)));
  const auto model = testing::model_of(pod, w.schedule);
  ASSERT_TRUE(model) << to_text(model.error());
  const auto events = run_events(*model, {});
  const auto mixed = run_max_plus(*model, {}, any_meetings);
  ASSERT_TRUE(mixed && events);
  EXPECT_EQ(mixed->pass, "mixed");
  EXPECT_EQ(testing::times_of(*mixed), testing::times_of(*events));
}

TEST(MaxPlus, ARunOfMeetingsThatEndsAtTheLimitIsComplete) {
  const TwoFlows overlapping{1000, Seconds{1e-12}};
  const auto model = testing::model_of(overlapping.pod, overlapping.schedule);
  ASSERT_TRUE(model) << to_text(model.error());
  RunControl control;
  control.limit = run_events(*model, {})->makespan;
  EXPECT_FALSE(run_max_plus(*model, control, any_meetings)->interrupted);
  control.limit = control.limit - Picoseconds{1};
  EXPECT_TRUE(run_max_plus(*model, control, any_meetings)->interrupted);
}

TEST(MaxPlus, AStoppedPlayOfMeetingsKeepsWhatItFound) {
  const TwoFlows overlapping{1000, Seconds{1e-12}};
  const auto model = testing::model_of(overlapping.pod, overlapping.schedule);
  ASSERT_TRUE(model) << to_text(model.error());
  int reports = 0;
  std::atomic<bool> stop{false};
  RunControl control;
  control.stop = Cancellation{&stop};
  control.progress = [&](const RunProgress&) { stop = ++reports == 2; };  // one a play: this stops the first play of meetings
  const auto stopped = run_max_plus(*model, control, any_meetings);
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(stopped->interrupted);
  EXPECT_EQ(stopped->finished, 0);
  EXPECT_EQ(stopped->makespan, Picoseconds{});
  EXPECT_EQ(stopped->sent(0), Picoseconds{-1});
}

}  // namespace
}  // namespace podsim
