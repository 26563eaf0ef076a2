// An instruction on devices, as the parts of the interpreter hand it on. Internal.
#pragma once

#include "workloads/hlo_values/interpreter.hpp"

namespace podsim {

struct HloInterpreter::Step {
  const HloModule& module;
  const HloComputation& computation;
  const HloInstruction& instruction;
  const Devices& devices;
  const std::vector<const Values*>& operands;  // [operand][device]
  /// `NAME: message` at the instruction.
  [[nodiscard]] Diagnostic error(const std::string& message) const;
  [[nodiscard]] Diagnostic not_interpreted() const;
};

/// Of a conditional that takes another branch than the one that it is to.
std::string other_branch(const HloInstruction& conditional, std::int64_t taken, std::int64_t told);

}  // namespace podsim
