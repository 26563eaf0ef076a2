#include "sim/schedule/submesh.hpp"

#include <fmt/format.h>

#include <vector>

namespace podsim {

namespace {

bool is_view_of(const Mesh& mesh, const AxisView& view) {
  if (view == one_device) return true;
  if (view.axis < 0 || view.axis >= static_cast<int>(mesh.axes().size()) || view.stride < 1 || view.size < 1) return false;
  return mesh.whole(view.axis).size % (std::int64_t{view.stride} * view.size) == 0;
}

/// Whether a coordinate on one says nothing about that on the other.
bool independent(const AxisView& a, const AxisView& b) {
  if (a.axis != b.axis || a.size == 1 || b.size == 1) return true;
  const AxisView &fine = a.stride < b.stride ? a : b, &coarse = a.stride < b.stride ? b : a;
  return coarse.stride % (std::int64_t{fine.stride} * fine.size) == 0;
}

}  // namespace

std::int64_t devices_along(const std::vector<AxisView>& axes) {
  std::int64_t devices = 1;
  for (const AxisView& axis : axes) devices *= axis.size;
  return devices;
}

std::int64_t position_along(const Mesh& mesh, const std::vector<AxisView>& axes, DeviceId device) {
  std::int64_t position = 0;
  for (const AxisView& axis : axes) position = position * axis.size + mesh.coordinate(device, axis);
  return position;
}

Expected<Submesh> submesh_of(const Mesh& mesh, const AxisView& rows, const AxisView& columns, std::optional<DeviceSet> devices) {
  for (const AxisView& view : {rows, columns})
    if (!is_view_of(mesh, view))
      return Diagnostic{
          {}, fmt::format("axis {} with stride {} and size {} is no view of the mesh {}", view.axis, view.stride, view.size, to_text(mesh))};
  if (!independent(rows, columns))
    return Diagnostic{{}, fmt::format("rows {} and columns {} share a coordinate", mesh.name(rows), mesh.name(columns))};
  Submesh result{mesh, rows, columns, devices ? *std::move(devices) : every_device(mesh)};
  if (result.devices == every_device(mesh)) return result;
  std::vector<bool> works(static_cast<std::size_t>(mesh.devices()), false);
  for (const DeviceSet::Interval& interval : result.devices.intervals)
    for (int d = interval.first; d < interval.last; ++d) {
      if (d < 0 || d >= mesh.devices()) return Diagnostic{{}, fmt::format("device {} is none of the {} of the mesh", d, mesh.devices())};
      works[static_cast<std::size_t>(d)] = true;
    }
  if (size_of(result.devices) == 0) return Diagnostic{{}, "no devices"};
  for (int d = 0; d < mesh.devices(); ++d)
    for (const AxisView& view : {rows, columns}) {
      if (!works[static_cast<std::size_t>(d)] || view.size == 1) continue;
      if (const DeviceId next = mesh.shifted(DeviceId{d}, view, 1); !works[next.index()])
        return Diagnostic{{}, fmt::format("device {} ({}) is to work with device {} ({}), which is not among the devices", d, mesh.name(DeviceId{d}),
                                          next.value, mesh.name(next))};
    }
  return result;
}

DeviceSet devices_where(const Mesh& mesh, const Guard& guard) {
  DeviceSet set;
  for (int d = 0; d < mesh.devices(); ++d) {
    if (!holds(guard, mesh.coordinates(DeviceId{d}))) continue;
    if (!set.intervals.empty() && set.intervals.back().last == d)
      ++set.intervals.back().last;
    else
      set.intervals.push_back({d, d + 1});
  }
  return set;
}

std::string to_text(const Submesh& submesh) {
  const Mesh& mesh = submesh.mesh;
  if (submesh.group_size() == mesh.devices()) return to_text(mesh);
  std::string text;
  for (const AxisView& view : {submesh.rows, submesh.columns})
    if (view.size > 1) text += fmt::format("{}{}={}", text.empty() ? "" : ",", mesh.name(view), view.size);
  return fmt::format("{} of {}", text.empty() ? "one device" : text, to_text(mesh));
}

}  // namespace podsim
