// The chip of each mesh device, and its relative speed.
#pragma once

#include <vector>

#include "sim/topology/grid.hpp"
#include "sim/mesh/mesh.hpp"

namespace podsim {

/// One entry per device, in mesh order.
struct Placement {
  std::vector<ChipId> chip_of;
  std::vector<int> core_of{};   // the device's number on its chip; empty: chips have one device
  std::vector<double> speed{};  // of the device's core and reductions, relative to the machine's; empty: 1
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Device i on chip i: the mesh is a row-major view of the grid. Errors: mesh and grid differ in size (the message names both and a mesh that fits).
Expected<Placement> place_row_major(const Mesh& mesh, const Grid& grid);

/// The mesh `sizes` (name, size) laid row-major over the grid, with the `wraps` that follow from it: an axis of size 2 or less counts as wrapped; an
/// axis over whole physical dimensions wraps if all of them wrap (extents 1 and 2 do); an axis over part of a dimension wraps over switches only. An axis over
/// several whole dimensions, or parts of switched ones, has them as its factors. Errors: as Mesh::make; a product other than the number of chips.
Expected<Mesh> mesh_over(const Grid& grid, const std::vector<std::pair<std::string, int>>& sizes);

/// The default mesh: one axis per dimension, named row, col, depth, axis3.
Expected<Mesh> default_mesh(const Grid& grid);

}  // namespace podsim
