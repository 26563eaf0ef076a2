#include "workloads/hlo/hlo_traffic.hpp"

#include <algorithm>
#include <limits>

namespace podsim {

namespace {

const HloInstruction* operand_of(const HloComputation& computation, const HloInstruction& instruction, std::size_t i) {
  if (i >= instruction.operands.size() || instruction.operands[i] == HloInstruction::missing) return nullptr;
  return &computation.instructions[static_cast<std::size_t>(instruction.operands[i])];
}

/// The arrays of a scatter come first, then the indices, then an update for each.
std::size_t arrays_of(const HloInstruction& scatter) { return scatter.operands.size() / 2; }

}  // namespace

Bytes HloTraffic::part_of(const HloShape& whole, const HloShape& part) const {
  if (memory_ == Memory::hbm || !part.is_array() || whole.rank() != part.rank()) return device_bytes(part);
  HloShape tiled = part;
  tiled.layout = whole.layout;
  return device_bytes(tiled);
}

Bytes HloTraffic::if_here(const HloShape* whole, const HloShape& part) const {
  if (whole == nullptr || here(*whole) == Bytes{}) return Bytes{};
  return part_of(*whole, part);
}

/// One whose function gives the update does not.
bool HloTraffic::reads_what_was_there(const HloInstruction& scatter) const {
  for (const HloCall& call : scatter.calls) {
    const HloComputation& function = module_->computations[static_cast<std::size_t>(call.computation)];
    if (call.role != HloRole::to_apply || function.root == HloInstruction::missing) continue;
    const HloInstruction& root = function.instructions[static_cast<std::size_t>(function.root)];
    return root.opcode != HloOpcode::parameter || root.number != 1;
  }
  return true;
}

HloTraffic::Amount HloTraffic::of(const HloComputation& computation, const HloInstruction& instruction) {
  const auto shape = [&](std::size_t i) -> const HloShape* {
    const HloInstruction* const operand = operand_of(computation, instruction, i);
    return operand == nullptr ? nullptr : &*operand->shape;
  };
  if (instruction.phase != HloPhase::whole || is_free(instruction.opcode) || is_collective(instruction.opcode)) return {};
  switch (instruction.opcode) {
    case HloOpcode::while_:
    case HloOpcode::conditional:
    case HloOpcode::call:
    case HloOpcode::send:
    case HloOpcode::recv: return {};
    case HloOpcode::slice:
    case HloOpcode::dynamic_slice: return {if_here(shape(0), *instruction.shape), here(*instruction.shape)};
    case HloOpcode::gather: {
      const HloShape* const indices = shape(1);
      return {saturated_sum(if_here(shape(0), *instruction.shape), indices != nullptr ? here(*indices) : Bytes{}),
              here(*instruction.shape)};
    }
    case HloOpcode::dynamic_update_slice: {
      const HloShape* const update = shape(1);
      if (update == nullptr) return {};
      return {here(*update), if_here(&*instruction.shape, *update)};
    }
    case HloOpcode::scatter: {
      Amount amount;
      for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
        if (shape(i) == nullptr) continue;
        const bool is_array = i < arrays_of(instruction);
        const HloShape* const update = is_array ? shape(arrays_of(instruction) + 1 + i) : nullptr;
        const Bytes touched = update == nullptr ? Bytes{} : std::min(here(*shape(i)), if_here(shape(i), *update));
        amount.written = saturated_sum(amount.written, touched);
        amount.read = saturated_sum(amount.read, !is_array ? here(*shape(i)) : reads_what_was_there(instruction) ? touched : Bytes{});
      }
      return amount;
    }
    default: break;
  }
  Amount amount{{}, here(*instruction.shape)};
  const Fused* const inside = fused_by(instruction);
  if (inside != nullptr) amount.written = std::min(amount.written, inside->written);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const HloShape* const operand = shape(i);
    if (operand == nullptr) continue;
    const Bytes whole = here(*operand);
    const bool part = inside != nullptr && i < inside->parameters.size() && inside->parameters[i];
    amount.read = saturated_sum(amount.read, part ? std::min(whole, *inside->parameters[i]) : whole);
  }
  return amount;
}

const HloTraffic::Fused* HloTraffic::fused_by(const HloInstruction& instruction) {
  if (instruction.opcode == HloOpcode::fusion)
    for (const HloCall& call : instruction.calls)
      if (call.role == HloRole::calls) return &fused(call.computation);
  return nullptr;
}

const HloTraffic::Fused& HloTraffic::fused(int number) {
  const auto [found, is_new] = fused_.try_emplace(number);
  Fused& result = found->second;
  if (!is_new) return result;
  const HloComputation& computation = module_->computations[static_cast<std::size_t>(number)];
  // Of each parameter what its users read of it; a bitcast of one stands for it.
  constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max() / 4;
  std::vector<int> stands_for(computation.instructions.size(), -1);
  std::vector<std::int64_t> read(computation.parameters.size());
  for (std::size_t i = 0; i < computation.instructions.size(); ++i) {
    const HloInstruction& instruction = computation.instructions[i];
    if (instruction.opcode == HloOpcode::parameter && static_cast<std::size_t>(instruction.number) < read.size())
      stands_for[i] = static_cast<int>(instruction.number);
    for (std::size_t o = 0; o < instruction.operands.size(); ++o) {
      const int operand = instruction.operands[o];
      const int parameter = operand == HloInstruction::missing ? -1 : stands_for[static_cast<std::size_t>(operand)];
      if (parameter < 0) continue;
      std::int64_t& bytes = read[static_cast<std::size_t>(parameter)];
      const bool sliced = o == 0 && (instruction.opcode == HloOpcode::slice || instruction.opcode == HloOpcode::dynamic_slice ||
                                     instruction.opcode == HloOpcode::gather);
      const bool updated = o == 0 && instruction.opcode == HloOpcode::dynamic_update_slice;
      const bool scattered = o == 0 && instruction.opcode == HloOpcode::scatter && arrays_of(instruction) == 1;
      const HloInstruction* const update = scattered ? operand_of(computation, instruction, 2) : nullptr;
      const Fused* const nested = fused_by(instruction);
      const bool partly_read = nested != nullptr && o < nested->parameters.size() && nested->parameters[o];
      if (instruction.opcode == HloOpcode::bitcast)
        stands_for[i] = parameter;
      else if (partly_read)
        bytes = std::min(all, bytes + nested->parameters[o]->count());
      else if (sliced)
        bytes = std::min(all, bytes + part_of(*computation.instructions[static_cast<std::size_t>(operand)].shape, *instruction.shape).count());
      else if (update != nullptr)
        bytes = std::min(all, bytes + (reads_what_was_there(instruction) ? device_bytes(*update->shape).count() : 0));
      else if (!updated)
        bytes = all;
    }
  }
  for (const std::int64_t bytes : read) result.parameters.push_back(bytes == all ? std::nullopt : std::optional{Bytes{bytes}});
  if (computation.root == HloInstruction::missing) return result;

  const auto parameter_of = [&](const HloInstruction& instruction, std::size_t o) {
    const int operand = o < instruction.operands.size() ? instruction.operands[o] : HloInstruction::missing;
    return operand == HloInstruction::missing ? -1 : stands_for[static_cast<std::size_t>(operand)];
  };
  const auto written = [&](int root) {
    result.updated = -1;
    for (int at = root; at != HloInstruction::missing;) {
      const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(at)];
      if (instruction.opcode == HloOpcode::bitcast && !instruction.operands.empty()) {
        at = instruction.operands[0];
        continue;
      }
      const bool scatters = instruction.opcode == HloOpcode::scatter && arrays_of(instruction) == 1;
      const HloInstruction* const update = instruction.opcode == HloOpcode::dynamic_update_slice || scatters ? operand_of(computation, instruction, scatters ? 2 : 1) : nullptr;
      // An update of something that is computed in the fusion writes all of it.
      const HloShape& whole = *computation.instructions[static_cast<std::size_t>(root)].shape;
      if (update != nullptr) {
        result.updated = parameter_of(instruction, 0);
        if (result.updated >= 0) return if_here(&whole, *update->shape);
      }
      if (const Fused* const nested = fused_by(instruction); nested != nullptr && nested->updated >= 0) {
        result.updated = parameter_of(instruction, static_cast<std::size_t>(nested->updated));
        if (result.updated >= 0) return std::min(here(whole), nested->written);
      }
      break;
    }
    return here(root == HloInstruction::missing ? HloShape{} : *computation.instructions[static_cast<std::size_t>(root)].shape);
  };
  const HloInstruction& root = computation.instructions[static_cast<std::size_t>(computation.root)];
  if (root.opcode != HloOpcode::tuple) {
    result.written = written(computation.root);
  } else {
    for (const int operand : root.operands) result.written = saturated_sum(result.written, written(operand));
    result.updated = -1;
  }
  return result;
}

}  // namespace podsim
