// What tasks cost on a machine, before anything is known of who runs them where.
#pragma once

#include "sim/model/model.hpp"

namespace podsim {

/// Durations and bytes of one task of a lowered program; `on_core` of works on the core. Core shares and routes are the model's.
TaskCost cost_of(const Machine& machine, const Program& program, const Task& task);

/// The part of a task's uncontended time that the core spends on it, off-core work and transfers only; 0: none.
double core_share_of(const Machine& machine, const Task& task);

}  // namespace podsim
