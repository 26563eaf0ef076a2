#include "sim/topology/bisection.hpp"

#include "sim/topology/graph.hpp"
#include "sim/topology/test_grids.hpp"

namespace podsim {
namespace {

using test::grid;
using test::open_mesh;
using test::random_grid;
using test::torus;

TEST(Bisection, MeetsTheClosedForms) {
  EXPECT_DOUBLE_EQ(bisection_bandwidth(torus({16, 16})).count(), 16 * 2 * 45e9);
  EXPECT_DOUBLE_EQ(bisection_bandwidth(open_mesh({16, 16})).count(), 16 * 45e9);
  EXPECT_DOUBLE_EQ(bisection_bandwidth(torus({4, 4, 8})).count(), 16 * 2 * 45e9) << "across the longest dimension";
  EXPECT_DOUBLE_EQ(bisection_bandwidth(torus({2, 8})).count(), 2 * 2 * 45e9);
  EXPECT_DOUBLE_EQ(bisection_bandwidth(torus({2, 2})).count(), 2 * 45e9) << "an extent of 2 has one cable, wrapped or not";
  EXPECT_DOUBLE_EQ(bisection_bandwidth(torus({1, 8})).count(), 2 * 45e9) << "an extent of 1 cannot be cut";
}

TEST(Bisection, TakesTheWeakestDimension) {
  const Grid slice = *Grid::make({{4, true, {BytesPerSecond{10e9}, {}}}, {4, true, {BytesPerSecond{100e9}, {}}}});
  EXPECT_DOUBLE_EQ(bisection_bandwidth(slice).count(), 4 * 2 * 10e9);
}

TEST(Bisection, OfOneChipIsUnlimited) {
  EXPECT_TRUE(is_unlimited(bisection_bandwidth(torus({1, 1}))));
  EXPECT_TRUE(is_unlimited(all_to_all_bound(torus({1, 1}))));
}

TEST(AllToAllBound, MeetsTheClosedForms) {
  // An even ring of N: 8 b (N - 1) / N^2. Both chips of a pair send all they have over one link.
  EXPECT_DOUBLE_EQ(all_to_all_bound(torus({8})).count(), 8 * 45e9 * 7 / 64);
  EXPECT_DOUBLE_EQ(all_to_all_bound(torus({2})).count(), 45e9);
  EXPECT_DOUBLE_EQ(all_to_all_bound(torus({3})).count(), 2 * 45e9) << "every other chip is a neighbour";
  EXPECT_DOUBLE_EQ(all_to_all_bound(torus({16, 16})).count(), 8 * 45e9 * 255 / (16.0 * 256));
}

TEST(AllToAllBound, IsLimitedByInjectionAndEjection) {
  EXPECT_EQ(all_to_all_bound(grid({4}, {true}, BytesPerSecond{1e9}, BytesPerSecond{2e9})), BytesPerSecond{1e9});
  EXPECT_EQ(all_to_all_bound(grid({4}, {true}, BytesPerSecond{3e9}, BytesPerSecond{2e9})), BytesPerSecond{2e9});
}

// The halving planes stand for all planes: cut every dimension into every two contiguous pieces and count links one by one.
TEST(AllToAllBound, NoOtherCoordinateCutBindsMore) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Grid slice = random_grid(seed);
    double bound = unlimited<BytesPerSecond>.count(), least_half = bound;
    for (std::size_t d = 0; d < slice.dimensions().size(); ++d) {
      const int extent = slice.dimensions()[d].extent;
      for (int begin = 0; begin < extent; ++begin)
        for (int end = begin + 1; end <= extent; ++end) {
          if (end - begin == extent || (begin > 0 && !slice.dimensions()[d].wraps)) continue;
          std::vector<bool> side;
          int far = 0;
          for (int chip = 0; chip < slice.chips(); ++chip) {
            const int at = slice.coordinates(ChipId{chip})[d];
            side.push_back(begin <= at && at < end);
            far += side.back() ? 1 : 0;
          }
          const double bandwidth = cut_bandwidth(slice, side).count(), chips = slice.chips();
          bound = std::min(bound, bandwidth * (chips - 1) / (far * (chips - far)));
          if (end - begin == extent / 2) least_half = std::min(least_half, bandwidth);
        }
    }
    if (slice.chips() == 1) continue;
    ASSERT_NEAR(all_to_all_bound(slice).count() / bound, 1, 1e-12);
    ASSERT_EQ(bisection_bandwidth(slice).count(), least_half);
  }
}

// Reached on tori: route every pair, half of it each way where both are equally long, and look at the busiest link.
TEST(AllToAllBound, IsWhatSplitShortestRoutesReachOnTori) {
  for (const std::vector<int>& extents : {std::vector{8}, {5}, {4, 4}, {3, 5}, {2, 4, 4}, {4, 6}}) {
    const Grid slice = torus(extents);
    std::vector<double> load(static_cast<std::size_t>(slice.link_slots()));
    for (int from = 0; from < slice.chips(); ++from)
      for (int to = 0; to < slice.chips(); ++to)
        for (const int sign : {1, -1}) {
          std::vector<LinkId> links;
          ASSERT_TRUE(slice.route(ChipId{from}, ChipId{to}, {{}, sign}, links));
          for (const LinkId link : links) load[link.index()] += 0.5;
        }
    // Each pair carries one unit; a chip sends chips - 1 of them while the busiest link carries `busiest`.
    const double busiest = *std::max_element(load.begin(), load.end());
    EXPECT_DOUBLE_EQ(all_to_all_bound(slice).count(), 45e9 * (slice.chips() - 1) / busiest);
  }
}

}  // namespace
}  // namespace podsim
