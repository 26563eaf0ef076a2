// Places meshes on the chips of a grid: as JAX assigns them, along a snake, or in a listed order.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/topology/placement.hpp"
#include "sim/topology/topology.hpp"
#include "topologies/jax/device_mesh.hpp"

namespace podsim {

/// A mesh with its placement; the placement decides which axes wrap.
struct PlacedMesh {
  Mesh mesh;
  Placement placement;
  friend bool operator==(const PlacedMesh&, const PlacedMesh&) = default;
};

/// Places the mesh on the grid's chips; x, y, z are dimensions 0, 1, 2. An axis of size 2 or less counts as wrapped. With an assignment, an axis of
/// whole physical axes wraps if all of them wrap (extents 1 and 2 do, and the cores of a chip), and an axis with part of a physical axis does not.
/// Without one the rule of place_in_order() holds. Errors: a number of names other than the number of axes; those of Mesh::make; devices of several
/// slices; devices that are not exactly the grid's chips, each as often as it has cores.
Expected<PlacedMesh> place_device_mesh(const DeviceMesh& mesh, const std::vector<std::string>& names, const Grid& grid);

/// Chips in index order; dimension 0 varies slowest.
std::vector<ChipId> row_major_order(const Grid& grid);
/// Row-major, but each sweep along a dimension reverses direction (boustrophedon), so that neighbours in the order are neighbours in the grid.
std::vector<ChipId> snake_order(const Grid& grid);
/// Reads chip indices separated by white space; `#` starts a comment up to the end of the line. Every chip must occur once. `file` is for messages.
/// Errors: not a whole number, an index outside the grid, a repeated index (the message says where it was first), and at the end of the text missing
/// ones.
Expected<std::vector<ChipId>> parse_device_order(std::string_view text, const std::string& file, const Grid& grid);

/// Places the mesh `sizes` (name, size), row-major: device i on order[i], or, on chips of several cores, on order[i / cores]. An axis wraps if its size is 2 or less, or if on every line of devices
/// along it the last device is as near to the first, in hops, as some two neighbours of the line are to each other. Row-major order uses the stricter
/// rule of mesh_over(). Errors: those of Mesh::make; a product other than the number of devices. `order` must name chips of the grid, each at most
/// once: an assert.
Expected<PlacedMesh> place_in_order(const Grid& grid, const std::vector<std::pair<std::string, int>>& sizes, const std::vector<ChipId>& order,
                                    int cores = 1);

/// Places the mesh `sizes` on these devices of a topology whose chips have `cores` devices each, row-major: device i of the mesh is device devices[i] of
/// the topology, number devices[i] % cores of chip devices[i] / cores. The rule of place_in_order() says which axes wrap; hops are counted along routes,
/// so any topology will do, and chips without a device of the mesh count as much as others. No axis has factors. Errors: those of Mesh::make; a
/// product other than the number of devices; chips that are not connected. `devices` must be devices of the topology, each at most once: an assert.
Expected<PlacedMesh> place_on_devices(const Topology& topology, int cores, const std::vector<std::pair<std::string, int>>& sizes,
                                      const std::vector<int>& devices);

}  // namespace podsim
