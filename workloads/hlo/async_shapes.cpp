#include "workloads/hlo/async_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/hlo/instruction_shapes.hpp"

namespace podsim {

namespace {

using Problem = std::optional<std::string>;

Problem unlike(std::size_t o, const HloShape& operand, const HloShape& told) {
  if (same_dims(told, operand)) return {};
  return fmt::format("expected the shape of operand {}, {}, got {}", o, cut_text(operand), cut_text(told));
}

/// The operands as a -start holds them.
Problem of_held(const HloShape& held, std::span<const HloShape* const> operands) {
  if (operands.size() == 1 && same_dims(held, *operands[0])) return {};
  if (!held.is_tuple()) return operands.empty() ? std::nullopt : unlike(0, *operands[0], held);
  if (held.elements.size() != operands.size()) return fmt::format("expected a tuple of its {} operands, got {}", operands.size(), cut_text(held));
  for (std::size_t o = 0; o < operands.size(); ++o)
    if (auto wrong = unlike(o, *operands[o], held.elements[o])) return wrong;
  return {};
}

/// An all-reduce has had a form of its own, the result alone; XLA of 2026 may write the common one.
bool is_result_alone(const HloInstruction& instruction, const HloShape& started) {
  return instruction.opcode == HloOpcode::all_reduce && (started.elements.size() < 2 || !started.elements.front().is_tuple());
}

/// What tells when it is done.
Problem of_context(const HloShape& context) {
  if (context.type == HloType::token || is_integer(context.type)) return {};
  return fmt::format("expected u32[] behind the operand and the result, got {}", cut_text(context));
}

Problem of_start(const HloInstruction& instruction, std::span<const HloShape* const> operands) {
  const HloShape& shape = *instruction.shape;
  if (is_result_alone(instruction, shape)) return whole_shape_problem(instruction, shape, operands);
  const bool copies = instruction.opcode == HloOpcode::copy;
  if (shape.elements.size() < 2)
    return fmt::format("expected a tuple of {} of {}, got {}", copies ? "the result and the operand" : "the operands and the result", opcode_text(instruction), cut_text(shape));
  if (auto wrong = of_held(shape.elements[copies ? 1 : 0], operands)) return wrong;
  const bool calls_it = std::ranges::find(instruction.calls, HloRole::calls, &HloCall::role) != instruction.calls.end();
  for (std::size_t e = 2; e < shape.elements.size() && !calls_it; ++e)
    if (auto wrong = of_context(shape.elements[e])) return wrong;
  if (calls_it && instruction.opcode != HloOpcode::fusion) return {};
  return whole_shape_problem(instruction, shape.elements[copies ? 0 : 1], operands);
}

Problem of_done(const HloInstruction& instruction, std::span<const HloShape* const> operands) {
  if (operands.size() != 1) return fmt::format("expected the operation that {} ends, and no more operands, got {}", opcode_text(instruction), operands.size());
  const HloShape &started = *operands[0], &shape = *instruction.shape;
  const auto expect = [](const HloShape* wanted, const HloShape* got) -> Problem {
    if (wanted != nullptr && got != nullptr && same_dims(*wanted, *got)) return {};
    return fmt::format("expected what was started, {}, got {}", wanted != nullptr ? cut_text(*wanted) : "nothing", got != nullptr ? cut_text(*got) : "nothing");
  };
  const auto element = [](const HloShape& of, std::size_t e) { return e < of.elements.size() ? &of.elements[e] : nullptr; };
  if (is_result_alone(instruction, started)) return expect(&started, &shape);
  switch (instruction.opcode) {
    case HloOpcode::copy: return expect(element(started, 0), &shape);
    case HloOpcode::recv: return expect(element(started, 0), element(shape, 0));
    case HloOpcode::send: return shape.type == HloType::token ? std::nullopt : Problem{fmt::format("expected a token, got {}", cut_text(shape))};
    default: return expect(element(started, 1), &shape);
  }
}

}  // namespace

std::optional<std::string> async_shape_problem(const HloInstruction& instruction, std::span<const HloShape* const> operands) {
  const HloShape& shape = *instruction.shape;
  switch (instruction.phase) {
    case HloPhase::start: return of_start(instruction, operands);
    case HloPhase::update: return operands.size() == 1 ? unlike(0, *operands[0], shape) : fmt::format("expected one operand of {}, got {}", opcode_text(instruction), operands.size());
    case HloPhase::done: return of_done(instruction, operands);
    case HloPhase::whole: break;
  }
  if (shape.elements.size() != 3 || !is_integer(shape.elements[1].type) || shape.elements[2].type != HloType::token)
    return fmt::format("expected (what {} moves, u32[], token[]), got {}", opcode_text(instruction), cut_text(shape));
  const bool sends = instruction.opcode == HloOpcode::send;
  if (operands.size() != (sends ? 2 : 1) || operands.back()->type != HloType::token) return fmt::format("expected {} as operands of {}, got {}", sends ? "what it moves and a token" : "a token", opcode_text(instruction), operands.size());
  return sends ? unlike(0, *operands[0], shape.elements.front()) : std::nullopt;
}

}  // namespace podsim
