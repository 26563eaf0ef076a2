#include "sim/mesh/bisection.hpp"

#include <algorithm>

#include "sim/mesh/graph.hpp"

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
  if (const auto* plain = dynamic_cast<const Grid*>(&topology)) return bisection_bandwidth(*plain);
  const Grid* grid = topology.grid();
  if (grid == nullptr) {
    std::vector<bool> second(static_cast<std::size_t>(topology.chips()), false);
    std::fill(second.begin() + topology.chips() / 2, second.end(), true);
    return flow_between(topology, second);
  }
  BytesPerSecond least = unlimited<BytesPerSecond>;
  for (std::size_t d = 0; d < grid->dimensions().size(); ++d) {
    const int extent = grid->dimensions()[d].extent;
    if (extent < 2) continue;
    for (int first = 0; first < (grid->dimensions()[d].wraps ? extent : 1); ++first) {
      std::vector<bool> side(static_cast<std::size_t>(topology.nodes()), false);
      for (int chip = 0; chip < topology.chips(); ++chip)
        side[static_cast<std::size_t>(chip)] = (grid->coordinates(ChipId{chip})[d] + first) % extent < extent / 2;
      least = std::min(least, cut_bandwidth(topology, side));
    }
  }
  return least;
}

Expected<BytesPerSecond> all_to_all_bound(const Topology& topology) {
  if (const auto* plain = dynamic_cast<const Grid*>(&topology)) return all_to_all_bound(*plain);
  constexpr int most_chips = 4096;
  const int chips = topology.chips();
  if (chips == 1 || chips > most_chips) return unlimited<BytesPerSecond>;
  std::vector<double> flows(static_cast<std::size_t>(topology.link_slots()), 0.0);
  std::vector<LinkId> route;
  for (int from = 0; from < chips; ++from)
    for (int to = 0; to < chips; ++to)
      for (const int sign : {+1, -1}) {
        route.clear();
        if (auto ok = topology.route(ChipId{from}, ChipId{to}, {{}, sign}, route); !ok) return ok.error();
        for (const LinkId link : route) flows[link.index()] += 0.5;
      }
  BytesPerSecond bound = unlimited<BytesPerSecond>;
  for (std::size_t link = 0; link < flows.size(); ++link)
    if (flows[link] > 0) bound = std::min(bound, ((chips - 1) / flows[link]) * topology.link(LinkId{link}).bandwidth);
  return bound;
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
