// The colours of what drawings, pages and terminals show: one per role, so that a bar means the same wherever it stands.
#pragma once

#include <span>
#include <string_view>

#include "tools/report/colour.hpp"

namespace podsim {

/// A part of a run's time or memory, by the word that results have for it: "matmul", "all-gather", "recompute", "waiting".
struct RoleColour {
  std::string_view role;
  Colour colour;
};

/// Every role. Okabe and Ito's colours and others around them, so that the colour-blind can tell apart the roles of one stack: those of work are cold,
/// those of communication warm, idle time is grey. Different words for one thing share a colour; so do roles that never stand in one drawing, such as a
/// kind of memory and a kind of work.
std::span<const RoleColour> role_colours();
/// Of a role that has none: the colour of "other".
Colour colour_of_role(std::string_view role);

/// Exposed communication on several axes of a mesh, which are no roles: on the first, the second, ... From the first again where there are more.
std::span<const Colour> axis_colours();
/// What is no role: series of points, groups. From the first again where there are more.
std::span<const Colour> series_colours();

}  // namespace podsim
