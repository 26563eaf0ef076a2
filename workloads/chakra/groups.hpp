// Groups of devices as axes of a mesh, or strided views of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The devices along `axes` through `device`, in group order: first axis most significant.
std::vector<int> devices_along(const Mesh& mesh, const std::vector<AxisView>& axes, DeviceId device);

/// Views of axes, first most significant, along which the devices of `group` lie in its order: {0, 2, 4, 6} on x=8 is x/2:4, {4, 5, 6, 7} on
/// row=2,col=4 is col. nullopt: there are none. A group of one device: no views. Cost O(group).
std::optional<std::vector<AxisView>> axes_of_group(const Mesh& mesh, const std::vector<int>& group);

/// "row:1:4,col:2:2": name, stride and size of each view; and back, if the mesh has such views.
std::string axes_text(const Mesh& mesh, const std::vector<AxisView>& axes);
std::optional<std::vector<AxisView>> axes_from_text(const Mesh& mesh, std::string_view text);

}  // namespace podsim
