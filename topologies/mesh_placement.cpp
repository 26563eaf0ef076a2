#include "topologies/mesh_placement.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/invariant.hpp"
#include "sim/base/units.hpp"

namespace podsim {
namespace {

Diagnostic misfit(std::string message) { return {{}, std::move(message)}; }

std::string extents_text(const Grid& grid) {
  std::vector<int> extents;
  for (const GridDimension& dimension : grid.dimensions()) extents.push_back(dimension.extent);
  return fmt::format("{}", fmt::join(extents, "x"));
}

/// Of an assignment's row: the extent of the physical axis.
int devices_of_shape(const std::vector<int>& sizes) { return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>{}); }

using Assignment = std::vector<std::vector<int>>;

/// Hops between two chips: along each dimension the shorter way round.
int hops(const Grid& grid, const std::vector<int>& a, const std::vector<int>& b) {
  int sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const GridDimension& dimension = grid.dimensions()[d];
    const int straight = std::abs(a[d] - b[d]);
    sum += dimension.switched ? std::min(straight, 1) : dimension.wraps ? std::min(straight, dimension.extent - straight) : straight;
  }
  return sum;
}

/// Whether on every line of devices along the axis the last is as near to the first as some two neighbours of that line are; `hops_between(a, b)` are
/// hops between two devices of the mesh.
template <class HopsBetween>
bool closes_by_hops(const Mesh& mesh, int axis, const HopsBetween& hops_between) {
  const AxisView view = mesh.whole(axis);
  for (int first = 0; first < mesh.devices(); ++first) {
    const DeviceId start{first};
    if (mesh.coordinate(start, view) != 0) continue;
    DeviceId here = start;
    int longest = 0;
    for (int by = 1; by < view.size; ++by) {
      const DeviceId next = mesh.shifted(start, view, by);
      longest = std::max(longest, hops_between(here, next));
      here = next;
    }
    if (hops_between(here, start) > longest) return false;
  }
  return true;
}

bool closes_by_distance(const Grid& grid, const Mesh& mesh, int axis, const std::vector<ChipId>& chip_of) {
  return closes_by_hops(mesh, axis, [&](DeviceId a, DeviceId b) {
    return hops(grid, grid.coordinates(chip_of[a.index()]), grid.coordinates(chip_of[b.index()]));
  });
}

/// Whether the mesh axis takes physical axes whole, and all of them wrap; of switched ones it may take a part.
bool closes_by_assignment(const Grid& grid, const Assignment& assignment, std::size_t axis) {
  for (std::size_t p = 0; p < assignment.size(); ++p) {
    if (assignment[p][axis] == 1) continue;
    if (assignment[p][axis] != devices_of_shape(assignment[p])) {
      if (p < grid.dimensions().size() && grid.dimensions()[p].switched) continue;
      return false;
    }
    if (assignment[p][axis] > 2 && (p >= grid.dimensions().size() || !grid.dimensions()[p].wraps)) return false;
  }
  return true;
}

/// The physical axes, or parts of them, that a mesh axis folds, if there are several.
std::vector<MeshFactor> factors_by_assignment(const Grid& grid, const Assignment& assignment, std::size_t axis) {
  std::vector<MeshFactor> factors;
  for (std::size_t p = 0; p < assignment.size(); ++p) {
    const int size = assignment[p][axis];
    if (size == 1) continue;
    const bool whole = size == devices_of_shape(assignment[p]);
    const bool wraps = p < grid.dimensions().size() && (grid.dimensions()[p].switched || (whole && grid.dimensions()[p].wraps));
    factors.push_back({size, size <= 2 || wraps});
  }
  return factors.size() > 1 ? factors : std::vector<MeshFactor>{};
}

using Sizes = std::vector<std::pair<std::string, int>>;

/// The mesh whose axes wrap where `closes(axis)` or where their size is 2 or less.
template <class Closes>
Expected<Mesh> wrapped_mesh(const Sizes& sizes, const Closes& closes) {
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : sizes) axes.push_back({name, size, false});
  const Expected<Mesh> open = Mesh::make(axes);
  if (!open) return open.error();
  for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis].wraps = axes[axis].size <= 2 || closes(*open, axis);
  return Mesh::make(std::move(axes));
}

Expected<Mesh> mesh_by_distance(const Grid& grid, const Sizes& sizes, const std::vector<ChipId>& chip_of) {
  if (chip_of == row_major_order(grid)) return mesh_over(grid, sizes);
  return wrapped_mesh(sizes, [&](const Mesh& open, std::size_t axis) { return closes_by_distance(grid, open, static_cast<int>(axis), chip_of); });
}

}  // namespace

Expected<PlacedMesh> place_device_mesh(const DeviceMesh& mesh, const std::vector<std::string>& names, const Grid& grid) {
  if (names.size() != mesh.shape.size())
    return misfit(fmt::format("expected {} axis names for the mesh {}, got {}", mesh.shape.size(), shape_text(mesh.shape), names.size()));
  const std::size_t chips = static_cast<std::size_t>(grid.chips()), cores = mesh.devices.size() / chips;
  if (cores == 0 || mesh.devices.size() % chips != 0)
    return misfit(fmt::format("expected devices for every chip of the slice {}, {} chips, got {} for the mesh {}", extents_text(grid), chips,
                             mesh.devices.size(), shape_text(mesh.shape)));

  PlacedMesh placed;
  std::vector<bool> taken(mesh.devices.size(), false);  // [chip][core]
  for (const JaxDevice& device : mesh.devices) {
    if (device.slice_index != mesh.devices[0].slice_index)
      return misfit(fmt::format("expected devices of one slice, got slices {} and {}", mesh.devices[0].slice_index, device.slice_index));
    std::vector<int> coordinates(grid.dimensions().size(), 0);
    bool inside = device.core_on_chip >= 0 && static_cast<std::size_t>(device.core_on_chip) < cores;
    for (std::size_t d = 0; d < device.coords.size(); ++d) {
      inside = inside && device.coords[d] >= 0 && device.coords[d] < (d < coordinates.size() ? grid.dimensions()[d].extent : 1);
      if (d < coordinates.size()) coordinates[d] = device.coords[d];
    }
    if (!inside)
      return misfit(fmt::format("expected devices of the slice {}, {} per chip, got device {} at ({}), core {}", extents_text(grid), cores, device.id,
                               fmt::join(device.coords, ","), device.core_on_chip));
    const ChipId chip = grid.chip(coordinates);
    const std::size_t place = chip.index() * cores + static_cast<std::size_t>(device.core_on_chip);
    if (taken[place])
      return misfit(fmt::format("expected every device once, got two at ({}), core {}", fmt::join(device.coords, ","), device.core_on_chip));
    taken[place] = true;
    placed.placement.chip_of.push_back(chip);
    if (cores > 1) placed.placement.core_of.push_back(device.core_on_chip);
  }

  Sizes sizes;
  for (std::size_t axis = 0; axis < names.size(); ++axis) sizes.emplace_back(names[axis], mesh.shape[axis]);
  Expected<Mesh> made = mesh.assignment.empty()
                            ? mesh_by_distance(grid, sizes, placed.placement.chip_of)
                            : wrapped_mesh(sizes, [&](const Mesh&, std::size_t axis) { return closes_by_assignment(grid, mesh.assignment, axis); });
  if (!made) return made.error();
  if (!mesh.assignment.empty()) {
    std::vector<MeshAxis> axes = made->axes();
    for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis].factors = factors_by_assignment(grid, mesh.assignment, axis);
    made = Mesh::make(std::move(axes));
    if (!made) return made.error();
  }
  placed.mesh = *std::move(made);
  return placed;
}

std::vector<ChipId> row_major_order(const Grid& grid) {
  std::vector<ChipId> order;
  order.reserve(static_cast<std::size_t>(grid.chips()));
  for (int chip = 0; chip < grid.chips(); ++chip) order.emplace_back(chip);
  return order;
}

std::vector<ChipId> snake_order(const Grid& grid) {
  std::vector<ChipId> order;
  order.reserve(static_cast<std::size_t>(grid.chips()));
  std::vector<int> coordinates(grid.dimensions().size());
  for (int i = 0; i < grid.chips(); ++i) {
    int sweeps = i;  // along dimension d and those inside it
    for (std::size_t d = coordinates.size(); d-- > 0;) {
      const int extent = grid.dimensions()[d].extent, step = sweeps % extent;
      sweeps /= extent;
      coordinates[d] = sweeps % 2 == 0 ? step : extent - 1 - step;  // every other sweep goes back
    }
    order.push_back(grid.chip(coordinates));
  }
  return order;
}

Expected<std::vector<ChipId>> parse_device_order(std::string_view text, const std::string& file, const Grid& grid) {
  const std::int64_t last = grid.chips() - 1;
  std::vector<ChipId> order;
  std::vector<std::pair<int, int>> seen(static_cast<std::size_t>(grid.chips()));  // line and column; lines count from 1
  SourceLocation here{file, 1, 1};
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; };
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '#') {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      here.column += static_cast<int>(end - at);
      at = end;
    } else if (is_space(text[at])) {
      here = text[at] == '\n' ? SourceLocation{file, here.line + 1, 1} : SourceLocation{file, here.line, here.column + 1};
      ++at;
    } else {
      std::size_t end = at;
      while (end < text.size() && !is_space(text[end]) && text[end] != '#') ++end;
      const std::string_view word = text.substr(at, end - at);
      const Expected<std::int64_t> chip = parse_integer(word, 0, last, here);
      if (!chip)
        return Diagnostic{here, fmt::format("expected a device from 0 to {} of the slice {}, got {}", last, extents_text(grid), quoted(word))};
      auto& [line, column] = seen[static_cast<std::size_t>(*chip)];
      if (line != 0) return Diagnostic{here, fmt::format("expected every device once, got {} again, which is listed at {}:{}", *chip, line, column)};
      line = here.line;
      column = here.column;
      order.emplace_back(static_cast<int>(*chip));
      here.column += static_cast<int>(end - at);
      at = end;
    }
  }
  if (order.size() < seen.size()) {
    constexpr std::size_t most_named = 5;
    std::vector<std::size_t> missing;
    for (std::size_t chip = 0; chip < seen.size() && missing.size() < most_named; ++chip)
      if (seen[chip].first == 0) missing.push_back(chip);
    const bool all = missing.size() == seen.size() - order.size();
    return Diagnostic{here, fmt::format("expected all {} devices of the slice {}, got {}; missing: {}{}", seen.size(), extents_text(grid),
                                        order.size(), fmt::join(missing, ", "), all ? "" : ", ...")};
  }
  return order;
}

Expected<PlacedMesh> place_in_order(const Grid& grid, const std::vector<std::pair<std::string, int>>& sizes, const std::vector<ChipId>& order,
                                    int cores) {
  std::vector<bool> taken(static_cast<std::size_t>(grid.chips()), false);
  for (const ChipId chip : order) {
    PODSIM_ASSERT(chip.value >= 0 && chip.value < grid.chips() && !taken[chip.index()]);
    taken[chip.index()] = true;
  }
  const Expected<Mesh> open = wrapped_mesh(sizes, [](const Mesh&, std::size_t) { return false; });
  if (!open) return open.error();
  Placement placement;
  for (const ChipId chip : order)
    for (int core = 0; core < cores; ++core) {
      placement.chip_of.push_back(chip);
      if (cores > 1) placement.core_of.push_back(core);
    }
  const std::size_t devices = placement.chip_of.size();
  if (static_cast<std::size_t>(open->devices()) != devices)
    return misfit(fmt::format("expected a mesh of {} devices for the slice {}, got {} with {}", devices, extents_text(grid), to_text(*open),
                             open->devices()));
  Expected<Mesh> mesh = mesh_by_distance(grid, sizes, placement.chip_of);
  if (!mesh) return mesh.error();
  return PlacedMesh{*std::move(mesh), std::move(placement)};
}

Expected<PlacedMesh> place_on_devices(const Topology& topology, int cores, const std::vector<std::pair<std::string, int>>& sizes,
                                      const std::vector<int>& devices) {
  const Expected<Mesh> open = wrapped_mesh(sizes, [](const Mesh&, std::size_t) { return false; });
  if (!open) return open.error();
  if (static_cast<std::size_t>(open->devices()) != devices.size())
    return misfit(fmt::format("expected {} devices, as many as the mesh {} has, found {}", open->devices(), to_text(*open), devices.size()));
  Placement placement;
  for (const int device : devices) {
    PODSIM_ASSERT(device >= 0 && device / cores < topology.chips());
    placement.chip_of.emplace_back(device / cores);
    if (cores > 1) placement.core_of.push_back(device % cores);
  }
  std::optional<Diagnostic> unconnected;
  std::vector<LinkId> links;
  const auto hops_between = [&](DeviceId a, DeviceId b) {
    links.clear();
    if (auto ok = topology.route(placement.chip_of[a.index()], placement.chip_of[b.index()], {}, links); !ok) unconnected = ok.error();
    return static_cast<int>(std::count_if(links.begin(), links.end(), [&](LinkId link) { return topology.is_hop(link); }));
  };
  Expected<Mesh> mesh = wrapped_mesh(sizes, [&](const Mesh& each, std::size_t axis) { return closes_by_hops(each, static_cast<int>(axis), hops_between); });
  if (unconnected) return *unconnected;
  if (!mesh) return mesh.error();
  return PlacedMesh{*std::move(mesh), std::move(placement)};
}

}  // namespace podsim
