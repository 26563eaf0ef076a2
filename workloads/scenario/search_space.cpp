#include "workloads/scenario/search_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// Those that the vendor offers are wired as it builds them: parse_slice() knows which.
std::vector<Slice> slices_2d(const Machine& machine, std::int64_t chips) {
  std::vector<Slice> slices;
  for (std::int64_t rows = chips; rows >= 1; --rows) {
    if (chips % rows != 0) continue;
    const auto slice = parse_slice(fmt::format("{}x{}", rows, chips / rows), machine, of_field("chips"));
    PODSIM_ASSERT(slice);
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
    PODSIM_ASSERT(known);
    slices.push_back(*known);
  } while (turns && std::next_permutation(other.extents.begin(), other.extents.end()));
  return slices;
}

/// Devices that switches join, of the machine or by `--topology`, may be divided in any way; axes of a torus take whole dimensions, as JAX lays them without allow_split_axes: a part of a ring is a line.
bool divides_dimensions(const System& system, bool split_axes) {
  return split_axes || std::ranges::all_of(system.layout.dimensions(), [](const GridDimension& dimension) { return dimension.extent == 1 || dimension.switched; });
}

}  // namespace

std::vector<MeshSizes> meshes_of(const System& system, bool split_axes) {
  std::vector<MeshSizes> meshes;
  const int devices = system.mesh.devices();
  const auto add = [&](int rows) { meshes.push_back({{"row", rows}, {"col", devices / rows}}); };
  if (divides_dimensions(system, split_axes)) {
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

namespace {

/// Every way to give each factor in order to an axis that is not before that of the factor before; axes of one device are left out.
void add_training_meshes(const std::vector<std::string_view>& axes, const std::vector<int>& factors, std::size_t next, std::size_t axis, MeshSizes sizes, std::set<MeshSizes>& seen,
                         std::vector<MeshSizes>& meshes) {
  if (next == factors.size()) {
    if (seen.insert(sizes).second) meshes.push_back(std::move(sizes));
    return;
  }
  for (std::size_t a = axis; a < axes.size(); ++a) {
    MeshSizes longer = sizes;
    if (longer.empty() || longer.back().first != axes[a]) longer.emplace_back(axes[a], 1);
    longer.back().second *= factors[next];
    add_training_meshes(axes, factors, next + 1, a, std::move(longer), seen, meshes);
  }
}

std::vector<int> prime_factors(int number) {
  std::vector<int> factors;
  for (int p = 2; number > 1; ++p)
    for (; number % p == 0; number /= p) factors.push_back(p);
  return factors;
}

std::vector<MeshSizes> training_meshes_of(const System& system, const std::vector<std::string_view>& axes, bool split_axes) {
  std::vector<int> factors;
  const bool divides = divides_dimensions(system, split_axes);
  const auto& dimensions = system.layout.dimensions();
  for (std::size_t d = system.slices > 1 ? 1 : 0; d < dimensions.size(); ++d) {
    const std::vector<int> parts = divides ? prime_factors(dimensions[d].extent) : std::vector<int>{dimensions[d].extent};
    for (const int part : parts)
      if (part > 1) factors.push_back(part);
  }
  std::vector<std::vector<int>> orders{factors};
  if (divides) {  // 2x3 and 3x2 cut an axis at different places
    std::sort(factors.begin(), factors.end());
    orders.clear();
    do orders.push_back(factors);
    while (std::next_permutation(factors.begin(), factors.end()));
  }
  std::vector<MeshSizes> meshes;
  std::set<MeshSizes> seen;
  MeshSizes first;
  if (system.slices > 1) first.emplace_back("slice", system.slices);
  for (const std::vector<int>& order : orders) add_training_meshes(axes, order, 0, 0, first, seen, meshes);
  for (MeshSizes& mesh : meshes)
    if (mesh.empty()) mesh.emplace_back("data", 1);
  return meshes;
}

/// What the axes of a system are laid over, whatever the order of dimensions within an axis.
std::string shape_of(const System& system) {
  std::string text;
  for (int axis = 0; axis < static_cast<int>(system.mesh.axes().size()); ++axis) {
    text += system.mesh.axes()[static_cast<std::size_t>(axis)].name + " ";
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
  std::vector<System> systems, cut;  // cut: meshes that were asked for, whose axes do not take whole dimensions of a slice
  std::set<std::string> seen;
  for (const Slice& slice : space.slices) {
    const bool turns = space.turn && equal_links(space.base.machine, slice) && (!space.training.empty() || space.meshes.empty()) && !space.split_axes;
    for (const Slice& way : turned(space.base.machine, slice, turns)) {
      SystemSpec spec = space.base;
      spec.slice = way;
      spec.mesh.clear();
      const auto plain = make_system(spec);
      if (!plain) return plain.error();
      const std::vector<MeshSizes> own = space.training.empty() ? meshes_of(*plain, space.split_axes) : training_meshes_of(*plain, space.training, space.split_axes);
      for (const MeshSizes& mesh : space.meshes.empty() ? own : space.meshes) {
        spec.mesh = mesh;
        auto system = make_system(spec);
        if (!system) return system.error();
        if (turns && !seen.insert(shape_of(*system)).second) continue;
        const bool whole = space.training.empty() || std::find(own.begin(), own.end(), mesh) != own.end();
        (whole ? systems : cut).push_back(*std::move(system));
      }
      if (divides_dimensions(*plain, space.split_axes)) break;  // any mesh was tried: a turned slice has no others
    }
  }
  return systems.empty() ? std::move(cut) : std::move(systems);
}

}  // namespace podsim
