#include "workloads/scenario/renamed_axes.hpp"

#include <algorithm>

#include "workloads/scenario/faults.hpp"

namespace podsim {

namespace {

/// Positions of the axes of more than one device.
std::vector<int> axes_with_devices(const Mesh& mesh) {
  std::vector<int> axes;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis)
    if (mesh.axes()[axis].size > 1) axes.push_back(static_cast<int>(axis));
  return axes;
}

/// The axes of a collective by their positions among those of more than one device. nullopt: it names an axis of one device.
std::optional<std::vector<std::ptrdiff_t>> positions_of(const CollectiveSpec& spec, const Mesh& mesh) {
  const auto along = axes_of(spec.axes, mesh);
  if (!along) return std::nullopt;
  const std::vector<int> axes = axes_with_devices(mesh);
  std::vector<std::ptrdiff_t> positions;
  for (const AxisView& view : *along) {
    const auto found = std::find(axes.begin(), axes.end(), view.axis);
    if (found == axes.end()) return std::nullopt;
    positions.push_back(found - axes.begin());
  }
  return positions;
}

}  // namespace

bool differ_in_axis_names_only(const System& one, const System& other) {
  const std::vector<int> axes = axes_with_devices(one.mesh), of_other = axes_with_devices(other.mesh);
  const auto alike = [&](int a, int b) {
    MeshAxis axis = one.mesh.axes()[static_cast<std::size_t>(a)];
    const MeshAxis& like = other.mesh.axes()[static_cast<std::size_t>(b)];
    axis.name = like.name;
    return axis == like;
  };
  if (!std::equal(axes.begin(), axes.end(), of_other.begin(), of_other.end(), alike) || one.placement != other.placement ||
      one.devices != other.devices || one.machine != other.machine)
    return false;
  System renamed = other;
  renamed.mesh = one.mesh;
  return differ_in_machine_only(one, renamed);
}

bool is_same_collective(const System& one, const ProblemSpec& problem, const System& other, const ProblemSpec& of_other) {
  const auto *spec = std::get_if<CollectiveSpec>(&problem), *other_spec = std::get_if<CollectiveSpec>(&of_other);
  if (spec == nullptr || other_spec == nullptr) return false;
  const auto positions = positions_of(*spec, one.mesh);
  return positions && positions == positions_of(*other_spec, other.mesh) && spec->kind == other_spec->kind && spec->input == other_spec->input &&
         spec->dtype == other_spec->dtype && spec->details.root == other_spec->details.root && spec->details.pairs == other_spec->details.pairs &&
         spec->policy == other_spec->policy;
}

Row with_axes_of(Row row, const System& from, const System& to) {
  row.result.mesh.clear();
  for (const MeshAxis& axis : to.mesh.axes()) row.result.mesh.emplace_back(axis.name, axis.size);
  const std::vector<int> axes = axes_with_devices(from.mesh), renamed = axes_with_devices(to.mesh);
  for (AxisMetrics& metrics : row.axes) {
    const auto found = std::find(axes.begin(), axes.end(), metrics.axis);
    if (found != axes.end()) metrics.axis = renamed[static_cast<std::size_t>(found - axes.begin())];
  }
  if (row.rings.empty()) return row;
  const std::vector<Alternative> alternatives = podsim::alternatives(from), of_to = podsim::alternatives(to);
  for (std::size_t a = 0; a < std::min(alternatives.size(), of_to.size()); ++a)
    if (alternatives[a].rings == row.rings) {
      row.rings = of_to[a].rings;
      break;
    }
  return row;
}

}  // namespace podsim
