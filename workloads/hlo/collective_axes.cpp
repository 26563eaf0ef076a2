#include "workloads/hlo/collective_axes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/hlo/group_views.hpp"

namespace podsim {

std::string to_text(const std::vector<SourceTarget>& pairs) {
  std::string text;
  for (const auto& [source, target] : pairs) text += fmt::format("{}{{{},{}}}", text.empty() ? "" : ",", source, target);
  return '{' + text + '}';
}

namespace {

/// How many slices there are, and how many devices each of them has.
struct Slices {
  std::int64_t count = 1, devices = 1;
};
Slices slices_of(const HloModule& module, std::int64_t devices) {
  if (!spans_slices(module)) return {1, devices};
  const std::int64_t each = std::max<std::int64_t>(1, devices_of(module));
  return {std::max<std::int64_t>(1, devices / each), each};
}

}  // namespace

bool spans_slices(const HloModule& module) {
  return std::ranges::any_of(module.computations, [](const HloComputation& computation) {
    return std::ranges::any_of(computation.instructions, [](const HloInstruction& instruction) { return instruction.attributes->across_slices; });
  });
}

Expected<ReplicaGroups> groups_among(const HloModule& module, const HloInstruction& collective, std::int64_t devices) {
  const HloAttributes& attributes = *collective.attributes;
  const Slices slices = slices_of(module, devices);
  std::vector<std::vector<std::int64_t>> all;
  if (attributes.across_slices) {
    all.resize(static_cast<std::size_t>(slices.devices));
    for (std::int64_t slice = 0; slice < slices.count; ++slice)
      for (std::int64_t device = 0; device < slices.devices; ++device) all[static_cast<std::size_t>(device)].push_back(slice * slices.devices + device);
    return ReplicaGroups::of_list(all);
  }
  const auto flat = flattened_groups(attributes.replica_groups.value_or(ReplicaGroups{}), group_mode_of(collective), module.replica_count, slices.devices / module.replica_count, module.where(collective));
  if (!flat || slices.count == 1) return flat;
  for (std::int64_t slice = 0; slice < slices.count; ++slice)
    for (std::int64_t group = 0; group < flat->count(); ++group) {
      all.push_back(flat->devices(group));
      for (std::int64_t& device : all.back()) device += slice * slices.devices;
    }
  return ReplicaGroups::of_list(all);
}

std::vector<SourceTarget> pairs_among(const HloModule& module, const HloInstruction& collective, std::int64_t devices) {
  const Slices slices = slices_of(module, devices);
  std::vector<SourceTarget> all;
  for (std::int64_t slice = 0; slice < slices.count; ++slice)
    for (const auto& [from, to] : collective.attributes->source_target_pairs) all.emplace_back(slice * slices.devices + from, slice * slices.devices + to);
  return all;
}

std::string groups_text(const HloInstruction& collective) {
  const HloAttributes& attributes = *collective.attributes;
  if (attributes.across_slices) return "slices";
  if (collective.opcode == HloOpcode::collective_permute) return to_text(attributes.source_target_pairs);
  return to_text(attributes.replica_groups.value_or(ReplicaGroups{}));
}

Expected<HloCollectiveAxes> collective_axes(const HloModule& module, const HloInstruction& collective, const Mesh* mesh) {
  const HloAttributes& attributes = *collective.attributes;
  HloCollectiveAxes result;
  result.groups = groups_text(collective);
  if (collective.opcode == HloOpcode::collective_permute) {
    if (mesh != nullptr) result.shift = shift_of(pairs_among(module, collective, mesh->devices()), *mesh);
    if (result.shift) result.axes = std::vector{mesh->axes()[static_cast<std::size_t>(result.shift->axis)].name};
    result.group_size = result.shift ? mesh->axes()[static_cast<std::size_t>(result.shift->axis)].size : 0;
    return result;
  }
  const ReplicaGroups groups = attributes.replica_groups.value_or(ReplicaGroups{});
  const std::int64_t devices = mesh != nullptr ? mesh->devices() : devices_of(module);
  result.group_size = groups.is_all() ? devices : groups.uniform_size().value_or(0);
  if (mesh == nullptr) {
    if (attributes.across_slices) result.group_size = 0;
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
  const auto flat = groups_among(module, collective, devices);
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
