// An order of a computation's instructions in which the core works while collectives run: what a compiler's scheduler would look for.
#pragma once

#include <vector>

#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/task_costs.hpp"

namespace podsim {

/// A list schedule by these rates: a collective begins when its operands are there and the one before it has ended, in the order of the text; the core takes the
/// first instruction of the text whose operands are there, or waits for the one that comes first. Loops and other calls take no time of their own here. Every
/// instruction stands behind its operands and control predecessors. Errors: those of the costs; control predecessors in a circle. O(n log n).
Expected<std::vector<int>> list_order(const HloModule& module, const HloComputation& computation, const HloUsers& users, HloTaskCosts& costs, const HloRates& rates);

}  // namespace podsim
