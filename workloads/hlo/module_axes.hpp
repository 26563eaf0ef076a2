// The axes of a module's devices, where its collectives tell them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// The axes over which a module's collectives run, most significant first: ids of devices are row-major over them, and every replica group is all the
/// devices along some of them. They are as few as that allows, so an axis that no collective tells from its neighbour is one with it. A permute
/// counts if it is a shift along one of them. An axis has a name if a mesh in the text, mesh['data'=2,'model'=4], has these axes under names of a
/// program's; else its name is empty. nullopt: one device, no collectives, or groups that no axes explain.
std::optional<std::vector<std::pair<std::string, int>>> axes_of_collectives(const HloModule& module);

}  // namespace podsim
