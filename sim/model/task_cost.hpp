// The cost of a task on a machine, independent of devices and routes.
#pragma once

#include "sim/model/model.hpp"

namespace podsim {

/// Durations and bytes of one task of a lowered program; `on_core` for core work. make_model() adds core shares and routes.
TaskCost cost_of(const Machine& machine, const Program& program, const Task& task);

/// The core share of a transfer or dma task, that of its Collective if it belongs to one; 0 for core work.
double core_share_of(const Machine& machine, const Task& task);

/// No run of the schedule, which need not be lowered, takes less: the work of the core of each program's first device. Collectives and calls count
/// nothing. Cost O(tasks).
Picoseconds least_core_time(const Machine& machine, const Schedule& schedule);

}  // namespace podsim
