// Functions (schedule.hpp) whose parameters are shards of tensors, made from programs.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// A function, and what its parameters are: buffers with tensor, sharding and role, as a program that calls it once would have them.
struct TensorFunction {
  Function function;
  std::vector<Buffer> parameters;  // one for each of the function
};

/// The only program of a schedule as a function with the schedule's name. Inputs and outputs become parameters, in the order of the program.
TensorFunction tensor_function(Schedule schedule);

/// The tasks that the outputs of a program need, and the buffers that those tasks and outputs use. A task that waited for one that is left out waits
/// for what that one waited for. Whole buffers are looked at: a task that writes any part of a needed buffer stays. `recomputed`: tasks that repeat
/// work (Task::recompute) stay, and what they need. Cost O(tasks + edges). The schedule must not be lowered and has no calls: asserts.
Program without_unneeded(const Program& program, bool recomputed = false);

}  // namespace podsim
