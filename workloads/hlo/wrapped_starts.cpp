// Asynchronous operations as XLA has them: a -start calls a computation, and the text may leave that computation out.
#include <utility>

#include "workloads/hlo/joined_transfers.hpp"

namespace podsim {

namespace {

/// Of those without a computation: what the core or a library works on. Collectives, transfers and copies are what their own opcode says.
bool works(HloOpcode opcode) { return opcode == HloOpcode::fusion || opcode == HloOpcode::custom_call; }

/// The computation that has `start` alone, of the operands of `start`. nullopt: a cut file lacks an operand or the result.
std::optional<HloComputation> alone(const HloComputation& in, const HloInstruction& start) {
  if (start.shape->elements.size() < 2) return std::nullopt;
  HloComputation made{.name = start.name + ".wrapped", .execution_thread = start.attributes->async_execution_thread, .line = start.line, .column = start.column};
  HloInstruction work = start;
  work.phase = HloPhase::whole;
  work.shape = start.shape->elements[1];
  for (std::size_t o = 0; o < start.operands.size(); ++o) {
    if (start.operands[o] == HloInstruction::missing) return std::nullopt;
    HloInstruction parameter{.name = "param_" + std::to_string(o), .shape = in.instructions[static_cast<std::size_t>(start.operands[o])].shape, .opcode = HloOpcode::parameter,
                             .line = start.line, .column = start.column, .number = static_cast<std::int64_t>(o)};
    work.operands[o] = static_cast<int>(o);
    made.parameters.push_back(static_cast<int>(o));
    made.instructions.push_back(std::move(parameter));
  }
  made.root = static_cast<int>(made.instructions.size());
  made.instructions.push_back(std::move(work));
  return made;
}

}  // namespace

void wrap_starts(HloModule& module) {
  const std::size_t computations = module.computations.size();
  for (std::size_t c = 0; c < computations; ++c)
    for (std::size_t i = 0; i < module.computations[c].instructions.size(); ++i) {
      const HloInstruction& instruction = module.computations[c].instructions[i];
      if (!works(instruction.opcode) || instruction.phase == HloPhase::whole) continue;
      if (instruction.phase == HloPhase::start) {
        auto made = alone(module.computations[c], instruction);
        if (!made) continue;
        module.joined -= static_cast<std::int64_t>(made->instructions.size());
        HloAttributes attributes;
        attributes.async_execution_thread = instruction.attributes->async_execution_thread;
        attributes.is_sync = instruction.attributes->is_sync;
        attributes.control_predecessors = instruction.attributes->control_predecessors;
        HloInstruction& start = module.computations[c].instructions[i];
        start.attributes = std::move(attributes);
        start.calls = {{HloRole::calls, static_cast<int>(module.computations.size())}};
        module.computations.push_back(*std::move(made));
      }
      module.computations[c].instructions[i].opcode = HloOpcode::async;
    }
}

}  // namespace podsim
