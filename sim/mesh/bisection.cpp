#include "sim/mesh/bisection.hpp"

#include <algorithm>

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
