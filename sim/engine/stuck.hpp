// What to say when a run cannot progress.
#pragma once

#include <vector>

#include "sim/engine/costed_graph.hpp"

namespace podsim {

/// Names the first activities that never started, device and task, and what each still waits for (a wait, or the core). `finished` has one
/// entry per activity; at least one must be false.
Diagnostic stuck(const Schedule& lowered, const CostedGraph& costs, const std::vector<bool>& finished);

}  // namespace podsim
