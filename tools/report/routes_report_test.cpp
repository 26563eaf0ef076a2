// The table of next hops holds the routes that engines use, on every kind of topology.
#include "tools/report/routes_report.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/model/routes.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

struct Case {
  std::string machine, slice, topology;
  int slices = 1;
  std::vector<std::string> broken = {};
  bool wraps = true;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  out << c.machine << " " << c.slice << " " << c.topology << " x" << c.slices << (c.wraps ? "" : " open");
  for (const std::string& cable : c.broken) out << " without " << cable;
  return out;
}

System system_of(const Case& c) {
  SystemSpec spec{*find_machine(c.machine)};
  spec.slice = *parse_slice(c.slice, spec.machine, {});
  spec.topology = *parse_topology(c.topology, {});
  spec.slices = c.slices;
  if (!c.wraps) spec.wrap = *parse_wrap("none", {});
  if (!c.broken.empty()) {
    const auto whole = make_system(spec);
    for (const std::string& cable : c.broken) spec.faults.broken.push_back(*parse_cable(*whole->whole_slice, cable, {}));
  }
  auto system = make_system(spec);
  EXPECT_TRUE(system) << (system ? "" : to_text(system.error()));
  return *std::move(system);
}

/// The links that a packet takes which follows the table and its exceptions.
std::vector<LinkId> followed(const NextHops& hops, ChipId from, ChipId to) {
  std::vector<LinkId> links;
  for (ChipId at = from; at != to && links.size() < 1000;) {
    int next = hops.next_cable[at.index()][to.index()];
    for (const PolicyRoute& route : hops.policy_routes)
      if (route.at == at && route.from == from && route.to == to) next = route.cable;
    const CableLinks& cable = hops.cables.at(static_cast<std::size_t>(next));
    const std::size_t end = cable.ends[0] == at ? 0 : 1;
    EXPECT_EQ(cable.ends[end], at) << "the cable does not begin here";
    links.push_back(cable.links[end]);
    at = cable.ends[1 - end];
  }
  return links;
}

class Routes : public ::testing::TestWithParam<Case> {};

TEST_P(Routes, AreThoseOfTheEngines) {
  const System system = system_of(GetParam());
  const auto hops = next_hops(*system.topology);
  ASSERT_TRUE(hops) << to_text(hops.error());
  RouteTable engines{system.mesh, *system.topology, system.placement};
  for (int from = 0; from < system.mesh.devices(); ++from)
    for (int to = 0; to < system.mesh.devices(); ++to) {
      const auto number = engines.find(Send{}, DeviceId{from}, DeviceId{to});
      ASSERT_TRUE(number);
      const RouteTable::Route& route = engines.routes()[*number];
      std::vector<LinkId> expected(engines.links().begin() + static_cast<std::ptrdiff_t>(route.first), engines.links().begin() + static_cast<std::ptrdiff_t>(route.last));
      std::erase_if(expected, [&](LinkId link) { return !system.topology->is_hop(link); });
      const ChipId a = system.placement.chip_of[static_cast<std::size_t>(from)], b = system.placement.chip_of[static_cast<std::size_t>(to)];
      ASSERT_EQ(followed(*hops, a, b), expected) << system.topology->chip_name(a) << " to " << system.topology->chip_name(b);
    }
}

TEST_P(Routes, EveryLinkIsADirectionOfOneCable) {
  const System system = system_of(GetParam());
  const auto hops = next_hops(*system.topology);
  ASSERT_TRUE(hops) << to_text(hops.error());
  std::vector<int> seen(static_cast<std::size_t>(system.topology->link_slots()));
  for (const CableLinks& cable : hops->cables)
    for (const std::size_t end : {0U, 1U}) {
      ++seen[cable.links[end].index()];
      const auto out = system.topology->out_links(cable.ends[end]);
      EXPECT_NE(std::find(out.begin(), out.end(), OutLink{cable.links[end], cable.ends[1 - end]}), out.end());
    }
  for (int node = 0; node < system.topology->nodes(); ++node)
    for (const OutLink& out : system.topology->out_links(ChipId{node})) EXPECT_EQ(seen[out.link.index()], 1);
}

INSTANTIATE_TEST_SUITE_P(Topologies, Routes,
                         ::testing::Values(Case{"ideal", "4x4", ""}, Case{"ideal", "3x5", "", 1, {}, false}, Case{"ideal", "2x2x3", ""}, Case{"tpu_v4", "4x4x8", "twisted"},
                                           Case{"ideal", "4x4", "crossbar"}, Case{"ideal", "16", "fat-tree:4:2"}, Case{"dgx_h100", "2x8", ""}, Case{"dgx_h100", "2x4", "rail"},
                                           Case{"tpu_v4", "2x2x2", "", 2}, Case{"tpu_v3", "4x4", ""}, Case{"ideal", "4", "tests/golden/input/network.textproto"},
                                           Case{"ideal", "4x4", "", 1, {"0.0-0.1"}}, Case{"ideal", "4x4", "", 1, {"1.1-2.1"}}, Case{"tpu_v4", "8x8x4", "", 1, {"0.0.0-0.1.0", "4.4.0-4.5.0", "3.3.1-2.3.1"}},
                                           Case{"ideal", "5x6", "", 1, {"1.1-1.2", "2.2-3.2", "4.0-0.0"}},
                                           Case{"ideal", "2x2", "", 1, {"0.0-0.1"}}, Case{"tpu_v4", "4x4x8", "twisted", 1, {"0.0.0-0.0.1"}}));

// So the exceptions are tested above, too.
TEST(NextHops, DetoursOfTwoChipsPartBehindANodeThatBothPass) {
  EXPECT_EQ(next_hops(*system_of({"ideal", "4x4", "", 1, {"1.1-2.1"}}).topology)->policy_routes.size(), 1U);
}

TEST(NextHops, WholeGridsAndNetworksNeedNoExceptions) {
  for (const Case& c : {Case{"ideal", "4x6", ""}, Case{"ideal", "16", "fat-tree:4:2"}, Case{"tpu_v4", "2x2x2", "", 2}})
    EXPECT_EQ(next_hops(*system_of(c).topology)->policy_routes, std::vector<PolicyRoute>{}) << c;
}

TEST(NextHops, AreListedOfAtMost1024Chips) {
  EXPECT_TRUE(next_hops(*system_of({"ideal", "32x32", ""}).topology));
  const auto more = next_hops(*system_of({"ideal", "32x33", ""}).topology);
  ASSERT_FALSE(more);
  EXPECT_EQ(to_text(more.error()), "routes are listed of at most 1024 chips, found 1056");
}

}  // namespace
}  // namespace podsim
