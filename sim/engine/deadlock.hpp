// The error message of a run that cannot progress.
#pragma once

#include <vector>

#include "sim/model/model.hpp"

namespace podsim {

/// Names a cycle of task instances that wait for each other: device and task of each, and what it waits for (a half of another instance, or the core
/// that another one occupies). `finished` has one entry per activity of the model; at least one must be false.
Diagnostic deadlock(const Model& model, const std::vector<bool>& finished);

}  // namespace podsim
