#include "sim/analysis/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/test_cases.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/engine/table/test_line.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::after, testing::between, testing::copy, testing::ideal_machine, testing::Line;
using testing::part, testing::plain_machine, testing::shift, testing::small_system, testing::SmallSystem, testing::Writer;

constexpr Picoseconds nanoseconds(std::int64_t count) { return Picoseconds{1000 * count}; }

struct Measured {
  Metrics metrics;
  CostedGraph costs;
  Timeline timeline;
};
Measured run(const SmallSystem& pod, const Schedule& schedule) {
  auto costs = testing::cost(schedule, pod.machine, pod.grid, pod.placement);
  auto timeline = testing::run(pod, schedule, "analytic");
  EXPECT_TRUE(costs && timeline) << to_text(timeline.error());
  const Metrics metrics = measure(*testing::model_of(pod, schedule), *timeline);
  return {metrics, *std::move(costs), *std::move(timeline)};
}

// ---- The three parts of the time ------------------------------------------------------------------------------------------------------

TEST(Metrics, ComputeExposedAndWaitingByHand) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  s.work("work", 200, 0);                      // 0: 0..200
  const TaskId move = s.move("move", 300, 0);  // 0 -> 1: 0..300
  s.work("after", 100, 0, {after(move)});      // 0: 300..400
  s.work("use", 100, 1, {after(move)});        // 1: 300..400
  s.work("late", 150, 1);                      // 1: 400..550
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(550));
  EXPECT_EQ(m.busiest, DeviceId{0});
  EXPECT_EQ(m.split.compute, nanoseconds(300));
  EXPECT_EQ(m.split.exposed_communication, nanoseconds(100)) << "from 200 to 300, when the core is idle and the send in flight";
  EXPECT_EQ(m.split.waiting, nanoseconds(150));
  EXPECT_EQ(m.tasks, 5) << "a transfer once";
}

TEST(Metrics, ATieGoesToTheLowestDevice) {
  const SmallSystem pod = small_system(plain_machine(), {3});
  Line s{pod};
  s.work("one", 100, 1);
  s.work("two", 100, 2);
  s.work("less", 99, 0);
  EXPECT_EQ(run(pod, s.w.schedule).metrics.busiest, DeviceId{1});
}

TEST(Metrics, AHalfIsInFlightUntilItsOwnEnd) {
  // The sum takes 50 ns at the receiver alone: exposed there, not at the sender.
  Machine machine = plain_machine();
  machine.chip.reduce_bandwidth = BytesPerSecond{8e9};
  const SmallSystem pod = small_system(machine, {2});
  for (const int busiest : {0, 1}) {
    Line s{pod};
    s.move("move", 100, 0, {}, Combine::add);  // 0..100, received 150
    s.work("busy", 10, busiest);
    const Metrics m = run(pod, s.w.schedule).metrics;
    EXPECT_EQ(m.busiest, DeviceId{busiest});
    EXPECT_EQ(m.makespan, nanoseconds(150));
    EXPECT_EQ(m.split.exposed_communication, busiest == 0 ? nanoseconds(90) : nanoseconds(140));
    EXPECT_EQ(m.split.waiting, busiest == 0 ? nanoseconds(50) : nanoseconds(0));
  }
}

TEST(Metrics, LaunchAndLatencyOfATransferAreInFlight) {
  Machine machine = plain_machine();
  machine.link.fill({BytesPerSecond{4e9}, Seconds{20e-9}});
  machine.software.per_message = Seconds{30e-9};
  machine.software.launch[static_cast<std::size_t>(CostKind::permute)] = Seconds{40e-9};
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.work("busy", 10, 0);
  s.move("move", 100, 0);  // 90 of overheads, 100 of bytes
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(190));
  EXPECT_EQ(m.split.exposed_communication, nanoseconds(180));
  EXPECT_EQ(m.split.waiting, nanoseconds(0));
}

TEST(Metrics, ATransferIsInFlightOnceBothSidesAreReady) {
  // The sender is ready at 0, the receiver at 200: until then the sender waits.
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  s.work("busy", 30, 0);
  const TaskId slot = s.w.add("slot", copy(part(s.a, 0, 200), part(s.a, 0, 200), Unit::dma), {}, between(s.x, 1, 2));
  s.move("move", 100, 0, {after(slot)});
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(300));
  EXPECT_EQ(m.busiest, DeviceId{0});
  EXPECT_EQ(m.split.exposed_communication, nanoseconds(100));
  EXPECT_EQ(m.split.waiting, nanoseconds(170));
}

TEST(Metrics, TransfersThatOverlapCountOnce) {
  const SmallSystem pod = small_system(plain_machine(), {3}, false);
  Line s{pod};
  s.move("in", 100, 0);
  s.move("out", 150, 1);
  s.work("busy", 20, 1);
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.busiest, DeviceId{1});
  EXPECT_EQ(m.split.exposed_communication, nanoseconds(130));
}

TEST(Metrics, ACollectivesLaunchIsCommunicationInFlight) {
  Machine machine = plain_machine();
  machine.software.launch[static_cast<std::size_t>(CostKind::all_gather)] = Seconds{70e-9};
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.work("busy", 20, 0);
  const TaskId start = s.w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma});
  s.w.task(start).origin = Origin{0, CollectiveKind::all_gather, s.x, Bytes{4}};
  s.w.add("dma", copy(part(s.a, 0, 100), part(s.a, 0, 100), Unit::dma));  // an algorithm's own dma work is none
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(100));
  EXPECT_EQ(m.split.compute, nanoseconds(20));
  EXPECT_EQ(m.split.exposed_communication, nanoseconds(50));
  EXPECT_EQ(m.split.waiting, nanoseconds(30));
}

TEST(Metrics, TheSumThatEndsAReduceScatterOnALineIsNoCommunication) {
  // It is the dma unit's own work, though a Collective's: an idle core waits for it.
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  s.work("busy", 20, 0);
  const TaskId join = s.w.add("join", Local{LocalKind::add, {part(s.a, 0, 100), part(s.a, 100, 100)}, {part(s.a, 0, 100)}, 1, Unit::dma});
  s.w.task(join).origin = Origin{0, CollectiveKind::reduce_scatter, s.x, Bytes{4}};
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(150));
  EXPECT_EQ(m.split, (TimeSplit{nanoseconds(20), nanoseconds(0), nanoseconds(130)}));
}

TEST(Metrics, ACoreShareIsExposedCommunicationAndComesInPieces) {
  Machine machine = plain_machine();
  machine.software.core_share[static_cast<std::size_t>(CostKind::permute)] = 0.25;
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.work("before", 40, 0);  // 0..40
  s.move("move", 200, 0);   // waits for nothing: 0..200; of the core 40..65 and 125..150
  s.work("behind", 60, 0);  // 65..125
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(200));
  EXPECT_EQ(m.split.compute, nanoseconds(40 + 60));
  EXPECT_EQ(m.split.exposed_communication, nanoseconds(50 + 50));
  EXPECT_EQ(m.split.waiting, nanoseconds(0));
}

TEST(Metrics, ACoreShareThatEndsLastEndsTheRun) {
  Machine machine = plain_machine();
  machine.software.core_share[static_cast<std::size_t>(CostKind::permute)] = 1;
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.work("before", 40, 0);
  s.move("move", 200, 0);  // 0..200; of the core 40..240
  const Measured r = run(pod, s.w.schedule);
  EXPECT_EQ(r.metrics.makespan, nanoseconds(240));
  EXPECT_EQ(r.metrics.split, (TimeSplit{nanoseconds(40), nanoseconds(200), nanoseconds(0)}));
}

TEST(Metrics, TheCoreIsTakenWhenItComesToASendEvenIfTheReceiverIsLate) {
  Machine machine = plain_machine();
  machine.software.core_share[static_cast<std::size_t>(CostKind::permute)] = 0.25;
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  const TaskId slot = s.w.add("slot", copy(part(s.a, 0, 300), part(s.a, 0, 300), Unit::dma), {}, between(s.x, 1, 2));
  s.move("move", 200, 0, {after(slot)});  // the core 0..25 and 85..110; in flight 300..500
  s.work("behind", 60, 0);                // 25..85
  const Measured r = run(pod, s.w.schedule);
  EXPECT_EQ(r.metrics.makespan, nanoseconds(500));
  EXPECT_EQ(r.metrics.split.compute, nanoseconds(60));
  EXPECT_EQ(r.metrics.split.exposed_communication, nanoseconds(200 + 50));
  EXPECT_EQ(r.metrics.split.waiting, nanoseconds(190));
}

TEST(Metrics, WhatDmaWorkTakesOfTheCoreIsNeitherWorkNorCommunication) {
  Machine machine = plain_machine();
  machine.software.core_share[static_cast<std::size_t>(CostKind::local)] = 0.25;
  const SmallSystem pod = small_system(machine, {1});
  Line s{pod};
  s.w.add("dma", copy(part(s.a, 0, 400), part(s.a, 0, 400), Unit::dma));  // 0..400, the core 0..50 and 100..150
  s.work("work", 50, 0);                                                  // 50..100
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(400));
  EXPECT_EQ(m.split, (TimeSplit{nanoseconds(50), nanoseconds(0), nanoseconds(350)}));
}

TEST(Metrics, NothingTakesNoTime) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  const Writer w{pod.mesh};
  const Metrics m = run(pod, w.schedule).metrics;
  EXPECT_EQ(m.makespan, nanoseconds(0));
  EXPECT_EQ(m.busiest, DeviceId{0});
  EXPECT_EQ(m.split.compute, nanoseconds(0));
  EXPECT_EQ(m.split.exposed_communication, nanoseconds(0));
  EXPECT_EQ(m.split.waiting, nanoseconds(0));
  EXPECT_EQ(m.mfu, std::nullopt);
  EXPECT_EQ(m.peak_memory, Bytes{0});
}

/// What the busiest device did in every stretch between two changes.
std::array<std::int64_t, 3> plain_parts(const Schedule& schedule, const Measured& r) {
  struct Stretch {
    std::int64_t begin, end;
    bool core;
  };
  std::vector<Stretch> stretches;
  std::set<std::int64_t> changes{0, r.timeline.makespan.count()};
  for (const Span& span : spans_of(r.costs.graph, r.timeline)) {
    if (span.device != r.metrics.busiest) continue;
    const std::size_t program = *program_of(schedule, span.device);
    const Op& op = schedule.programs[program].tasks[span.task.index()].op;
    const auto* local = std::get_if<Local>(&op);
    if (span.part == Span::Part::work && local && local->unit == Unit::dma) continue;
    stretches.push_back({span.start.count(), span.end.count(), span.part == Span::Part::work});
    changes.insert({span.start.count(), span.end.count()});
  }
  std::array<std::int64_t, 3> parts{};
  for (auto begin = changes.begin(), end = std::next(begin); end != changes.end(); ++begin, ++end) {
    bool core = false, flight = false;
    for (const Stretch& stretch : stretches)
      if (stretch.begin <= *begin && *end <= stretch.end) (stretch.core ? core : flight) = true;
    parts[core ? 0 : flight ? 1 : 2] += *end - *begin;
  }
  return parts;
}

TEST(Metrics, OfRandomSchedulesAreWhatGoingThroughEveryStretchGives) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.careless = false});
    if (!topological_order(unroll(schedule).graph, schedule, true).cycle.empty()) continue;
    Rng rng{seed};
    Machine machine = ideal_machine(rng.between(1, 9) * 1e8, rng.between(0, 3) * 1e-8);
    machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
    machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
    machine.software.per_message = Seconds{rng.between(0, 3) * 1e-8};
    machine.software.launch.fill(Seconds{rng.between(0, 3) * 1e-8});
    std::vector<int> extents;
    std::vector<std::pair<std::string, int>> sizes;
    for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    const Measured r = run(small_system(machine, extents, true, sizes), schedule);
    const auto [compute, exposed, waiting] = plain_parts(schedule, r);
    ASSERT_EQ(r.metrics.split.compute.count(), compute);
    ASSERT_EQ(r.metrics.split.exposed_communication.count(), exposed);
    ASSERT_EQ(r.metrics.split.waiting.count(), waiting);
    // With core shares the parts still add up.
    machine.software.core_share.fill(rng.uniform());
    const SmallSystem shared = small_system(machine, extents, true, sizes);
    const Metrics m = run(shared, schedule).metrics;
    ASSERT_EQ(m.split.compute + m.split.exposed_communication + m.split.waiting, m.makespan);
    ASSERT_GE(m.split.exposed_communication, nanoseconds(0));
    ASSERT_GE(m.split.waiting, nanoseconds(0));
    ++compared;
  }
  EXPECT_GT(compared, 150);
}

// ---- Work and traffic -----------------------------------------------------------------------------------------------------------------

TEST(Metrics, MfuIsUnpaddedFlopsOverAllDevicesPeaks) {
  Machine machine = ideal_machine();
  machine.chip.peak.fill(FlopsPerSecond{1e12});
  machine.chip.matmul_tile_m = machine.chip.matmul_tile_n = machine.chip.matmul_tile_k = 16;
  const SmallSystem pod = small_system(machine, {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {10, 10}), b = w.scratch("b", {10, 10}), c = w.scratch("c", {10, 10});
  w.add("both", testing::product(a, b, c, 10, 10, 10));
  w.add("one", testing::product(a, b, c, 10, 10, 10), {after(TaskId{0})}, between(w.axis(0), 0, 1));
  const Metrics m = run(pod, w.schedule).metrics;
  EXPECT_EQ(m.makespan, Picoseconds{2 * 8192});
  EXPECT_DOUBLE_EQ(m.flops.count(), 3 * 2000);
  ASSERT_TRUE(m.mfu);
  EXPECT_DOUBLE_EQ(*m.mfu, 6000 / (2 * 1e12 * 2 * 8192e-12));
}

TEST(Metrics, MfuHoldsEachProductToThePeakOfItsOwnType) {
  Machine machine = ideal_machine();
  machine.chip.peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{4e12};
  machine.chip.peak[tf32_peak] = FlopsPerSecond{1e12};  // that of float32 products by default
  const SmallSystem pod = small_system(machine, {1});
  Writer w{pod.mesh};
  const auto product = [&](DType dtype) {
    const BufferId a = w.scratch("a", {10, 10}, dtype), b = w.scratch("b", {10, 10}, dtype), c = w.scratch("c", {10, 10}, dtype);
    w.add("product", testing::product(a, b, c, 10, 10, 10));
  };
  product(DType::bf16);
  product(DType::f32);
  product(DType::bf16);
  const Metrics m = run(pod, w.schedule).metrics;
  EXPECT_EQ(m.makespan, Picoseconds{500 + 2000 + 500});
  ASSERT_TRUE(m.mfu);
  EXPECT_DOUBLE_EQ(*m.mfu, 1) << "nothing but products at their peaks";
}

TEST(Metrics, SolvingCountsAsItsFormula) {
  Machine machine = ideal_machine();
  machine.chip.peak[static_cast<std::size_t>(DType::f32)] = machine.chip.peak[tf32_peak] = FlopsPerSecond{1e12};
  const SmallSystem pod = small_system(machine, {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {3, 12, 12}), b = w.scratch("b", {3, 12, 2}), x = w.scratch("x", {3, 12, 2});
  w.add("solve", Local{LocalKind::solve, {{a, {all(3), all(12), all(12)}}, {b, {all(3), all(12), all(2)}}}, {{x, {all(3), all(12), all(2)}}}});
  const Metrics m = run(pod, w.schedule).metrics;
  const double each = 2.0 / 3 * 12 * 12 * 12 + 2 * 12 * 12 * 2;
  EXPECT_DOUBLE_EQ(m.flops.count(), 2 * 3 * each);  // on two devices, three systems
  ASSERT_TRUE(m.mfu);
  EXPECT_NEAR(*m.mfu, 1, 1e-3);
}

TEST(Metrics, WithoutMatmulsThereIsNoMfu) {
  const SmallSystem pod = small_system(plain_machine(), {1});
  Line s{pod};
  s.work("copy", 100, 0);
  const Metrics m = run(pod, s.w.schedule).metrics;
  EXPECT_EQ(m.mfu, std::nullopt);
  EXPECT_EQ(m.flops, Flops{});
}

TEST(Metrics, LinkBytesArePayloadTimesHops) {
  // Injection and ejection are no hops, inefficiency is no payload.
  Machine machine = plain_machine();
  machine.chip.injection_bandwidth = machine.chip.ejection_bandwidth = BytesPerSecond{1e9};
  machine.software.efficiency[static_cast<std::size_t>(CostKind::permute)] = {{Bytes{1}, 0.5}};
  const SmallSystem pod = small_system(machine, {8});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  w.add("three hops", shift(w.axis(0), 3, part(a, 0, 10), part(a, 10, 10)));
  w.add("one hop", shift(w.axis(0), -1, part(a, 0, 5), part(a, 10, 5)), {}, between(w.axis(0), 0, 1));
  EXPECT_DOUBLE_EQ(run(pod, w.schedule).metrics.link_bytes, 8 * 40 * 3 + 20 * 1);
}

// ---- By axis, device and link ---------------------------------------------------------------------------------------------------------

TEST(Metrics, EachAxisHasItsTrafficAndItsTimeOnTheBusiestDevice) {
  // On device (0,0): a copy 0..100, row out and in 0..200 (two hops, two flows a link), col 200..500; Sends from 500 to 560 there.
  const SmallSystem pod = small_system(plain_machine(), {4, 3});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  const AxisView row = w.axis(0), col = w.axis(1);
  w.add("copy", copy(part(a, 0, 100), part(a, 0, 100)));
  const TaskId rows = w.add("rows", shift(row, 2, part(a, 0, 100), part(a, 100, 100)));
  const TaskId cols = w.add("cols", shift(col, 1, part(a, 0, 300), part(a, 300, 300)), {after(rows)});
  const Guard corner{{own(row, 0, false), 0, 1}, {own(col, 0, false), 0, 1}}, next{{own(row, 0, false), 1, 2}, {own(col, 0, false), 0, 1}};
  w.add("send", Send{0, {own(row, 1), own(col)}, part(a, 0, 60), {}}, {after(cols)}, corner);
  w.add("receive", Recv{0, {own(row, -1), own(col)}, part(a, 600, 60), Combine::replace}, {}, next);
  const SmallSystem& p = pod;
  const auto model = testing::model_of(p, w.schedule);
  const auto timeline = testing::run(p, w.schedule, "des");
  const Metrics m = measure(*model, *timeline);
  EXPECT_EQ(m.makespan, nanoseconds(560));
  ASSERT_EQ(m.axes.size(), 3U);
  EXPECT_EQ(m.axes[0], (AxisMetrics{0, 12 * 400.0 * 2, 12, nanoseconds(200), nanoseconds(100)})) << "the core is busy until 100";
  EXPECT_EQ(m.axes[1], (AxisMetrics{1, 12 * 1200.0, 12, nanoseconds(300), nanoseconds(300)}));
  EXPECT_EQ(m.axes[2], (AxisMetrics{-1, 240.0, 1, nanoseconds(60), nanoseconds(60)})) << "Sends last";
  EXPECT_EQ(m.link_bytes, 9600.0 + 14400.0 + 240.0);
  EXPECT_EQ(m.tasks, 12 + 12 + 12 + 1);
  EXPECT_EQ(m.busiest, DeviceId{0});
  EXPECT_EQ(m.split, (TimeSplit{nanoseconds(100), nanoseconds(460), nanoseconds(0)}));
}

TEST(Metrics, EachDeviceHasItsSplitItsBytesAndItsPeak) {
  const SmallSystem pod = small_system(plain_machine(), {3}, false);
  Line s{pod};
  s.work("work", 50, 1);                               // 1: 0..50
  const TaskId move = s.move("move", 200, 0);          // 0 -> 1: 0..200
  s.move("on", 100, 1, {after(move, Half::receive)});  // 1 -> 2: 200..300
  const auto model = testing::model_of(pod, s.w.schedule);
  const auto timeline = testing::run(pod, s.w.schedule, "des");
  const auto devices = measure_devices(*model, *timeline);
  ASSERT_EQ(devices.size(), 3U);
  const std::vector<TimeSplit> splits{{nanoseconds(0), nanoseconds(200), nanoseconds(100)},
                                      {nanoseconds(50), nanoseconds(250), nanoseconds(0)},
                                      {nanoseconds(0), nanoseconds(100), nanoseconds(200)}};
  const std::vector<std::int64_t> sent{800, 400, 0}, received{0, 800, 400}, peak{0, 4000, 4000};
  for (std::size_t d = 0; d < 3; ++d) {
    EXPECT_EQ(devices[d].device, DeviceId{d});
    EXPECT_EQ(devices[d].devices, 1U);
    EXPECT_EQ(devices[d].split, splits[d]) << d;
    EXPECT_EQ(devices[d].sent, Bytes{sent[d]}) << d;
    EXPECT_EQ(devices[d].received, Bytes{received[d]}) << d;
    EXPECT_EQ(devices[d].peak_memory, Bytes{peak[d]}) << d << ": a scratch buffer lives from its first write; what is only read is not there";
  }
}

TEST(Metrics, EachLinkThatCarriedSomethingHasItsBytesAndItsUse) {
  const SmallSystem pod = small_system(plain_machine(), {4}, false);
  Line s{pod};
  s.w.add("two hops", shift(s.x, 2, part(s.a, 0, 100), part(s.a, 0, 100)), {},
          between(s.x, 0, 1));  // links of 0 and 1 until 150 (shared from 0 to 100)
  s.move("one", 50, 1);
  const auto model = testing::model_of(pod, s.w.schedule);
  const auto timeline = testing::run(pod, s.w.schedule, "des");
  EXPECT_EQ(timeline->makespan, nanoseconds(150));
  const auto links = measure_links(*model, *timeline);
  ASSERT_EQ(links.size(), 5U);  // and the memories of the three devices that send or receive
  EXPECT_EQ(links[0].link, *pod.grid.link_from(ChipId{0}, 0, 1));
  EXPECT_EQ(links[1].link, *pod.grid.link_from(ChipId{1}, 0, 1));
  EXPECT_EQ(links[0].links, 1U);
  EXPECT_EQ(links[0].bytes, 400.0);
  EXPECT_EQ(links[1].bytes, 600.0);
  EXPECT_DOUBLE_EQ(links[0].utilisation, 400 / (4e9 * 150e-9));
  EXPECT_DOUBLE_EQ(links[1].utilisation, 1);
  EXPECT_EQ(links[3].memory_of, DeviceId{1});
  EXPECT_EQ(links[3].bytes, 200.0);
  EXPECT_EQ(links[4].memory_of, DeviceId{2});
  EXPECT_EQ(links[4].bytes, 600.0) << "written where it arrives";
}

TEST(Metrics, TheMemoryOfADeviceSeesWorkAndWhatIsAddedTwice) {
  Machine machine = plain_machine();
  machine.chip.transfer_memory_passes = 0.5;
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.w.add("work", copy(part(s.a, 0, 100), part(s.a, 100, 100)), {}, between(s.x, 0, 1));
  Shift add = shift(s.x, 1, part(s.a, 0, 50), part(s.a, 200, 50));
  add.combine = Combine::add;
  s.w.add("add", std::move(add), {}, between(s.x, 0, 1));
  const auto model = testing::model_of(pod, s.w.schedule);
  const auto links = measure_links(*model, *testing::run(pod, s.w.schedule, "des"));
  ASSERT_EQ(links.size(), 3U);
  EXPECT_EQ(links[1].bytes, 800.0 + 100.0) << "the copy reads and writes 400 bytes each, the transfer reads 200 half";
  EXPECT_EQ(links[2].bytes, 200.0) << "read and written, half each";
}

TEST(Metrics, OfAFoldedRunCountEveryMemberOfAClass) {
  const SmallSystem pod = small_system(plain_machine(), {8});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  w.add("three", shift(w.axis(0), 3, part(a, 0, 10), part(a, 10, 10)));
  const Model model = *make_folded_model(w.schedule, pod.machine, pod.grid, pod.placement);
  ASSERT_EQ(model.nodes(), 1U);
  const auto timeline = (*timing_engine("des"))->run(model, {});
  const Metrics m = measure(model, *timeline);
  EXPECT_EQ(m.makespan, nanoseconds(30));
  EXPECT_EQ(m.tasks, 8);
  EXPECT_EQ(m.link_bytes, 8 * 40.0 * 3);
  const auto devices = measure_devices(model, *timeline);
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].devices, 8U);
  EXPECT_EQ(devices[0].sent, Bytes{40});
  EXPECT_EQ(devices[0].received, Bytes{40});
  const auto links = measure_links(model, *timeline);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[1].links, 8U) << "memories";
  EXPECT_EQ(links[1].bytes, 80.0);
  EXPECT_EQ(links[0].links, 8U);
  EXPECT_EQ(links[0].bytes, 120.0) << "on each";
  EXPECT_DOUBLE_EQ(links[0].utilisation, 1);
}

// ---- Without a timeline ---------------------------------------------------------------------------------------------------------------

void expect_equal(const Metrics& read, const Metrics& measured) {
  EXPECT_EQ(read.makespan, measured.makespan);
  EXPECT_EQ(read.busiest, measured.busiest);
  EXPECT_EQ(read.split, measured.split);
  EXPECT_EQ(read.flops, measured.flops);
  EXPECT_EQ(read.mfu, measured.mfu);
  EXPECT_EQ(read.link_bytes, measured.link_bytes);
  EXPECT_EQ(read.peak_memory, measured.peak_memory);
  EXPECT_EQ(read.tasks, measured.tasks);
  EXPECT_EQ(read.axes, measured.axes);
}

/// A reader of this node, or of the one that it guesses, and then of the one that it asks for.
MetricsReader::Measured read_twice(const Model& model, std::optional<std::uint32_t> node, Picoseconds makespan, const std::function<void(TimesReader&)>& play) {
  std::optional<MetricsReader> reader;
  node ? reader.emplace(model, *node) : reader.emplace(model);
  play(*reader);
  if (const auto busiest = reader->still_to_read()) {
    reader.emplace(model, *busiest);
    play(*reader);
    EXPECT_EQ(reader->still_to_read(), std::nullopt);
  }
  return reader->measured(makespan);
}

TEST(MetricsReader, TellsWhatTheTimelineTells) {
  int by_task = 0, others = 0;
  for (std::uint64_t seed = 0, cases = static_cast<std::uint64_t>(test::cases(300, 100)); seed < cases; ++seed) {
    Rng rng{seed, stream_of("metrics reader")};
    testing::RandomScheduleOptions options;
    options.exchanges = seed % 2 == 0;
    options.careless = false;
    options.guards = seed % 3 == 0;
    options.edge_chance = 0.3;
    options.axes = testing::random_axes(rng);
    options.every_kind = seed % 5 == 0;
    Schedule schedule = testing::random_schedule(seed, options);
    const auto world = testing::random_world(schedule.mesh, testing::costly_machine(rng, 1), rng, {.symmetric = seed % 4 > 1});
    if (seed % 7 == 3) testing::split_program(schedule, !options.exchanges, rng);
    auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (model && seed % 3 == 1) model = fold(*std::move(model));
    if (!model) continue;
    const EngineEntry& engine = **timing_engine(seed % 4 == 0 ? "analytic" : "des");
    const auto timeline = engine.run(*model, {});
    if (!timeline) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    const Metrics measured = measure(*model, *timeline);
    const auto node = static_cast<std::uint32_t>(rng.below(model->nodes()));
    others += model->device_of[node] != measured.busiest;
    const auto read = read_twice(*model, node, timeline->makespan, [&](TimesReader& reader) { read_times(*model, *timeline, reader); });
    expect_equal(read.metrics, measured);

    RunControl control;
    control.record = false;
    if (engine.name == "des" && timeline->pass != "max-plus") continue;  // what events and mixed runs tell is the timeline
    const auto told = read_twice(*model, std::nullopt, timeline->makespan, [&](TimesReader& reader) {
      control.reader = &reader;
      const auto run = engine.run(*model, control);
      EXPECT_EQ(run->size(), 0U);
      EXPECT_EQ(run->makespan, timeline->makespan);
    });
    ++by_task;
    expect_equal(told.metrics, measured);
    const std::uint32_t busiest = model->node_of[measured.busiest.index()];
    EXPECT_EQ(device_times(*model, told.timeline, busiest).flights, device_times(*model, *timeline, busiest).flights);
  }
  EXPECT_GE(by_task, 30);
  EXPECT_GE(others, 30);
}

}  // namespace
}  // namespace podsim
