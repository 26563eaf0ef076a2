#include "workloads/hlo/collective_axes.hpp"

#include <fmt/format.h>

#include "workloads/hlo/group_views.hpp"

namespace podsim {

std::string to_text(const std::vector<SourceTarget>& pairs) {
  std::string text;
  for (const auto& [source, target] : pairs) text += fmt::format("{}{{{},{}}}", text.empty() ? "" : ",", source, target);
  return '{' + text + '}';
}

std::string groups_text(const HloInstruction& collective) {
  const HloAttributes& attributes = *collective.attributes;
  if (collective.opcode == HloOpcode::collective_permute) return to_text(attributes.source_target_pairs);
  return to_text(attributes.replica_groups.value_or(ReplicaGroups{}));
}

Expected<HloCollectiveAxes> collective_axes(const HloModule& module, const HloInstruction& collective, const Mesh* mesh) {
  const HloAttributes& attributes = *collective.attributes;
  HloCollectiveAxes result;
  result.groups = groups_text(collective);
  if (collective.opcode == HloOpcode::collective_permute) {
    if (mesh != nullptr) result.shift = shift_of(attributes.source_target_pairs, *mesh);
    if (result.shift) result.axes = std::vector{mesh->axes()[static_cast<std::size_t>(result.shift->axis)].name};
    result.group_size = result.shift ? mesh->axes()[static_cast<std::size_t>(result.shift->axis)].size : 0;
    return result;
  }
  const ReplicaGroups groups = attributes.replica_groups.value_or(ReplicaGroups{});
  const std::int64_t devices = mesh != nullptr ? mesh->devices() : devices_of(module);
  result.group_size = groups.is_all() ? devices : groups.uniform_size().value_or(0);
  if (mesh == nullptr) {
    if (groups.spelling() != ReplicaGroups::Spelling::mesh) return result;
    result.axes.emplace();
    for (const ReplicaGroups::AxisPart& part : groups.listed()) {
      const ReplicaGroups::Axis& axis = groups.axes()[static_cast<std::size_t>(part.axis)];
      if (part.size > 0)
        result.axes->push_back(fmt::format("{}:({}){}", axis.name, part.before, part.size));
      else if (axis.size > 1)
        result.axes->push_back(axis.name);
    }
    return result;
  }
  const auto flat =
      flattened_groups(groups, group_mode_of(attributes), module.replica_count, devices / module.replica_count, module.where(collective));
  if (!flat) return flat.error();
  result.group_size = flat->uniform_size().value_or(0);
  const auto with_source = collective.opcode == HloOpcode::collective_broadcast ? rooted(*flat) : std::nullopt;
  const auto axes = axes_of(with_source ? with_source->groups : *flat, *mesh);
  if (!axes) return result;
  result.axes.emplace();
  for (const int axis : *axes) result.axes->push_back(mesh->axes()[static_cast<std::size_t>(axis)].name);
  return result;
}

}  // namespace podsim
