// Efficiency surfaces: interpolation, waves, times of products, and their text in machine files.
#include <cmath>

#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/machine/machine.hpp"
#include "sim/machine/machine_fields.hpp"
#include "sim/machine/matmul_efficiency.hpp"

namespace podsim {
namespace {

/// Random extents and efficiencies of three digits.
MatmulSurface random_surface(Rng& rng) {
  MatmulSurface surface;
  std::size_t values = 1;
  for (auto& extents : surface.extents) {
    std::int64_t extent = 1 + static_cast<std::int64_t>(rng.below(64));
    const std::uint64_t count = 1 + rng.below(5);
    for (std::uint64_t i = 0; i < count; ++i, extent += 1 + static_cast<std::int64_t>(rng.below(4096))) extents.push_back(extent);
    values *= extents.size();
  }
  for (std::size_t i = 0; i < values; ++i) surface.efficiency.push_back(static_cast<double>(1 + rng.below(1000)) / 1000);
  if (rng.below(2) == 1) surface.block_m = 128, surface.block_n = 256, surface.wave_share = static_cast<double>(1 + rng.below(100)) / 100;
  return matmul_surface_of(std::move(surface));
}

Matmul product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto region = [](std::int64_t rows, std::int64_t columns) { return Region{BufferId{0}, {all(rows), all(columns)}}; };
  return {region(m, k), region(k, n), region(m, n)};
}

/// Tiles of one element, so that c has no steps.
Machine machine_with(MatmulSurface surface) {
  Machine machine;
  machine.chip.peak.fill(FlopsPerSecond{100e12});
  machine.chip.hbm_bandwidth = BytesPerSecond{1e12};
  machine.software.launch[static_cast<std::size_t>(CostKind::matmul)] = Seconds{3e-6};
  set_matmul_surface(machine.chip, std::move(surface));
  return machine;
}

TEST(MatmulSurface, IsExactOnItsGridAndStaysBetweenTheCornersElsewhere) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    const MatmulSurface surface = random_surface(rng);
    std::size_t at = 0;
    for (const std::int64_t m : surface.extents[0])
      for (const std::int64_t n : surface.extents[1])
        for (const std::int64_t k : surface.extents[2]) EXPECT_NEAR(efficiency_at(surface, m, n, k), surface.efficiency[at++], 1e-12);
    for (int i = 0; i < 50; ++i) {
      const auto extent = [&] { return static_cast<std::int64_t>(std::exp2(40 * rng.uniform())); };
      const std::int64_t m = extent(), n = extent(), k = extent();
      const GridCorners corners = corners_of(surface.logarithms, m, n, k);
      double weights = 0, least = 1, largest = 0;
      for (std::size_t c = 0; c < 8; ++c) {
        EXPECT_GE(corners.weight[c], 0);
        weights += corners.weight[c];
        least = std::min(least, surface.efficiency[corners.position[c]]), largest = std::max(largest, surface.efficiency[corners.position[c]]);
      }
      EXPECT_NEAR(weights, 1, 1e-12);
      const double efficiency = efficiency_at(surface, m, n, k);
      EXPECT_GE(efficiency, least * (1 - 1e-12));
      EXPECT_LE(efficiency, std::min(largest * (1 + 1e-12), 1.0));
    }
  }
}

TEST(MatmulSurface, IsAPowerLawBetweenNeighboursAndConstantBeyondTheEnds) {
  MatmulSurface surface;
  surface.extents = {{{16, 256}, {64}, {100, 10000}}};
  surface.efficiency = {0.01, 0.04, 0.16, 0.64};
  surface = matmul_surface_of(surface);
  EXPECT_NEAR(efficiency_at(surface, 64, 64, 100), 0.04, 1e-12);
  EXPECT_NEAR(efficiency_at(surface, 16, 9, 1000), 0.02, 1e-12);
  EXPECT_NEAR(efficiency_at(surface, 64, 1 << 20, 1000), 0.08, 1e-12);
  EXPECT_NEAR(efficiency_at(surface, 1, 64, 1), 0.01, 1e-12);
  EXPECT_NEAR(efficiency_at(surface, std::int64_t{1} << 40, 64, std::int64_t{1} << 40), 0.64, 1e-12);
}

TEST(MatmulSurface, ABlockMoreThanTheUnitsTakeIsAWaveMore) {
  const auto loss = [](std::int64_t m, std::int64_t n) { return std::exp(wave_loss(128, 256, 108, m, n)); };
  EXPECT_EQ(loss(128, 108 * 256), 1) << "one full wave";
  EXPECT_EQ(loss(128, 107 * 256), 1) << "below one wave the grid says it all";
  EXPECT_NEAR(loss(128, 108 * 256 + 1), 216.0 / 109, 1e-12);
  EXPECT_NEAR(loss(1024, 3584), 216.0 / 112, 1e-12);
  EXPECT_EQ(loss(256 * 108, 256), 1);
}

TEST(MatmulSurface, TimesOfMatmulsAreTheRooflineOverIt) {
  MatmulSurface surface;
  surface.extents = {{{1}, {1}, {1}}};
  surface.efficiency = {0.5};
  surface.block_m = 128, surface.block_n = 128, surface.wave_share = 0.5;
  Machine machine = machine_with(matmul_surface_of(surface));
  machine.chip.matmul_units = 10;
  // 1024 x 512: 32 blocks on 10 units are 4 waves, 40 places.
  const double c = 2.0 * 1024 * 512 * 8192 / 100e12;
  EXPECT_NEAR(matmul_time(machine, product(1024, 512, 8192), DType::bf16).count(), 3e-6 + c * std::sqrt(40.0 / 32) / 0.5, 1e-15);
  const double h = 2.0 * (1.0 * 8192 + 8192.0 * 4096 + 4096) / 1e12;  // bound by memory: the share is of its time
  EXPECT_NEAR(matmul_time(machine, product(1, 4096, 8192), DType::bf16).count(), 3e-6 + h / 0.5, 1e-15);
  machine.chip.overlap_hbm = 0.25;
  EXPECT_NEAR(matmul_time(machine, product(1, 4096, 8192), DType::bf16).count(), 3e-6 + h / 0.5 + 0.75 * h, 1e-15);
  EXPECT_DOUBLE_EQ(machine.chip.matmul_efficiency, 0.5) << "of work without extents: the largest";
}

TEST(MatmulSurface, ArithmeticNeverTakesLessThanTheMemoryOrThePeak) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    Machine machine = machine_with(random_surface(rng));
    machine.chip.matmul_units = 1 + static_cast<int>(rng.below(200));
    for (int i = 0; i < 20; ++i) {
      const auto extent = [&] { return static_cast<std::int64_t>(std::exp2(20 * rng.uniform())); };
      const std::int64_t m = extent(), n = extent(), k = extent();
      const Seconds arithmetic = arithmetic_time(machine, product(m, n, k), DType::bf16);
      EXPECT_GE(arithmetic.count(), memory_time(machine, product(m, n, k), DType::bf16).count() * (1 - 1e-12));
      EXPECT_GE(arithmetic.count(), 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 100e12 * (1 - 1e-12));
    }
  }
}

TEST(MatmulSurface, NumbersAndPointsReplaceItAndItReplacesThem) {
  Machine machine;
  const auto set = [&](const char* value) { return static_cast<bool>(set_machine_value(machine, "chip.matmul_efficiency", value, "test", {})); };
  ASSERT_TRUE(set("0.25 at 16x16x16, 0.5 at 64x64x64"));
  ASSERT_TRUE(set("surface m 1 8; n 2; k 4 16; 0.1 0.2; 0.3 0.8"));
  EXPECT_EQ(machine.chip.matmul_table, MatmulTable{});
  EXPECT_DOUBLE_EQ(machine.chip.matmul_efficiency, 0.8);
  EXPECT_NEAR(matmul_efficiency_of(machine.chip, 8, 7, 4), 0.3, 1e-12);
  ASSERT_TRUE(set("0.25 at 16x16x16, 0.5 at 64x64x64"));
  EXPECT_EQ(machine.chip.matmul_surface, MatmulSurface{});
  ASSERT_TRUE(set("surface m 1; n 2; k 4; 0.1"));
  ASSERT_TRUE(set("0.75"));
  EXPECT_EQ(machine.chip.matmul_surface, MatmulSurface{});
}

TEST(MatmulSurface, RoundTripsThroughItsText) {
  const MachineField* field = nullptr;
  for (const MachineField& one : machine_fields())
    if (path_of(one, "") == "chip.matmul_efficiency") field = &one;
  ASSERT_NE(field, nullptr);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng{seed};
    const Machine written = machine_with(random_surface(rng));
    Machine read;
    const std::string text = value_text(*field, written, 0);
    const auto ok = set_machine_value(read, "chip.matmul_efficiency", text, "test", {});
    ASSERT_TRUE(ok) << ok.error().message << "\n" << text;
    EXPECT_EQ(read.chip.matmul_surface, written.chip.matmul_surface) << text;
    EXPECT_EQ(value_text(*field, read, 0), text);
  }
}

TEST(MatmulSurface, SaysWhatIsWrongWithItsText) {
  const auto error_of = [](const std::string& value) {
    Machine machine;
    const auto ok = set_machine_value(machine, "chip.matmul_efficiency", value, "test", {"m.textproto", 3, 9});
    EXPECT_EQ(machine, Machine{}) << "a refused value must change nothing";
    return ok ? "none" : to_text(ok.error());
  };
  const std::string at = "m.textproto:3:9: chip.matmul_efficiency: ";
  EXPECT_EQ(error_of("surface"), at + "expected the extents of the surface like \"m 1 16 256\", got \"\"");
  EXPECT_EQ(error_of("surface n 1; m 1; k 1; 0.5"), at + "expected the extents of the surface like \"m 1 16 256\", got \"n 1\"");
  EXPECT_EQ(error_of("surface m 1; n 1"), at + "expected the extents of the surface like \"k 1 16 256\", got \"\"");
  EXPECT_EQ(error_of("surface m 1; n 4 4; k 1; 0.5; 0.5"), at + "extents of n must increase, got 4 after 4");
  EXPECT_NE(error_of("surface m 0; n 1; k 1; 0.5").find("extents of m"), std::string::npos);
  EXPECT_NE(error_of("surface m 1; n 99999999999999999999; k 1; 0.5").find("extents of n"), std::string::npos);
  EXPECT_EQ(error_of("surface m 1 2; n 1; k 1 2; 0.5 0.5"), at + "expected 2 rows of efficiencies, one for every m and n, got 1");
  EXPECT_EQ(error_of("surface m 1 2; n 1; k 1 2; 0.5 0.5; 0.5 0.5;"), at + "expected 2 rows of efficiencies, one for every m and n, got 3");
  EXPECT_EQ(error_of("surface m 1 2; n 1; k 1 2; 0.5 0.5; 0.5"), at + "expected 2 efficiencies in row 2, one for every k, got 1");
  EXPECT_EQ(error_of("surface m 1; n 1; k 1; 1.5"), "m.textproto:3:9: chip.matmul_efficiency must be in [0.001, 1], got \"1.5\"");
  EXPECT_NE(error_of("surface m 1; n 1; k 1; nan").find("chip.matmul_efficiency"), std::string::npos);
  const std::string waves = at + "expected \"waves 128x256 0.5\", the block of a unit and a share in [0, 1], got ";
  EXPECT_EQ(error_of("surface m 1; n 1; k 1; waves 128 0.5; 0.5"), waves + "\"waves 128 0.5\"");
  EXPECT_EQ(error_of("surface m 1; n 1; k 1; waves 128x256 1.5; 0.5"), waves + "\"waves 128x256 1.5\"");
  EXPECT_EQ(error_of("surface m 1; n 1; k 1; waves 0x256 1; 0.5"), waves + "\"waves 0x256 1\"");
  std::string many = "surface m";
  for (int i = 1; i <= 25; ++i) many += " " + std::to_string(i);
  EXPECT_EQ(error_of(many + "; n 1; k 1; 1"), at + "expected at most 24 extents of m, got 25");
}

}  // namespace
}  // namespace podsim
