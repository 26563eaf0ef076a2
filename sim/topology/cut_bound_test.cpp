#include "sim/topology/cut_bound.hpp"

#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/topology/grid.hpp"
#include "sim/topology/graph.hpp"

namespace podsim {
namespace {

Grid grid_of(const std::vector<int>& extents, bool wraps, double bandwidth) {
  std::vector<GridDimension> dimensions;
  for (const int extent : extents) dimensions.push_back({extent, wraps && extent > 2, {BytesPerSecond{bandwidth}, {}}});
  return *Grid::make(dimensions);
}

std::vector<double> ones(const Topology& topology) { return std::vector<double>(static_cast<std::size_t>(topology.nodes()), 1.0); }
std::vector<bool> only(const Topology& topology, int chip) {
  std::vector<bool> sink(static_cast<std::size_t>(topology.nodes()), false);
  sink[static_cast<std::size_t>(chip)] = true;
  return sink;
}
double rate(const Topology& topology, int chip, bool backwards = false) {
  const auto found = common_rate(topology, ones(topology), only(topology, chip), backwards);
  EXPECT_TRUE(found);
  return found ? found->rate.count() : 0;
}

TEST(CommonRate, OnTorusAndLineIsWhatTheLinksOfTheSinkLetIn) {
  EXPECT_NEAR(rate(grid_of({8}, true, 100), 3), 200.0 / 7, 1e-6);
  EXPECT_NEAR(rate(grid_of({4, 4}, true, 100), 0), 400.0 / 15, 1e-6);
  EXPECT_NEAR(rate(grid_of({8}, false, 100), 0), 100.0 / 7, 1e-6);
  EXPECT_NEAR(rate(grid_of({8}, false, 100), 2), 100.0 / 5, 1e-6) << "five chips are on one side";
  EXPECT_NEAR(rate(grid_of({8}, false, 100), 2, true), 100.0 / 5, 1e-6);
}

/// The least over all sets of chips, by trying them all.
double by_all_cuts(const Topology& topology, int sink) {
  double least = 1e300;
  for (int bits = 1; bits < 1 << topology.chips(); ++bits) {
    if (bits >> sink & 1) continue;
    std::vector<bool> side;
    double sources = 0;
    for (int chip = 0; chip < topology.chips(); ++chip) {
      const bool in = bits >> chip & 1;
      side.push_back(!in);
      sources += in ? 1 : 0;
    }
    least = std::min(least, cut_bandwidth(topology, side).count() / sources);
  }
  return least;
}

TEST(CommonRate, IsTheLeastOfAllCuts) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng{seed, stream_of("common rate")};
    std::vector<GridDimension> dimensions;
    for (int d = rng.between(1, 2); d-- > 0;) {
      const int extent = rng.between(2, 3);
      dimensions.push_back({extent, extent > 2 && rng.below(2) == 0, {BytesPerSecond{static_cast<double>(rng.between(1, 9)) * 1e9}, {}}});
    }
    const Grid grid = *Grid::make(dimensions);
    const int sink = rng.between(0, grid.chips() - 1);
    EXPECT_NEAR(rate(grid, sink), by_all_cuts(grid, sink), 1e-6 * by_all_cuts(grid, sink)) << seed;
  }
}

TEST(BandwidthOutOfParts, CountsLinksBetweenParts) {
  const Grid torus = grid_of({4, 4}, true, 10);
  std::vector<int> single, rows;
  for (int chip = 0; chip < 16; ++chip) single.push_back(chip), rows.push_back(chip / 4);
  EXPECT_DOUBLE_EQ(links_out_of(torus, single).bandwidth.count(), 16 * 4 * 10);
  EXPECT_DOUBLE_EQ(links_out_of(torus, rows).bandwidth.count(), 16 * 2 * 10);
}

}  // namespace
}  // namespace podsim
