#include "workloads/hlo/called_from.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

namespace {

enum class RunAs : std::uint8_t { itself, fusion, numbers };

/// How each computation is run; of one that is run in several ways the strictest. Callers stand behind what they call.
std::vector<RunAs> ways_of_running(const HloModule& module) {
  std::vector<RunAs> ways(module.computations.size(), RunAs::itself);
  for (std::size_t c = ways.size(); c-- > 0;)
    for (const HloInstruction& instruction : module.computations[c].instructions)
      for (const HloCall& call : instruction.calls) {
        RunAs way = ways[c];
        if (instruction.opcode == HloOpcode::fusion) way = std::max(way, RunAs::fusion);
        const bool combines = (call.role == HloRole::to_apply && instruction.opcode != HloOpcode::call) || call.role == HloRole::select || call.role == HloRole::scatter;
        if (combines) way = RunAs::numbers;
        RunAs& callee = ways[static_cast<std::size_t>(call.computation)];
        callee = std::max(callee, way);
      }
  return ways;
}

bool is_among(const auto& opcodes, HloOpcode opcode) { return std::ranges::find(opcodes, opcode) != opcodes.end(); }

bool can_run(const HloInstruction& instruction, RunAs way) {
  using enum HloOpcode;
  constexpr auto ordered = std::to_array<HloOpcode>({call, conditional, infeed, outfeed, recv, send, while_});
  if (way == RunAs::itself) return true;
  if (instruction.phase != HloPhase::whole || is_among(ordered, instruction.opcode)) return false;
  return way == RunAs::fusion || !is_collective(instruction.opcode);
}

using Problem = std::optional<std::string>;

/// Of two shapes of one form.
Problem moved(const HloShape& from, const HloShape& to) {
  if (from.elements.size() != to.elements.size()) return {};
  for (std::size_t e = 0; e < from.elements.size(); ++e)
    if (auto wrong = moved(from.elements[e], to.elements[e])) return wrong;
  if (!from.is_array() || !to.is_array() || from.layout.memory_space == to.layout.memory_space) return {};
  return fmt::format("expected a value that stays in memory space S({}), got {} in S({})", from.layout.memory_space, cut_text(to), to.layout.memory_space);
}

class MemorySpaces {
 public:
  MemorySpaces(const HloModule& module, const HloComputation& computation) : module_{module}, computation_{computation} {}

  [[nodiscard]] Problem of(const HloInstruction& instruction) const {
    using enum HloOpcode;
    if (instruction.operands.empty()) return {};
    const HloShape &shape = *instruction.shape, &first = shape_of(instruction, 0);
    if (instruction.phase == HloPhase::done || instruction.phase == HloPhase::update) return of_end(instruction, first);
    if (instruction.phase != HloPhase::whole) return {};
    switch (instruction.opcode) {
      case add_dependency:
      case bitcast:
      case domain:
      case opt_barrier: return moved(first, shape);
      case get_tuple_element: return moved(first.elements[static_cast<std::size_t>(instruction.number)], shape);
      case tuple:
        for (std::size_t o = 0; o < instruction.operands.size(); ++o)
          if (auto wrong = moved(shape_of(instruction, o), shape.elements[o])) return wrong;
        return {};
      case call:
      case conditional:
      case while_: return of_calls(instruction);
      default: return {};
    }
  }

 private:
  [[nodiscard]] const HloShape& shape_of(const HloInstruction& instruction, std::size_t o) const { return *computation_.instructions[static_cast<std::size_t>(instruction.operands[o])].shape; }

  /// As async_shape_problem() has it: a copy's result comes first, any other's second.
  [[nodiscard]] static Problem of_end(const HloInstruction& end, const HloShape& started) {
    const HloShape& shape = *end.shape;
    if (end.phase == HloPhase::update) return moved(started, shape);
    if (end.opcode == HloOpcode::send || end.opcode == HloOpcode::recv) return {};
    if (same_dims(started, shape)) return moved(started, shape);
    const std::size_t result = end.opcode == HloOpcode::copy ? 0 : 1;
    return result < started.elements.size() ? moved(started.elements[result], shape) : std::nullopt;
  }

  [[nodiscard]] Problem of_calls(const HloInstruction& instruction) const {
    std::size_t branch = 0;
    for (const HloCall& call : instruction.calls) {
      const HloComputation& callee = module_.computations[static_cast<std::size_t>(call.computation)];
      const std::size_t from = call.role == HloRole::branch ? ++branch : 0;
      for (std::size_t p = 0; p < callee.parameters.size() && from + p < instruction.operands.size(); ++p)
        if (auto wrong = moved(shape_of(instruction, from + p), *callee.instructions[static_cast<std::size_t>(callee.parameters[p])].shape)) return wrong;
      if (call.role == HloRole::condition) continue;
      if (auto wrong = moved(*callee.instructions[static_cast<std::size_t>(callee.root)].shape, *instruction.shape)) return wrong;
    }
    return {};
  }

  const HloModule& module_;
  const HloComputation& computation_;
};

Diagnostic error_at(const HloModule& module, const HloInstruction& instruction, const std::string& message) { return {module.where(instruction), fmt::format("{}: {}", instruction.name, message)}; }

}  // namespace

Status check_called_computations(const HloModule& module) {
  const std::vector<RunAs> ways = ways_of_running(module);
  for (std::size_t c = 0; c < ways.size(); ++c)
    for (const HloInstruction& instruction : module.computations[c].instructions)
      if (!can_run(instruction, ways[c]))
        return error_at(module, instruction, fmt::format("expected {} in computation {}, found {}", ways[c] == RunAs::fusion ? "what can be fused" : "operations on numbers", module.computations[c].name, opcode_text(instruction)));
  return success();
}

Status check_memory_spaces(const HloModule& module) {
  const std::vector<RunAs> ways = ways_of_running(module);
  for (std::size_t c = 0; c < ways.size(); ++c) {
    if (ways[c] != RunAs::itself) continue;
    const MemorySpaces spaces{module, module.computations[c]};
    for (const HloInstruction& instruction : module.computations[c].instructions)
      if (const auto wrong = spaces.of(instruction)) return error_at(module, instruction, *wrong);
  }
  return success();
}

}  // namespace podsim
