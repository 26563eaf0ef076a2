// A collective over all axes of a mesh as one along a single axis: the same devices and wires, and what algorithms for one axis make of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "workloads/scenario/problem.hpp"

namespace podsim {

/// Behind the name of a lowering: "tree as one axis", "rotations over 4x4x8 as one axis".
inline constexpr std::string_view as_one_axis = " as one axis";
/// The name without it. nullopt: it does not end so.
std::optional<std::string> lowered_as_one_axis(const std::string& name);

/// The axes of more than one device that the collective goes along, if these are all of the mesh and several: as it names them, or, where their order makes no difference, as the mesh has them.
std::optional<std::vector<AxisView>> axes_over_all(const System& system, const CollectiveSpec& spec);

/// The system with these axes as one, "row_col_depth", that folds the physical dimensions under them: the same devices, in the order of their positions along the axes. nullopt: a mesh in another order than
/// row-major.
///   example 4x4x8 as row=64,col=2: the axis row_col of 128 folds 4x4x8
std::optional<System> on_one_axis(const System& system, const std::vector<AxisView>& axes);

}  // namespace podsim
