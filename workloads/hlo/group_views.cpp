#include "workloads/hlo/group_views.hpp"

#include <algorithm>
#include <set>

namespace podsim {

namespace {

/// Steps of devices in the row-major order of the mesh: `size` of them, `stride` apart.
struct Steps {
  std::int64_t stride = 1, size = 1;
};

/// The steps that the positions of a group take, least significant first; the group need not be made of such.
std::vector<Steps> steps_of(const ReplicaGroups& groups, std::int64_t group) {
  const std::int64_t size = groups.size(group), first = groups.device(group, 0);
  std::vector<Steps> steps;
  for (std::int64_t block = 1; block < size;) {
    const std::int64_t stride = groups.device(group, block) - first;
    std::int64_t count = 2;
    while (count * block < size && groups.device(group, count * block) - first == count * stride) ++count;
    if (size % (count * block) != 0) return {};
    steps.push_back({stride, count});
    block *= count;
  }
  return steps;
}

/// The steps as views of axes, least significant first; nullopt if they leave the factors of axes.
std::optional<std::vector<AxisView>> views_of_steps(const std::vector<Steps>& steps, const Mesh& mesh) {
  std::vector<AxisView> views;
  for (Steps step : steps) {
    if (step.stride <= 0) return std::nullopt;
    std::int64_t below = 1;  // devices between neighbours along the axis
    for (int axis = static_cast<int>(mesh.axes().size()) - 1; axis >= 0 && step.size > 1; --axis) {
      const std::int64_t extent = mesh.axes()[static_cast<std::size_t>(axis)].size;
      const std::int64_t above = below * extent;
      if (step.stride < above) {
        if (step.stride % below != 0 || above % step.stride != 0) return std::nullopt;
        const std::int64_t size = std::min(above / step.stride, step.size);
        if (extent % (step.stride / below * size) != 0 || step.size % size != 0) return std::nullopt;
        views.push_back({axis, static_cast<int>(step.stride / below), static_cast<int>(size)});
        step.stride *= size;
        step.size /= size;
      }
      below = above;
    }
    if (step.size > 1) return std::nullopt;
  }
  return views;
}

/// Neighbouring factors of one axis as one.
std::vector<AxisView> joined(const std::vector<AxisView>& views) {
  std::vector<AxisView> together;
  for (const AxisView& view : views) {
    if (!together.empty() && together.back().axis == view.axis && together.back().stride * together.back().size == view.stride)
      together.back().size *= view.size;
    else
      together.push_back(view);
  }
  return together;
}

}  // namespace

std::optional<std::vector<AxisView>> views_of(const ReplicaGroups& groups, const Mesh& mesh) {
  std::vector<AxisView> views;
  if (groups.is_all()) {
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
      if (mesh.axes()[static_cast<std::size_t>(axis)].size > 1) views.push_back(mesh.whole(axis));
    return views;
  }
  const auto size = groups.uniform_size();
  if (!size || groups.total() != mesh.devices() || groups.largest() != mesh.devices() - 1) return std::nullopt;
  if (*size == 1) return views;
  const auto found = views_of_steps(steps_of(groups, 0), mesh);
  if (!found || found->empty()) return std::nullopt;
  views = joined(*found);
  std::reverse(views.begin(), views.end());
  std::vector<std::int64_t> strides(mesh.axes().size(), 1);
  for (std::size_t a = strides.size(); a-- > 1;) strides[a - 1] = strides[a] * mesh.axes()[a].size;
  for (std::int64_t group = 0; group < groups.count(); ++group) {
    const std::int64_t first = groups.device(group, 0);
    for (std::int64_t position = 0; position < *size; ++position) {
      std::int64_t expected = first, rest = position;
      for (auto view = views.rbegin(); view != views.rend(); ++view) {
        const std::int64_t apart = strides[static_cast<std::size_t>(view->axis)] * view->stride;
        if (position == 0 && first / apart % view->size != 0) return std::nullopt;
        expected += rest % view->size * apart;
        rest /= view->size;
      }
      if (groups.device(group, position) != expected) return std::nullopt;
    }
  }
  return views;
}

bool have_axes_once(const std::vector<AxisView>& views) {
  std::set<int> axes;
  return std::ranges::all_of(views, [&](const AxisView& view) { return axes.insert(view.axis).second; });
}

std::optional<CollectiveGroups> collective_groups(const ReplicaGroups& groups, const Mesh& mesh, bool any_order) {
  CollectiveGroups found;
  const auto with = [&](std::vector<AxisView> views) {
    found.views = std::move(views);
    for (const AxisView& view : found.views) found.devices *= view.size;
    return found;
  };
  if (auto views = views_of(groups, mesh); views && have_axes_once(*views)) return with(*std::move(views));
  const auto size = groups.uniform_size();
  if (!size || groups.total() != mesh.devices() || groups.largest() != mesh.devices() - 1) return std::nullopt;
  if (any_order) {
    std::vector<std::vector<std::int64_t>> sorted;
    for (std::int64_t group = 0; group < groups.count(); ++group) std::ranges::sort(sorted.emplace_back(groups.devices(group)));
    if (auto views = views_of(ReplicaGroups::of_list(sorted), mesh); views && have_axes_once(*views)) return with(*std::move(views));
  }
  found.listed = groups;
  found.devices = *size;
  return found;
}

std::int64_t largest_group_of(const ReplicaGroups& groups) {
  std::int64_t largest = 0;
  for (std::int64_t group = 0; group < groups.count(); ++group) largest = std::max(largest, groups.size(group));
  return largest;
}

std::optional<RootedGroups> rooted(const ReplicaGroups& groups) {
  if (groups.is_all()) return RootedGroups{groups, 0};
  std::vector<std::vector<std::int64_t>> sorted;
  std::optional<std::int64_t> root;
  for (std::int64_t group = 0; group < groups.count(); ++group) {
    std::vector<std::int64_t>& devices = sorted.emplace_back(groups.devices(group));
    const std::int64_t source = devices.front();
    std::sort(devices.begin(), devices.end());
    const std::int64_t position = std::lower_bound(devices.begin(), devices.end(), source) - devices.begin();
    if (root.value_or(position) != position) return std::nullopt;
    root = position;
  }
  return RootedGroups{ReplicaGroups::of_list(sorted), root.value_or(0)};
}

}  // namespace podsim
