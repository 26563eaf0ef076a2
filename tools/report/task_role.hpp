// What a bar of a timeline stands for, as a role that has a colour (role_colours.hpp).
#pragma once

#include <string_view>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// Of a task of a lowered schedule: "launch" of a collective's launch, the pass of a call that belongs to one ("forward", "backward of weights"), otherwise
/// the category of its operation ("matmul", "all-gather", "call").
std::string_view role_of(const Task& task);

}  // namespace podsim
