#include "workloads/hlo/hlo_module.hpp"

#include <algorithm>

namespace podsim {

std::string opcode_text(const HloInstruction& instruction) {
  if (instruction.opcode == HloOpcode::unknown) return instruction.attributes->unknown_opcode;
  std::string text{name_of(instruction.opcode)};
  if (instruction.phase == HloPhase::start) text += "-start";
  if (instruction.phase == HloPhase::update) text += "-update";
  if (instruction.phase == HloPhase::done) text += "-done";
  return text;
}

std::size_t instructions_of(const HloModule& module) {
  auto count = static_cast<std::size_t>(module.joined);
  for (const HloComputation& computation : module.computations) count += computation.instructions.size();
  return count;
}

std::int64_t devices_of(const HloModule& module) {
  return module.num_partitions ? module.replica_count * *module.num_partitions : std::max(module.replica_count, module.named_devices);
}

HloGroupMode group_mode_of(const HloAttributes& attributes) {
  if (!attributes.channel_id) return HloGroupMode::replicas;
  if (!attributes.use_global_device_ids) return HloGroupMode::partitions;
  return *attributes.use_global_device_ids ? HloGroupMode::flattened : HloGroupMode::replicas_everywhere;
}

const HloComputation* called(const HloModule& module, const HloInstruction& instruction, HloRole role) {
  return called(module, instruction, role, 0);
}

const HloComputation* called(const HloModule& module, const HloInstruction& instruction, HloRole role, std::size_t n) {
  for (const HloCall& call : instruction.calls)
    if (call.role == role && n-- == 0) return &module.computations[static_cast<std::size_t>(call.computation)];
  return nullptr;
}

}  // namespace podsim
