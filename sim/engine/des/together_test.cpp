// Variants in lanes give the picoseconds that each gives alone, in any order and by any number of threads.
#include "sim/engine/des/together.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "sim/base/test_cases.hpp"
#include "sim/engine/des/des_engine.hpp"
#include "sim/engine/max_plus/lanes.hpp"
#include "sim/engine/max_plus/max_plus.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/model/recost.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::RandomScheduleOptions;
using testing::World;

constexpr int variants = 11;  // more than a block of lanes

/// Pods of one shape whose machines differ.
std::vector<std::unique_ptr<World>> worlds_like(const Mesh& mesh, const Machine& machine, std::uint64_t seed, Rng& rng, bool symmetric) {
  std::vector<std::unique_ptr<World>> worlds;
  for (int v = 0; v < variants; ++v) {
    Machine varied = machine;
    const auto scale = [&](auto& value) {
      if (v > 0 && rng.below(2) == 0) value = (0.5 + rng.uniform()) * value;
    };
    for (LinkParameters& link : varied.link) scale(link.bandwidth), scale(link.latency);
    scale(varied.chip.hbm_bandwidth), scale(varied.chip.injection_bandwidth), scale(varied.chip.ejection_bandwidth), scale(varied.chip.reduce_bandwidth);
    for (FlopsPerSecond& peak : varied.chip.peak) scale(peak);
    scale(varied.software.per_message);
    for (Seconds& launch : varied.software.launch) scale(launch);
    Rng same_pod{seed, stream_of("pod")};
    worlds.push_back(std::make_unique<World>(testing::random_world(mesh, varied, same_pod, {.symmetric = symmetric})));
    if (v == 3)
      for (std::size_t d = 0; d < worlds.back()->placement.chip_of.size(); ++d) worlds.back()->placement.speed.push_back(d % 3 == 0 ? 0.7 : 1);
  }
  return worlds;
}

struct SeenVariants {
  int cases = 0, passed = 0, met = 0, slowed = 0;
};

/// All times that were told, by task; of devices that do not run it nothing.
class Told final : public TimesReader {
 public:
  explicit Told(const Model& model) : model_{model} {}
  void read(std::uint32_t program, std::size_t task, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) override {
    auto& times = times_[{program, task}];
    EXPECT_TRUE(times.empty()) << "each task once";
    for (std::size_t l = 0; l < start.size(); ++l)
      if (model_.deployment.who(program, task).does(l)) times.emplace_back(start[l], sent[l]);
  }
  friend bool operator==(const Told& a, const Told& b) { return a.times_ == b.times_; }

 private:
  const Model& model_;
  std::map<std::pair<std::uint32_t, std::size_t>, std::vector<std::pair<Picoseconds, Picoseconds>>> times_;
};

bool slows_a_work(const Model& model, const Timeline& timeline) {
  const CostedGraph costs = write_out(model);
  for (std::size_t a = 0; a < timeline.size(); ++a)
    if (costs.graph.activities[a].kind == Activity::Kind::work && timeline.sent(a) - timeline.start(a) > ceil_to_clock(costs.work_time[a]) + Picoseconds{2}) return true;
  return false;
}

void compare_variants(const Schedule& schedule, const std::vector<std::unique_ptr<World>>& worlds, Rng& rng, SeenVariants& seen) {
  std::vector<std::unique_ptr<const Model>> owned;
  const auto first = make_model(schedule, worlds.front()->machine, *worlds.front()->topology, worlds.front()->placement);
  if (!first || !run_des(*first, {})) return;  // guards that disagree; chips that do not reach each other; deadlocks
  owned.push_back(std::make_unique<const Model>(*first));
  for (std::size_t v = 1; v < worlds.size(); ++v) {
    auto variant = recost(*first, worlds[v]->machine, *worlds[v]->topology, worlds[v]->placement);
    ASSERT_TRUE(variant) << to_text(variant.error());
    if (*variant) owned.push_back(std::make_unique<const Model>(**std::move(variant)));
  }
  std::vector<const Model*> models;
  for (const auto& model : owned) models.push_back(model.get());
  std::vector<std::size_t> order;
  for (std::size_t m = 0; m < models.size(); ++m) order.insert(order.begin() + static_cast<std::ptrdiff_t>(rng.below(m + 1)), m);
  std::vector<const Model*> shuffled;
  for (const std::size_t m : order) shuffled.push_back(models[m]);

  const bool sends = std::ranges::any_of(models.front()->deployment.participants, [](const Participants& who) { return !who.to_task.empty(); });
  ++seen.cases;
  RunControl unrecorded;
  unrecorded.record = false;
  std::vector<Told> told;
  std::vector<TimesReader*> readers;
  told.reserve(shuffled.size());
  for (const Model* model : shuffled) readers.push_back(&told.emplace_back(*model));
  const auto in_lanes = run_max_plus_lanes(models, {}, {}, 1), other_way = run_max_plus_lanes(shuffled, unrecorded, readers, 3);
  const auto found = run_variants(des_engine(), shuffled, {}, 3);
  for (std::size_t s = 0; s < order.size(); ++s) {
    const std::size_t m = order[s];
    SCOPED_TRACE("variant " + std::to_string(m));
    const auto alone = run_des(*models[m], {});
    ASSERT_TRUE(alone && found[s]);
    EXPECT_EQ(found[s]->makespan, alone->makespan);
    for (std::size_t a = 0; a < alone->size(); ++a) ASSERT_EQ(found[s]->at(a), alone->at(a)) << "activity " << a;
    ASSERT_EQ(in_lanes[m].has_value(), other_way[s].has_value());
    const auto passed = run_max_plus(*models[m], {});
    const bool proven = passed && passed->pass == "max-plus";
    EXPECT_TRUE(in_lanes[m] ? proven : sends || !proven) << "but for Sends in circles or beside memories, a lane proves what a pass of its own proves";
    if (!in_lanes[m]) {
      ++seen.met;
      continue;
    }
    ++seen.passed;
    EXPECT_EQ(other_way[s]->makespan, in_lanes[m]->makespan);
    EXPECT_EQ(other_way[s]->size(), 0U);
    EXPECT_EQ(in_lanes[m]->finished, alone->finished);
    EXPECT_EQ(in_lanes[m]->pass, "max-plus");
    ASSERT_EQ(in_lanes[m]->size(), alone->size());
    for (std::size_t a = 0; a < alone->size(); ++a) ASSERT_EQ(in_lanes[m]->at(a), alone->at(a)) << "activity " << a;
    Told expected{*models[m]};
    read_times(*models[m], *alone, expected);
    EXPECT_TRUE(told[s] == expected);
    seen.slowed += slows_a_work(*models[m], *alone) ? 1 : 0;
  }
}

class LanesAreDes : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, LanesAreDes, ::testing::Range<std::uint64_t>(0, test::cases(600, 200), 200));

TEST_P(LanesAreDes, OnRandomSchedules) {
  SeenVariants seen;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 200; ++seed) {
    Rng rng{seed, stream_of("lanes")};
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
    if (seed % 7 == 3) testing::split_program(schedule, !options.exchanges, rng);
    const auto worlds = worlds_like(schedule.mesh, testing::costly_machine(rng, static_cast<double>(options.scale)), seed, rng, seed % 4 > 1);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    compare_variants(schedule, worlds, rng, seen);
    if (HasFailure()) return;
  }
  RecordProperty("cases", seen.cases);
  RecordProperty("passed", seen.passed);
  RecordProperty("met", seen.met);
  EXPECT_GE(seen.cases, 100);
  EXPECT_GE(seen.passed, 300);
  EXPECT_GE(seen.met, 300);
}

/// Memory that a work on the core fills alone, beside slower links: the work gets what transfers leave, in each lane something else.
TEST_P(LanesAreDes, WhereTransfersSlowWorks) {
  SeenVariants seen;
  for (std::uint64_t seed = 50000 + GetParam(); seed < 50000 + GetParam() + 200; ++seed) {
    Rng rng{seed, stream_of("slowed lanes")};
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
    machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(600, 2000) * 1e9};
    machine.chip.overlap_hbm = rng.uniform();
    const auto worlds = worlds_like(schedule.mesh, machine, seed, rng, true);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    compare_variants(schedule, worlds, rng, seen);
    if (HasFailure()) return;
  }
  RecordProperty("passed", seen.passed);
  RecordProperty("slowed", seen.slowed);
  EXPECT_GE(seen.passed, 300);
  EXPECT_GE(seen.slowed, 20);
}

// ---- By hand --------------------------------------------------------------------------------------------------------------------------

/// One schedule on pods of one shape whose machines differ.
struct HandMade {
  std::unique_ptr<const Schedule> schedule;                 // models refer to it
  std::vector<std::unique_ptr<testing::SmallSystem>> pods;  // and to these
  std::vector<std::unique_ptr<const Model>> owned;
  std::vector<const Model*> models;

  HandMade(Schedule played, const std::vector<Machine>& machines, const std::vector<int>& extents, bool wraps = true)
      : schedule{std::make_unique<const Schedule>(std::move(played))} {
    for (const Machine& machine : machines) {
      pods.push_back(std::make_unique<testing::SmallSystem>(testing::small_system(machine, extents, wraps)));
      const testing::SmallSystem& pod = *pods.back();
      if (owned.empty())
        owned.push_back(std::make_unique<const Model>(*testing::model_of(pod, *schedule)));
      else
        owned.push_back(std::make_unique<const Model>(**recost(*owned.front(), pod.machine, pod.grid, pod.placement)));
      models.push_back(owned.back().get());
    }
  }
};

void expect_events_in_all_lanes(const HandMade& made) {
  const auto lanes = run_max_plus_lanes(made.models, {}, {}, 1);
  for (std::size_t k = 0; k < lanes.size(); ++k) {
    SCOPED_TRACE(k);
    const auto events = run_events(*made.models[k], {});
    ASSERT_TRUE(lanes[k] && events);
    EXPECT_EQ(lanes[k]->makespan, events->makespan);
    EXPECT_EQ(testing::times_of(*lanes[k]), testing::times_of(*events));
  }
}

std::vector<Machine> with_bandwidths(const Machine& machine, const std::vector<double>& bandwidths) {
  std::vector<Machine> machines;
  for (const double bandwidth : bandwidths) {
    machines.push_back(machine);
    for (LinkParameters& link : machines.back().link) link.bandwidth = BytesPerSecond{bandwidth};
  }
  return machines;
}

/// Two transfers at once, each of which takes most of its time from the core as well.
TEST(Lanes, TheCoresSharesMayEndLast) {
  Machine machine = testing::plain_machine();
  machine.software.core_share.fill(0.8);
  testing::Writer w{*Mesh::make({{"x", 4, true}})};
  const BufferId a = w.scratch("a", {4000});
  for (const int by : {1, -1}) w.add("shift", testing::shift(w.axis(0), Affine{{}, by}, testing::part(a, 0, 1000), testing::part(a, 2000 + 1000 * by, 1000)));
  const HandMade made{w.schedule, with_bandwidths(machine, {4e9, 2e9}), {4}};
  EXPECT_EQ(run_events(*made.models[0], {})->makespan, Picoseconds{1'600'000});
  expect_events_in_all_lanes(made);
}

/// Doubles hold whole picoseconds for two and a half hours.
TEST(Lanes, RunsOfManyHoursAreLeftOut) {
  testing::Writer w{*Mesh::make({{"x", 4, true}})};
  const BufferId a = w.scratch("a", {2000});
  w.add("shift", testing::shift(w.axis(0), Affine{{}, 1}, testing::part(a, 0, 1000), testing::part(a, 1000, 1000)));
  const HandMade made{w.schedule, with_bandwidths(testing::plain_machine(), {4e9, 0.3}), {4}};
  const auto lanes = run_max_plus_lanes(made.models, {}, {}, 1);
  EXPECT_TRUE(lanes[0]);
  EXPECT_FALSE(lanes[1]);
}

/// Links are fast in the first lane, so there the transfer is over before the second copy begins; in the other one it slows that as well.
TEST(Lanes, AFlowIsRememberedAsLongAsAnyLaneAsks) {
  Machine machine = testing::plain_machine();
  machine.chip.memory_shared = true;
  machine.chip.hbm_bandwidth = BytesPerSecond{80e9};
  testing::Writer w{*Mesh::make({{"x", 4, true}})};
  const BufferId a = w.scratch("a", {2000}), b = w.scratch("b", {80000});
  w.add("shift", testing::shift(w.axis(0), Affine{{}, 1}, testing::part(a, 0, 1000), testing::part(a, 1000, 1000)));
  for (const int i : {0, 1}) w.add("copy", testing::copy(testing::part(b, 40000 * i, 20000), testing::part(b, 40000 * i + 20000, 20000)));
  const HandMade made{w.schedule, with_bandwidths(machine, {4e9, 0.4e9}), {4}};
  expect_events_in_all_lanes(made);
  EXPECT_TRUE(slows_a_work(*made.models[1], *run_events(*made.models[1], {})));
}

/// The two gates wait for the same task: to have sent, and to have received and added.
TEST(Lanes, GatesOfOneTaskWaitForTheirOwnHalf) {
  Machine machine = testing::plain_machine();
  machine.chip.reduce_bandwidth = BytesPerSecond{1e9};
  testing::Writer w{*Mesh::make({{"x", 4, true}})};
  const BufferId a = w.scratch("a", {4000});
  const TaskId first = w.add("first", testing::shift(w.axis(0), Affine{{}, 1}, testing::part(a, 0, 1000), testing::part(a, 1000, 1000), Combine::add));
  w.add("second", testing::shift(w.axis(0), Affine{{}, 1}, testing::part(a, 0, 1000), testing::part(a, 1000, 1000)),
        {testing::after(first, Half::send, Half::send), testing::after(first, Half::receive, Half::receive)});
  expect_events_in_all_lanes(HandMade{w.schedule, with_bandwidths(machine, {4e9, 2e9}), {4}});
}

/// On a line of three, a far flow and a near one cross the last link. They touch; where hops take a picosecond, they overlap by one.
TEST(Lanes, FlowsMayTouchInOneLaneAndMeetInAnother) {
  Machine touching = testing::plain_machine(), overlapping = touching;
  for (LinkParameters& link : overlapping.link) link.latency = Seconds{1e-12};
  testing::Writer w{*Mesh::make({{"x", 3, false}})};
  const BufferId a = w.scratch("a", {4000}), b = w.scratch("b", {4000});
  const AxisView x = w.axis(0);
  w.add("far", testing::shift(x, Affine{{}, 2}, testing::part(a, 0, 1000), testing::part(b, 0, 1000)), {}, testing::between(x, 0, 1));
  const TaskId wait = w.add("wait", testing::copy(testing::part(a, 0, 1000), testing::part(b, 2000, 1000)), {}, testing::between(x, 1, 2));
  w.add("near", testing::shift(x, Affine{{}, 1}, testing::part(a, 0, 500), testing::part(b, 1000, 500)), {testing::after(wait)}, testing::between(x, 1, 2));
  const HandMade made{w.schedule, {touching, overlapping}, {3}, false};
  const auto lanes = run_max_plus_lanes(made.models, {}, {}, 1);
  EXPECT_TRUE(lanes[0]);
  EXPECT_FALSE(lanes[1]);
}

/// Each reader is told about its own model, also where models of two schedules take turns.
TEST(Together, ModelsOfSeveralSchedulesKeepTheirReaders) {
  std::vector<HandMade> groups;
  for (const int shifts : {1, 3}) {
    testing::Writer w{*Mesh::make({{"x", 4, true}})};
    const BufferId a = w.scratch("a", {8000});
    for (int i = 0; i < shifts; ++i) w.add("shift", testing::shift(w.axis(0), Affine{{}, i % 2 == 0 ? 1 : -1}, testing::part(a, 0, 1000), testing::part(a, 1000 + 1000 * i, 1000)));
    if (shifts == 3) w.task(TaskId{2}).after = {testing::after(TaskId{0})};
    groups.emplace_back(w.schedule, with_bandwidths(testing::plain_machine(), {4e9, 2e9}), std::vector<int>{4});
  }
  const std::vector<const Model*> models{groups[0].models[0], groups[1].models[0], groups[0].models[1], groups[1].models[1]};
  RunControl unrecorded;
  unrecorded.record = false;
  std::vector<Told> told;
  told.reserve(models.size());
  std::vector<TimesReader*> readers;
  for (const Model* model : models) readers.push_back(&told.emplace_back(*model));
  const auto found = run_des_together(models, unrecorded, readers, 1);
  for (std::size_t m = 0; m < models.size(); ++m) {
    SCOPED_TRACE(m);
    const auto alone = run_events(*models[m], {});
    ASSERT_TRUE(found[m] && alone);
    EXPECT_EQ(found[m]->makespan, alone->makespan);
    Told expected{*models[m]};
    read_times(*models[m], *alone, expected);
    EXPECT_TRUE(told[m] == expected);
  }
}

}  // namespace
}  // namespace podsim
