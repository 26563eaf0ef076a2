#include "workloads/hlo/unpartitioned.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

namespace {

bool is_told_to_partitioner(const HloAttributes& attributes) {
  const std::string& target = attributes.custom_call_target;
  return target == "Sharding" || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" || target.starts_with("xla.sdy.");
}

/// {devices=[4,2]<=[8]}, or the named form {mesh['x'=4], [{'x'}]}.
bool divides(const std::string& sharding) { return sharding.find("devices=[") != std::string::npos || sharding.find("mesh[") != std::string::npos; }

}  // namespace

Status check_partitioned(const HloModule& module) {
  if (module.is_scheduled || module.entry < 0) return success();
  const HloInstruction *told = nullptr, *divided = nullptr;
  bool communicates = false;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions) {
      communicates = communicates || is_collective(instruction.opcode);
      if (told == nullptr && is_told_to_partitioner(*instruction.attributes)) told = &instruction;
      if (divided == nullptr && divides(instruction.attributes->sharding)) divided = &instruction;
    }
  if (told == nullptr && !communicates && !module.entry_computation().name.ends_with("_spmd")) told = divided;
  if (told == nullptr) return success();
  return Diagnostic{
      module.where(*told),
      fmt::format(
          "expected a module that is partitioned, whose shapes are those of one device, as compiled.as_text() and *.after_optimizations.txt have it; "
          "{} is one of whole arrays with shardings (lowered.as_text(), *.before_optimizations.txt)",
          module.name)};
}

}  // namespace podsim
