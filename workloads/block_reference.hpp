// What a workload computes, as a graph of operations on whole arrays: the plain transformer block and its gradients, stage by stage. `check` compares
// schedules with it, so it is written from the stages and the layouts in which tensors are stored, apart from the code that writes schedules.
#pragma once

#include "sim/schedule/reference_program.hpp"
#include "workloads/plan.hpp"

namespace podsim {

/// The claim of block_schedule() for the same arguments; tensors are named as there. The plan belongs to the workload and fits the grid
/// (parts_of() has no error).
ReferenceProgram block_reference(const Workload& workload, const Plan& plan, const DeviceGrid& grid, Pass pass);

}  // namespace podsim
