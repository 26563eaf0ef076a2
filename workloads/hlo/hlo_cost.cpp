#include "workloads/hlo/hlo_cost.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace podsim {

namespace {

double number(std::int64_t n) { return static_cast<double>(n); }

double hbm_bytes(const HloShape& shape) { return number(device_bytes_in(shape, HloMemory::hbm).count()); }

const HloInstruction& operand(const HloComputation& computation, const HloInstruction& of, std::size_t position) {
  return computation.instructions[static_cast<std::size_t>(of.operands[position])];
}

/// Whether only parts of operand 0 are read.
bool takes_a_part(HloOpcode opcode) {
  return opcode == HloOpcode::dynamic_slice || opcode == HloOpcode::slice || opcode == HloOpcode::gather;
}

/// What an update writes: of dynamic-update-slice operand 1, of scatter its last ones. Nullptr: it is no update.
const HloShape* updated(const HloComputation& computation, const HloInstruction& instruction) {
  if (instruction.opcode == HloOpcode::dynamic_update_slice && instruction.operands.size() > 1) return &*operand(computation, instruction, 1).shape;
  if (instruction.opcode == HloOpcode::scatter && instruction.operands.size() > 2) return &*operand(computation, instruction, 2).shape;
  return nullptr;
}

/// The instruction that a result is, but for its form.
int without_casts(const HloComputation& computation, int instruction) {
  while (computation.instructions[static_cast<std::size_t>(instruction)].opcode == HloOpcode::bitcast)
    instruction = computation.instructions[static_cast<std::size_t>(instruction)].operands.front();
  return instruction;
}

/// Bytes of a result that a fusion writes.
double written(const HloComputation& computation, int result) {
  const HloInstruction& made = computation.instructions[static_cast<std::size_t>(without_casts(computation, result))];
  const HloShape& shape = *computation.instructions[static_cast<std::size_t>(result)].shape;
  const double whole = hbm_bytes(shape);
  if (made.opcode == HloOpcode::parameter) return 0;
  if (const HloShape* update = updated(computation, made)) return std::min(whole, number(device_bytes(*update).count()));
  return whole;
}

/// Bytes of a parameter that a fusion reads.
double read(const HloComputation& computation, const HloUsers& users, int parameter) {
  const double whole = hbm_bytes(*computation.instructions[static_cast<std::size_t>(parameter)].shape);
  double parts = 0;
  std::vector<int> seen{parameter};
  for (std::size_t next = 0; next < seen.size(); ++next)
    for (const int user : users.of(seen[next])) {
      const HloInstruction& by = computation.instructions[static_cast<std::size_t>(user)];
      if (by.opcode == HloOpcode::bitcast) {
        seen.push_back(user);
        continue;
      }
      const bool is_first = by.operands.front() == seen[next] && std::count(by.operands.begin(), by.operands.end(), seen[next]) == 1;
      if (takes_a_part(by.opcode) && is_first)
        parts += number(device_bytes(*by.shape).count());
      else if (!(updated(computation, by) != nullptr && is_first))
        return whole;
    }
  return std::min(whole, parts);
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

Expected<const HloCosts::Inside*> HloCosts::inside(int computation) {
  const auto [found, added] = inside_.try_emplace(computation);
  if (!added) return &found->second;
  const HloComputation& body = module_.computations[static_cast<std::size_t>(computation)];
  Inside made;
  for (int i = 0; i < static_cast<int>(body.instructions.size()); ++i) {
    const HloInstruction& instruction = body.instructions[static_cast<std::size_t>(i)];
    auto cost = arithmetic(body, i);
    if (!cost) return cost.error();
    for (const HloCall& call : instruction.calls) {
      if (instruction.opcode != HloOpcode::fusion && instruction.opcode != HloOpcode::call && instruction.opcode != HloOpcode::async) continue;
      const auto nested = inside(call.computation);
      if (!nested) return nested.error();
      const HloCost& flops = (*nested)->flops;
      cost->matrix += flops.matrix, cost->vector += flops.vector, cost->products += flops.products;
      if (flops.products > 0) cost->type = flops.type;
    }
    made.flops.matrix += cost->matrix, made.flops.vector += cost->vector, made.flops.products += cost->products;
    if (cost->products > 0) made.flops.type = cost->type;
  }
  const HloUsers users{body};
  for (const int parameter : body.parameters) made.reads.push_back(read(body, users, parameter));
  const HloInstruction& root = body.instructions[static_cast<std::size_t>(body.root)];
  if (root.opcode == HloOpcode::tuple)
    for (const int element : root.operands) made.writes += written(body, element);
  else
    made.writes = written(body, body.root);
  Inside& kept = inside_[computation];
  kept = std::move(made);
  return &kept;
}

Expected<HloCost> HloCosts::arithmetic(const HloComputation& computation, int position) {
  const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(position)];
  HloCost cost;
  switch (instruction.opcode) {
    case HloOpcode::dot:
    case HloOpcode::convolution: {
      const auto product = product_of(module_, computation, instruction);
      if (!product) return product.error();
      cost.matrix = number(product->flops);
      cost.products = 1;
      cost.type = operand(computation, instruction, 0).shape->type;
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
    case HloOpcode::fft: {
      double length = 1;
      for (const std::int64_t n : instruction.attributes->fft_length) length *= number(n);
      cost.vector = 5 * number(elements_of(*instruction.shape)) * std::log2(std::max(2.0, length));
      return cost;
    }
    default:
      if (is_elementwise(instruction.opcode)) cost.vector = number(elements_of(*instruction.shape));
      return cost;
  }
}

HloCost HloCosts::custom_call(const HloComputation& computation, const HloInstruction& call) {
  const HloCustomCall known = custom_call_of(computation, call, custom_);
  HloCost cost;
  if (known.kind == HloCustomCall::Kind::free) return cost;
  cost.matrix = number(known.flops);
  if (!call.operands.empty() && operand(computation, call, 0).shape->is_array()) cost.type = operand(computation, call, 0).shape->type;
  cost.opaque = known.kind == HloCustomCall::Kind::opaque;
  cost.bytes = hbm_bytes(*call.shape);
  for (std::size_t i = 0; i < call.operands.size(); ++i) cost.bytes += hbm_bytes(*operand(computation, call, i).shape);
  if (known.bytes) cost.bytes = number(known.bytes->count());
  return cost;
}

Expected<HloCost> HloCosts::of(const HloComputation& computation, int position) {
  const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(position)];
  if (is_free(instruction.opcode) || is_collective(instruction.opcode)) return HloCost{};
  switch (instruction.opcode) {
    case HloOpcode::while_:
    case HloOpcode::call:
    case HloOpcode::conditional: return HloCost{};
    case HloOpcode::custom_call: return custom_call(computation, instruction);
    case HloOpcode::fusion: {
      if (instruction.calls.empty()) break;
      const auto found = inside(instruction.calls.front().computation);
      if (!found) return found.error();
      HloCost cost = (*found)->flops;
      const std::vector<double>& reads = (*found)->reads;
      for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
        const double whole = hbm_bytes(*operand(computation, instruction, i).shape);
        cost.bytes += i < reads.size() ? std::min(whole, reads[i]) : whole;
      }
      cost.bytes += std::min((*found)->writes, hbm_bytes(*instruction.shape));
      return cost;
    }
    default: break;
  }
  auto cost = arithmetic(computation, position);
  if (!cost) return cost.error();
  const double result = hbm_bytes(*instruction.shape);
  cost->opaque = instruction.opcode == HloOpcode::unknown;
  if (takes_a_part(instruction.opcode)) {
    const bool in_hbm = !instruction.operands.empty() && operand(computation, instruction, 0).shape->layout.memory_space == HloMemory::hbm;
    cost->bytes = result + (in_hbm ? number(device_bytes(*instruction.shape).count()) : 0);
    return cost;
  }
  if (const HloShape* update = updated(computation, instruction)) {
    const bool in_hbm = instruction.shape->layout.memory_space == HloMemory::hbm;
    cost->bytes = hbm_bytes(*update) + (in_hbm ? number(device_bytes(*update).count()) : 0);
    return cost;
  }
  cost->bytes = result;
  for (std::size_t i = 0; i < instruction.operands.size(); ++i)
    if (std::find(instruction.operands.begin(), instruction.operands.begin() + static_cast<std::ptrdiff_t>(i), instruction.operands[i]) ==
        instruction.operands.begin() + static_cast<std::ptrdiff_t>(i))
      cost->bytes += hbm_bytes(*operand(computation, instruction, i).shape);
  return cost;
}

}  // namespace podsim
