// Modules that no text was read for are held to what the reader asks of texts: for the tests of rewrites.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/test_cases.hpp"
#include "workloads/hlo/communication.hpp"
#include "workloads/hlo/instruction_shapes.hpp"
#include "workloads/hlo/read_hlo.hpp"

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

/// An entry of x f32[16,8] and y f32[4,8] on four devices.
inline HloModule on_four_devices(const std::string& body) {
  const auto module = parse_hlo("HloModule m, is_scheduled=true, num_partitions=4\n\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %s = f32[] add(%a, %b)\n}\n\n"
                                "ENTRY %main (x: f32[16,8], y: f32[4,8]) -> (f32[16,8], f32[4,8]) {\n  %x = f32[16,8] parameter(0)\n  %y = f32[4,8] parameter(1)\n" +
                                    body + "}\n",
                                "m");
  EXPECT_TRUE(module) << to_text(module.error());
  return module ? *module : HloModule{};
}
inline constexpr const char* sums_of_four = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add";

inline std::vector<std::string> names_in_entry(const HloModule& module) {
  std::vector<std::string> names;
  for (const HloInstruction& instruction : module.entry_computation().instructions) names.push_back(instruction.name);
  return names;
}

/// Calls visit(module) for those of validation/aot, with sanitizers a quarter of them.
template <class Visit>
void each_stored_module(Visit visit) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{PODSIM_SOURCE_DIR "/validation/aot/modules"})
    if (entry.path().string().ends_with(".hlo.gz")) files.push_back(entry.path());
  std::ranges::sort(files);
  for (std::size_t f = 0; f < files.size(); f += test::cases<std::size_t>(1, 4)) {
    SCOPED_TRACE(files[f]);
    const auto module = read_hlo_file(files[f]);
    ASSERT_TRUE(module);
    visit(*module);
  }
}

}  // namespace podsim
