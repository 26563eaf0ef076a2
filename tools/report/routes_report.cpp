#include "tools/report/routes_report.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

#include "tools/report/json.hpp"

namespace podsim {

namespace {

constexpr int most_chips = 1024;

/// A direction of a cable, seen from the node that it leaves.
struct Direction {
  int cable = -1;
  ChipId to;
};

/// Of links between the same two nodes along the same dimension the first one up belongs to the first one down, in the order of ids: which one it is
/// makes no difference, as they are alike.
std::vector<CableLinks> cables_of(const Topology& topology) {
  std::map<std::tuple<int, int, int>, std::pair<std::vector<LinkId>, std::vector<LinkId>>> between;  // lower end, higher end, dimension: up and down
  for (int node = 0; node < topology.nodes(); ++node)
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      auto& [up, down] = between[{std::min(node, out.to.value), std::max(node, out.to.value), topology.dimension_of(out.link).value_or(-1)}];
      (node < out.to.value ? up : down).push_back(out.link);
    }
  std::vector<CableLinks> cables;
  for (const auto& [key, links] : between)
    for (std::size_t i = 0; i < links.first.size(); ++i)
      cables.push_back({{ChipId{std::get<0>(key)}, ChipId{std::get<1>(key)}}, {links.first[i], links.second.at(i)}});
  return cables;
}

Json per_direction(const Topology& topology, const CableLinks& cable, Json (*value)(const LinkParameters&)) {
  Json both = Json::array();
  for (const LinkId link : cable.links) both.push_back(value(topology.link(link)));
  return both;
}

Json bandwidth(const LinkParameters& link) { return is_unlimited(link.bandwidth) ? Json() : Json(link.bandwidth.count()); }
Json latency(const LinkParameters& link) { return link.latency.count(); }

Json nodes_of(const Topology& topology) {
  Json nodes = Json::array();
  for (int n = 0; n < topology.nodes(); ++n) {
    const bool is_chip = n < topology.chips();
    nodes.push_back(Json{{"name", topology.chip_name(ChipId{n})},
                         {"is_switch", !is_chip},
                         {"coords", is_chip && topology.grid() != nullptr ? Json(topology.grid()->coordinates(ChipId{n})) : Json()}});
  }
  return nodes;
}

}  // namespace

Expected<NextHops> next_hops(const Topology& topology, Cancellation stop) {
  const int chips = topology.chips();
  if (chips > most_chips) return Diagnostic{{}, fmt::format("routes are listed of at most {} chips, found {}", most_chips, chips)};
  NextHops found;
  found.cables = cables_of(topology);
  std::vector<Direction> directions(static_cast<std::size_t>(topology.link_slots()));
  for (std::size_t c = 0; c < found.cables.size(); ++c)
    for (const std::size_t end : {0U, 1U}) directions[found.cables[c].links[end].index()] = {static_cast<int>(c), found.cables[c].ends[1 - end]};
  found.next_cable.assign(static_cast<std::size_t>(topology.nodes()), std::vector<int>(static_cast<std::size_t>(chips), -1));

  // A chip's own routes fill its row; the rows of switches are filled by the first route that passes.
  std::vector<LinkId> links;
  const auto walk = [&](ChipId from, ChipId to, const auto& visit) -> Status {
    links.clear();
    if (auto ok = topology.route(from, to, {}, links); !ok) return ok;
    ChipId at = from;
    for (const LinkId link : links) {
      if (!topology.is_hop(link)) continue;
      visit(at, directions[link.index()].cable);
      at = directions[link.index()].to;
    }
    return success();
  };
  const auto each_pair = [&](const auto& visit) -> Status {
    for (int from = 0; from < chips; ++from) {
      if (stop.requested()) return cancelled_work();
      for (int to = 0; to < chips; ++to)
        if (auto ok = walk(ChipId{from}, ChipId{to}, [&](ChipId at, int cable) { visit(at, ChipId{from}, ChipId{to}, cable); }); !ok) return ok;
    }
    return success();
  };
  const auto entry = [&](ChipId at, ChipId to) -> int& { return found.next_cable[at.index()][to.index()]; };
  if (auto ok = each_pair([&](ChipId at, ChipId from, ChipId to, int cable) {
        if (at == from || (at.value >= chips && entry(at, to) < 0)) entry(at, to) = cable;
      });
      !ok)
    return ok.error();
  if (auto ok = each_pair([&](ChipId at, ChipId from, ChipId to, int cable) {
        if (entry(at, to) != cable) found.policy_routes.push_back({at, from, to, cable});
      });
      !ok)
    return ok.error();
  return found;
}

Expected<std::string> routes_report(const System& system, const RunOptions& how) {
  const Topology& topology = *system.topology;
  how.tell("finding the routes between all chips");
  const auto hops = next_hops(topology, how.control.stop);
  if (!hops) return hops.error();
  Json cables = Json::array();
  for (const CableLinks& cable : hops->cables)
    cables.push_back(Json{{"ends", std::vector<int>{cable.ends[0].value, cable.ends[1].value}},
                          {"bandwidth_bytes_per_s", per_direction(topology, cable, bandwidth)},
                          {"latency_s", per_direction(topology, cable, latency)}});
  Json next = Json::array();
  for (const std::vector<int>& row : hops->next_cable) {
    Json entries = Json::array();
    for (const int cable : row) entries.push_back(cable < 0 ? Json() : Json(cable));
    next.push_back(std::move(entries));
  }
  Json policy_routes = Json::array();
  for (const PolicyRoute& route : hops->policy_routes)
    policy_routes.push_back(Json{{"at", route.at.value}, {"from", route.from.value}, {"to", route.to.value}, {"cable", route.cable}});
  Json json{{"machine", system.machine.name},
            {"slice", to_text(system.slice)},
            {"hypothetical", is_hypothetical(system)},
            {"chips", topology.chips()},
            {"switches", topology.nodes() - topology.chips()},
            {"broken_cables", changes_of(system).broken},
            {"nodes", nodes_of(topology)},
            {"cables", std::move(cables)},
            {"next_cable", std::move(next)},
            {"policy_routes", std::move(policy_routes)}};
  return json.dump(2) + "\n";
}

}  // namespace podsim
