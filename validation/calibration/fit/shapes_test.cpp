// Efficiency curves and matmul tables: found where the observations call for them, and only there.
#include "validation/calibration/fit/shapes.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::product;
using testing::some_machine;
using testing::times_on;

Calibration calibrated_shapes(const std::vector<Observation>& observations, const System& base) {
  auto result = calibrate(observations, base, {});
  if (!result) throw std::runtime_error(to_text(result.error()));
  return *std::move(result);
}

std::vector<Observation> gathers(std::int64_t factor) {
  std::vector<Observation> all;
  for (std::int64_t bytes = 4096; bytes <= (64 << 20); bytes *= factor) all.push_back(observed(ObservedOp::all_gather, "", 8, bytes));
  return all;
}

double worst_error(const Calibration& c, const std::vector<Observation>& observations) {
  const System system = pod_with(c.machine, "8");
  double worst = 0;
  for (const Observation& o : observations) worst = std::max(worst, std::abs(predict(o, system)->count() / o.time.count() - 1));
  return worst;
}

TEST(Shapes, ACurveIsFoundFromItsEffectAndPredictsTheSizesBetween) {
  const System truth = pod_with(some_machine({{"collective[all-gather].efficiency", "0.2 at 64 KiB, 0.9 at 16 MiB"}}), "8");
  const Calibration c = calibrated_shapes(times_on(truth, gathers(4), 0.002, 1), pod_with(some_machine(), "8"));
  EXPECT_LT(worst_error(c, times_on(truth, gathers(2))), 0.06) << testing::to_text(c);
  EXPECT_GE(c.machine.software.efficiency[static_cast<std::size_t>(CostKind::all_gather)].size(), 2u);
}

TEST(Shapes, TheSearchEndsWhereverItIsToldTo) {
  const System truth = pod_with(some_machine({{"collective[all-gather].efficiency", "0.2 at 64 KiB, 0.9 at 16 MiB"}}), "8");
  const std::vector<Observation> observations = times_on(truth, gathers(4), 0.002, 1);
  for (int stages = 0; stages < 3; ++stages) {
    std::atomic<bool> stop = stages == 0;
    int seen = 0;
    CalibrateOptions options;
    options.stop = &stop;
    options.progress = [&](std::size_t) { stop = ++seen >= stages; };
    const auto result = calibrate(observations, pod_with(some_machine(), "8"), options);
    ASSERT_FALSE(result) << stages;
    EXPECT_EQ(result.error().cause, Cause::cancelled);
  }
}

TEST(Shapes, NoiseAloneMakesNoCurve) {
  const System truth = pod_with(some_machine(), "8");
  int curves = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Calibration c = calibrated_shapes(times_on(truth, gathers(2), 0.02, seed), truth);
    curves += c.machine.software.efficiency[static_cast<std::size_t>(CostKind::all_gather)].empty() ? 0 : 1;
  }
  EXPECT_LE(curves, 1);
}

TEST(Shapes, ATableOfProductsPredictsTheSizesBetween) {
  const System truth = pod_with(some_machine({{"chip.matmul_efficiency", "0.02 at 128x128x128, 0.4 at 1024x1024x1024, 0.9 at 8192x8192x8192"}}), "8");
  std::vector<Observation> fitted, between;
  for (const std::int64_t extent : {128, 192, 320, 512, 768, 1024, 1536, 3072, 4096, 8192}) fitted.push_back(product(extent, extent, extent));
  for (const std::int64_t extent : {256, 2048, 6144}) between.push_back(product(extent, extent, extent));
  const Calibration c = calibrated_shapes(times_on(truth, fitted), pod_with(some_machine(), "8"));
  EXPECT_LT(worst_error(c, times_on(truth, between)), 0.08) << testing::to_text(c);
  EXPECT_GE(c.machine.chip.matmul_table.points.size(), 2u);
}

TEST(Shapes, TheTopOfAnOnlyCurveIsGivenToTheBandwidth) {
  const System truth = pod_with(some_machine({{"link.bandwidth", "40 GB/s"}, {"collective[all-gather].efficiency", "0.2 at 64 KiB, 1 at 16 MiB"}}), "8");
  const Calibration c = calibrated_shapes(times_on(truth, gathers(2), 0.002, 1), pod_with(some_machine(), "8"));
  const Undetermined* top = testing::undetermined_of(c, "collective[all-gather].efficiency");
  ASSERT_NE(top, nullptr) << testing::to_text(c);
  EXPECT_EQ(top->at, "64 MiB");
  EXPECT_NE(top->why.find("link.bandwidth"), std::string::npos);
  EXPECT_NEAR(testing::value_of(c, "link.bandwidth")->value, 40e9, 1e9);
}

}  // namespace
}  // namespace podsim
