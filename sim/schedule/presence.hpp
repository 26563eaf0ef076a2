// Guards looked at axis by axis. A condition on one mesh axis holds for some of its coordinates, and there are fewer coordinates than devices.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The only mesh axis that a condition looks at; the first one where it looks at none. nullopt: several.
std::optional<int> axis_of(const Condition& condition);

/// Per coordinate of an axis, whether a condition on it holds.
std::vector<bool> holds_along(const Mesh& mesh, const Condition& condition, int axis);

/// low <= coordinate on the view < high
struct KnownCoordinate {
  AxisView view;
  std::int64_t low = 0, high = 0;
};

/// What a guard says of single coordinates, on the devices where it holds.
std::vector<KnownCoordinate> known_coordinates(const Guard& where);

/// The same of the devices that those send to by a shift; what it may carry around an end is not known any more.
std::vector<KnownCoordinate> known_after(std::vector<KnownCoordinate> known, const AxisView& axis, std::int64_t by);

/// may_leave() of deploy.hpp on the devices of which so much is known.
bool may_leave(const Program& program, const Region& region, const std::vector<KnownCoordinate>& known);

}  // namespace podsim
