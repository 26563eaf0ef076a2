// A small grid as text.
#pragma once

#include <optional>
#include <string>

#include "sim/topology/grid.hpp"

namespace podsim {

/// Chips by number, links as lines; a line that leaves the drawing is a wraparound. The last dimension runs to the right, the one before it
/// down; further dimensions are drawn as planes, one below the other. A 2x3 grid that wraps along y:
///
///     - 0 - 1 - 2 -
///       |   |   |
///     - 3 - 4 - 5 -
///
/// nullopt if the drawing would be unreadable: more than 16 rows, 16 columns or 16 planes.
std::optional<std::string> draw(const Grid& grid);

}  // namespace podsim
