#include "validation/calibrate/predict.hpp"

#include <gtest/gtest.h>

#include "topologies/machines.hpp"
#include "validation/calibrate/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::product;
using testing::some_machine;

double predicted(const Observation& o, const Pod& pod, const PredictOptions& options = {}) {
  const auto time = predict(o, pod, options);
  if (!time) throw std::runtime_error(to_text(time.error()));
  return time->count();
}
std::string error_of(const Observation& o, const Pod& pod) {
  const auto time = predict(o, pod);
  return time ? "" : time.error().message;
}

TEST(Predict, MeetsTheClosedFormsOfTheirHeaders) {
  const Machine machine = some_machine({{"software.launch", "7 us"}});
  const double alpha = 1.5e-6, launch = 7e-6, bandwidth = 50e9, shard = 1 << 20;
  const Pod ring = pod_with(machine, "8");
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

TEST(Predict, WhatDoesNotDivideIsRoundedUp) {
  const Pod pod = pod_with(some_machine(), "8");
  Observation o = observed(ObservedOp::all_reduce, "", 8, 8);
  o.dtype = DType::f32;
  EXPECT_EQ(predicted(o, pod), [&] {
    Observation whole = o;
    whole.bytes = Bytes{32};
    return predicted(whole, pod);
  }());
}

TEST(Predict, AxesAreThoseNamedOrThoseThatFit) {
  const Pod pod = pod_with(some_machine(), "2x4x4");
  const auto names = [&](const std::string& axis, int devices) {
    const auto axes = axes_of(observed(ObservedOp::all_gather, axis, devices, 4096), pod);
    if (!axes) return axes.error().message;
    std::string text;
    for (const AxisView& a : *axes) text += pod.mesh.name(a) + " ";
    return text;
  };
  EXPECT_EQ(names("col", 4), "col ");
  EXPECT_EQ(names("depth+row", 8), "depth row ");
  EXPECT_EQ(names("", 32), "row col depth ");
  EXPECT_EQ(names("", 2), "row ");
  EXPECT_EQ(names("", 4), "more than one axis of the mesh has 4 devices; the observation should name its axis");
  EXPECT_EQ(names("", 5), "no axis of the mesh has 5 devices; the observation should name its axis");
  EXPECT_EQ(names("row", 4), "axis \"row\" has 2 devices, the observation 4");
  EXPECT_NE(names("rwo", 4).find("rwo"), std::string::npos);
  const Pod nodes = pod_with(*find_machine("dgx_h100"), "2x8");
  const auto axes = axes_of(observed(ObservedOp::all_reduce, "", 16, 4096), nodes);
  ASSERT_TRUE(axes);
  EXPECT_EQ(nodes.mesh.name(axes->front()), "col") << "within the nodes first";
}

TEST(Predict, ACollectiveMatmulIsNotOneOperation) {
  Observation o = observed(ObservedOp::all_gather, "", 8, 4096);
  o.m = o.n = o.k = 128;
  EXPECT_EQ(error_of(o, pod_with(some_machine(), "8")), "a collective with a matmul is several operations: it validates a machine, it does not calibrate one");
}

}  // namespace
}  // namespace podsim
