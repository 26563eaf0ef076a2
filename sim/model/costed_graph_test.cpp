#include "sim/model/costed_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/table/testing.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using testing::cost;
using ::testing::ElementsAre;
using testing::ideal_machine;
using ::testing::IsEmpty;
using testing::part;
using testing::shift;
using testing::small_system;
using testing::SmallSystem;
using testing::Writer;

CostedGraph costs_of(const SmallSystem& pod, const Schedule& schedule) {
  auto costs = cost(schedule, pod.machine, pod.grid, pod.placement);
  EXPECT_TRUE(costs) << to_text(costs.error());
  return costs ? *std::move(costs) : CostedGraph{};
}

Seconds& launch(Machine& machine, CostKind kind) { return machine.software.launch[static_cast<std::size_t>(kind)]; }

/// The links of a transfer by name.
std::vector<std::string> route(const SmallSystem& pod, const CostedGraph& costs, std::size_t activity) {
  std::vector<std::string> names;
  for (const LinkId link : costs.routes[costs.transfers[activity].route]) names.push_back(pod.grid.link_name(link));
  return names;
}

/// A shift of 250 elements, 1000 bytes, on a mesh; activity i is sent by device i.
struct OneShift {
  explicit OneShift(const Mesh& mesh, int axis = 0, Affine by = 1) : w{mesh} {
    const BufferId a = w.scratch("a", {500});
    w.add("move", shift(w.axis(axis), std::move(by), part(a, 0, 250), part(a, 250, 250)));
  }
  Shift& op() { return std::get<Shift>(w.task(TaskId{0}).op); }
  Writer w;
};

// ---- What a transfer takes ------------------------------------------------------------------------------------------------------------

TEST(Cost, ATransferIsLaunchMessageAndHopsThenItsBytes) {
  Machine machine = ideal_machine(1e9, 2e-6);
  machine.software.per_message = Seconds{3e-6};
  machine.software.launch.fill(Seconds{1});
  launch(machine, CostKind::permute) = Seconds{5e-6};
  const SmallSystem pod = small_system(machine, {8});
  OneShift one{pod.mesh, 0, 3};
  const CostedGraph lowered_by_hand = costs_of(pod, one.w.schedule);
  const TransferCost& transfer = lowered_by_hand.transfers[0];
  EXPECT_DOUBLE_EQ(transfer.delay.count(), 5e-6 + 3e-6 + 3 * 2e-6);
  EXPECT_EQ(transfer.payload, Bytes{1000});
  EXPECT_DOUBLE_EQ(transfer.flow_bytes, 1000);
  EXPECT_EQ(transfer.reduction, Seconds{});
  EXPECT_DOUBLE_EQ(uncontended(lowered_by_hand, transfer).count(), 14e-6 + 1000 / 1e9);
  // What lowering wrote pays no launch: its Collective has one.
  one.w.task(TaskId{0}).origin = Origin{0, CollectiveKind::all_gather, pod.mesh.whole(0), Bytes{1000}};
  EXPECT_DOUBLE_EQ(costs_of(pod, one.w.schedule).transfers[0].delay.count(), 3e-6 + 3 * 2e-6);
}

TEST(Cost, ASendPaysThePermutesLaunchARecvNothing) {
  Machine machine = ideal_machine(1e9);
  launch(machine, CostKind::permute) = Seconds{5e-6};
  machine.software.per_message = Seconds{1e-6};
  machine.chip.reduce_bandwidth = BytesPerSecond{1e6};
  const SmallSystem pod = small_system(machine, {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4});
  w.add("out", Send{0, testing::neighbour(w.axis(0), 1), part(a, 0, 2), {}});
  w.add("in", Recv{0, testing::neighbour(w.axis(0), -1), part(a, 2, 2), Combine::add});
  const CostedGraph costs = costs_of(pod, w.schedule);
  ASSERT_EQ(costs.transfers.size(), 4u);
  EXPECT_DOUBLE_EQ(costs.transfers[0].delay.count(), 6e-6);
  EXPECT_DOUBLE_EQ(costs.transfers[0].reduction.count(), 8 / 1e6) << "the receiver's task says whether it adds";
}

TEST(Cost, AnAdditionTakesTheBytesOverTheReduceBandwidth) {
  Machine machine = ideal_machine(1e9);
  machine.chip.reduce_bandwidth = BytesPerSecond{5e8};
  const SmallSystem pod = small_system(machine, {4});
  OneShift one{pod.mesh};
  one.op().combine = Combine::add;
  const CostedGraph costs = costs_of(pod, one.w.schedule);
  EXPECT_DOUBLE_EQ(costs.transfers[0].reduction.count(), 2e-6);
  EXPECT_DOUBLE_EQ(uncontended(costs, costs.transfers[0]).count(), 1e-6 + 2e-6);
}

TEST(Cost, AnInefficientKindMovesMoreThanItsPayload) {
  Machine machine = ideal_machine(1e9);
  machine.software.efficiency[static_cast<std::size_t>(CostKind::all_gather)] = {{Bytes{4000}, 0.5}, {Bytes{16000}, 1}};
  machine.software.efficiency[static_cast<std::size_t>(CostKind::permute)] = {{Bytes{1}, 0.25}};
  const SmallSystem pod = small_system(machine, {4});
  OneShift one{pod.mesh};
  EXPECT_DOUBLE_EQ(costs_of(pod, one.w.schedule).transfers[0].flow_bytes, 4000) << "a permute";
  one.w.task(TaskId{0}).origin = Origin{0, CollectiveKind::all_gather, pod.mesh.whole(0), Bytes{8000}};
  const CostedGraph costs = costs_of(pod, one.w.schedule);
  EXPECT_DOUBLE_EQ(costs.transfers[0].flow_bytes, 1000 / 0.75) << "the collective's input counts, 8000 bytes, not the step's";
  EXPECT_EQ(costs.transfers[0].payload, Bytes{1000});
}

TEST(Cost, WorkAndItsUnit) {
  Machine machine = ideal_machine();
  machine.chip.hbm_bandwidth = BytesPerSecond{1e9};
  const SmallSystem pod = small_system(machine, {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {10, 10}), b = w.scratch("b", {10, 10}), c = w.scratch("c", {10, 10});
  w.add("core", copy({a, {all(10), all(10)}}, {b, {all(10), all(10)}}), {}, between(w.axis(0), 0, 1));
  w.add("dma", copy({a, {all(10), all(10)}}, {c, {all(10), all(10)}}, Unit::dma), {}, between(w.axis(0), 0, 1));
  w.add("matmul", testing::product(a, b, c, 10, 10, 10), {}, between(w.axis(0), 0, 1));
  const CostedGraph costs = costs_of(pod, w.schedule);
  ASSERT_EQ(costs.work_time.size(), 3u);
  EXPECT_THAT(costs.on_core, ElementsAre(true, false, true));
  EXPECT_DOUBLE_EQ(costs.work_time[0].count(), 800 / 1e9);
  EXPECT_DOUBLE_EQ(costs.work_time[1].count(), 800 / 1e9);
  EXPECT_DOUBLE_EQ(costs.work_time[2].count(), 1200 / 1e9);
}

// ---- Routes ---------------------------------------------------------------------------------------------------------------------------

TEST(Cost, AShiftAlongOneWrappedDimensionGoesTheWayOfItsSign) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 6});
  const auto first = [&](int axis, int by) {
    const OneShift one{pod.mesh, axis, by};
    return route(pod, costs_of(pod, one.w.schedule), 0);
  };
  EXPECT_THAT(first(0, +2), ElementsAre("(0,0)->(1,0) x+", "(1,0)->(2,0) x+"));
  EXPECT_THAT(first(0, -2), ElementsAre("(0,0)->(3,0) x-", "(3,0)->(2,0) x-")) << "as far one way as the other: the sign decides";
  EXPECT_THAT(first(1, +3), ElementsAre("(0,0)->(0,1) y+", "(0,1)->(0,2) y+", "(0,2)->(0,3) y+"));
  EXPECT_THAT(first(1, -3), ElementsAre("(0,0)->(0,5) y-", "(0,5)->(0,4) y-", "(0,4)->(0,3) y-"));
  EXPECT_THAT(first(1, -2), ElementsAre("(0,0)->(0,5) y-", "(0,5)->(0,4) y-"));
  EXPECT_THAT(first(1, +5), ElementsAre("(0,0)->(0,5) y-")) << "more than half way round: the short way";
  EXPECT_THAT(first(1, -5), ElementsAre("(0,0)->(0,1) y+"));
  EXPECT_THAT(first(0, -6), ElementsAre("(0,0)->(1,0) x+", "(1,0)->(2,0) x+")) << "beyond half way: ties go up";
}

TEST(Cost, TheSignIsEachDevicesOwn) {
  // by = 2 * row - 2 on columns of 4: row 0 goes -2, row 2 goes +2.
  const SmallSystem pod = small_system(ideal_machine(), {3, 4});
  const OneShift one{pod.mesh, 1, Affine{{{pod.mesh.whole(0), 2}}, -2}};
  const CostedGraph costs = costs_of(pod, one.w.schedule);
  ASSERT_EQ(costs.graph.activities.size(), 8u) << "row 1 stays";
  EXPECT_THAT(route(pod, costs, 0), ElementsAre("(0,0)->(0,3) y-", "(0,3)->(0,2) y-"));
  EXPECT_THAT(route(pod, costs, 4), ElementsAre("(2,0)->(2,1) y+", "(2,1)->(2,2) y+"));
}

TEST(Cost, AnAxisFoldedOverDimensionsHasNoSignToFollow) {
  // One axis over 2 x 4 chips: half way round is device 4, one hop away whatever the sign.
  const SmallSystem pod = small_system(ideal_machine(), {2, 4}, true, {{"x", 8}});
  for (const int by : {4, -4}) {
    const OneShift one{pod.mesh, 0, by};
    EXPECT_THAT(route(pod, costs_of(pod, one.w.schedule), 0), ElementsAre("(0,0)->(1,0) x+"));
  }
  // Half of a folded axis may be antipodal in one dimension; ties go up, not with the sign.
  const SmallSystem tall = small_system(ideal_machine(), {4, 2}, true, {{"x", 8}});
  for (const int by : {4, -4}) {
    const OneShift one{tall.mesh, 0, by};
    EXPECT_THAT(route(tall, costs_of(tall, one.w.schedule), 0), ElementsAre("(0,0)->(1,0) x+", "(1,0)->(2,0) x+"));
  }
}

TEST(Cost, BothWaysRoundStandInOneSchedule) {
  const SmallSystem pod = small_system(ideal_machine(), {4});
  OneShift both{pod.mesh, 0, +2};
  const Shift there = both.op();
  both.w.add("the other way", shift(there.axis, -2, there.source, there.target));
  const CostedGraph costs = costs_of(pod, both.w.schedule);
  EXPECT_THAT(route(pod, costs, 0), ElementsAre("(0)->(1) x+", "(1)->(2) x+"));
  EXPECT_THAT(route(pod, costs, 4), ElementsAre("(0)->(3) x-", "(3)->(2) x-"));
}

TEST(Cost, AnAxisAcrossADimensionOrDiagonallyHasNoSignToFollow) {
  // Two halves of a ring of 8: the other half is 4 chips away either way.
  const SmallSystem halves = small_system(ideal_machine(), {8}, true, {{"row", 2}, {"col", 4}});
  const OneShift across{halves.mesh, 0, -1};
  EXPECT_EQ(route(halves, costs_of(halves, across.w.schedule), 0).front(), "(0)->(1) x+");
  // Four devices on the diagonal of 4 x 4.
  SmallSystem diagonal = small_system(ideal_machine(), {4, 4});
  diagonal.placement.chip_of = {diagonal.grid.chip({0, 0}), diagonal.grid.chip({1, 1}), diagonal.grid.chip({2, 2}), diagonal.grid.chip({3, 3})};
  const OneShift back{*Mesh::make({{"x", 4, true}}), 0, -2};
  EXPECT_EQ(route(diagonal, costs_of(diagonal, back.w.schedule), 0).front(), "(0,0)->(1,0) x+");
}

TEST(Cost, AFactorOfADimensionHasNoSignToFollow) {
  const SmallSystem pod = small_system(ideal_machine(), {8});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {2});
  w.add("halves", shift(pod.mesh.factor(0, {2, 4}, 0), -1, part(a, 0, 1), part(a, 1, 1)));
  EXPECT_THAT(route(pod, costs_of(pod, w.schedule), 0), ElementsAre("(0)->(1) x+", "(1)->(2) x+", "(2)->(3) x+", "(3)->(4) x+"));
}

TEST(Cost, NeighboursOnAFoldedAxisMayBeHopsApart) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 4}, true, {{"row", 16}});
  const OneShift one{pod.mesh};
  const CostedGraph costs = costs_of(pod, one.w.schedule);
  EXPECT_THAT(route(pod, costs, 2), ElementsAre("(0,2)->(0,3) y+"));
  EXPECT_THAT(route(pod, costs, 3), ElementsAre("(0,3)->(1,3) x+", "(1,3)->(1,0) y+")) << "dimension 0 first";
  EXPECT_EQ(costs.hops[costs.transfers[3].route], 2);
  EXPECT_THAT(route(pod, costs, 15), ElementsAre("(3,3)->(0,3) x+", "(0,3)->(0,0) y+"));
}

TEST(Cost, ATransferMayNameTheOrderOfItsDimensions) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 4}, true, {{"row", 16}});
  OneShift one{pod.mesh, 0, 5};
  EXPECT_THAT(route(pod, costs_of(pod, one.w.schedule), 0), ElementsAre("(0,0)->(1,0) x+", "(1,0)->(1,1) y+"));
  one.op().route_order = {1, 0};
  EXPECT_THAT(route(pod, costs_of(pod, one.w.schedule), 0), ElementsAre("(0,0)->(0,1) y+", "(0,1)->(1,1) x+"));
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {2});
  w.add("out", Send{0, {Affine{5}}, part(a, 0, 1), {1, 0}}, {}, between(w.axis(0), 0, 1));
  w.add("in", Recv{0, {Affine{0}}, part(a, 1, 1), Combine::replace}, {}, between(w.axis(0), 5, 6));
  EXPECT_THAT(route(pod, costs_of(pod, w.schedule), 0), ElementsAre("(0,0)->(0,1) y+", "(0,1)->(1,1) x+"));
}

TEST(Cost, DifferentOrdersStandInOneSchedule) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 4}, true, {{"row", 16}});
  OneShift two{pod.mesh, 0, 5};
  Shift other = two.op();
  two.op().route_order = {0, 1};
  other.route_order = {1, 0};
  two.w.add("the other order", other);
  const CostedGraph costs = costs_of(pod, two.w.schedule);
  EXPECT_EQ(route(pod, costs, 0).front(), "(0,0)->(1,0) x+");
  EXPECT_EQ(route(pod, costs, 16).front(), "(0,0)->(0,1) y+");
}

TEST(Cost, InjectionAndEjectionLimitButAreNoHops) {
  Machine machine = ideal_machine(10e9, 1e-6);
  machine.chip.injection_bandwidth = BytesPerSecond{2e9};
  machine.chip.ejection_bandwidth = BytesPerSecond{4e9};
  const SmallSystem pod = small_system(machine, {8});
  const OneShift one{pod.mesh, 0, 2};
  const CostedGraph costs = costs_of(pod, one.w.schedule);
  EXPECT_EQ(costs.routes[costs.transfers[0].route].size(), 4u);
  EXPECT_EQ(costs.hops[costs.transfers[0].route], 2);
  EXPECT_DOUBLE_EQ(costs.bottlenecks[costs.transfers[0].route].count(), 2e9);
  EXPECT_DOUBLE_EQ(costs.transfers[0].delay.count(), 2e-6) << "two hops of latency";
}

TEST(Cost, DevicesOfOneChipNeedNoLink) {
  const SmallSystem pod = small_system(ideal_machine(), {2});
  OneShift one{pod.mesh};
  Placement together = pod.placement;
  together.chip_of[1] = together.chip_of[0];
  const auto costs = cost(one.w.schedule, pod.machine, pod.grid, together);
  ASSERT_TRUE(costs) << to_text(costs.error());
  EXPECT_THAT(costs->routes[costs->transfers[0].route], IsEmpty());
  EXPECT_EQ(uncontended(*costs, costs->transfers[0]), Seconds{});
}

TEST(Cost, EqualRoutesAreStoredOnce) {
  const SmallSystem pod = small_system(ideal_machine(), {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4});
  for (int i = 0; i < 5; ++i) w.add("again", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)));
  EXPECT_EQ(costs_of(pod, w.schedule).routes.size(), 1u + 4);
}

// ---- Refusals -------------------------------------------------------------------------------------------------------------------------

TEST(Cost, ThePlacementMustBeForAsManyDevices) {
  const SmallSystem pod = small_system(ideal_machine(), {4}), other = small_system(ideal_machine(), {6});
  const OneShift one{pod.mesh};
  EXPECT_EQ(to_text(cost(one.w.schedule, other.machine, other.grid, other.placement).error()), "the schedule is for 4 devices, the placement has 6");
}

TEST(Cost, AScheduleThatDoesNotUnrollIsRefusedWithItsFirstProblem) {
  const SmallSystem pod = small_system(ideal_machine(), {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {2});
  w.add("lost", Send{0, testing::neighbour(w.axis(0), 1), part(a, 0, 1), {}});
  EXPECT_EQ(to_text(cost(w.schedule, pod.machine, pod.grid, pod.placement).error()),
            "unmatched: task 0 \"lost\" on device 0 (row=0) sends to device 1 (row=1) on channel 0, which has no receive for it");
}

}  // namespace
}  // namespace podsim
