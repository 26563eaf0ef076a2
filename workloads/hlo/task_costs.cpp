#include "workloads/hlo/task_costs.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "workloads/hlo/hlo_transform.hpp"

namespace podsim {

namespace {

double number(std::int64_t n) { return static_cast<double>(n); }

double hbm_bytes(const HloShape& shape) { return number(device_bytes_in(shape, HloMemory::hbm).count()); }

const HloInstruction& operand(const HloComputation& computation, const HloInstruction& of, std::size_t position) {
  return computation.instructions[static_cast<std::size_t>(of.operands[position])];
}

}  // namespace

HloUsers::HloUsers(const HloComputation& computation) : users_(computation.instructions.size()) {
  for (std::size_t i = 0; i < computation.instructions.size(); ++i)
    for (const int operand : computation.instructions[i].operands) {
      if (operand == HloInstruction::missing) continue;
      std::vector<int>& users = users_[static_cast<std::size_t>(operand)];
      if (users.empty() || users.back() != static_cast<int>(i)) users.push_back(static_cast<int>(i));
    }
}

Expected<HloTaskCost> HloTaskCosts::inside(int computation) {
  if (const auto found = inside_.find(computation); found != inside_.end()) return found->second;
  const HloComputation& body = module_.computations[static_cast<std::size_t>(computation)];
  HloTaskCost made;
  double largest = 0;
  const auto add = [&](const HloTaskCost& part) {
    made.matrix += part.matrix, made.vector += part.vector, made.products += part.products;
    if (part.matrix > largest) largest = part.matrix, made.rate = part.rate;
  };
  for (int i = 0; i < static_cast<int>(body.instructions.size()); ++i) {
    const HloInstruction& instruction = body.instructions[static_cast<std::size_t>(i)];
    const auto cost = arithmetic(body, i);
    if (!cost) return cost.error();
    add(*cost);
    for (const HloCall& call : instruction.calls) {
      if (instruction.opcode != HloOpcode::fusion && instruction.opcode != HloOpcode::call && instruction.opcode != HloOpcode::async) continue;
      const auto nested = inside(call.computation);
      if (!nested) return nested.error();
      add(*nested);
    }
  }
  return inside_[computation] = made;
}

Expected<HloTaskCost> HloTaskCosts::arithmetic(const HloComputation& computation, int position) {
  const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(position)];
  HloTaskCost cost;
  switch (instruction.opcode) {
    case HloOpcode::dot:
    case HloOpcode::convolution: {
      const auto product = product_of(module_, computation, instruction);
      if (!product) return product.error();
      cost.matrix = number(product->flops);
      cost.products = 1;
      cost.rate = product_rate_of(computation, instruction);
      return cost;
    }
    case HloOpcode::reduce:
    case HloOpcode::scatter: cost.vector = number(elements_of(*operand(computation, instruction, 0).shape)); return cost;
    case HloOpcode::reduce_window:
    case HloOpcode::select_and_scatter: {
      double taps = 1;
      for (const HloWindowDimension& dimension : instruction.attributes->window) taps *= number(dimension.size);
      cost.vector = taps * number(elements_of(*instruction.shape));
      return cost;
    }
    case HloOpcode::sort: {
      const double elements = number(elements_of(*operand(computation, instruction, 0).shape));
      cost.vector = elements * std::max(1.0, std::ceil(std::log2(std::max(2.0, elements))));
      return cost;
    }
    case HloOpcode::fft: cost.vector = transform_of(instruction).flops; return cost;
    default:
      if (is_elementwise(instruction.opcode)) cost.vector = number(elements_of(*instruction.shape));
      return cost;
  }
}

HloTaskCost HloTaskCosts::custom_call(const HloComputation& computation, const HloInstruction& call) {
  const HloCustomCall known = custom_call_of(computation, call, custom_);
  HloTaskCost cost;
  if (known.kind == HloCustomCall::Kind::free) return cost;
  cost.matrix = number(known.flops);
  if (!call.operands.empty() && operand(computation, call, 0).shape->is_array()) {
    const HloType type = operand(computation, call, 0).shape->type;
    cost.rate = product_rate_of(type, type);
  }
  cost.opaque = known.kind == HloCustomCall::Kind::opaque;
  cost.bytes = hbm_bytes(*call.shape);
  for (std::size_t i = 0; i < call.operands.size(); ++i) cost.bytes += hbm_bytes(*operand(computation, call, i).shape);
  if (known.bytes) cost.bytes = number(known.bytes->count());
  return cost;
}

Expected<HloTaskCost> HloTaskCosts::of(const HloComputation& computation, int position) {
  const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(position)];
  if (is_free(instruction.opcode) || is_collective(instruction.opcode)) return HloTaskCost{};
  switch (instruction.opcode) {
    case HloOpcode::while_:
    case HloOpcode::call:
    case HloOpcode::conditional: return HloTaskCost{};
    case HloOpcode::custom_call: return custom_call(computation, instruction);
    default: break;
  }
  auto cost = instruction.opcode == HloOpcode::fusion && !instruction.calls.empty() ? inside(instruction.calls.front().computation) : arithmetic(computation, position);
  if (!cost) return cost.error();
  const HloTraffic::Amount amount = traffic_.of(computation, instruction);
  cost->bytes = number((amount.read + amount.written).count());
  cost->opaque = instruction.opcode == HloOpcode::unknown;
  return cost;
}

}  // namespace podsim
