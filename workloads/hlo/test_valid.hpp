// Modules that no text was read for are held to what the reader asks of texts: for the tests of rewrites.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/communication.hpp"
#include "workloads/hlo/instruction_shapes.hpp"

namespace podsim {

/// Of the instructions of a module what the reader would not take, by name.
inline std::map<std::string, std::string> wrong_shapes(const HloModule& module) {
  std::map<std::string, std::string> wrong;
  for (const HloComputation& computation : module.computations)
    for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) {
      const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(i)];
      std::vector<const HloShape*> operands;
      for (const int operand : instruction.operands) {
        EXPECT_LT(operand, i) << instruction.name;
        operands.push_back(operand == HloInstruction::missing ? nullptr : &*computation.instructions[static_cast<std::size_t>(operand)].shape);
      }
      if (auto problem = shape_problem(instruction, operands)) wrong.emplace(instruction.name, *std::move(problem));
    }
  return wrong;
}

/// Operands come before their users, and every shape is the one that XLA infers, but for what `before` has too: sends that were joined are no more in the form of a text.
inline void expect_valid(const HloModule& module, const HloModule& before = {}) {
  EXPECT_TRUE(check_communication(module));
  const auto known = wrong_shapes(before);
  for (const auto& [name, problem] : wrong_shapes(module)) EXPECT_TRUE(known.contains(name)) << name << ": " << problem;
}

}  // namespace podsim
