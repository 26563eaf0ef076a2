// Meshes on the chips of a grid: as JAX assigned them, along a snake, in a listed order.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/topology/placement.hpp"
#include "topologies/jax/device_mesh.hpp"

namespace podsim {

/// A mesh, where its devices sit, and which of its axes wrap there.
struct PlacedMesh {
  Mesh mesh;
  Placement placement;
  friend bool operator==(const PlacedMesh&, const PlacedMesh&) = default;
};

/// The mesh on the grid's chips: x, y, z are its dimensions 0, 1, 2. An axis of size 2 or less counts as wrapped; with an assignment, an axis
/// of whole physical axes wraps if all of them do (extents 1 and 2 do, and the cores of a chip), one with part of a physical axis does not;
/// without one as place_in_order() says. Errors: as many names as axes, and as Mesh::make; devices of several slices; devices other than the
/// grid's chips, each as often as there are cores.
Expected<PlacedMesh> place_device_mesh(const DeviceMesh& mesh, const std::vector<std::string>& names, const Grid& grid);

/// Chips in index order: dimension 0 slowest.
std::vector<ChipId> row_major_order(const Grid& grid);
/// Row-major but every sweep along a dimension turns back at its end (boustrophedon): neighbours in the order are neighbours in the grid.
std::vector<ChipId> snake_order(const Grid& grid);
/// The chip indices in a text, parted by white space; `#` starts a comment up to the end of its line. Every chip once. `file` is for messages.
/// Errors: no whole number, an index outside the grid, one listed twice (says where first), and at the end of the text those missing.
Expected<std::vector<ChipId>> parse_device_order(std::string_view text, const std::string& file, const Grid& grid);

/// The mesh `sizes` (name, size), row-major: device i on order[i]. An axis wraps if its size is 2 or less, or if on every line of devices
/// along it the last is as near to the first, in hops, as some two neighbours of that line are. Row-major order has the stricter rule of
/// mesh_over(). Errors: as Mesh::make; a product other than the length of the order. `order` must name chips of the grid, none twice: an assert.
Expected<PlacedMesh> place_in_order(const Grid& grid, const std::vector<std::pair<std::string, int>>& sizes, const std::vector<ChipId>& order);

}  // namespace podsim
