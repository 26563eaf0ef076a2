#include "sim/topology/grid.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <queue>
#include <set>

#include <gmock/gmock.h>

#include "sim/topology/test_grids.hpp"

namespace podsim {
namespace {

using test::grid;
using test::open_mesh;
using test::random_grid;
using test::torus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<LinkId> route(const Topology& topology, int from, int to, const RouteOptions& options = {}) {
  std::vector<LinkId> links;
  EXPECT_TRUE(topology.route(ChipId{from}, ChipId{to}, options, links));
  return links;
}

std::vector<std::string> route_names(const Topology& topology, int from, int to, const RouteOptions& options = {}) {
  std::vector<std::string> names;
  for (const LinkId link : route(topology, from, to, options)) names.push_back(topology.link_name(link));
  return names;
}

/// Neighbours by the definition in words, from coordinates alone: next to each other in one dimension, or at its two ends if it wraps.
bool adjacent(const Grid& grid, int a, int b) {
  const std::vector<int> at_a = grid.coordinates(ChipId{a}), at_b = grid.coordinates(ChipId{b});
  int apart = 0;
  for (std::size_t d = 0; d < at_a.size(); ++d) {
    const GridDimension& dimension = grid.dimensions()[d];
    const int distance = std::abs(at_a[d] - at_b[d]);
    if (distance == 0) continue;
    if (distance != 1 && !(dimension.wraps && distance == dimension.extent - 1)) return false;
    ++apart;
  }
  return apart == 1;
}

std::vector<int> breadth_first_distances(const Grid& grid, int from) {
  std::vector<int> distances(static_cast<std::size_t>(grid.chips()), -1);
  std::queue<int> queue;
  queue.push(from);
  distances[ChipId{from}.index()] = 0;
  for (; !queue.empty(); queue.pop())
    for (int next = 0; next < grid.chips(); ++next)
      if (distances[ChipId{next}.index()] < 0 && adjacent(grid, queue.front(), next)) {
        distances[ChipId{next}.index()] = distances[ChipId{queue.front()}.index()] + 1;
        queue.push(next);
      }
  return distances;
}

/// Where every link leads, and its dimension and sign, from out_links and link_from.
struct Step {
  int from, to, dimension, sign;
};
std::map<int, Step> steps_of(const Grid& grid) {
  std::map<int, Step> steps;
  for (int chip = 0; chip < grid.chips(); ++chip)
    for (const OutLink& out : grid.out_links(ChipId{chip}))
      for (int d = 0; d < static_cast<int>(grid.dimensions().size()); ++d)
        for (const int sign : {1, -1})
          if (grid.link_from(ChipId{chip}, d, sign) == out.link) steps[out.link.value] = {chip, out.to.value, d, sign};
  return steps;
}

TEST(Grid, IsRowMajorWithDimensionZeroMostSignificant) {
  const Grid grid = torus({4, 8, 2});
  EXPECT_EQ(grid.chips(), 64);
  EXPECT_EQ(grid.chip({1, 2, 1}), ChipId{16 + 4 + 1});
  EXPECT_THAT(grid.coordinates(ChipId{21}), ElementsAre(1, 2, 1));
  EXPECT_EQ(grid.chip_name(ChipId{21}), "(1,2,1)");
}

TEST(Grid, OutLinksAreExactlyTheNeighboursInIncreasingId) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Grid grid = random_grid(seed);
    for (int chip = 0; chip < grid.chips(); ++chip) {
      std::set<int> expected, found;
      for (int other = 0; other < grid.chips(); ++other)
        if (adjacent(grid, chip, other)) expected.insert(other);
      const std::vector<OutLink> out = grid.out_links(ChipId{chip});
      for (const OutLink& link : out) found.insert(link.to.value);
      ASSERT_EQ(found, expected);
      ASSERT_EQ(out.size(), expected.size()) << "one link per neighbour, also where extent is 2";
      ASSERT_TRUE(std::is_sorted(out.begin(), out.end(), [](const OutLink& a, const OutLink& b) { return a.link < b.link; }));
    }
  }
}

TEST(Grid, LinkIdsAreUniqueBelowTheSlotsAndKnowTheirDimension) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Grid grid = random_grid(seed);
    std::size_t links = 0;
    for (int chip = 0; chip < grid.chips(); ++chip) links += grid.out_links(ChipId{chip}).size();
    const std::map<int, Step> steps = steps_of(grid);
    ASSERT_EQ(steps.size(), links);
    for (const auto& [link, step] : steps) {
      ASSERT_TRUE(0 <= link && link < grid.link_slots());
      ASSERT_EQ(grid.link(LinkId{link}), grid.dimensions()[static_cast<std::size_t>(step.dimension)].link);
      const std::optional<LinkId> back = grid.link_from(ChipId{step.to}, step.dimension, -step.sign);
      ASSERT_TRUE(back) << "a cable has two directions";
      ASSERT_EQ(steps.at(back->value).to, step.from);
    }
  }
}

TEST(Grid, AnExtentOfTwoIsOneCableWrappedOrNot) {
  for (const bool wraps : {false, true}) {
    const Grid pair = grid({2}, {wraps});
    EXPECT_EQ(pair.link_from(ChipId{0}, 0, -1), std::nullopt);
    EXPECT_EQ(pair.link_from(ChipId{1}, 0, +1), std::nullopt);
    EXPECT_THAT(route_names(pair, 0, 1, {{}, -1}), ElementsAre("(0)->(1) x+"));
    EXPECT_THAT(route_names(pair, 1, 0), ElementsAre("(1)->(0) x-"));
  }
}

TEST(Grid, AnExtentOfOneHasNoLinks) {
  const Grid one = grid({1, 1}, {true, false});
  EXPECT_THAT(one.out_links(ChipId{0}), IsEmpty());
  EXPECT_THAT(route(one, 0, 0), IsEmpty());
}

TEST(GridRoute, IsConnectedShortestAndInDimensionOrder) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Grid grid = random_grid(seed);
    const std::map<int, Step> steps = steps_of(grid);
    Rng rng{seed};
    std::vector<int> order(grid.dimensions().size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    for (const RouteOptions& options : {RouteOptions{}, RouteOptions{{}, +1}, RouteOptions{{}, -1}, RouteOptions{order, +1}}) {
      const auto rank = [&](int dimension) {
        const auto& by = options.dimension_order;
        return by.empty() ? dimension : static_cast<int>(std::find(by.begin(), by.end(), dimension) - by.begin());
      };
      const int from = static_cast<int>(rng.below(static_cast<std::uint64_t>(grid.chips())));
      const std::vector<int> distances = breadth_first_distances(grid, from);
      for (int to = 0; to < grid.chips(); ++to) {
        const std::vector<LinkId> links = route(grid, from, to, options);
        ASSERT_EQ(static_cast<int>(links.size()), distances[ChipId{to}.index()]);
        int at = from, last_rank = -1;
        std::map<int, int> sign_of;
        for (const LinkId link : links) {
          const Step step = steps.at(link.value);
          ASSERT_EQ(step.from, at);
          ASSERT_GE(rank(step.dimension), last_rank);
          ASSERT_EQ(sign_of.emplace(step.dimension, step.sign).first->second, step.sign) << "no turning back";
          last_rank = rank(step.dimension);
          at = step.to;
        }
        ASSERT_EQ(at, to);
      }
    }
  }
}

TEST(GridRoute, TiesGoTheWayTheOptionsSay) {
  const Grid ring = torus({4});
  EXPECT_THAT(route_names(ring, 1, 3, {{}, +1}), ElementsAre("(1)->(2) x+", "(2)->(3) x+"));
  EXPECT_THAT(route_names(ring, 3, 1, {{}, +1}), ElementsAre("(3)->(0) x+", "(0)->(1) x+"));
  EXPECT_THAT(route_names(ring, 1, 3, {{}, -1}), ElementsAre("(1)->(0) x-", "(0)->(3) x-"));
  EXPECT_THAT(route_names(ring, 3, 1, {{}, -1}), ElementsAre("(3)->(2) x-", "(2)->(1) x-"));
  // No tie: the shorter way whatever the options say. An open line has one way only.
  EXPECT_THAT(route_names(ring, 0, 3), ElementsAre("(0)->(3) x-"));
  EXPECT_THAT(route_names(open_mesh({4}), 0, 2, {{}, -1}), ElementsAre("(0)->(1) x+", "(1)->(2) x+"));
}

TEST(GridRoute, TiesThatTheOptionsLeaveOpenLoadBothDirectionsAlike) {
  const Grid ring = torus({4});
  EXPECT_THAT(route_names(ring, 0, 2), ElementsAre("(0)->(1) x+", "(1)->(2) x+"));
  EXPECT_THAT(route_names(ring, 1, 3), ElementsAre("(1)->(0) x-", "(0)->(3) x-"));
  for (const std::vector<int>& extents : {std::vector<int>{4}, {6}, {8}, {4, 6}, {8, 3}, {4, 4, 4}}) {
    const Grid grid = torus(extents);
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] % 2 != 0) continue;
      std::map<LinkId, int> load;  // from every chip to its antipode in one dimension
      for (int chip = 0; chip < grid.chips(); ++chip) {
        std::vector<int> c = grid.coordinates(ChipId{chip});
        c[d] = (c[d] + extents[d] / 2) % extents[d];
        for (const LinkId link : route(grid, chip, grid.chip(c).value)) ++load[link];
      }
      EXPECT_EQ(load.size(), static_cast<std::size_t>(2 * grid.chips())) << "both directions";
      for (const auto& [link, flows] : load) EXPECT_LE(flows, (extents[d] / 2 + 1) / 2) << grid.link_name(link);
    }
  }
}

TEST(GridRoute, ByEndpointsThereIsOneRouteWhateverTheSign) {
  const Grid signs = torus({4}), endpoints = signs.routed_by_endpoints();
  EXPECT_THAT(route_names(signs, 0, 2, {{}, -1}), ElementsAre("(0)->(3) x-", "(3)->(2) x-"));
  for (const int sign : {-1, 0, +1}) {
    EXPECT_THAT(route_names(endpoints, 0, 2, {{}, sign}), ElementsAre("(0)->(1) x+", "(1)->(2) x+"));
    EXPECT_THAT(route_names(endpoints, 1, 3, {{}, sign}), ElementsAre("(1)->(0) x-", "(0)->(3) x-"));
  }
  EXPECT_EQ(signs.plain_grid(), &signs);
  EXPECT_EQ(endpoints.plain_grid(), nullptr) << "closed forms send shifts the way of their sign";
}

TEST(GridRoute, FollowsTheNamedDimensionOrder) {
  const Grid mesh = open_mesh({2, 2});
  EXPECT_THAT(route_names(mesh, 0, 3), ElementsAre("(0,0)->(1,0) x+", "(1,0)->(1,1) y+"));
  EXPECT_THAT(route_names(mesh, 0, 3, {{1, 0}, 1}), ElementsAre("(0,0)->(0,1) y+", "(0,1)->(1,1) x+"));
}

TEST(GridRoute, RefusesWhatIsNoDimensionOrder) {
  const Grid mesh = open_mesh({2, 2});
  std::vector<LinkId> links;
  for (const std::vector<int>& order : {std::vector{0}, {0, 0}, {0, 2}, {0, 1, 0}, {-1, 0}})
    EXPECT_FALSE(mesh.route(ChipId{0}, ChipId{3}, {order, 1}, links));
  EXPECT_EQ(mesh.route(ChipId{0}, ChipId{3}, {{0, 2}, 1}, links).error().message,
            "a dimension order names each of the 2 dimensions once, got [0, 2]");
  EXPECT_THAT(links, IsEmpty());
}

TEST(GridRoute, AppendsAndLeavesOutNothing) {
  const Grid ring = torus({4});
  std::vector<LinkId> links = {LinkId{77}};
  EXPECT_TRUE(ring.route(ChipId{0}, ChipId{1}, {}, links));
  EXPECT_TRUE(ring.route(ChipId{2}, ChipId{2}, {}, links));
  EXPECT_THAT(links, ElementsAre(LinkId{77}, *ring.link_from(ChipId{0}, 0, 1)));
}

TEST(GridInjection, FramesTheRouteOnlyWhereItIsLimited) {
  const BytesPerSecond limit{10e9};
  const auto names = [&](bool injection, bool ejection) {
    const Grid line = grid({3}, {false}, injection ? limit : unlimited<BytesPerSecond>, ejection ? limit : unlimited<BytesPerSecond>);
    EXPECT_THAT(route(line, 1, 1), IsEmpty());
    return route_names(line, 1, 2);
  };
  EXPECT_THAT(names(false, false), ElementsAre("(1)->(2) x+"));
  EXPECT_THAT(names(true, false), ElementsAre("injection (1)", "(1)->(2) x+"));
  EXPECT_THAT(names(false, true), ElementsAre("(1)->(2) x+", "ejection (2)"));
  EXPECT_THAT(names(true, true), ElementsAre("injection (1)", "(1)->(2) x+", "ejection (2)"));
}

TEST(GridInjection, LinksHaveTheirOwnIdsAndNoLatency) {
  const Grid line = grid({3}, {false}, BytesPerSecond{1e9}, BytesPerSecond{2e9});
  std::set<LinkId> seen;
  for (int chip = 0; chip < 3; ++chip)
    for (const OutLink& out : line.out_links(ChipId{chip})) seen.insert(out.link);
  for (int chip = 0; chip < 3; ++chip) {
    const std::vector<LinkId> links = route(line, chip, (chip + 1) % 3);
    EXPECT_EQ(line.link(links.front()), (LinkParameters{BytesPerSecond{1e9}, Seconds{}}));
    EXPECT_EQ(line.link(links.back()), (LinkParameters{BytesPerSecond{2e9}, Seconds{}}));
    seen.insert({links.front(), links.back()});
    EXPECT_LT(std::max(links.front(), links.back()).value, line.link_slots());
    EXPECT_FALSE(line.is_hop(links.front()) || line.is_hop(links.back()));
    EXPECT_TRUE(line.is_hop(links[1]));
  }
  EXPECT_EQ(seen.size(), 4u + 6u);
}

TEST(Grid, SixtyFiveThousandChipsCostNothing) {
  const Grid pod = torus({256, 256});
  EXPECT_EQ(pod.chips(), 65'536);
  EXPECT_EQ(pod.link_slots(), 4 * 65'536);
  EXPECT_EQ(route(pod, 0, pod.chips() - 1).size(), 2u);
  EXPECT_EQ(route(pod, 0, 128 * 256 + 128).size(), 256u);
}

TEST(GridErrors, NameTheNumbers) {
  const auto error = [](std::vector<GridDimension> dimensions) { return Grid::make(std::move(dimensions)).error().message; };
  EXPECT_EQ(error({}), "a grid has 1 to 4 dimensions, got 0");
  EXPECT_EQ(error(std::vector<GridDimension>(5)), "a grid has 1 to 4 dimensions, got 5");
  EXPECT_EQ(error({{4}, {0}}), "dimension y needs an extent of at least 1, got 0");
  EXPECT_EQ(error({{4096}, {4097}}), "a grid has at most 16777216 chips, got 16781312 or more");
  EXPECT_TRUE(Grid::make({{4096}, {4096}}));
}

TEST(Grid, UnusedSlotsAreSaidToBeUnused) {
  const Grid line = open_mesh({2});
  EXPECT_EQ(line.link_name(LinkId{1}), "no link (0) x-");
}

}  // namespace
}  // namespace podsim
