// Which lines a device has, what stands on them, and that folding shows nowhere.
#include "tools/report/device_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"
#include "tools/report/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::copy;
using ::testing::ElementsAre;
using testing::part;
using testing::shift;
using testing::Writer;
using Kind = TraceEvent::Kind;

testing::SmallSystem pod_for(const Schedule& schedule, const Machine& machine) {
  std::vector<int> extents;
  std::vector<std::pair<std::string, int>> sizes;
  for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
  return testing::small_system(machine, extents, true, sizes);
}

Machine random_machine(Rng& rng) {
  Machine machine = testing::ideal_machine(rng.between(1, 20) * 1e8, rng.between(0, 3) * 1e-7);
  machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.software.per_message = Seconds{rng.between(0, 3) * 1e-7};
  machine.software.launch.fill(Seconds{rng.between(0, 3) * 1e-7});
  if (rng.below(2) == 0) machine.software.core_share.fill(rng.uniform());
  return machine;
}

struct Run {
  testing::SmallSystem pod;
  Model model;
  Timeline timeline;
  [[nodiscard]] DeviceEvents of(int device) const { return events_of(model, timeline, DeviceId{device}); }
};

/// The schedule outlives the run.
std::unique_ptr<Run> run_of(const Schedule& schedule, const Machine& machine, std::string_view engine = "des") {
  auto run = std::make_unique<Run>(Run{pod_for(schedule, machine), {}, {}});
  auto model = testing::model_of(run->pod, schedule);
  if (!model) return nullptr;
  run->model = *std::move(model);
  auto timeline = (*timing_engine(engine))->run(run->model, {});
  if (!timeline) return nullptr;
  run->timeline = *std::move(timeline);
  return run;
}

// ---- Lines ----------------------------------------------------------------------------------------------------------------------------

TEST(DeviceEvents, ALinePerWayOfEachAxis) {
  Writer w({{"row", 4, true}, {"col", 2, true}});
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  const auto pass = [&](int axis, std::int64_t by) { w.add("pass", shift(w.axis(axis), by, part(a, 0, 4), part(b, 0, 4))); };
  pass(0, 3);  // the short way is -1
  pass(0, -3);
  pass(0, 2);  // half way round: as it says
  pass(0, -2);
  pass(1, 1);
  pass(1, -1);
  const auto run = run_of(w.schedule, testing::ideal_machine());
  ASSERT_TRUE(run);
  for (int device = 0; device < 8; ++device) {
    const DeviceEvents all = run->of(device);
    std::set<std::string> ways;
    for (const TraceEvent& event : all.events)
      if (event.kind == Kind::send) ways.insert(std::to_string(event.task.value) + " " + all.lines[event.line].substr(0, 5));
    EXPECT_THAT(ways, ElementsAre("0 row -", "1 row +", "2 row +", "3 row -", "4 col +", "5 col -"));
  }
}

TEST(DeviceEvents, WhatOverlapsStandsOnFurtherLines) {
  Writer w({{"x", 2, true}});
  const BufferId a = w.scratch("a", {12}), b = w.scratch("b", {12});
  w.add("long", shift(w.axis(0), 1, part(a, 0, 8), part(b, 0, 8)));
  const TaskId brief = w.add("brief", shift(w.axis(0), 1, part(a, 8, 2), part(b, 8, 2)));
  w.add("next", shift(w.axis(0), 1, part(a, 10, 2), part(b, 10, 2)), {after(brief)});
  const auto run = run_of(w.schedule, testing::plain_machine(), "analytic");  // nobody shares a link: 8, 2 and 2 ns
  ASSERT_TRUE(run);
  const DeviceEvents all = run->of(0);
  EXPECT_THAT(all.lines, ElementsAre("x + send", "x + send 2", "x + receive", "x + receive 2"));
  std::vector<std::string> places;
  for (const TraceEvent& event : all.events)
    places.push_back(std::to_string(event.line) + ":" + std::to_string(event.task.value) + " " + std::to_string(event.begin.count() / 1000) + ".." +
                     std::to_string(event.end.count() / 1000));
  EXPECT_THAT(places, ElementsAre("0:1 0..2", "0:2 2..4", "1:0 0..8", "2:1 0..2", "2:2 2..4", "3:0 0..8"));
}

TEST(DeviceEvents, TheCoresShareOfATransferStandsOnTheCoresLine) {
  Machine machine = testing::plain_machine();
  machine.software.core_share.fill(0.5);
  Writer w({{"x", 2, true}});
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});
  w.add("cut", copy(part(a, 0, 4), part(b, 0, 4)));
  w.add("pass", shift(w.axis(0), 1, part(a, 0, 8), part(b, 0, 8)));
  const auto run = run_of(w.schedule, machine);
  ASSERT_TRUE(run);
  const DeviceEvents all = run->of(1);
  EXPECT_THAT(all.lines, ElementsAre("compute", "x + send", "x + receive"));
  ASSERT_EQ(all.events.size(), 4u);
  EXPECT_EQ(all.events[0].kind, Kind::work);
  EXPECT_EQ(all.events[1].kind, Kind::core_share);
  EXPECT_EQ(all.events[1].begin, Picoseconds{4000});
  EXPECT_EQ(all.events[1].end, Picoseconds{8000}) << "half of the 8 ns that the transfer takes";
  EXPECT_EQ(all.events[2].end, Picoseconds{8000}) << "the transfer itself does not wait for the core";
}

// ---- Properties -----------------------------------------------------------------------------------------------------------------------

/// Every half once, with the times of spans_of(); no two events of a line overlap; arrows pair up.
void expect_whole(const Run& run) {
  std::map<std::tuple<int, int, int>, std::pair<Picoseconds, Picoseconds>> spans;
  for (const Span& span : spans_of(unroll(*run.model.schedule).graph, run.timeline))
    spans[{span.device.value, span.task.value, static_cast<int>(span.part)}] = {span.start, span.end};
  std::map<std::int64_t, std::vector<std::pair<int, int>>> ends_of_flow;  // (device, peer): of the sender, of the receiver
  std::size_t seen = 0;
  for (int device = 0; device < run.pod.mesh.devices(); ++device) {
    const DeviceEvents all = run.of(device);
    for (std::size_t i = 0; i < all.events.size(); ++i) {
      const TraceEvent& event = all.events[i];
      ASSERT_LT(event.line, all.lines.size());
      ASSERT_LE(event.begin, event.end);
      if (i > 0) {
        const TraceEvent& before = all.events[i - 1];
        ASSERT_LE(before.line, event.line);
        ASSERT_TRUE(before.line < event.line || before.end <= event.begin) << all.lines[event.line];
      }
      if (event.kind == Kind::core_share) continue;
      ++seen;
      const auto part = event.kind == Kind::work ? Span::Part::work : event.kind == Kind::send ? Span::Part::send : Span::Part::receive;
      const auto span = spans.find({device, event.task.value, static_cast<int>(part)});
      ASSERT_NE(span, spans.end());
      ASSERT_EQ(std::pair(event.begin, event.end), span->second);
      if (event.kind == Kind::work) continue;
      auto& ends = ends_of_flow[event.flow];
      ends.resize(2);
      ends[event.kind == Kind::send ? 0 : 1] = {device + 1, event.peer.value + 1};
    }
    ASSERT_EQ(std::set<std::string>(all.lines.begin(), all.lines.end()).size(), all.lines.size());
  }
  ASSERT_EQ(seen, spans.size());
  for (const auto& [flow, ends] : ends_of_flow) {
    ASSERT_GT(flow, 0);
    ASSERT_GT(ends[0].first, 0) << "the sender's half";
    ASSERT_EQ(ends[0], std::pair(ends[1].second, ends[1].first)) << "each is the other's peer";
  }
}

TEST(DeviceEvents, ShowEverySpanOnceOnLinesWithoutOverlap) {
  int shown = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    Rng rng{seed, stream_of("machine")};
    const auto run = run_of(schedule, random_machine(rng), seed % 3 == 0 ? "analytic" : "des");
    if (!run) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    ASSERT_NO_FATAL_FAILURE(expect_whole(*run));
    ++shown;
  }
  EXPECT_GE(shown, 200);
}

// ---- Folded runs ----------------------------------------------------------------------------------------------------------------------

/// Whether the schedule runs; then a folded run has the bytes of an unfolded one. `classes`: of the folded one.
bool same_bytes(const Schedule& schedule, const testing::SmallSystem& pod, std::size_t& classes) {
  const auto model = testing::model_of(pod, schedule);
  if (!model) return false;
  const auto folded = make_folded_model(schedule, pod.machine, pod.grid, pod.placement);
  EXPECT_TRUE(folded);
  classes = folded->nodes();
  if (!(*timing_engine("des"))->run(*model, {})) return false;
  const auto devices = testing::devices_below(pod.mesh.devices());
  EXPECT_EQ(testing::trace_text(*model, devices), testing::trace_text(*folded, devices));
  return true;
}

TEST(DeviceEvents, AFoldedRunGivesTheBytesOfEveryDevice) {
  int compared = 0, partly = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    Rng rng{seed, stream_of("machine")};
    std::size_t classes = 0;
    if (!same_bytes(schedule, pod_for(schedule, random_machine(rng)), classes)) continue;
    ASSERT_FALSE(HasFailure());
    ++compared;
    partly += classes > 1 && classes < static_cast<std::size_t>(schedule.mesh.devices());
  }
  EXPECT_GE(compared, 120);
  EXPECT_GE(partly, 30);
}

TEST(DeviceEvents, ATorusFoldsToOneClassAndAnOpenMeshPartly) {
  Machine machine = testing::ideal_machine(45e9, 1e-6);
  machine.software.launch.fill(Seconds{2e-6});
  for (const bool wraps : {true, false}) {
    SCOPED_TRACE(wraps);
    const testing::SmallSystem pod = testing::small_system(machine, {4, 5}, wraps, {{"row", 4}, {"col", 5}});
    Writer w(pod.mesh);
    const Region shard = part(w.scratch("shard", {256}), 0, 256), all = part(w.scratch("all", {1024}), 0, 1024);
    w.add("gather s0", Collective{CollectiveKind::all_gather, {w.axis(0)}, shard, all, 0, 0, 0, {}});
    w.add("use s0", copy(part(all.buffer, 0, 256), shard));
    const auto lowered = lower(w.schedule, ring_or_line());
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    std::size_t classes = 0;
    EXPECT_TRUE(same_bytes(*lowered, pod, classes));
    EXPECT_EQ(classes, wraps ? 1u : 4u) << "a class per row of the open mesh";
  }
}

}  // namespace
}  // namespace podsim
