// The part of a mesh that an algorithm of one or two axes works on.
#pragma once

#include <optional>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// In place of an axis that an algorithm along one axis does not use.
inline constexpr AxisView one_device{0, 1, 1};

/// R x C devices along two views of a mesh of any number of axes: device (r, c) has coordinate r on `rows` and c on `columns`. The coordinates on
/// what the views leave out tell groups of R x C devices apart. All groups among `devices` hold the same data and compute the same, each by itself;
/// devices of one group make one group compute, and leave the others to other programs.
///
///   mesh row=8,col=4   rows {0,1,4} = row mod 4, columns col: two groups of 4x4, those with row < 4 and those with row >= 4
struct Submesh {
  Mesh mesh;
  AxisView rows, columns;
  DeviceSet devices;

  [[nodiscard]] int group_size() const { return rows.size * columns.size; }
  friend bool operator==(const Submesh&, const Submesh&) = default;
};

/// Errors: something that is no view of the mesh; rows and columns that share a coordinate; devices that are no whole groups.
/// Without `devices`: every device of the mesh.
Expected<Submesh> submesh_of(const Mesh& mesh, const AxisView& rows, const AxisView& columns, std::optional<DeviceSet> devices = {});

/// The devices where the guard holds. Cost: one look at every device.
DeviceSet devices_where(const Mesh& mesh, const Guard& guard);

/// "row=32,col=8" of a whole mesh, "row/1:4=4,col=4 of row=8,col=4" of a part.
std::string to_text(const Submesh& submesh);

}  // namespace podsim
