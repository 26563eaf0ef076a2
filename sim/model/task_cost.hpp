// The cost of a task on a machine, independent of devices and routes.
#pragma once

#include "sim/model/model.hpp"

namespace podsim {

/// Durations and bytes of one task of a lowered program; `on_core` for core work. make_model() adds core shares and routes.
TaskCost cost_of(const Machine& machine, const Program& program, const Task& task);

/// The core share of a transfer or dma task, that of its Collective if it belongs to one; 0 for core work.
double core_share_of(const Machine& machine, const Task& task);

}  // namespace podsim
