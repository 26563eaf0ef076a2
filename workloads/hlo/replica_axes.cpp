// Replica groups and permutes in terms of a mesh, and ids of all modes as ids of devices.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/invariant.hpp"
#include "workloads/hlo/group_views.hpp"
#include "workloads/hlo/replica_groups.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_flattened = std::int64_t{1} << 24;

/// Devices between neighbours along an axis.
std::vector<std::int64_t> strides_of(const Mesh& mesh) {
  std::vector<std::int64_t> strides(mesh.axes().size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * mesh.axes()[i].size;
  return strides;
}

ReplicaGroups with_groups(std::vector<std::vector<std::int64_t>> groups) { return ReplicaGroups::of_list(groups); }

}  // namespace

std::optional<std::vector<int>> axes_of(const ReplicaGroups& groups, const Mesh& mesh) {
  const auto views = views_of(groups, mesh);
  if (!views) return std::nullopt;
  std::vector<int> axes;
  for (const AxisView& view : *views) {
    if (view != mesh.whole(view.axis)) return std::nullopt;
    axes.push_back(view.axis);
  }
  return axes;
}

std::optional<PermuteShift> shift_of(const std::vector<SourceTarget>& pairs, const Mesh& mesh) {
  if (pairs.empty() || static_cast<std::int64_t>(pairs.size()) > mesh.devices()) return std::nullopt;
  const auto& axes = mesh.axes();
  const std::vector<std::int64_t> strides = strides_of(mesh);
  const auto coordinate = [&](std::int64_t device, std::size_t axis) { return device / strides[axis] % axes[axis].size; };
  for (const auto& [source, target] : pairs)
    if (source < 0 || target < 0 || source >= mesh.devices() || target >= mesh.devices()) return std::nullopt;

  // The one axis along which all pairs differ, by as much: as it is (raw), or around the ring.
  std::optional<std::size_t> along;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (coordinate(pairs[0].first, axis) == coordinate(pairs[0].second, axis)) continue;
    if (along) return std::nullopt;
    along = axis;
  }
  if (!along) return std::nullopt;
  const std::int64_t size = axes[*along].size, raw = coordinate(pairs[0].second, *along) - coordinate(pairs[0].first, *along);
  bool same_raw = true;
  std::vector<bool> sends(static_cast<std::size_t>(mesh.devices()));
  std::vector<std::vector<bool>> used(axes.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis) used[axis].resize(static_cast<std::size_t>(axes[axis].size));
  for (const auto& [source, target] : pairs) {
    if (sends[static_cast<std::size_t>(source)]) return std::nullopt;
    sends[static_cast<std::size_t>(source)] = true;
    const std::int64_t from = coordinate(source, *along), to = coordinate(target, *along);
    if (target - source != (to - from) * strides[*along] || (to - from - raw) % size != 0) return std::nullopt;
    same_raw = same_raw && to - from == raw;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) used[axis][static_cast<std::size_t>(coordinate(source, axis))] = true;
  }

  PermuteShift shift;
  shift.axis = static_cast<int>(*along);
  std::int64_t lines = 1;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (axis == *along || axes[axis].size == 1) continue;
    const std::int64_t count = std::count(used[axis].begin(), used[axis].end(), true);
    if (count == axes[axis].size) {
      lines *= count;
    } else if (count == 1) {
      shift.fixed.emplace_back(static_cast<int>(axis), static_cast<int>(coordinate(pairs[0].first, axis)));
    } else {
      return std::nullopt;
    }
  }
  // Sources are different and within the box of lines: as many as there are means all of them.
  const auto count = static_cast<std::int64_t>(pairs.size());
  if (count == lines * size) {
    const std::int64_t around = (raw % size + size) % size;
    shift.by = around > size / 2 ? around - size : around;
    return shift;
  }
  if (!same_raw || count != lines * (size - std::abs(raw))) return std::nullopt;
  shift.by = raw;
  shift.wraps = false;
  return shift;
}

std::int64_t ids_of(HloGroupMode mode, std::int64_t replicas, std::int64_t partitions) {
  if (mode == HloGroupMode::replicas_everywhere) return replicas;
  if (replicas == 1 || mode == HloGroupMode::flattened) return replicas * partitions;
  return mode == HloGroupMode::partitions ? partitions : replicas;
}

Expected<ReplicaGroups> flattened_groups(const ReplicaGroups& groups, HloGroupMode mode, std::int64_t replicas, std::int64_t partitions,
                                         const SourceLocation& where) {
  PODSIM_ASSERT(replicas >= 1 && partitions >= 1);
  if (replicas > most_flattened || partitions > most_flattened || replicas * partitions > most_flattened)
    return Diagnostic{where, fmt::format("expected at most {} devices, got {} x {}", most_flattened, replicas, partitions)};
  const bool flat = (replicas == 1 && mode != HloGroupMode::replicas_everywhere) || mode == HloGroupMode::flattened;
  const std::int64_t ids = ids_of(mode, replicas, partitions);
  if (!groups.is_all() && groups.largest() >= ids) return Diagnostic{where, fmt::format("expected ids below {}, got {}", ids, groups.largest())};
  if (!groups.is_all() && flat) return groups;
  std::vector<std::vector<std::int64_t>> named;
  if (groups.is_all()) {
    named.emplace_back(static_cast<std::size_t>(ids));
    std::iota(named.back().begin(), named.back().end(), 0);
  } else {
    for (std::int64_t group = 0; group < groups.count(); ++group) named.push_back(groups.devices(group));
  }
  if (flat) return with_groups(std::move(named));
  std::vector<std::vector<std::int64_t>> flattened;
  const std::int64_t others = mode == HloGroupMode::partitions ? replicas : mode == HloGroupMode::replicas ? partitions : 1;
  for (std::int64_t other = 0; other < others; ++other)
    for (const std::vector<std::int64_t>& group : named) {
      std::vector<std::int64_t>& members = flattened.emplace_back();
      for (const std::int64_t id : group) {
        if (mode == HloGroupMode::partitions) members.push_back(other * partitions + id);
        if (mode == HloGroupMode::replicas) members.push_back(id * partitions + other);
        if (mode == HloGroupMode::replicas_everywhere)
          for (std::int64_t partition = 0; partition < partitions; ++partition) members.push_back(id * partitions + partition);
      }
    }
  return with_groups(std::move(flattened));
}

}  // namespace podsim
