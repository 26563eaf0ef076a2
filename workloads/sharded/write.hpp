// Writes a planned program as one schedule: every statement waits for what it reads and nothing else.
#pragma once

#include "workloads/sharded/plan.hpp"

namespace podsim {

/// One program on every device of the mesh. Slices are regions of the sliced array and take no time; an array that is transposed is a region read in the
/// other order until something needs its elements in place. `computes` is the program itself, on whole arrays.
Schedule write_program(const ShardedProgram& program, const ProgramPlan& plan);

}  // namespace podsim
