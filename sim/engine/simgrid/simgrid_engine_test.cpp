#include "sim/engine/simgrid/simgrid_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/topology/grid.hpp"
#include "sim/engine/simgrid/test_graph.hpp"

namespace podsim::simgrid_engine {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<ActivityTimes> run(const TestGraph& graph) {
  const auto simulation = simulate(graph.build());
  EXPECT_TRUE(simulation) << to_text(simulation.error());
  return simulation ? simulation->times : std::vector<ActivityTimes>{};
}

double seconds(Picoseconds time) { return static_cast<double>(time.count()) * 1e-12; }

#define EXPECT_AT(time, expected) EXPECT_NEAR(seconds(time), (expected), 1e-9 * (expected) + 0.6e-12)

// ---- One flow -------------------------------------------------------------------------------------------------------------------------

TEST(SimgridFlow, OneHopTakesDelayAndBytesOverBandwidth) {
  TestGraph graph{2};
  const auto t = graph.transfer({.route = graph.route({graph.link(50 * GB)}), .bytes = 1 * MB, .delay = 1 * us});
  const auto times = run(graph);
  EXPECT_EQ(times[t].start, Picoseconds{0});
  EXPECT_EQ(times[t].sent, Picoseconds{21'000'000});
  EXPECT_EQ(times[t].received, Picoseconds{21'000'000});
}

TEST(SimgridFlow, ManyHopsCutThroughAtTheSlowestLink) {
  TestGraph graph{2};
  const auto slow = graph.link(10 * GB);
  const auto t = graph.transfer({.route = graph.route({graph.link(50 * GB), graph.link(50 * GB), slow, graph.link(20 * GB)}), .delay = 4 * us});
  EXPECT_EQ(run(graph)[t].received, Picoseconds{104'000'000});
}

TEST(SimgridFlow, BytesNeedNotBeWhole) {
  TestGraph graph{2};
  const auto route = graph.route({graph.link(1 * GB)});
  const auto first = graph.transfer({.route = route, .bytes = 0.25});
  const auto second = graph.transfer({.route = route, .bytes = 0.75, .send = {sent(first)}});  // a communication that has been used before
  const auto times = run(graph);
  EXPECT_EQ(times[first].sent, Picoseconds{250});
  EXPECT_EQ(times[second].sent, Picoseconds{1000});
}

TEST(SimgridFlow, NothingToLimitItNoFlow) {
  TestGraph graph{2};
  const auto link = graph.link(50 * GB);
  const auto busy = graph.transfer({.route = graph.route({link}), .bytes = 1 * MB});
  const auto empty = graph.transfer({.route = graph.route({link}), .bytes = 0, .delay = 1 * us});
  const auto here = graph.transfer({.route = graph.route({}), .bytes = 1 * MB, .delay = 2 * us});
  const auto free = graph.transfer({.route = graph.route({graph.unlimited_link(), graph.unlimited_link()}), .delay = 3 * us, .reduction = 1 * us});
  const auto times = run(graph);
  EXPECT_EQ(times[busy].sent, Picoseconds{20'000'000});
  EXPECT_EQ(times[empty].sent, Picoseconds{1'000'000});
  EXPECT_EQ(times[here].received, Picoseconds{2'000'000});
  EXPECT_EQ(times[free].sent, Picoseconds{3'000'000});
  EXPECT_EQ(times[free].received, Picoseconds{4'000'000});
}

TEST(SimgridFlow, UnlimitedLinksOnARouteDoNotMatter) {
  TestGraph graph{2};
  const auto t = graph.transfer({.route = graph.route({graph.unlimited_link(), graph.link(50 * GB), graph.unlimited_link()})});
  EXPECT_EQ(run(graph)[t].sent, Picoseconds{20'000'000});
}

TEST(SimgridFlow, ReductionDelaysReceivedAlone) {
  TestGraph graph{2};
  const auto t = graph.transfer({.route = graph.route({graph.link(50 * GB)}), .reduction = 5 * us});
  const auto after_sent = graph.dma(0, 1 * us, {sent(t)});
  const auto after_received = graph.dma(1, 1 * us, {received(t)});
  const auto times = run(graph);
  EXPECT_EQ(times[t].sent, Picoseconds{20'000'000});
  EXPECT_EQ(times[t].received, Picoseconds{25'000'000});
  EXPECT_EQ(times[after_sent].start, Picoseconds{20'000'000});
  EXPECT_EQ(times[after_received].start, Picoseconds{25'000'000});
}

// ---- Sharing --------------------------------------------------------------------------------------------------------------------------

TEST(SimgridSharing, FlowsOnOneLinkShareItEqually) {
  TestGraph graph{2};
  const auto route = graph.route({graph.link(50 * GB)});
  std::vector<std::uint32_t> flows;
  for (int i = 0; i < 10; ++i) flows.push_back(graph.transfer({.route = route, .bytes = (i + 1) * MB, .delay = 1 * us}));
  const auto times = run(graph);
  // Flow i leaves when all have moved (i+1) MB or are gone.
  double moved = 0;
  for (int i = 0; i < 10; ++i) {
    moved += (10 - i) * MB;
    EXPECT_AT(times[flows[static_cast<std::size_t>(i)]].sent, 1 * us + moved / (50 * GB));
  }
}

TEST(SimgridSharing, ALatecomerTakesHalfFromThenOn) {
  TestGraph graph{2};
  const auto route = graph.route({graph.link(50 * GB)});
  const auto early = graph.transfer({.route = route, .bytes = 1 * MB});
  const auto late = graph.transfer({.route = route, .bytes = 1 * MB, .delay = 10 * us});
  const auto times = run(graph);
  EXPECT_AT(times[early].sent, 30 * us);  // 0.5 MB uncontended, 0.5 MB at half speed
  EXPECT_AT(times[late].sent, 40 * us);
}

TEST(SimgridSharing, TheNumberOfHopsDoesNotWeigh) {
  TestGraph graph{3};
  const auto first = graph.link(50 * GB), second = graph.link(50 * GB);
  const auto one_hop = graph.transfer({.route = graph.route({first}), .delay = 2 * us});
  const auto two_hops = graph.transfer({.to = 2, .route = graph.route({first, second}), .delay = 2 * us});
  const auto times = run(graph);
  EXPECT_AT(times[one_hop].sent, 42 * us);
  EXPECT_AT(times[two_hops].sent, 42 * us);
}

TEST(SimgridSharing, OppositeDirectionsDoNotDisturbEachOther) {
  TestGraph graph{2};
  const auto there = graph.transfer({.route = graph.route({graph.link(50 * GB)})});
  const auto back = graph.transfer({.from = 1, .to = 0, .route = graph.route({graph.link(50 * GB)})});
  const auto times = run(graph);
  EXPECT_EQ(times[there].sent, Picoseconds{20'000'000});
  EXPECT_EQ(times[back].sent, Picoseconds{20'000'000});
}

TEST(SimgridSharing, MaxMinInExactFractions) {
  // Links A = 10, B = 20 GB/s. Flows: a, b on A; ab on A and B; c on B. A is tight: a = b = ab = 10/3. c takes what is left of B: 50/3.
  TestGraph graph{4};
  const auto A = graph.link(10 * GB), B = graph.link(20 * GB);
  const auto a = graph.transfer({.route = graph.route({A}), .bytes = 10 * MB});
  const auto b = graph.transfer({.route = graph.route({A}), .bytes = 20 * MB});
  const auto ab = graph.transfer({.route = graph.route({A, B}), .bytes = 30 * MB});
  const auto c = graph.transfer({.route = graph.route({B}), .bytes = 100 * MB});
  const auto times = run(graph);
  // Until 3 ms: a moves its 10 MB; b, ab too; c 50 MB.
  EXPECT_AT(times[a].sent, 3e-3);
  // Then b = ab = 5, c = 15 GB/s; b has 10 MB left: 2 ms. ab moves 10, c 30 MB.
  EXPECT_AT(times[b].sent, 5e-3);
  // Then ab = c = 10 GB/s, limited by A and by B at once; ab has 10 MB left, c 20: 1 ms; then c alone at 20 GB/s has 10 MB: 0.5 ms.
  EXPECT_AT(times[ab].sent, 6e-3);
  EXPECT_AT(times[c].sent, 6.5e-3);
}

// ---- Waits, halves, the core ----------------------------------------------------------------------------------------------------------

TEST(SimgridTransfer, StartsWhenBothHalvesAreReady) {
  TestGraph graph{2};
  const auto route = graph.route({graph.link(50 * GB)});
  const auto sender = graph.dma(0, 3 * us), receiver = graph.dma(1, 7 * us), slower = graph.dma(0, 9 * us);
  const auto late_receiver = graph.transfer({.route = route, .delay = 1 * us, .send = {done(sender)}, .receive = {done(receiver)}});
  const auto late_sender = graph.transfer({.route = graph.route({graph.link(50 * GB)}), .send = {done(slower)}, .receive = {done(receiver)}});
  const auto times = run(graph);
  EXPECT_EQ(times[late_receiver].start, Picoseconds{7'000'000});
  EXPECT_EQ(times[late_receiver].sent, Picoseconds{28'000'000});
  EXPECT_EQ(times[late_sender].start, Picoseconds{9'000'000});
  EXPECT_EQ(times[late_sender].sent, Picoseconds{29'000'000});
}

TEST(SimgridTransfer, HoldsNoLinkDuringItsDelay) {
  TestGraph graph{2};
  const auto route = graph.route({graph.link(50 * GB)});
  const auto one = graph.transfer({.route = route, .delay = 20 * us});
  const auto other = graph.transfer({.route = route});
  const auto times = run(graph);
  EXPECT_EQ(times[one].start, Picoseconds{0});
  EXPECT_EQ(times[other].sent, Picoseconds{20'000'000});
  EXPECT_EQ(times[one].sent, Picoseconds{40'000'000});
}

TEST(SimgridCore, RunsInProgramOrderWhateverIsReady) {
  TestGraph graph{2};
  const auto t = graph.transfer({.route = graph.route({graph.link(50 * GB)})});  // 20 us, not on the core
  const auto late = graph.core(1, 5 * us, {received(t)});
  const auto ready = graph.core(1, 5 * us);
  const auto beside = graph.dma(1, 5 * us);
  const auto last = graph.core(1, 0);
  const auto times = run(graph);
  EXPECT_EQ(times[late].start, Picoseconds{20'000'000});
  EXPECT_EQ(times[ready].start, Picoseconds{25'000'000});
  EXPECT_EQ(times[beside].start, Picoseconds{0});
  EXPECT_EQ(times[last].received, Picoseconds{30'000'000});
}

TEST(SimgridCore, SharesHoldTheCoreBehindATaskAndBeforeTheFirst) {
  TestGraph graph{2};
  graph.shares_first(0, 3 * us);
  const auto first = graph.core(0, 4 * us, {}, 2 * us);
  const auto beside = graph.dma(0, 1 * us);
  const auto second = graph.core(0, 1 * us, {}, 5 * us);
  const Simulation simulation = *simulate(graph.build());
  EXPECT_EQ(simulation.times[first].start, Picoseconds{3'000'000});
  EXPECT_EQ(simulation.times[beside].start, Picoseconds{0});
  EXPECT_EQ(simulation.times[second].start, Picoseconds{9'000'000});
  EXPECT_EQ(simulation.cores_end, Picoseconds{15'000'000});
}

TEST(SimgridTimes, RoundToTheNearestPicosecond) {
  TestGraph graph{1};
  const auto down = graph.dma(0, 1.4e-12), up = graph.dma(0, 1.6e-12);
  const auto chained = graph.dma(0, 1.4e-12, {done(down)});  // 2.8 ps: rounded once, not per step
  const auto times = run(graph);
  EXPECT_EQ(times[down].received, Picoseconds{1});
  EXPECT_EQ(times[up].received, Picoseconds{2});
  EXPECT_EQ(times[chained].received, Picoseconds{3});
}

TEST(SimgridTimes, AChainOfShortTransfersOverSecondsLosesNothing) {
  TestGraph graph{2};
  const auto route = graph.route({graph.link(1 * GB)});
  std::uint32_t last = graph.dma(0, 100);  // the clock's resolution is at its worst
  for (int i = 0; i < 1000; ++i) last = graph.transfer({.route = route, .bytes = 1000, .delay = 1 * us, .send = {sent(last)}});
  EXPECT_NEAR(seconds(run(graph)[last].received), 100.002, 1000 * 2e-14 + 1e-12);
}

// ---- What goes wrong ------------------------------------------------------------------------------------------------------------------

TEST(SimgridStuck, CoreOrderAgainstAnEdge) {
  TestGraph graph{1};
  graph.core(0, 1 * us, {done(1)});
  graph.core(0, 1 * us);
  graph.dma(0, 1 * us);  // not concerned
  const auto simulation = simulate(graph.build());
  ASSERT_TRUE(simulation);
  EXPECT_THAT(simulation->finished, ElementsAre(false, false, true));
  EXPECT_TRUE(simulation->times.empty());
}

TEST(SimgridStuck, ACycleAcrossDevices) {
  TestGraph graph{3};
  const auto route = graph.route({graph.link(50 * GB)});
  graph.transfer({.from = 0, .to = 1, .route = route, .receive = {sent(1)}});  // into a slot that device 1 still has to send from
  graph.transfer({.from = 1, .to = 0, .route = route, .receive = {sent(0)}});
  graph.dma(2, 1 * us, {received(0)});
  graph.dma(2, 1 * us);
  const auto simulation = simulate(graph.build());
  ASSERT_TRUE(simulation);
  EXPECT_THAT(simulation->finished, ElementsAre(false, false, false, true));
}

// ---- The run --------------------------------------------------------------------------------------------------------------------------

TestGraph contended(std::uint64_t seed) {
  Rng rng{seed};
  TestGraph graph{16};
  std::vector<LinkId> links;
  for (int i = 0; i < 24; ++i) links.push_back(graph.link((10 + 10 * static_cast<double>(rng.below(5))) * GB));
  std::vector<std::uint32_t> last(16);
  for (int d = 0; d < 16; ++d) last[static_cast<std::size_t>(d)] = graph.core(d, rng.uniform() * 10 * us);
  for (int i = 0; i < 400; ++i) {
    std::vector<LinkId> route;
    for (std::size_t at = rng.below(8); at < links.size(); at += 1 + rng.below(12)) route.push_back(links[at]);
    const auto from = rng.below(16), to = (from + 1 + rng.below(15)) % 16;
    last[to] = graph.transfer({.from = static_cast<int>(from),
                               .to = static_cast<int>(to),
                               .route = graph.route(route),
                               .bytes = rng.uniform() * MB,
                               .delay = rng.uniform() * us,
                               .send = {received(last[from])},
                               .receive = {received(last[to])}});
  }
  return graph;
}

TEST(SimgridRun, RepeatsToTheBitAlsoWithinOneProcess) {
  const auto first = run(contended(1)), other = run(contended(2)), again = run(contended(1));
  ASSERT_EQ(first.size(), 416U);
  EXPECT_NE(first.back().received, other.back().received);
  for (std::size_t a = 0; a < first.size(); ++a) {
    EXPECT_EQ(first[a].start, again[a].start);
    EXPECT_EQ(first[a].sent, again[a].sent);
    EXPECT_EQ(first[a].received, again[a].received);
  }
}

TEST(SimgridRun, NothingToDoTakesNoTime) {
  const auto simulation = simulate(TestGraph{4}.build());
  ASSERT_TRUE(simulation);
  EXPECT_TRUE(simulation->times.empty());
  EXPECT_TRUE(simulation->finished.empty());
}

// ---- Of schedules: collectives are held to their closed forms where they are defined, on every engine ----------------------------------

struct Ring {
  explicit Ring(int P) : grid{*Grid::make({{P, true, {BytesPerSecond{45 * GB}, Seconds{1 * us}}}})}, mesh{*default_mesh(grid)} {
    placement = *place_row_major(mesh, grid);
    machine.software.per_message = Seconds{0.5 * us};
  }
  [[nodiscard]] Expected<Timeline> run(const Schedule& schedule) const {
    const auto model = make_model(schedule, machine, grid, placement);
    if (!model) return model.error();
    return run_simgrid(*model, {});
  }

  Grid grid;
  Mesh mesh;
  Placement placement;
  Machine machine;
};

TEST(SimgridEngine, ARingAllGatherByHandMeetsItsClosedForm) {
  constexpr int P = 5;
  const Ring ring{P};
  const AxisView axis = ring.mesh.whole(0);
  Program program{every_device(ring.mesh), {{"X", {P, 250'000}, DType::f32, Role::scratch, {}, {}}}, {}};
  for (int step = 0; step + 1 < P; ++step) {
    const auto block_of = [&](int add) { return Region{BufferId{0}, {block(own(axis, add), 1), all(250'000)}}; };
    Task task{"step", Shift{axis, 1, block_of(-step), block_of(-step - 1), Combine::replace, {}}, {}, {}, {}};
    if (step > 0) task.after.push_back(Edge{TaskId{step - 1}});
    program.tasks.push_back(std::move(task));
  }
  const auto timeline = ring.run(Schedule{"gather", ring.mesh, {program}, {}});
  ASSERT_TRUE(timeline) << to_text(timeline.error());
  EXPECT_EQ(timeline->size(), 4U * 5U);
  EXPECT_GT(timeline->events, 0);
  EXPECT_AT(timeline->makespan, 4 * (1.5 * us + 1e6 / (45 * GB)));
}

TEST(SimgridEngine, TwoDevicesThatWaitForEachOtherAreNamed) {
  const Ring ring{2};
  const Region whole{BufferId{0}, {all(8)}};
  const auto program = [&](int device, int sends, int receives) {
    Program result{{{{device, device + 1}}}, {{"X", {8}, DType::f32, Role::scratch, {}, {}}}, {}};
    result.tasks.push_back({"get", Recv{receives, {Affine{1 - device}}, whole, Combine::replace}, {}, {}, {}});
    result.tasks.push_back({"give", Send{sends, {Affine{1 - device}}, whole, {}}, {Edge{TaskId{0}}}, {}, {}});
    return result;
  };
  const auto timeline = ring.run(Schedule{"stuck", ring.mesh, {program(0, 0, 1), program(1, 1, 0)}, {}});
  ASSERT_FALSE(timeline);
  EXPECT_THAT(to_text(timeline.error()), AllOf(HasSubstr("\"give\" on device 0"), HasSubstr("waits for"), HasSubstr("\"give\" on device 1")));
}

}  // namespace
}  // namespace podsim::simgrid_engine
