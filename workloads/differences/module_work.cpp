#include "workloads/differences/module_work.hpp"

#include <algorithm>

namespace podsim {

namespace {

/// What moves nothing by itself.
bool passes_on(HloOpcode opcode) {
  switch (opcode) {
    case HloOpcode::parameter:
    case HloOpcode::constant:
    case HloOpcode::bitcast:
    case HloOpcode::reshape:
    case HloOpcode::tuple:
    case HloOpcode::get_tuple_element:
    case HloOpcode::partition_id:
    case HloOpcode::replica_id: return true;
    default: return false;
  }
}

bool moves(HloOpcode opcode) {
  switch (opcode) {
    case HloOpcode::copy:
    case HloOpcode::transpose:
    case HloOpcode::slice:
    case HloOpcode::dynamic_slice:
    case HloOpcode::dynamic_update_slice:
    case HloOpcode::concatenate:
    case HloOpcode::pad:
    case HloOpcode::reverse:
    case HloOpcode::gather: return true;
    default: return false;
  }
}

bool is_scalar(const HloInstruction& instruction) { return instruction.shape->is_array() && instruction.shape->rank() == 0; }

/// Whether a transpose changes the order in memory: one to a layout with its dimensions in the same order is a bitcast.
bool changes_layout(const HloComputation& computation, const HloInstruction& instruction) {
  if (instruction.operands.empty() || instruction.operands.front() == HloInstruction::missing) return false;
  const HloShape& from = *computation.instructions[static_cast<std::size_t>(instruction.operands.front())].shape;
  const HloShape& to = *instruction.shape;
  const auto order = [](const HloShape& shape) {
    std::vector<std::int64_t> dims = shape.layout.minor_to_major;
    if (dims.empty())
      for (std::size_t d = shape.rank(); d-- > 0;) dims.push_back(static_cast<std::int64_t>(d));
    return dims;
  };
  if (!from.is_array() || !to.is_array() || from.rank() != to.rank()) return false;
  std::vector<std::int64_t> after = order(to);
  if (instruction.opcode == HloOpcode::transpose)
    for (std::int64_t& dim : after) {
      const auto& permutation = instruction.attributes->dimensions;
      if (static_cast<std::size_t>(dim) < permutation.size()) dim = permutation[static_cast<std::size_t>(dim)];
    }
  else if (instruction.opcode != HloOpcode::copy)
    return false;
  return after != order(from);
}

WorkKind kind_within(const HloModule& module, const HloComputation& computation, const HloInstruction& instruction, int depth) {
  constexpr int deepest = 64;
  if (passes_on(instruction.opcode) || is_scalar(instruction)) return WorkKind::copy;
  const HloComputation* inner =
      instruction.opcode == HloOpcode::fusion || instruction.opcode == HloOpcode::async ? called(module, instruction, HloRole::calls) : nullptr;
  if (inner == nullptr) {
    if (!moves(instruction.opcode)) return WorkKind::arithmetic;
    return changes_layout(computation, instruction) ? WorkKind::layout : WorkKind::copy;
  }
  if (depth == deepest) return WorkKind::arithmetic;
  WorkKind all = WorkKind::copy;
  for (const HloInstruction& one : inner->instructions) {
    const WorkKind kind = kind_within(module, *inner, one, depth + 1);
    if (kind == WorkKind::arithmetic) return kind;
    if (kind == WorkKind::layout) all = kind;
  }
  return all;
}

}  // namespace

WorkKind work_kind_of(const HloModule& module, const HloInstruction& instruction) {
  for (const HloComputation& computation : module.computations)
    if (!computation.instructions.empty() && &instruction >= computation.instructions.data() && &instruction <= &computation.instructions.back())
      return kind_within(module, computation, instruction, 0);
  return WorkKind::arithmetic;
}

}  // namespace podsim
