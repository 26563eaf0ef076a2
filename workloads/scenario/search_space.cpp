#include "workloads/scenario/search_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

namespace podsim {

namespace {

/// Those that the vendor offers are wired as it builds them: parse_slice() knows which.
std::vector<Slice> slices_2d(const Machine& machine, std::int64_t chips) {
  std::vector<Slice> slices;
  for (std::int64_t rows = chips; rows >= 1; --rows) {
    if (chips % rows != 0) continue;
    const auto slice = parse_slice(fmt::format("{}x{}", rows, chips / rows), machine, of_field("chips"));
    assert(slice);
    slices.push_back(*slice);
  }
  return slices;
}

bool equal_links(const Machine& machine, const Slice& slice) {
  for (std::size_t d = 1; d < slice.extents.size(); ++d)
    if (machine.link[d] != machine.link[0]) return false;
  return machine.interconnect == Interconnect::grid;
}

/// Every way to turn the slice, as it is first.
std::vector<Slice> turned(const Machine& machine, const Slice& slice, bool turns) {
  std::vector<Slice> slices{slice};
  Slice other = slice;
  std::sort(other.extents.begin(), other.extents.end());
  do {
    if (!turns || other.extents == slice.extents) continue;
    const auto known = parse_slice(to_text(other), machine, of_field("slice"));
    assert(known);
    slices.push_back(*known);
  } while (turns && std::next_permutation(other.extents.begin(), other.extents.end()));
  return slices;
}

/// Axes that take whole dimensions, or every row x col.
std::vector<MeshSizes> meshes_of(const System& system, bool split_axes) {
  std::vector<MeshSizes> meshes;
  const int devices = system.mesh.devices();
  const auto add = [&](int rows) { meshes.push_back({{"row", rows}, {"col", devices / rows}}); };
  if (split_axes) {
    for (int rows = devices; rows >= 1; --rows)
      if (devices % rows == 0) add(rows);
    return meshes;
  }
  std::set<int> seen;
  int rows = 1;
  const auto& dimensions = system.layout.dimensions();
  for (std::size_t d = 0; d <= dimensions.size(); ++d) {
    if (seen.insert(rows).second) add(rows);
    if (d < dimensions.size()) rows *= dimensions[d].extent;
  }
  return meshes;
}

/// What the axes of a system are laid over, whatever the order of dimensions within an axis.
std::string shape_of(const System& system) {
  std::string text;
  for (int axis = 0; axis < static_cast<int>(system.mesh.axes().size()); ++axis) {
    std::vector<std::pair<int, bool>> factors;
    const auto& folded = system.mesh.axes()[static_cast<std::size_t>(axis)].factors;
    for (const MeshFactor& factor : folded) factors.emplace_back(factor.size, factor.wraps);
    if (folded.empty()) factors.emplace_back(system.mesh.axes()[static_cast<std::size_t>(axis)].size, system.mesh.wraps(system.mesh.whole(axis)));
    std::sort(factors.begin(), factors.end());
    for (const auto& [size, wraps] : factors) text += fmt::format("{}{} ", size, wraps ? "o" : "-");
    text += "|";
  }
  return text;
}

}  // namespace

Expected<std::vector<Slice>> slices_of(const Machine& machine, std::int64_t chips, bool two_dimensional) {
  if (two_dimensional || machine.slices.any_shape) return slices_2d(machine, chips);
  std::vector<Slice> slices = offered_slices(machine, chips);
  if (!slices.empty()) return slices;
  std::string near;
  for (const Slice& slice : near_slices(machine, {{static_cast<int>(chips)}, true}))
    near += fmt::format("{}{} ({} chips)", near.empty() ? "" : ", ", to_text(slice), chips_of(slice));
  return Diagnostic{of_field("chips"), fmt::format("{} offers no slice of {} chips; near are {}", machine.name, chips, near)};
}

Expected<std::vector<System>> systems_in(const SearchSpace& space) {
  std::vector<System> systems;
  std::set<std::string> seen;
  for (const Slice& slice : space.slices) {
    const bool turns = space.turn && equal_links(space.base.machine, slice) && space.meshes.empty() && !space.split_axes;
    for (const Slice& way : turned(space.base.machine, slice, turns)) {
      SystemSpec spec = space.base;
      spec.slice = way;
      spec.mesh.clear();
      const auto plain = make_system(spec);
      if (!plain) return plain.error();
      for (const MeshSizes& mesh : space.meshes.empty() ? meshes_of(*plain, space.split_axes) : space.meshes) {
        spec.mesh = mesh;
        auto system = make_system(spec);
        if (!system) return system.error();
        if (turns && !seen.insert(shape_of(*system)).second) continue;
        systems.push_back(*std::move(system));
      }
    }
  }
  return systems;
}

}  // namespace podsim
