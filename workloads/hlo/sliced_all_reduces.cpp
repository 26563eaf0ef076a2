#include "workloads/hlo/sliced_all_reduces.hpp"

#include <algorithm>
#include <iterator>

namespace podsim {

namespace {

bool slices(HloOpcode opcode) { return opcode == HloOpcode::slice || opcode == HloOpcode::dynamic_slice; }

/// What passes values on in another form, but does not change them.
bool passes_on(HloOpcode opcode) {
  return opcode == HloOpcode::bitcast || opcode == HloOpcode::reshape || opcode == HloOpcode::copy || opcode == HloOpcode::convert || opcode == HloOpcode::transpose;
}

/// Whether a value tells devices apart: it comes from partition-id or replica-id, also within a fusion.
bool is_of_the_device(const HloModule& module, const HloComputation& computation, int instruction) {
  std::vector<bool> seen(computation.instructions.size());
  std::vector<int> open{instruction};
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    if (seen[static_cast<std::size_t>(i)]) continue;
    seen[static_cast<std::size_t>(i)] = true;
    const HloInstruction& at = computation.instructions[static_cast<std::size_t>(i)];
    if (at.opcode == HloOpcode::partition_id || at.opcode == HloOpcode::replica_id) return true;
    if (at.opcode == HloOpcode::fusion)
      for (const HloCall& call : at.calls) {
        const HloComputation& fused = module.computations[static_cast<std::size_t>(call.computation)];
        if (is_of_the_device(module, fused, fused.root)) return true;
      }
    std::ranges::copy_if(at.operands, std::back_inserter(open), [](int operand) { return operand != HloInstruction::missing; });
  }
  return false;
}

bool is_own_block(const HloModule& module, const HloComputation& computation, const HloInstruction& all_reduce, const HloInstruction& slice) {
  if (!all_reduce.attributes->replica_groups || slice.opcode != HloOpcode::dynamic_slice) return false;
  const ReplicaGroups& groups = *all_reduce.attributes->replica_groups;
  const std::int64_t size = groups.is_all() ? devices_of(module) : groups.uniform_size().value_or(0);
  return size > 1 && elements_of(*slice.shape) * size == elements_of(*all_reduce.shape) &&
         std::any_of(slice.operands.begin() + 1, slice.operands.end(), [&](int index) { return index != HloInstruction::missing && is_of_the_device(module, computation, index); });
}

}  // namespace

std::map<int, int> sliced_all_reduces(const HloModule& module, const HloComputation& computation, const HloUsers& users, bool is_fused) {
  std::map<int, int> found;
  for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) {
    const HloInstruction& all_reduce = computation.instructions[static_cast<std::size_t>(i)];
    if (all_reduce.opcode != HloOpcode::all_reduce || all_reduce.phase != HloPhase::whole || !all_reduce.shape->is_array()) continue;
    int at = i, slice = HloInstruction::missing;
    while (users.of(at).size() == 1) {
      const int user = users.of(at).front();
      const HloInstruction& by = computation.instructions[static_cast<std::size_t>(user)];
      if (by.operands.front() != at) break;  // it is an index of it
      if (slices(by.opcode)) {
        slice = user;
        if (!is_fused) break;
      } else if (is_fused ? !passes_on(by.opcode) : by.opcode != HloOpcode::reshape && by.opcode != HloOpcode::bitcast) {
        break;
      }
      at = user;
    }
    if (slice == HloInstruction::missing) continue;
    if (is_fused ? at == computation.root : is_own_block(module, computation, all_reduce, computation.instructions[static_cast<std::size_t>(slice)])) found[i] = slice;
  }
  return found;
}

}  // namespace podsim
