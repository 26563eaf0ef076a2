#include "sim/topology/bisection.hpp"

#include <algorithm>

#include "sim/topology/graph.hpp"

namespace podsim {
namespace {

/// From one half of a dimension to the other.
BytesPerSecond across(const Grid& grid, const GridDimension& dimension) {
  const int planes = dimension.wraps && dimension.extent > 2 ? 2 : 1;
  const int links = grid.chips() / dimension.extent * planes;
  return static_cast<double>(links) * dimension.link.bandwidth;
}

}  // namespace

BytesPerSecond bisection_bandwidth(const Grid& grid) {
  BytesPerSecond least = unlimited<BytesPerSecond>;
  for (const GridDimension& dimension : grid.dimensions())
    if (dimension.extent > 1) least = std::min(least, across(grid, dimension));
  return least;
}

BytesPerSecond bisection_bandwidth(const Topology& topology) {
  if (const Grid* plain = topology.plain_grid()) return bisection_bandwidth(*plain);
  const Grid* grid = topology.grid();
  if (grid == nullptr) {
    std::vector<bool> second(static_cast<std::size_t>(topology.chips()), false);
    std::fill(second.begin() + topology.chips() / 2, second.end(), true);
    return flow_between(topology, second);
  }
  const LinkList links{topology};
  std::vector<std::vector<int>> at;  // per chip, its coordinates
  for (int chip = 0; chip < topology.chips(); ++chip) at.push_back(grid->coordinates(ChipId{chip}));
  BytesPerSecond least = unlimited<BytesPerSecond>;
  for (std::size_t d = 0; d < grid->dimensions().size(); ++d) {
    const int extent = grid->dimensions()[d].extent;
    if (extent < 2) continue;
    for (int first = 0; first < (grid->dimensions()[d].wraps ? extent : 1); ++first) {
      std::vector<bool> side(static_cast<std::size_t>(topology.nodes()), false);
      for (std::size_t chip = 0; chip < at.size(); ++chip) side[chip] = (at[chip][d] + first) % extent < extent / 2;
      least = std::min(least, cut_bandwidth(topology, links, side));
    }
  }
  return least;
}

namespace {

constexpr std::int64_t most_routes = std::int64_t{1} << 24;

/// What follows says at which rate r of each chip the first link is full when each ordered pair of chips of `topology` exchanges r / others.
using Bound = Expected<std::optional<BytesPerSecond>>;

Bound rate_of(const Topology& topology, double others, Cancellation stop);

/// Between slices every chip sends to all chips of the other ones over its host.
Bound rate_of(const SliceParts& parts, double others, Cancellation stop) {
  const auto inside = rate_of(parts.slice, others, stop);
  if (!inside || !*inside) return inside;
  const SliceJoin& join = parts.join;
  const double elsewhere = (parts.slices - 1) * parts.slice.chips();
  std::vector<int> chips_of;
  for (const int host : join.host_of) {
    if (static_cast<std::size_t>(host) >= chips_of.size()) chips_of.resize(static_cast<std::size_t>(host) + 1, 0);
    ++chips_of[static_cast<std::size_t>(host)];
  }
  const double of_busiest = *std::max_element(chips_of.begin(), chips_of.end());
  return std::optional{std::min({**inside, (others / elsewhere) * join.chip_to_host.bandwidth,
                                 (others / (of_busiest * elsewhere)) * join.host_to_network.bandwidth})};
}

/// By the routes from one chip of each class. All links of a class carry as much as each other.
Bound rate_by_routes(const Topology& topology, double others, Cancellation stop) {
  const std::vector<ChipClass> classes = topology.chip_classes();
  const int chips = topology.chips();
  if (static_cast<std::int64_t>(classes.size()) * chips > most_routes) return std::optional<BytesPerSecond>{};
  std::vector<double> flows(static_cast<std::size_t>(topology.link_slots()), 0.0), links(flows.size(), 0.0);
  for (int link = 0; link < topology.link_slots(); ++link) links[static_cast<std::size_t>(topology.link_class(LinkId{link}))] += 1;
  std::vector<LinkId> route;
  for (const auto& [from, count] : classes)
    for (int to = 0; to < chips; ++to) {
      if (stop.requested()) return cancelled_work();
      for (const int sign : {+1, -1}) {
        route.clear();
        if (auto ok = topology.route(from, ChipId{to}, {{}, sign}, route); !ok) return ok.error();
        for (const LinkId link : route) flows[static_cast<std::size_t>(topology.link_class(link))] += 0.5 * count;
      }
    }
  BytesPerSecond rate = unlimited<BytesPerSecond>;
  for (std::size_t link = 0; link < flows.size(); ++link)
    if (flows[link] > 0) rate = std::min(rate, (others * links[link] / flows[link]) * topology.link(LinkId{static_cast<int>(link)}).bandwidth);
  return std::optional{rate};
}

Bound rate_of(const Topology& topology, double others, Cancellation stop) {
  if (topology.chips() == 1) return std::optional{unlimited<BytesPerSecond>};
  if (const Grid* grid = topology.plain_grid())
    return std::optional{others == grid->chips() - 1 ? all_to_all_bound(*grid) : (others / (grid->chips() - 1)) * all_to_all_bound(*grid)};
  if (const auto parts = topology.parts()) return rate_of(*parts, others, stop);
  return rate_by_routes(topology, others, stop);
}

}  // namespace

Expected<std::optional<BytesPerSecond>> all_to_all_bound(const Topology& topology, Cancellation stop) {
  return rate_of(topology, topology.chips() - 1, stop);
}

BytesPerSecond all_to_all_bound(const Grid& grid) {
  if (grid.chips() == 1) return unlimited<BytesPerSecond>;
  BytesPerSecond bound = std::min(grid.injection(), grid.ejection());
  for (const GridDimension& dimension : grid.dimensions()) {
    if (dimension.extent < 2) continue;
    const int below = dimension.extent / 2;  // coordinates on the smaller side
    const double chips = grid.chips();
    const double first = chips / dimension.extent * below, second = chips - first;
    bound = std::min(bound, ((chips - 1) / (first * second)) * across(grid, dimension));
  }
  return bound;
}

}  // namespace podsim
