#include "workloads/hlo/call_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace podsim {

namespace {

/// One call: what goes into the computation and what comes out of it.
class CallShapes {
 public:
  CallShapes(const HloModule& module, const HloComputation& caller, const HloInstruction& instruction, const HloComputation& callee)
      : module_{module}, caller_{caller}, instruction_{instruction}, callee_{callee} {}

  /// `from`: the operand that is parameter 0.
  Status takes_operands(std::size_t from, std::size_t count) const {
    if (from + count > instruction_.operands.size() || callee_.parameters.size() != count)
      return problem(fmt::format("expected as many operands as computation {} has parameters, {}, got {}", callee_.name, callee_.parameters.size(),
                                 instruction_.operands.size() - std::min(from, instruction_.operands.size())));
    for (std::size_t p = 0; p < count; ++p) {
      const HloShape& given = *caller_.instructions[static_cast<std::size_t>(instruction_.operands[from + p])].shape;
      if (auto ok = takes(p, given); !ok) return ok;
    }
    return success();
  }
  Status takes_one(const HloShape& given) const {
    if (callee_.parameters.size() != 1)
      return problem(fmt::format("expected a computation of one parameter, but {} has {}", callee_.name, callee_.parameters.size()));
    return takes(0, given);
  }
  Status gives(const HloShape& wanted) const {
    const HloShape& given = *callee_.instructions[static_cast<std::size_t>(callee_.root)].shape;
    if (same_dims(given, wanted)) return success();
    return problem(fmt::format("expected a computation that gives {}, but {} gives {}", cut_text(wanted), callee_.name, cut_text(given)));
  }
  /// Of an asynchronous operation: the thread that it names is the computation's, where that one's is told.
  Status runs_on_its_thread() const {
    const std::string& thread = instruction_.attributes->async_execution_thread;
    if (thread.empty() || callee_.execution_thread.empty() || thread == callee_.execution_thread) return success();
    return problem(fmt::format("expected the execution_thread of computation {}, {}, got {}", callee_.name, quoted(callee_.execution_thread), quoted(thread)));
  }
  /// A reduction's: so many numbers in, numbers out.
  Status combines_numbers(std::size_t count) const {
    if (callee_.parameters.size() != count) return problem(fmt::format("expected a computation of {} numbers, but {} has {} parameters", count, callee_.name, callee_.parameters.size()));
    for (const int p : callee_.parameters) {
      const HloInstruction& parameter = callee_.instructions[static_cast<std::size_t>(p)];
      if (!is_number(*parameter.shape)) return problem(fmt::format("expected a computation of numbers, but {} takes {}", callee_.name, cut_text(*parameter.shape)));
    }
    const HloShape& result = *callee_.instructions[static_cast<std::size_t>(callee_.root)].shape;
    if (is_number(result) || (result.is_tuple() && std::ranges::all_of(result.elements, is_number))) return success();
    return problem(fmt::format("expected a computation of numbers, but {} gives {}", callee_.name, cut_text(result)));
  }

 private:
  static bool is_number(const HloShape& shape) { return shape.is_array() && shape.dims.empty(); }
  Status takes(std::size_t p, const HloShape& given) const {
    const HloShape& taken = *callee_.instructions[static_cast<std::size_t>(callee_.parameters[p])].shape;
    if (same_dims(taken, given)) return success();
    return problem(fmt::format("expected {}, the shape of parameter {} of computation {}, got {}", cut_text(taken), p, callee_.name, cut_text(given)));
  }
  Diagnostic problem(const std::string& what) const { return {module_.where(instruction_), instruction_.name + ": " + what}; }

  const HloModule& module_;
  const HloComputation& caller_;
  const HloInstruction& instruction_;
  const HloComputation& callee_;
};

/// ((operands), result, ..)
bool starts_with_operands(const HloShape& shape) { return shape.elements.size() > 1 && shape.elements.front().is_tuple(); }

/// How many numbers a function of numbers takes: of two values of each array, but for a map.
std::optional<std::size_t> numbers_combined(const HloInstruction& instruction) {
  const std::size_t operands = instruction.operands.size();
  switch (instruction.opcode) {
    case HloOpcode::all_reduce:
    case HloOpcode::reduce_scatter: return 2;
    case HloOpcode::map:
    case HloOpcode::reduce:
    case HloOpcode::reduce_window: return operands;
    case HloOpcode::scatter: return operands - 1;
    case HloOpcode::sort: return 2 * operands;
    default: return std::nullopt;
  }
}

Status check_call(const CallShapes& shapes, const HloInstruction& instruction, HloRole role, std::size_t branch) {
  const bool starts = instruction.phase == HloPhase::start;
  switch (role) {
    case HloRole::calls:
      if (instruction.phase != HloPhase::whole && !starts) return success();
      if (auto ok = shapes.takes_operands(0, instruction.operands.size()); !ok) return ok;
      if (!starts) return shapes.gives(*instruction.shape);
      return starts_with_operands(*instruction.shape) ? shapes.gives(instruction.shape->elements[1]) : success();
    case HloRole::to_apply:
      if (instruction.opcode != HloOpcode::call) {
        const auto numbers = numbers_combined(instruction);
        if (!numbers) return success();
        if (auto ok = shapes.combines_numbers(*numbers); !ok || instruction.opcode != HloOpcode::sort) return ok;
        return shapes.gives(HloShape{HloType::pred});
      }
      if (auto ok = shapes.takes_operands(0, instruction.operands.size()); !ok) return ok;
      return shapes.gives(*instruction.shape);
    case HloRole::body:
      if (auto ok = shapes.takes_one(*instruction.shape); !ok) return ok;
      return shapes.gives(*instruction.shape);
    case HloRole::condition:
      if (auto ok = shapes.takes_one(*instruction.shape); !ok) return ok;
      return shapes.gives(HloShape{HloType::pred});
    case HloRole::branch:
      if (auto ok = shapes.takes_operands(branch + 1, 1); !ok) return ok;
      return shapes.gives(*instruction.shape);
    case HloRole::select:
    case HloRole::scatter: return shapes.combines_numbers(2);
    case HloRole::called: return success();
  }
  return success();
}

/// Of a conditional: a truth or the number of a branch, and an operand for each.
Status check_selector(const HloModule& module, const HloComputation& caller, const HloInstruction& instruction) {
  if (instruction.opcode != HloOpcode::conditional) return success();
  const auto branches = static_cast<std::size_t>(std::ranges::count(instruction.calls, HloRole::branch, &HloCall::role));
  if (branches == 0 || instruction.operands.size() != branches + 1)
    return Diagnostic{module.where(instruction), fmt::format("{}: expected which branch to take and an operand for each of {} branches, got {} operands", instruction.name, branches, instruction.operands.size())};
  const HloShape& selector = *caller.instructions[static_cast<std::size_t>(instruction.operands.front())].shape;
  if (same_dims(selector, HloShape{HloType::pred}) || same_dims(selector, HloShape{HloType::s32})) return success();
  return Diagnostic{module.where(instruction), fmt::format("{}: expected pred[] or s32[], which branch to take, got {}", instruction.name, cut_text(selector))};
}

}  // namespace

Status check_call_shapes(const HloModule& module) {
  for (const HloComputation& caller : module.computations)
    for (const HloInstruction& instruction : caller.instructions) {
      if (instruction.opcode == HloOpcode::while_) {
        const bool fits = instruction.operands.size() == 1 &&
                          same_dims(*caller.instructions[static_cast<std::size_t>(instruction.operands.front())].shape, *instruction.shape);
        if (!fits) return Diagnostic{module.where(instruction), fmt::format("{}: expected one operand of its shape, {}", instruction.name, cut_text(*instruction.shape))};
      }
      if (auto ok = check_selector(module, caller, instruction); !ok) return ok;
      std::size_t branch = 0;
      for (const HloCall& call : instruction.calls) {
        const CallShapes shapes{module, caller, instruction, module.computations[static_cast<std::size_t>(call.computation)]};
        if (auto ok = check_call(shapes, instruction, call.role, branch); !ok) return ok;
        if (auto ok = shapes.runs_on_its_thread(); !ok) return ok;
        branch += call.role == HloRole::branch ? 1 : 0;
      }
    }
  return success();
}

}  // namespace podsim
