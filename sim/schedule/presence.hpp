// Guards evaluated axis by axis: a condition on one mesh axis depends on its coordinate only, and an axis has fewer coordinates than devices.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The only mesh axis that a condition depends on; the first axis if it depends on none. nullopt: several.
std::optional<int> axis_of(const Condition& condition);

/// Per coordinate of `axis`, whether the condition holds.
std::vector<bool> holds_along(const Mesh& mesh, const Condition& condition, int axis);

/// low <= coordinate on the view < high
struct KnownCoordinate {
  AxisView view;
  std::int64_t low = 0, high = 0;
};

/// The bounds on single coordinates that a guard implies.
std::vector<KnownCoordinate> known_coordinates(const Guard& where);

/// The bounds after a shift, for its receivers. A bound that may wrap around the end of the axis is dropped.
std::vector<KnownCoordinate> known_after(std::vector<KnownCoordinate> known, const AxisView& axis, std::int64_t by);

/// may_leave() of deploy.hpp, restricted to devices within these bounds.
bool may_leave(const Program& program, const Region& region, const std::vector<KnownCoordinate>& known);

}  // namespace podsim
