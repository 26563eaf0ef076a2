// Modules and values of HLO in tests.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "workloads/hlo/read_hlo.hpp"

namespace podsim::test {

inline HloModule module_of(std::string_view text, bool tolerant = false) {
  auto module = parse_hlo(text, "m", {.tolerant = tolerant});
  EXPECT_TRUE(module) << to_text(module.error());
  return module ? *std::move(module) : HloModule{};
}

inline std::string error_of(std::string_view text) {
  const auto module = parse_hlo(text, "m");
  return module ? "" : to_text(module.error());
}

inline HloShape shape_of(std::string_view text) {
  const auto shape = parse_hlo_shape(text, {});
  EXPECT_TRUE(shape) << to_text(shape.error());
  return shape ? *shape : HloShape{};
}

inline const HloInstruction& instruction_named(const HloModule& module, std::string_view name) {
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      if (instruction.name == name) return instruction;
  ADD_FAILURE() << "no instruction " << name;
  static const HloInstruction none{};
  return none;
}

}  // namespace podsim::test
