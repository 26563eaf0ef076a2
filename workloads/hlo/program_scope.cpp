#include "workloads/hlo/program_scope.hpp"

#include <algorithm>
#include <cassert>

namespace podsim {

namespace {

double arithmetic_of(const HloModule& module, HloTaskCosts& costs, int number, Status& status) {
  const HloComputation& computation = module.computations[static_cast<std::size_t>(number)];
  double flops = 0;
  for (std::size_t i = 0; i < computation.instructions.size() && status; ++i) {
    const HloInstruction& at = computation.instructions[i];
    const auto cost = costs.of(computation, static_cast<int>(i));
    if (!cost) {
      status = cost.error();
      break;
    }
    flops += cost->matrix + cost->vector;
    if (at.opcode == HloOpcode::fusion) continue;
    for (const HloCall& call : at.calls)
      if (call.role == HloRole::body || call.role == HloRole::branch || (call.role == HloRole::to_apply && at.opcode == HloOpcode::call))
        flops += arithmetic_of(module, costs, call.computation, status);
  }
  return flops;
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
    open.insert(open.end(), at.operands.begin(), at.operands.end());
  }
  return false;
}

}  // namespace

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
  assert(call != instruction.calls.end());
  return call->computation;
}

Expected<std::size_t> longest_branch(const HloModule& module, HloTaskCosts& costs, const HloInstruction& conditional, std::size_t branches) {
  std::size_t longest = 0;
  double most = -1;
  std::size_t instructions = 0;
  std::size_t branch = 0;
  for (const HloCall& call : conditional.calls) {
    if (call.role != HloRole::branch) continue;
    assert(branch < branches);
    Status status = success();
    const double flops = arithmetic_of(module, costs, call.computation, status);
    if (!status) return status.error();
    const std::size_t count = module.computations[static_cast<std::size_t>(call.computation)].instructions.size();
    if (flops > most || (flops == most && count > instructions)) most = flops, instructions = count, longest = branch;
    ++branch;
  }
  return longest;
}

std::map<int, int> reduce_scatters_in_waiting(const HloModule& module, const HloComputation& computation, const HloUsers& users) {
  std::map<int, int> found;
  for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) {
    const HloInstruction& all_reduce = computation.instructions[static_cast<std::size_t>(i)];
    if (all_reduce.opcode != HloOpcode::all_reduce || all_reduce.phase != HloPhase::whole || !all_reduce.shape->is_array() || !all_reduce.attributes->replica_groups) continue;
    const ReplicaGroups& groups = *all_reduce.attributes->replica_groups;
    const std::int64_t size = groups.is_all() ? devices_of(module) : groups.uniform_size().value_or(0);
    int at = i;
    while (users.of(at).size() == 1) {
      const int user = users.of(at).front();
      const HloInstruction& by = computation.instructions[static_cast<std::size_t>(user)];
      if (by.opcode == HloOpcode::dynamic_slice && size > 1 && by.operands.front() == at && elements_of(*by.shape) * size == elements_of(*all_reduce.shape) &&
          std::any_of(by.operands.begin() + 1, by.operands.end(), [&](int index) { return is_of_the_device(module, computation, index); }))
        found[i] = user;
      if (by.opcode != HloOpcode::reshape && by.opcode != HloOpcode::bitcast) break;
      at = user;
    }
  }
  return found;
}

}  // namespace podsim
