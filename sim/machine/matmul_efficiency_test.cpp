#include "sim/machine/matmul_efficiency.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/machine/machine.hpp"
#include "sim/machine/machine_fields.hpp"

namespace podsim {
namespace {

TEST(MatmulTable, PassesThroughEveryPointAndStaysBetweenThem) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng{seed};
    std::vector<MatmulPoint> points;
    for (std::int64_t i = 0; i < 20; ++i)
      points.push_back({1 + static_cast<std::int64_t>(rng.below(1 << 15)) * 20 + i, 1 + static_cast<std::int64_t>(rng.below(1 << 15)),
                        1 + static_cast<std::int64_t>(rng.below(1 << 15)), 0.01 + 0.99 * rng.uniform()});
    const MatmulTable table = matmul_table_of(points);
    double least = 1, largest = 0;
    for (const MatmulPoint& p : points) {
      EXPECT_NEAR(efficiency_at(table, p.m, p.n, p.k) / p.efficiency, 1, 1e-9) << "seed " << seed;
      least = std::min(least, p.efficiency), largest = std::max(largest, p.efficiency);
    }
    for (int i = 0; i < 50; ++i) {
      const auto extent = [&] { return static_cast<std::int64_t>(std::exp2(20 * rng.uniform())); };
      const double efficiency = efficiency_at(table, extent(), extent(), extent());
      EXPECT_GE(efficiency, least);
      EXPECT_LE(efficiency, largest);
    }
  }
}

TEST(MatmulTable, IsLinearInTheLogarithmsAlongALineOfPointsAndConstantBeyondItsEnds) {
  const MatmulTable table = matmul_table_of({{256, 256, 256, 0.01}, {1024, 1024, 1024, 0.16}, {16384, 16384, 16384, 0.64}});
  EXPECT_NEAR(efficiency_at(table, 512, 512, 512), 0.04, 1e-12) << "a power law between points is met";
  EXPECT_NEAR(efficiency_at(table, 4096, 4096, 4096), 0.32, 1e-12);
  EXPECT_NEAR(efficiency_at(table, 64, 64, 64), 0.01, 1e-12);
  EXPECT_NEAR(efficiency_at(table, 65536, 65536, 65536), 0.64, 1e-12);
}

TEST(MatmulTable, OnePointIsAConstant) {
  EXPECT_DOUBLE_EQ(efficiency_at(matmul_table_of({{8, 8, 8, 0.5}}), 4096, 1, 7), 0.5);
}

TEST(MatmulTable, TimesOfMatmulsFollowItAndANumberReplacesIt) {
  Machine machine;
  machine.chip.peak.fill(FlopsPerSecond{1e12});
  const auto set = [&](const char* value) { return static_cast<bool>(set_machine_value(machine, "chip.matmul_efficiency", value, "test", {})); };
  ASSERT_TRUE(set("0.25 at 16x16x16, 0.5 at 64x64x64"));
  EXPECT_DOUBLE_EQ(machine.chip.matmul_efficiency, 0.5) << "of work without extents: the largest";
  EXPECT_DOUBLE_EQ(matmul_efficiency_of(machine.chip, 16, 16, 16), 0.25);
  EXPECT_NEAR(matmul_efficiency_of(machine.chip, 32, 32, 32), 0.25 * std::sqrt(2.0), 1e-12);
  ASSERT_TRUE(set("0.75"));
  EXPECT_EQ(machine.chip.matmul_table, MatmulTable{});
  EXPECT_DOUBLE_EQ(matmul_efficiency_of(machine.chip, 16, 16, 16), 0.75);
}

}  // namespace
}  // namespace podsim
