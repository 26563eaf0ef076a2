#include "workloads/hlo/program_scope.hpp"

#include <algorithm>

#include "sim/base/invariant.hpp"

namespace podsim {

InsideCollective collective_inside(const HloModule& module, const HloInstruction& caller) {
  for (const HloCall& call : caller.calls) {
    if (call.role != HloRole::calls) continue;
    const HloComputation& computation = module.computations[static_cast<std::size_t>(call.computation)];
    for (const HloInstruction& inside : computation.instructions) {
      if (is_collective(inside.opcode)) return {&computation, &inside};
      if (const InsideCollective nested = collective_inside(module, inside); nested.collective != nullptr) return nested;
    }
  }
  return {};
}

int called_number(const HloInstruction& instruction, HloRole role) {
  const auto call = std::find_if(instruction.calls.begin(), instruction.calls.end(), [&](const HloCall& c) { return c.role == role; });
  PODSIM_ASSERT(call != instruction.calls.end());
  return call->computation;
}

}  // namespace podsim
