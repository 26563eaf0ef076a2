#include "workloads/hlo/hlo_module.hpp"

#include <algorithm>
#include <charconv>

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

HloGroupMode group_mode_of(const HloInstruction& collective) {
  const HloAttributes& attributes = *collective.attributes;
  if (!attributes.channel_id) return HloGroupMode::replicas;
  using enum HloOpcode;
  const bool may_say = collective.opcode == all_gather || collective.opcode == all_reduce || collective.opcode == reduce_scatter;
  if (!may_say) return HloGroupMode::partitions;
  return attributes.use_global_device_ids.value_or(false) ? HloGroupMode::flattened : HloGroupMode::replicas_everywhere;
}

const HloComputation* called(const HloModule& module, const HloInstruction& instruction, HloRole role) {
  return called(module, instruction, role, 0);
}

const HloComputation* called(const HloModule& module, const HloInstruction& instruction, HloRole role, std::size_t n) {
  for (const HloCall& call : instruction.calls)
    if (call.role == role && n-- == 0) return &module.computations[static_cast<std::size_t>(call.computation)];
  return nullptr;
}

std::vector<std::int64_t> listed_dimensions(const HloAttributes& attributes, std::string_view name) {
  std::vector<std::int64_t> dimensions;
  for (const HloAttribute& attribute : attributes.others) {
    if (attribute.name != name) continue;
    const char *at = attribute.text.data(), *const end = at + attribute.text.size();
    while (at != end) {
      std::int64_t value = 0;
      const auto [rest, status] = std::from_chars(at, end, value);
      if (status == std::errc{}) dimensions.push_back(value);
      at = status == std::errc{} ? rest : at + 1;
    }
  }
  return dimensions;
}

std::optional<std::int64_t> number_named(const HloAttributes& attributes, std::string_view name) {
  const std::vector<std::int64_t> numbers = listed_dimensions(attributes, name);
  if (numbers.size() != 1) return std::nullopt;
  return numbers[0];
}

}  // namespace podsim
