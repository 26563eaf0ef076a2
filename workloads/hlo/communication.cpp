#include "workloads/hlo/communication.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace podsim {

namespace {

using Problem = std::optional<std::string>;

Problem of_pairs(const HloInstruction& instruction) {
  const auto again = repeated_pair(instruction.attributes->source_target_pairs);
  if (!again) return {};
  return fmt::format("expected pairs in which a device sends at most once and receives at most once, got {{{},{}}} beside another one", again->first, again->second);
}

Problem of_groups(const HloModule& module, const HloInstruction& collective) {
  if (!is_collective(collective.opcode) || !collective.attributes->replica_groups) return {};
  const ReplicaGroups& groups = *collective.attributes->replica_groups;
  if (groups.is_all() || collective.opcode == HloOpcode::collective_broadcast) return {};
  const HloGroupMode mode = group_mode_of(collective);
  const std::int64_t ids = ids_of(mode, module.replica_count, devices_of(module) / module.replica_count);
  const bool may_differ = collective.opcode == HloOpcode::all_reduce;
  const bool has_all = groups.total() == ids && groups.largest() == ids - 1;  // each at most once: the reader of groups
  if (has_all && (may_differ || groups.uniform_size())) return {};
  const bool names_replicas = mode == HloGroupMode::replicas_everywhere;
  return fmt::format("expected groups {}that have each of {} {} once, got {}", may_differ ? "" : "of equal size ", ids, names_replicas ? "replicas (use_global_device_ids is not true)" : "devices", to_text(groups));
}

/// Of what one computation starts and ends.
class Phases {
 public:
  explicit Phases(const HloComputation& computation) : computation_{computation}, ended_by_(computation.instructions.size(), HloInstruction::missing) {}

  Problem of(int i) {
    const HloInstruction& instruction = at(i);
    if (instruction.phase != HloPhase::update && instruction.phase != HloPhase::done) return {};
    const int from = instruction.operands.empty() ? HloInstruction::missing : instruction.operands.front();
    // A loop may carry what a send or recv began into its next iteration: XLA for GPUs pipelines them so.
    if (from != HloInstruction::missing && is_transfer(instruction) && (at(from).opcode == HloOpcode::get_tuple_element || at(from).opcode == HloOpcode::parameter)) return {};
    if (from == HloInstruction::missing || at(from).opcode != instruction.opcode || !goes_on(at(from)))
      return fmt::format("expected the {} of it as its operand", is_transfer(instruction) ? "beginning" : "-start");
    int& by = ended_by_[static_cast<std::size_t>(from)];
    if (by != HloInstruction::missing) return fmt::format("expected one end of {}, got {} before", at(from).name, at(by).name);
    by = i;
    return {};
  }
  [[nodiscard]] bool is_ended(int i) const { return (at(i).phase != HloPhase::start && at(i).phase != HloPhase::update) || ended_by_[static_cast<std::size_t>(i)] != HloInstruction::missing; }

 private:
  [[nodiscard]] const HloInstruction& at(int i) const { return computation_.instructions[static_cast<std::size_t>(i)]; }
  static bool is_transfer(const HloInstruction& instruction) { return instruction.opcode == HloOpcode::send || instruction.opcode == HloOpcode::recv; }
  /// Whether a -done or -update may be of it. A send or recv is its own beginning.
  static bool goes_on(const HloInstruction& instruction) {
    return instruction.phase == HloPhase::start || instruction.phase == HloPhase::update || (is_transfer(instruction) && instruction.phase == HloPhase::whole);
  }

  const HloComputation& computation_;
  std::vector<int> ended_by_;
};

}  // namespace

Status check_communication(const HloModule& module) {
  for (const HloComputation& computation : module.computations) {
    const auto count = static_cast<int>(computation.instructions.size());
    const auto wrong = [&](int i, const std::string& message) {
      const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(i)];
      return Diagnostic{module.where(instruction), fmt::format("{}: {}", instruction.name, message)};
    };
    Phases phases{computation};
    for (int i = 0; i < count; ++i) {
      const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(i)];
      if (const auto problem = phases.of(i)) return wrong(i, *problem);
      if (const auto problem = of_pairs(instruction)) return wrong(i, *problem);
      if (const auto problem = of_groups(module, instruction)) return wrong(i, *problem);
    }
    for (int i = 0; i < count; ++i)
      if (!phases.is_ended(i)) return wrong(i, "expected a -done of it");
  }
  return success();
}

}  // namespace podsim
