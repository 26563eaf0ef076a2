// Which chip each device of the mesh sits on, and how fast it is there.
#pragma once

#include <vector>

#include "sim/topology/grid.hpp"
#include "sim/mesh/mesh.hpp"

namespace podsim {

/// One entry per device, in mesh order.
struct Placement {
  std::vector<ChipId> chip_of;
  std::vector<int> core_of{};   // which device of its chip it is; empty: chips have one
  std::vector<double> speed{};  // of its core and its reductions, relative to the machine's; empty: 1
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Device i on chip i: the mesh is a row-major view of the grid. Errors: the numbers differ (names both, and a mesh that fits).
Expected<Placement> place_row_major(const Mesh& mesh, const Grid& grid);

/// The mesh `sizes` (name, size) laid row-major over the grid, with `wraps` as that placement gives it: an axis of size 2 or less counts as
/// wrapped; an axis that covers whole physical dimensions wraps if all of them do (extents 1 and 2 do); an axis that covers part of a
/// dimension does not wrap; one that covers several whole dimensions has them as its factors. Errors: as Mesh::make; the product differs from the
/// number of chips.
Expected<Mesh> mesh_over(const Grid& grid, const std::vector<std::pair<std::string, int>>& sizes);

/// The default mesh: one axis per dimension, named row, col, depth, axis3.
Expected<Mesh> default_mesh(const Grid& grid);

}  // namespace podsim
