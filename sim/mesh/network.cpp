#include "sim/mesh/network.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/mesh/graph.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_nodes = 8192;

}  // namespace

Expected<Network> Network::make(int chips, std::vector<std::string> names, const std::vector<Cable>& cables) {
  if (chips < 1) return Diagnostic{{}, "a network needs a chip"};
  if (names.size() < static_cast<std::size_t>(chips) || names.size() > most_nodes)
    return Diagnostic{{}, fmt::format("a network has at most {} chips and switches, got {}", most_nodes, names.size())};
  Network network;
  network.chips_ = chips;
  network.names_ = std::move(names);
  network.out_.resize(network.names_.size());
  const int nodes = network.nodes();
  for (const Cable& cable : cables) {
    if (cable.from < 0 || cable.to < 0 || cable.from >= nodes || cable.to >= nodes || cable.from == cable.to)
      return Diagnostic{{}, fmt::format("a cable joins two different nodes of 0 to {}, got {} and {}", nodes - 1, cable.from, cable.to)};
    for (const auto& [from, to] : {std::pair{cable.from, cable.to}, std::pair{cable.to, cable.from}}) {
      network.out_[static_cast<std::size_t>(from)].push_back(static_cast<int>(network.links_.size()));
      network.links_.push_back({from, to, cable.link, cable.dimension});
    }
  }
  // Cables go both ways, so hops to a chip are hops from it.
  for (int chip = 0; chip < chips; ++chip) {
    const std::vector<int> hops = hops_from(network, ChipId{chip});
    const auto lost = std::find(hops.begin(), hops.begin() + chips, -1);
    if (lost != hops.begin() + chips)
      return Diagnostic{{},
                        fmt::format("chip {} cannot be reached from {}", network.chip_name(ChipId{static_cast<int>(lost - hops.begin())}),
                                    network.chip_name(ChipId{chip}))};
    network.hops_.emplace_back(hops.begin(), hops.end());
  }
  return network;
}

std::vector<OutLink> Network::out_links(ChipId node) const {
  std::vector<OutLink> links;
  for (const int link : out_[node.index()]) links.push_back({LinkId{link}, ChipId{links_[static_cast<std::size_t>(link)].to}});
  return links;
}

Done Network::route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const {
  if (!options.dimension_order.empty()) return Diagnostic{{}, "a network of switches has no dimensions to order"};
  const auto& hops = hops_[to.index()];
  std::vector<int> onward;
  for (std::size_t node = from.index(); node != to.index();) {
    onward.clear();
    for (const int link : out_[node])
      if (hops[static_cast<std::size_t>(links_[static_cast<std::size_t>(link)].to)] == hops[node] - 1) onward.push_back(link);
    const int link = onward[to.index() % onward.size()];
    links.push_back(LinkId{link});
    node = static_cast<std::size_t>(links_[static_cast<std::size_t>(link)].to);
  }
  return done();
}

std::string Network::link_name(LinkId link) const {
  const Link& l = links_[link.index()];
  return fmt::format("{}->{}", names_[static_cast<std::size_t>(l.from)], names_[static_cast<std::size_t>(l.to)]);
}

}  // namespace podsim
