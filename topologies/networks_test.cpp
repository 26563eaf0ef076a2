// Networks whose routes are computed against the same networks without a wiring, whose routes are searched.
#include "topologies/networks.hpp"

#include <gtest/gtest.h>

#include "sim/topology/bisection.hpp"
#include "sim/topology/graph.hpp"

namespace podsim {
namespace {

constexpr LinkParameters first{BytesPerSecond{1e9}, Seconds{1e-6}}, second{BytesPerSecond{7e9}, Seconds{2e-6}};

/// The same nodes and cables, with nothing known of them.
Network unknown(const Network& network) {
  std::vector<std::string> names;
  std::vector<Cable> cables(static_cast<std::size_t>(network.link_slots()) / 2);
  for (int node = 0; node < network.nodes(); ++node) {
    names.push_back(network.chip_name(ChipId{node}));
    for (const OutLink& out : network.out_links(ChipId{node}))
      if (out.link.value % 2 == 0) cables[out.link.index() / 2] = {node, out.to.value, network.link(out.link), network.dimension_of(out.link)};
  }
  auto made = Network::make(network.chips(), std::move(names), cables);
  EXPECT_TRUE(made) << to_text(made.error());
  return *std::move(made);
}

void expect_as_searched(const Expected<Network>& network) {
  ASSERT_TRUE(network) << to_text(network.error());
  const Network searched = unknown(*network);
  for (int from = 0; from < network->chips(); ++from)
    for (int to = 0; to < network->chips(); ++to) {
      std::vector<LinkId> computed, found;
      ASSERT_TRUE(network->route(ChipId{from}, ChipId{to}, {}, computed) && searched.route(ChipId{from}, ChipId{to}, {}, found));
      ASSERT_EQ(computed, found) << from << " to " << to;
    }
  // What is alike.
  const auto some = shape_of(*network), all = shape_of(searched);
  ASSERT_TRUE(some && all);
  EXPECT_EQ(some->diameter, all->diameter);
  EXPECT_EQ(some->least_degree, all->least_degree);
  EXPECT_EQ(some->largest_degree, all->largest_degree);
  EXPECT_DOUBLE_EQ(some->mean_distance, all->mean_distance);
  const auto of_some = all_to_all_bound(*network), of_all = all_to_all_bound(searched);
  ASSERT_TRUE(of_some && *of_some && of_all && *of_all);
  if (network->chips() > 1) {
    EXPECT_DOUBLE_EQ((*of_some)->count(), (*of_all)->count());
  }
  int chips = 0;
  for (const ChipClass& same : network->chip_classes()) chips += same.chips;
  EXPECT_EQ(chips, network->chips());
}

TEST(Networks, RoutesOfACrossbarAreThoseOfASearch) {
  for (const int chips : {1, 2, 5, 16}) {
    SCOPED_TRACE(chips);
    expect_as_searched(crossbar(chips, first));
  }
}

TEST(Networks, RoutesOfAFatTreeAreThoseOfASearch) {
  for (const auto& [chips, leaf, oversubscription] :
       {std::tuple{8, 8, 1.0}, {8, 8, 4.0}, {16, 4, 1.0}, {16, 4, 2.0}, {18, 4, 2.0}, {17, 4, 1.0}, {24, 6, 1.5}, {29, 6, 1.5}, {30, 5, 5.0}, {5, 1, 1.0}}) {
    SCOPED_TRACE(std::to_string(chips) + " chips, leaves of " + std::to_string(leaf) + ", oversubscription " + std::to_string(oversubscription));
    expect_as_searched(fat_tree(chips, leaf, oversubscription, first));
  }
}

TEST(Networks, RoutesOfRailsAreThoseOfASearch) {
  for (const auto& [nodes, gpus] : {std::pair{1, 8}, {4, 8}, {5, 4}, {4, 3}, {5, 3}, {2, 2}, {6, 1}, {1, 1}}) {
    SCOPED_TRACE(std::to_string(nodes) + " nodes of " + std::to_string(gpus));
    expect_as_searched(rail(nodes, gpus, first, second));
  }
}

TEST(Networks, EveryGpuSendsOverItsOwnRail) {
  const auto network = rail(3, 8, first, second);
  ASSERT_TRUE(network);
  const auto rail_of = [&](int from, int to) {
    std::vector<LinkId> links;
    EXPECT_TRUE(network->route(ChipId{from}, ChipId{to}, {}, links));
    EXPECT_EQ(links.size(), from % 8 == to % 8 ? 2U : 4U);
    return network->link_name(links.front());
  };
  EXPECT_EQ(rail_of(7, 8), "0.7->rail 7");
  EXPECT_EQ(rail_of(0, 15), "0.0->rail 0");
  EXPECT_EQ(rail_of(8, 7), "1.0->rail 0") << "so that a ring's two directions use two interfaces";
  for (int from = 0; from < 24; ++from)
    for (int to = 0; to < 24; ++to) {
      if (from / 8 != to / 8) { EXPECT_EQ(rail_of(from, to), network->chip_name(ChipId{from}) + "->rail " + std::to_string(from % 8)); }
    }
}

TEST(Networks, SixtyFiveThousandChipsAreNoTrouble) {
  for (const auto& [name, network] : {std::pair{"crossbar", crossbar(65536, first)}, {"fat tree", fat_tree(65536, 16, 2, first)}, {"rail", rail(8192, 8, first, second)}}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(network) << to_text(network.error());
    std::vector<LinkId> route;
    for (int chip = 0; chip < network->chips(); ++chip) ASSERT_TRUE(network->route(ChipId{chip}, ChipId{(chip + 1000) % network->chips()}, {}, route));
    EXPECT_GE(route.size(), 2U * 65536);
    EXPECT_LE(network->chip_classes().size(), 16U);
    const auto bound = all_to_all_bound(*network);
    EXPECT_TRUE(bound && *bound);
  }
}

}  // namespace
}  // namespace podsim
