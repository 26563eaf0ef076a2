// Topologies other than the plain grid: what every route must be, and what sets each apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "sim/base/rng.hpp"
#include "sim/topology/bisection.hpp"
#include "sim/topology/damaged.hpp"
#include "sim/topology/graph.hpp"
#include "sim/topology/joined_slices.hpp"
#include "sim/topology/network.hpp"
#include "sim/topology/test_grids.hpp"
#include "sim/topology/twisted_torus.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

constexpr LinkParameters link{BytesPerSecond{1e9}, Seconds{1e-6}};

std::vector<GridDimension> dimensions(const std::vector<int>& extents, bool wraps = true) {
  std::vector<GridDimension> result;
  for (const int extent : extents) result.push_back({extent, wraps, link});
  return result;
}

/// The nodes that a route passes, if each of its links leaves the node that the one before led to.
std::vector<int> nodes_of(const Topology& topology, ChipId from, const std::vector<LinkId>& route) {
  std::vector<int> nodes{from.value};
  for (const LinkId id : route) {
    if (!topology.is_hop(id)) continue;
    const auto out = topology.out_links(ChipId{nodes.back()});
    const auto taken = std::find_if(out.begin(), out.end(), [&](const OutLink& o) { return o.link == id; });
    if (taken == out.end()) return {};
    nodes.push_back(taken->to.value);
  }
  return nodes;
}

/// Every route between chips is a path; `shortest`: of as few hops as breadth-first search finds.
void expect_routes(const Topology& topology, bool shortest) {
  for (int from = 0; from < topology.chips(); ++from) {
    const std::vector<int> hops = hops_from(topology, ChipId{from});
    for (int to = 0; to < topology.chips(); ++to) {
      std::vector<LinkId> route;
      ASSERT_TRUE(topology.route(ChipId{from}, ChipId{to}, {}, route));
      const std::vector<int> nodes = nodes_of(topology, ChipId{from}, route);
      ASSERT_FALSE(nodes.empty()) << from << " to " << to;
      ASSERT_EQ(nodes.back(), to);
      if (shortest) {
        ASSERT_EQ(static_cast<int>(nodes.size()) - 1, hops[static_cast<std::size_t>(to)]) << from << " to " << to;
      }
      for (const LinkId id : route) ASSERT_LT(id.value, topology.link_slots());
    }
  }
}

TEST(TwistedTorus, RoutesAreShortest) {
  for (const std::vector<int>& extents : {std::vector{2, 2, 4}, {4, 4, 8}, {4, 8, 4}, {2, 4, 4}, {3, 6, 6}, {6, 3, 3}}) {
    const auto torus = TwistedTorus::make(dimensions(extents));
    ASSERT_TRUE(torus) << to_text(torus.error());
    expect_routes(*torus, true);
  }
}

TEST(TwistedTorus, LinksGoBothWays) {
  const auto torus = TwistedTorus::make(dimensions({4, 8, 8}));
  for (int chip = 0; chip < torus->chips(); ++chip)
    for (const OutLink& out : torus->out_links(ChipId{chip})) {
      const auto back = torus->out_links(out.to);
      EXPECT_TRUE(std::any_of(back.begin(), back.end(), [&](const OutLink& o) { return o.to.value == chip; }));
    }
}

/// Which is what twisting is for: from the same links a diameter of floor(3k/2), that of the face- and body-centred cubic lattices.
TEST(TwistedTorus, ShrinksDistances) {
  for (const auto& [extents, plain_diameter, twisted_diameter] : {std::tuple{std::vector{4, 4, 8}, 8, 6}, {std::vector{4, 8, 8}, 10, 6}}) {
    const auto plain = Grid::make(dimensions(extents));
    const auto twisted = TwistedTorus::make(dimensions(extents));
    const Shape a = shape_of(*plain), b = *shape_of(*twisted);
    EXPECT_EQ(a.links, b.links);
    EXPECT_EQ(a.diameter, plain_diameter);
    EXPECT_EQ(b.diameter, twisted_diameter);
    EXPECT_LT(b.mean_distance, a.mean_distance);
  }
}

/// What is counted over one chip of each class is what is counted over all of them.
void expect_equivalent(const Topology& topology) {
  const test::Disguised unknown{topology};
  const auto some = shape_of(topology), all = shape_of(unknown);
  ASSERT_TRUE(some && all);
  EXPECT_EQ(some->links, all->links);
  EXPECT_EQ(some->switches, all->switches);
  EXPECT_EQ(some->least_degree, all->least_degree);
  EXPECT_EQ(some->largest_degree, all->largest_degree);
  EXPECT_EQ(some->diameter, all->diameter);
  EXPECT_EQ(some->connected, all->connected);
  EXPECT_DOUBLE_EQ(some->mean_distance, all->mean_distance);
  const auto of_some = all_to_all_bound(topology), of_all = all_to_all_bound(unknown);
  ASSERT_TRUE(of_some && *of_some && of_all && *of_all);
  EXPECT_DOUBLE_EQ((*of_some)->count(), (*of_all)->count());
  int chips = 0;
  for (const ChipClass& same : topology.chip_classes()) chips += same.chips;
  EXPECT_EQ(chips, topology.chips());
}

TEST(TwistedTorus, AllChipsAreEquivalent) {
  for (const std::vector<int>& extents : {std::vector{2, 2, 4}, {4, 4, 8}, {4, 8, 4}, {2, 4, 4}, {3, 6, 6}, {6, 3, 3}}) {
    std::vector<GridDimension> sides = dimensions(extents);
    for (std::size_t d = 0; d < sides.size(); ++d) sides[d].link.bandwidth = BytesPerSecond{1e9 * static_cast<double>(d + 1)};
    for (const double injection : {1e7, 1e12}) {
      const auto torus = TwistedTorus::make(sides, BytesPerSecond{injection}, BytesPerSecond{2 * injection});
      ASSERT_TRUE(torus);
      EXPECT_EQ(torus->chip_classes().size(), 1U);
      expect_equivalent(*torus);
    }
  }
}

TEST(TwistedTorus, OfOtherShapesIsAnError) {
  for (const std::vector<int>& extents : {std::vector{4, 4, 4}, {4, 4}, {4, 4, 12}, {4, 6, 8}})
    EXPECT_FALSE(TwistedTorus::make(dimensions(extents)));
  EXPECT_EQ(to_text(TwistedTorus::make(dimensions({4, 4, 4})).error()),
            "a twisted torus is k x k x 2k or k x 2k x 2k chips, as 4x4x8 or 4x8x8, got 4x4x4");
}

TEST(Damaged, WhatMeetsABrokenLinkGoesAroundAndNothingElseChanges) {
  const auto grid = std::make_shared<const Grid>(*Grid::make(dimensions({4, 4})));
  const LinkId cut = *grid->link_from(ChipId{0}, 1, +1), back = *grid->link_from(ChipId{1}, 1, -1);
  const DamagedTopology damaged{grid, {{cut, back}, {}}};
  expect_routes(damaged, false);
  int changed = 0;
  for (int from = 0; from < 16; ++from)
    for (int to = 0; to < 16; ++to) {
      std::vector<LinkId> healthy, now;
      ASSERT_TRUE(grid->route(ChipId{from}, ChipId{to}, {}, healthy) && damaged.route(ChipId{from}, ChipId{to}, {}, now));
      const bool meets = std::find(healthy.begin(), healthy.end(), cut) != healthy.end() || std::find(healthy.begin(), healthy.end(), back) != healthy.end();
      EXPECT_EQ(healthy != now, meets) << from << " to " << to;
      changed += meets;
      for (const LinkId id : now) EXPECT_TRUE(id != cut && id != back);
    }
  EXPECT_GT(changed, 2);
  // (0,0) to (0,1): three hops; of those the first by dimension and direction goes x+ first.
  std::vector<LinkId> route;
  ASSERT_TRUE(damaged.route(ChipId{0}, ChipId{1}, {}, route));
  EXPECT_THAT(nodes_of(damaged, ChipId{0}, route), ElementsAre(0, 4, 5, 1));
}

TEST(Damaged, AChipThatIsCutOffIsAnErrorThatNamesIt) {
  const auto line = std::make_shared<const Grid>(*Grid::make(dimensions({3}, false)));
  const DamagedTopology damaged{line, {{*line->link_from(ChipId{1}, 0, +1)}, {}}};
  std::vector<LinkId> route;
  const Status ok = damaged.route(ChipId{0}, ChipId{2}, {}, route);
  ASSERT_FALSE(ok);
  EXPECT_EQ(to_text(ok.error()), "chip (2) cannot be reached from (0): every way there is broken");
}

TEST(Damaged, ASlowLinkKeepsItsPlaceAndItsPartOfTheBandwidth) {
  const auto grid = std::make_shared<const Grid>(*Grid::make(dimensions({4})));
  const LinkId slow = *grid->link_from(ChipId{0}, 0, +1);
  const DamagedTopology damaged{grid, {{}, {{slow, 0.5}}}};
  EXPECT_EQ(damaged.link(slow).bandwidth, BytesPerSecond{0.5e9});
  EXPECT_EQ(damaged.link(LinkId{slow.value + 1}).bandwidth, BytesPerSecond{1e9});
  std::vector<LinkId> route;
  ASSERT_TRUE(damaged.route(ChipId{0}, ChipId{1}, {}, route));
  EXPECT_THAT(route, ElementsAre(slow));
}

/// Two leaves of two chips under two spines.
Expected<Network> small_tree() {
  std::vector<Cable> cables;
  for (int chip = 0; chip < 4; ++chip) cables.push_back({chip, 4 + chip / 2, link, 0});
  for (const int leaf : {4, 5})
    for (const int spine : {6, 7}) cables.push_back({leaf, spine, link, 0});
  return Network::make(4, {"a", "b", "c", "d", "leaf 0", "leaf 1", "spine 0", "spine 1"}, cables);
}

TEST(Network, RoutesAreShortestAndSpreadOverTheSwitchesByDestination) {
  const auto tree = small_tree();
  ASSERT_TRUE(tree) << to_text(tree.error());
  expect_routes(*tree, true);
  std::vector<LinkId> to_c, to_d;
  ASSERT_TRUE(tree->route(ChipId{0}, ChipId{2}, {}, to_c) && tree->route(ChipId{0}, ChipId{3}, {}, to_d));
  EXPECT_THAT(nodes_of(*tree, ChipId{0}, to_c), ElementsAre(0, 4, 6, 5, 2));
  EXPECT_THAT(nodes_of(*tree, ChipId{0}, to_d), ElementsAre(0, 4, 7, 5, 3));
  const Shape shape = *shape_of(*tree);
  EXPECT_EQ(shape.switches, 4);
  EXPECT_EQ(shape.diameter, 4);
  EXPECT_EQ(flow_between(*tree, {false, false, true, true}), BytesPerSecond{2e9});
  EXPECT_EQ(tree->link_name(to_c[1]), "leaf 0->spine 0");
}

TEST(Network, LongRingsOfSwitchesAreSearchedOnlyWhereARouteLeads) {
  // A chip on each of 20,000 switches in a ring; a table of all hops would have 800 million entries.
  constexpr int chips = 20000;
  std::vector<Cable> cables;
  for (int chip = 0; chip < chips; ++chip) cables.push_back({chip, chips + chip, link, {}}), cables.push_back({chips + chip, chips + (chip + 1) % chips, link, {}});
  std::vector<std::string> names(2 * chips, "node");
  const auto ring = Network::make(chips, std::move(names), cables);
  ASSERT_TRUE(ring) << to_text(ring.error());
  for (const auto& [from, to] : {std::pair{0, 3}, {3, 0}, {chips - 1, 1}, {5000, 0}}) {
    std::vector<LinkId> route;
    ASSERT_TRUE(ring->route(ChipId{from}, ChipId{to}, {}, route));
    const int apart = std::abs(from - to);
    EXPECT_EQ(static_cast<int>(route.size()), 2 + std::min(apart, chips - apart)) << from << " to " << to;
  }
}

TEST(Network, WhatIsNotConnectedIsAnError) {
  EXPECT_EQ(to_text(Network::make(2, {"a", "b", "s"}, {{0, 2, link, {}}}).error()), "chip b cannot be reached from a");
  EXPECT_EQ(to_text(Network::make(2, {"a", "b"}, {{0, 2, link, {}}}).error()), "a cable joins two different nodes of 0 to 1, got 0 and 2");
}

TEST(JoinedSlices, StayWhatTheyAreInsideAndMeetOverHosts) {
  const auto grid = std::make_shared<const Grid>(*Grid::make(dimensions({2, 4})));
  const LinkParameters up{BytesPerSecond{15e9}, Seconds{}}, out{BytesPerSecond{25e9}, Seconds{10e-6}};
  const JoinedSlices joined{grid, 3, {up, out, {0, 0, 1, 1, 0, 0, 1, 1}}};
  EXPECT_EQ(joined.chips(), 24);
  EXPECT_EQ(joined.nodes(), 24 + 3 * 2 + 1);
  expect_routes(joined, false);
  std::vector<LinkId> inside, plain, across;
  ASSERT_TRUE(joined.route(ChipId{8}, ChipId{11}, {}, inside) && grid->route(ChipId{0}, ChipId{3}, {}, plain));
  ASSERT_EQ(inside.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(inside[i].value, grid->link_slots() + plain[i].value);
  ASSERT_TRUE(joined.route(ChipId{2}, ChipId{16}, {}, across));
  std::vector<std::string> names;
  for (const LinkId id : across) names.push_back(joined.link_name(id));
  EXPECT_THAT(names, ElementsAre("0:(0,2)->host", "host 0.1->network", "network->host 2.0", "host->2:(0,0)"));
  EXPECT_EQ(joined.link(across[1]), out);
  EXPECT_EQ(joined.link(across[3]), up);
  EXPECT_EQ(joined.dimension_of(inside[0]), 1);
  EXPECT_EQ(joined.dimension_of(across[0]), std::nullopt);
}

TEST(JoinedSlices, SlicesMayChangePlaces) {
  // The bound is that of the slices' own links, of the hosts' or of the network's, whichever is least.
  const auto torus = std::make_shared<const Grid>(*Grid::make(dimensions({2, 4})));
  const auto twisted = std::make_shared<const TwistedTorus>(*TwistedTorus::make(dimensions({2, 2, 4})));
  for (const double host : {1e8, 1e12})
    for (const double network : {1e8, 1e12}) {
      const LinkParameters up{BytesPerSecond{host}, Seconds{}}, out{BytesPerSecond{network}, Seconds{10e-6}};
      expect_equivalent(JoinedSlices{torus, 3, {up, out, {0, 0, 1, 1, 0, 0, 1, 1}}});
      expect_equivalent(JoinedSlices{torus, 2, {up, out, {0, 0, 0, 1, 0, 0, 0, 1}}});
      expect_equivalent(JoinedSlices{twisted, 3, {up, out, std::vector<int>(16, 0)}});
    }
}

TEST(Topologies, SayWhichDimensionsCloseWhatIsBrokenAndWhatTheyAreMadeOf) {
  const auto closing = [](const Topology& topology) {
    std::vector<bool> closes;
    for (int d = 0; d < 3; ++d) closes.push_back(topology.closes(d));
    return closes;
  };
  const auto open = std::make_shared<const Grid>(*Grid::make({{4, true, link}, {4, false, link}, {8, true, link}}));
  const auto twisted = std::make_shared<const TwistedTorus>(*TwistedTorus::make(dimensions({4, 4, 8})));
  EXPECT_THAT(closing(*open), ElementsAre(true, false, true));
  EXPECT_THAT(closing(*twisted), ElementsAre(false, false, true)) << "going round a short one comes back shifted";
  EXPECT_THAT(closing(*Network::make(2, {"a", "b"}, {{0, 1, link, {}}})), ElementsAre(true, true, true)) << "as over switches";
  EXPECT_EQ(open->plain_grid(), open.get());
  EXPECT_EQ(twisted->plain_grid(), nullptr);

  // What wraps another one hands the questions on.
  const LinkId cut = *open->link_from(ChipId{0}, 0, +1);
  const auto damaged = std::make_shared<const DamagedTopology>(twisted, Damage{{cut}, {}});
  EXPECT_THAT(closing(*damaged), ElementsAre(false, false, true));
  EXPECT_THAT(damaged->broken_links(), ElementsAre(cut));
  EXPECT_EQ(damaged->plain_grid(), nullptr);
  EXPECT_FALSE(damaged->parts());
  const JoinedSlices joined{damaged, 2, {link, link, std::vector<int>(128, 0)}};
  EXPECT_THAT(closing(joined), ElementsAre(false, false, true));
  EXPECT_THAT(joined.broken_links(), ElementsAre(cut, LinkId{twisted->link_slots() + cut.value}));
  ASSERT_TRUE(joined.parts());
  EXPECT_EQ(&joined.parts()->slice, damaged.get());
  EXPECT_EQ(joined.parts()->slices, 2);
}

TEST(AllToAllBound, IsNotComputedWhereTooManyRoutesWouldBeLookedAt) {
  const auto grid = std::make_shared<const Grid>(*Grid::make(dimensions({128, 64})));
  const DamagedTopology damaged{grid, {{*grid->link_from(ChipId{0}, 1, +1)}, {}}};
  const auto bound = all_to_all_bound(damaged);
  ASSERT_TRUE(bound);
  EXPECT_EQ(*bound, std::nullopt);
}

TEST(Topologies, CountingEndsWhenTold) {
  const std::atomic<bool> stop{true};
  const auto tree = small_tree();
  const auto shape = shape_of(*tree, &stop);
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().cause, Cause::cancelled);
  const auto bound = all_to_all_bound(*tree, &stop);
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().cause, Cause::cancelled);
}

TEST(Grid, TwoDevicesOfAChipMeetOverItsInnerLinks) {
  const auto grid = Grid::make(dimensions({2, 2}), BytesPerSecond{5e9}, unlimited<BytesPerSecond>, LinkParameters{BytesPerSecond{7e9}, Seconds{2e-6}});
  const LinkId there = *grid->inner_link(ChipId{3}, 0), back = *grid->inner_link(ChipId{3}, 1);
  EXPECT_NE(there, back);
  EXPECT_EQ(grid->link(there).bandwidth, BytesPerSecond{7e9});
  EXPECT_FALSE(grid->is_hop(there));
  EXPECT_EQ(grid->link_slots(), 4 * 4 + 4 + 8);
  EXPECT_LT(back.value, grid->link_slots());
  EXPECT_EQ(grid->link_name(there), "inner (1,1) core 0->1");
  EXPECT_EQ(Grid::make(dimensions({2}))->inner_link(ChipId{0}, 0), std::nullopt);
}

}  // namespace
}  // namespace podsim
