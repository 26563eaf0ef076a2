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

}  // namespace
}  // namespace podsim
