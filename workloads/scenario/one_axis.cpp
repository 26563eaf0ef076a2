#include "workloads/scenario/one_axis.hpp"

#include <algorithm>

namespace podsim {

namespace {

/// What more than one device lies along, in the order of the mesh.
std::vector<AxisView> moving_axes(const Mesh& mesh) {
  std::vector<AxisView> moving;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
    if (mesh.whole(axis).size > 1) moving.push_back(mesh.whole(axis));
  return moving;
}

bool equal_sizes(const std::vector<MeshFactor>& a, const std::vector<MeshFactor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const MeshFactor& one, const MeshFactor& other) { return one.size == other.size; });
}

/// The devices by their position along the axes, the first one most significant.
Placement placed_along(const System& system, const std::vector<AxisView>& axes) {
  Placement placed = system.placement;
  for (int position = 0; position < system.mesh.devices(); ++position) {
    Coordinates at(system.mesh.axes().size(), 0);
    int rest = position;
    for (std::size_t a = axes.size(); a-- > 0; rest /= axes[a].size) at[static_cast<std::size_t>(axes[a].axis)] = rest % axes[a].size;
    const std::size_t device = system.mesh.device(at).index(), to = static_cast<std::size_t>(position);
    placed.chip_of[to] = system.placement.chip_of[device];
    if (!placed.core_of.empty()) placed.core_of[to] = system.placement.core_of[device];
    if (!placed.speed.empty()) placed.speed[to] = system.placement.speed[device];
  }
  return placed;
}

}  // namespace

std::optional<std::string> lowered_as_one_axis(const std::string& name) {
  if (!name.ends_with(as_one_axis)) return std::nullopt;
  return name.substr(0, name.size() - as_one_axis.size());
}

std::optional<std::vector<AxisView>> axes_over_all(const System& system, const CollectiveSpec& spec) {
  using enum CollectiveKind;
  auto axes = axes_of(spec.axes, system.mesh);
  if (spec.kind == permute || !axes) return std::nullopt;
  std::erase_if(*axes, [](const AxisView& axis) { return axis.size == 1; });
  std::vector<AxisView> sorted = *axes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() < 2 || sorted != moving_axes(system.mesh)) return std::nullopt;
  const bool rooted = spec.kind == broadcast || spec.kind == reduce;
  return spec.kind == all_reduce || (rooted && spec.details.root == 0) ? sorted : *std::move(axes);
}

std::optional<System> on_one_axis(const System& system, const std::vector<AxisView>& axes) {
  if (!std::holds_alternative<RowMajorOrder>(system.order) && system.devices.empty()) return std::nullopt;
  std::string name;
  std::vector<MeshFactor> factors;
  for (const AxisView& axis : axes) {
    name += (name.empty() ? "" : "_") + system.mesh.name(axis);
    for (const AxisView& factor : system.mesh.factors(axis.axis))
      if (factor.size > 1) factors.push_back({factor.size, system.mesh.wraps(factor)});
  }
  auto one = on_axes(system, {{name, system.mesh.devices()}});
  if (!one) return std::nullopt;
  const bool in_order = std::is_sorted(axes.begin(), axes.end());
  MeshAxis axis = one->mesh.axes().front();
  if (in_order && !equal_sizes(axis.factors, factors)) return *std::move(one);
  axis.wraps = axis.wraps && in_order;
  axis.factors = std::move(factors);  // also of a mesh that was opened at a broken cable
  auto mesh = Mesh::make({std::move(axis)});
  if (!mesh) return std::nullopt;
  one->mesh = *std::move(mesh);
  if (!in_order) one->placement = placed_along(system, axes);
  return *std::move(one);
}

}  // namespace podsim
