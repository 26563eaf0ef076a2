// Efficiency surfaces are found again, predict what was held back, and keep their place among other values.
#include "validation/calibration/fit/surface.hpp"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/config/machine_config.hpp"
#include "topologies/machines.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"
#include "validation/validate/datasets.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::product;
using testing::some_machine;
using testing::times_on;

/// Efficiencies of some smooth function: small products and short contractions are slow.
Machine machine_with_surface(double wave_share) {
  Machine machine = some_machine({{"software.launch[matmul]", "4 us"}, {"chip.matmul_units", "100"}});
  MatmulSurface surface;
  surface.extents = {{{16, 128, 1024, 8192}, {64, 512, 4096, 32768}, {64, 512, 4096, 32768}}};
  for (const std::int64_t m : surface.extents[0])
    for (const std::int64_t n : surface.extents[1])
      for (const std::int64_t k : surface.extents[2]) {
        const auto part = [](std::int64_t extent, double half) { return static_cast<double>(extent) / (static_cast<double>(extent) + half); };
        surface.efficiency.push_back(0.9 * part(m, 40) * part(n, 90) * part(k, 300));
      }
  if (wave_share > 0) surface.block_m = 128, surface.block_n = 256, surface.wave_share = wave_share;
  set_matmul_surface(machine.chip, matmul_surface_of(std::move(surface)));
  return machine;
}

std::vector<Observation> random_products(std::size_t count, std::uint64_t seed) {
  Rng rng{seed};
  std::vector<Observation> rows;
  while (rows.size() < count) {
    const auto extent = [&](double least, double most) { return static_cast<std::int64_t>(least * std::exp(rng.uniform() * std::log(most / least))); };
    rows.push_back(product(extent(16, 8192), extent(64, 32768), extent(64, 32768)));
    rows.back().where = {"rows.csv", static_cast<int>(rows.size()) + 1, 1};
  }
  return rows;
}

Calibration calibrated_surface(const std::vector<Observation>& rows, const System& base, const CalibrateOptions& options = {}) {
  auto found = calibrate(rows, base, options);
  if (!found) throw std::runtime_error(to_text(found.error()));
  return *std::move(found);
}

ErrorSummary errors_on(const Machine& machine, const std::vector<Observation>& rows) {
  const System system = pod_with(machine, "1");
  std::vector<double> errors;
  for (const Observation& row : rows) errors.push_back(predict(row, system)->count() / row.time.count() - 1);
  return summary_of(errors);
}

TEST(Surface, FindsAKnownSurfaceAgain) {
  for (const double wave_share : {0.0, 0.6}) {
    SCOPED_TRACE(wave_share);
    const System truth = pod_with(machine_with_surface(wave_share), "1"), base = pod_with(some_machine({{"chip.matmul_units", "100"}}), "1");
    const double noise = 0.02;
    const Calibration found = calibrated_surface(times_on(truth, random_products(1500, 1), noise, 3), base);
    const CalibratedValue* launch = testing::value_of(found, "software.launch[matmul]");
    ASSERT_NE(launch, nullptr);
    EXPECT_LE(launch->low, 4e-6) << testing::to_text(found);
    EXPECT_GE(launch->high, 4e-6) << testing::to_text(found);
    EXPECT_LT(launch->high - launch->low, 1.5e-6);
    const MatmulSurface& surface = found.machine.chip.matmul_surface;
    ASSERT_FALSE(surface.empty());
    EXPECT_NEAR(surface.wave_share, wave_share, 0.05);
    if (wave_share > 0) {
      EXPECT_EQ((std::pair{surface.block_m, surface.block_n}), (std::pair{128, 256}));
    }
    const ErrorSummary unseen = errors_on(found.machine, times_on(truth, random_products(500, 2)));
    EXPECT_LT(unseen.median, noise) << "the fit averages the noise of its neighbours";
    EXPECT_LT(unseen.p95, 4 * noise);
    for (const double efficiency : surface.efficiency) {
      EXPECT_GT(efficiency, 0);
      EXPECT_LE(efficiency, 1);
    }
  }
}

TEST(Surface, IsFittedFromEnoughProductsOnly) {
  const System truth = pod_with(machine_with_surface(0), "1"), base = pod_with(some_machine(), "1");
  CalibrateOptions options;
  EXPECT_EQ(options.surface_from, 200U);
  EXPECT_TRUE(wants_surface(random_products(200, 1), base, options));
  EXPECT_FALSE(wants_surface(random_products(199, 1), base, options));
  options.hold = {"chip.matmul_efficiency"};
  EXPECT_FALSE(wants_surface(random_products(200, 1), base, options));
  options = {};
  options.curves = false;
  EXPECT_FALSE(wants_surface(random_products(200, 1), base, options));
  EXPECT_FALSE(wants_surface(random_products(200, 1), pod_with(some_machine({{"chip.peak", "unlimited"}}), "1"), {}));
}

TEST(Surface, EqualInputsGiveEqualBytesAndTheFileIsReadBack) {
  const System truth = pod_with(machine_with_surface(0.5), "1"), base = pod_with(some_machine({{"chip.matmul_units", "100"}}), "1");
  const auto rows = times_on(truth, random_products(400, 5), 0.05, 1);
  const std::string text = write_machine(calibrated_surface(rows, base).machine);
  EXPECT_EQ(write_machine(calibrated_surface(rows, base).machine), text);
  const auto again = read_machine(text, "again.textproto");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(write_machine(*again), text);
  EXPECT_NE(text.find("fitted: observations, 400 observations, median error"), std::string::npos);
  EXPECT_EQ(again->trust.level, TrustLevel::fitted);
  ASSERT_EQ(again->trust.covers.size(), 1U);
  EXPECT_EQ(again->trust.covers[0].operation, CostKind::matmul);
}

TEST(Surface, OtherObservationsAreFittedOnTheMachineWithIt) {
  Machine machine = machine_with_surface(0);
  testing::set(machine, {{"chip.hbm_bandwidth", "700 GB/s"}, {"link.bandwidth", "30 GB/s"}});
  const System truth = pod_with(machine, "8"), base = pod_with(some_machine(), "8");
  std::vector<Observation> rows = random_products(600, 4);
  for (std::int64_t bytes = 4096; bytes <= (256 << 20); bytes *= 4) {
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2), observed(ObservedOp::all_gather, "", 8, bytes));
    rows.push_back(observed(ObservedOp::hbm_copy, "", 1, bytes));
  }
  const Calibration found = calibrated_surface(times_on(truth, rows, 0.01, 2), base);
  EXPECT_NEAR(testing::number_at(found.machine, "link.bandwidth"), 30e9, 1e9);
  EXPECT_NEAR(testing::number_at(found.machine, "chip.hbm_bandwidth"), 700e9, 20e9);
  EXPECT_NEAR(testing::number_at(found.machine, "software.launch[matmul]"), 4e-6, 0.5e-6);
  ASSERT_EQ(found.residuals.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(found.residuals[i].observation, i);
  EXPECT_LT(found.median_abs_error, 0.02);
  EXPECT_LT(errors_on(found.machine, times_on(truth, random_products(200, 9))).p95, 0.1);
  EXPECT_EQ(found.machine.trust.covers.size(), 3U);
}

TEST(Surface, AFewProductsDoNotReplaceTheOneThatAMachineHas) {
  const Machine machine = machine_with_surface(0);
  const System system = pod_with(machine, "8");
  std::vector<Observation> rows = random_products(20, 4);
  for (std::int64_t bytes = 4096; bytes <= (64 << 20); bytes *= 4) rows.push_back(observed(ObservedOp::all_gather, "", 8, bytes));
  const Calibration found = calibrated_surface(times_on(system, rows), system);
  EXPECT_EQ(found.machine.chip.matmul_surface, machine.chip.matmul_surface);
  EXPECT_LT(found.p95_abs_error, 0.001);
}

TEST(Surface, TakesWhatIsOneShapeOrRepeatedOrAtTheEnds) {
  const System base = pod_with(some_machine({{"chip.matmul_units", "100"}}), "1");
  std::vector<Observation> rows(300, product(512, 512, 512));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time = Seconds{i % 2 == 0 ? 20e-6 : 24e-6};
  const Calibration one = calibrated_surface(rows, base);
  EXPECT_GE(one.residuals[0].predicted, Seconds{20e-6}) << "a product measured twice lies between its times";
  EXPECT_LE(one.residuals[0].predicted, Seconds{24e-6});
  EXPECT_EQ(one.machine.chip.matmul_surface.efficiency.size(), 1U);
  // The largest extents that a table may have, times that no roofline explains, in both directions.
  rows.clear();
  for (int i = 0; i < 250; ++i) {
    rows.push_back(product(std::int64_t{1} << (i % 31), std::int64_t{1} << (i * 7 % 31), std::int64_t{1} << (i * 11 % 31)));
    rows.back().time = Seconds{i % 3 == 0 ? 1e-12 : 1e3};
  }
  const Calibration wild = calibrated_surface(rows, base);
  for (const Residual& residual : wild.residuals) EXPECT_TRUE(std::isfinite(residual.predicted.count()) && residual.predicted.count() > 0);
  for (const double efficiency : wild.machine.chip.matmul_surface.efficiency) {
    EXPECT_GE(efficiency, 1e-3);
    EXPECT_LE(efficiency, 1);
  }
  EXPECT_TRUE(read_machine(write_machine(wild.machine), "wild.textproto"));
}

TEST(Surface, StopsWhenItIsToldTo) {
  const std::atomic<bool> stop = true;
  CalibrateOptions options;
  options.stop = &stop;
  const auto found = calibrate(times_on(pod_with(machine_with_surface(0), "1"), random_products(300, 1)), pod_with(some_machine(), "1"), options);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().cause, Cause::cancelled);
}

/// On the shipped tables a product takes at most a few percent less time than one of half the contraction, in and beyond the fitted extents. Tables are
/// not monotone themselves: a library changes its kernel.
TEST(Surface, OfTheShippedTablesIsNearlyMonotoneInK) {
  constexpr double tolerance = 0.1;
  for (const std::string name : {"gemm_bf16_a100", "gemm_bf16_h100"}) {
    const auto dataset = find_dataset(name);
    ASSERT_TRUE(dataset) << to_text(dataset.error());
    const System base = pod_with(dataset->machine, "1x1");
    const Machine machine = calibrated_surface(dataset->observations, base).machine;
    double worst = 1;
    std::string where;
    for (std::int64_t m = 1; m <= (1 << 16); m *= 4)
      for (std::int64_t n = 16; n <= (1 << 18); n *= 4) {
        Seconds before;
        for (std::int64_t k = 16; k <= (1 << 20); k *= 2) {
          Observation o = product(m, n, k);
          const auto region = [](std::int64_t a, std::int64_t b) { return Region{BufferId{0}, {span(0, a), span(0, b)}}; };
          const Seconds time = matmul_time(machine, Matmul{region(m, k), region(k, n), region(m, n)}, DType::bf16);
          if (before > Seconds{} && time.count() / before.count() < worst) {
            worst = time.count() / before.count();
            where = fmt::format("{}x{}x{}", m, n, k);
          }
          before = time;
        }
      }
    EXPECT_GT(worst, 1 - tolerance) << name << " " << where;
  }
}

}  // namespace
}  // namespace podsim
