// The part of a mesh that an algorithm with one or two axes uses.
#pragma once

#include <optional>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Takes the place of the second axis for algorithms along one axis.
inline constexpr AxisView one_device{0, 1, 1};

/// The number of devices along the axes together.
std::int64_t devices_along(const std::vector<AxisView>& axes);
/// The device's position along the axes, first most significant.
std::int64_t position_along(const Mesh& mesh, const std::vector<AxisView>& axes, DeviceId device);

/// R x C devices along two views of a mesh: device (r, c) has coordinate r on `rows` and c on `columns`. The remaining coordinates distinguish groups
/// of R x C devices. All groups within `devices` hold the same data and compute the same result independently. Restrict `devices` to one group and
/// the other groups are free for other programs.
///
///   mesh row=8,col=4   rows {0,1,4} = row mod 4, columns col: two groups of 4x4, those with row < 4 and those with row >= 4
struct Submesh {
  Mesh mesh;
  AxisView rows, columns;
  DeviceSet devices;
  AxisView experts = one_device;  // of a layer with experts: groups of devices along it exchange tokens

  [[nodiscard]] int group_size() const { return rows.size * columns.size; }
  friend bool operator==(const Submesh&, const Submesh&) = default;
};

/// Errors: `rows` or `columns` is not a view of the mesh, or they share a coordinate; `devices` is not a union of whole groups.
/// Without `devices`: every device of the mesh.
Expected<Submesh> submesh_of(const Mesh& mesh, const AxisView& rows, const AxisView& columns, std::optional<DeviceSet> devices = {});

/// The devices for which the guard holds. Cost O(devices).
DeviceSet devices_where(const Mesh& mesh, const Guard& guard);

/// "row=32,col=8" for a whole mesh, "row/1:4=4,col=4 of row=8,col=4" for a part.
std::string to_text(const Submesh& submesh);

}  // namespace podsim
