#include "validation/calibration/fit/predict.hpp"

#include <gtest/gtest.h>

#include "topologies/machines.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::product;
using testing::some_machine;

double predicted(const Observation& o, const System& system, const PredictOptions& options = {}) {
  const auto time = predict(o, system, options);
  if (!time) throw std::runtime_error(to_text(time.error()));
  return time->count();
}
std::string error_of(const Observation& o, const System& system) {
  const auto time = predict(o, system);
  return time ? "" : time.error().message;
}

TEST(Predict, MeetsTheClosedFormsOfTheirHeaders) {
  const Machine machine = some_machine({{"software.launch", "7 us"}});
  const double alpha = 1.5e-6, launch = 7e-6, bandwidth = 50e9, shard = 1 << 20;
  const System ring = pod_with(machine, "8");
  EXPECT_NEAR(predicted(observed(ObservedOp::all_gather, "row", 8, 1 << 20), ring), launch + 7 * (alpha + shard / 2 / bandwidth), 1e-10);
  EXPECT_NEAR(predicted(observed(ObservedOp::reduce_scatter, "row", 8, 8 << 20), ring), launch + 7 * (alpha + shard / 2 / bandwidth), 1e-10);
  EXPECT_NEAR(predicted(observed(ObservedOp::permute, "row", 8, 1 << 20), ring), launch + alpha + shard / bandwidth, 1e-10);
  PredictOptions one_way;
  one_way.algorithm.fill("ring-one-way");
  EXPECT_NEAR(predicted(observed(ObservedOp::all_gather, "row", 8, 1 << 20), ring, one_way), launch + 7 * (alpha + shard / bandwidth), 1e-10);
  EXPECT_NEAR(predicted(product(1000, 2000, 3000), ring), launch + 2e9 * 6 / 100e12, 1e-10);
  EXPECT_NEAR(predicted(observed(ObservedOp::hbm_copy, "", 1, 1 << 30), ring), launch + 2 * 0x1p30 / 1e12, 1e-10) << "read once and written once";
}

TEST(Predict, FourChipsOfA2x2AreARingWhereTheMeshIsASnake) {
  const Machine machine = some_machine();
  PredictOptions one_way;
  one_way.algorithm.fill("ring-one-way");
  const Observation o = observed(ObservedOp::all_gather, "", 4, 1 << 20);
  EXPECT_NEAR(predicted(o, pod_with(machine, "2x2", {{"ring", 4}}, true), one_way), 5e-6 + 3 * (1.5e-6 + 0x1p20 / 50e9), 1e-10);
  EXPECT_NEAR(predicted(o, pod_with(machine, "2x2")), 5e-6 + 2 * 1.5e-6 + 3 * 0x1p20 / 50e9, 1e-10) << "one dimension, then the other";
}

Machine some_rail(const testing::Values& values = {}) {
  Machine machine = some_machine(values);
  machine.interconnect = Interconnect::rail;
  machine.slices = {};
  machine.slices.largest = {8, 8};
  machine.slices.host = {1, 8};
  return machine;
}

TEST(Predict, GroupsAtOnceOnOneSwitchTakeTheTimeOfOneGroup) {
  const Machine machine = some_rail({{"chip.own_block_bandwidth", "200 GB/s"}, {"collective.efficiency", "0.5 at 4 KiB, 0.9 at 16 MiB"}});
  for (const auto& [groups, devices] : {std::pair{2, 4}, {4, 2}})
    for (const ObservedOp op : {ObservedOp::all_gather, ObservedOp::reduce_scatter, ObservedOp::all_reduce}) {
      Observation o = observed(op, "", devices, 3 << 20);
      o.slice = "1x8";
      o.groups = groups;
      const System whole = pod_with(machine, "1x8", {{"group", groups}, {"ring", devices}});
      PredictOptions direct;
      direct.algorithm.fill("direct");
      EXPECT_NEAR(predicted(o, pod_with(machine, "1x8"), direct), predicted(observed(op, "ring", devices, 3 << 20), whole, direct), 1e-11)
          << name_of(op) << ": all groups simulated on the whole slice";
    }
}

TEST(Predict, AnOutOfPlaceCollectiveCopiesItsOwnBlock) {
  const System free = pod_with(some_rail(), "1x4"), copying = pod_with(some_rail({{"chip.own_block_bandwidth", "100 GB/s"}}), "1x4");
  for (const auto& [op, block] : {std::pair{ObservedOp::all_gather, 1 << 20}, {ObservedOp::reduce_scatter, 1 << 18}, {ObservedOp::all_reduce, 1 << 18},
                                  {ObservedOp::all_to_all, 1 << 18}, {ObservedOp::permute, 0}}) {
    Observation o = observed(op, "", 4, 1 << 20);
    EXPECT_NEAR(predicted(o, copying) - predicted(o, free), block / 100e9, 2e-12) << name_of(op);
    o.in_place = true;
    EXPECT_EQ(predicted(o, copying), predicted(o, free)) << name_of(op);
  }
}

TEST(Predict, AnAllToAllInsideANodeIsDirect) {
  const System node = pod_with(some_rail(), "1x8");
  EXPECT_NEAR(predicted(observed(ObservedOp::all_to_all, "", 8, 8 << 20), node), 5e-6 + 0.5e-6 + 2e-6 + 7 * 0x1p20 / 50e9, 1e-10)
      << "one message over two links; seven blocks leave each GPU";
}

TEST(Predict, FewerGpusThanTheNodeHasAreANodeOfThem) {
  const Machine machine = some_rail({{"chip.own_block_bandwidth", "200 GB/s"}});
  for (const int devices : {2, 4}) {
    const Observation o = observed(ObservedOp::all_gather, "", devices, 1 << 20);
    EXPECT_EQ(predicted(o, pod_with(machine, "1x8")), predicted(o, pod_with(machine, "1x" + std::to_string(devices))));
  }
  EXPECT_EQ(error_of(observed(ObservedOp::all_gather, "", 3, 1 << 20), pod_with(machine, "2x8")),
            "no axis of the mesh has 3 devices; the observation should name its axis, or its slice");
}

TEST(Predict, AsManyGroupsAsDevicesAreToldApart) {
  Observation o = observed(ObservedOp::all_gather, "", 4, 1 << 20);
  o.slice = "2x8", o.groups = 4;
  EXPECT_EQ(error_of(o, pod_with(some_rail(), "2x8")), "");
}

TEST(Predict, GroupsMustFillTheirSlice) {
  Observation o = observed(ObservedOp::all_gather, "", 4, 1 << 20);
  o.slice = "1x8";
  o.groups = 3;
  EXPECT_EQ(error_of(o, pod_with(some_rail(), "1x8")), "3 groups of 4 devices do not fill the slice 1x8");
  o.slice = "1x";
  EXPECT_NE(error_of(o, pod_with(some_rail(), "1x8")), "");
}

TEST(Predict, WhatDoesNotDivideIsRoundedUp) {
  const System system = pod_with(some_machine(), "8");
  Observation o = observed(ObservedOp::all_reduce, "", 8, 8);
  o.dtype = DType::f32;
  EXPECT_EQ(predicted(o, system), [&] {
    Observation whole = o;
    whole.bytes = Bytes{32};
    return predicted(whole, system);
  }());
}

TEST(Predict, AxesAreThoseNamedOrThoseThatFit) {
  const System system = pod_with(some_machine(), "2x4x4");
  const auto names = [&](const std::string& axis, int devices) {
    const auto axes = axes_of(observed(ObservedOp::all_gather, axis, devices, 4096), system);
    if (!axes) return axes.error().message;
    std::string text;
    for (const AxisView& a : *axes) text += system.mesh.name(a) + " ";
    return text;
  };
  EXPECT_EQ(names("col", 4), "col ");
  EXPECT_EQ(names("depth+row", 8), "depth row ");
  EXPECT_EQ(names("", 32), "row col depth ");
  EXPECT_EQ(names("", 2), "row ");
  EXPECT_EQ(names("", 4), "more than one axis of the mesh has 4 devices; the observation should name its axis, or its slice");
  EXPECT_EQ(names("", 5), "no axis of the mesh has 5 devices; the observation should name its axis, or its slice");
  EXPECT_EQ(names("row", 4), "axis \"row\" has 2 devices, the observation 4");
  EXPECT_NE(names("rwo", 4).find("rwo"), std::string::npos);
  const System nodes = pod_with(*find_machine("dgx_h100"), "2x8");
  const auto axes = axes_of(observed(ObservedOp::all_reduce, "", 16, 4096), nodes);
  ASSERT_TRUE(axes);
  EXPECT_EQ(nodes.mesh.name(axes->front()), "col") << "within the nodes first";
}

/// A collective with a matmul of m x n x k on each of 8 devices.
Observation collective_matmul(ObservedOp op, ObservedSchedule schedule, std::int64_t bytes) {
  Observation o = observed(op, "", 8, bytes);
  o.schedule = schedule;
  o.m = 8192, o.n = 4096, o.k = 2048;
  return o;
}

TEST(Predict, ACollectiveMatmulIsGatheredOrScatteredByTheOperandThatItsBytesAre) {
  Machine machine = some_machine({{"software.launch", "0 s"}, {"software.per_message", "0 s"}, {"link.latency", "0 s"}});
  machine.chip.hbm_bandwidth = unlimited<BytesPerSecond>;
  const System system = pod_with(machine, "8");
  const double dot = 2.0 * 8192 * 4096 * 2048 / 100e12, link = 50e9;
  const auto time = [&](ObservedOp op, ObservedSchedule schedule, std::int64_t bytes) {
    const auto predicted = predict(collective_matmul(op, schedule, bytes), system);
    EXPECT_TRUE(predicted) << to_text(predicted.error());
    return predicted ? predicted->count() : 0;
  };
  using enum ObservedSchedule;
  const std::int64_t rows_of_left = 8192 / 8 * 2048 * 2, rows_of_right = 2048 / 8 * 4096 * 2, result = 8192 * 4096 * 2;
  EXPECT_NEAR(time(ObservedOp::all_gather, plain, rows_of_left), dot + 7.0 * rows_of_left / 2 / link, 1e-9);
  EXPECT_NEAR(time(ObservedOp::all_gather, unknown, rows_of_left), dot + 7.0 * rows_of_left / 2 / link, 1e-9);
  EXPECT_NEAR(time(ObservedOp::all_gather, overlapped, rows_of_left), dot / 8 + 7 * std::max(dot / 8, rows_of_left / link), 1e-9);
  EXPECT_NEAR(time(ObservedOp::all_gather, bidirectional, rows_of_left), dot / 8 + 7 * std::max(dot / 8, rows_of_left / 2 / link), 1e-9);
  EXPECT_NEAR(time(ObservedOp::all_gather, plain, rows_of_right), dot + 7.0 * rows_of_right / 2 / link, 1e-9);
  EXPECT_NEAR(time(ObservedOp::reduce_scatter, plain, result), dot + 7.0 * result / 8 / 2 / link, 1e-9);
  EXPECT_NEAR(time(ObservedOp::reduce_scatter, overlapped, result), dot / 8 + 7 * std::max(dot / 8, result / 8 / link), 1e-9);
}

TEST(Predict, BytesThatAreNoOperandAreAnError) {
  const System system = pod_with(some_machine(), "8");
  EXPECT_EQ(
      error_of(collective_matmul(ObservedOp::all_gather, ObservedSchedule::plain, 4096), system),
      "expected an all-gather of the rows of a 8192x4096x2048 product in bf16, or a reduce-scatter of its result; found all-gather of 4 KiB on 8 "
      "devices");
  EXPECT_EQ(error_of(collective_matmul(ObservedOp::all_gather, ObservedSchedule::plain, 8192 / 8 * 2048 * 2), pod_with(some_machine(), "2x4")),
            "a collective matmul is along one axis of a mesh, found 2");
}

TEST(Predict, ACollectiveMatmulAlongOneAxisOfAMeshIsThatOfARing) {
  Observation o = collective_matmul(ObservedOp::all_gather, ObservedSchedule::overlapped, 8192 / 8 * 2048 * 2);
  const auto ring = predict(o, pod_with(some_machine(), "8"));
  o.axis = "col";
  const auto along = predict(o, pod_with(some_machine(), "4x8"));
  ASSERT_TRUE(ring && along);
  EXPECT_EQ(*ring, *along);
}

}  // namespace
}  // namespace podsim
