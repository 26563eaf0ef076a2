// The cost of a task on a machine, independent of devices and routes.
#pragma once

#include "sim/model/model.hpp"

namespace podsim {

/// Durations and bytes of one task of a lowered program; `on_core` for core work. make_model() adds core shares and routes.
TaskCost cost_of(const Machine& machine, const Program& program, const Task& task);

/// The fraction of a task's uncontended duration that occupies the core; 0 for core work and tasks without a share.
double core_share_of(const Machine& machine, const Task& task);

}  // namespace podsim
