#include "workloads/hlo/buffer_sharing.hpp"

#include <algorithm>

#include "workloads/hlo/hlo_leaves.hpp"

namespace podsim::hlo_buffers {

namespace {

/// Whether the work of an instruction on an element of the operand needs only the element in the same place.
bool in_place(const HloInstruction& user, const HloInstruction& operand) {
  return (is_elementwise(user.opcode) || user.opcode == HloOpcode::bitcast) && elements_of(*user.shape) == elements_of(*operand.shape);
}

bool is_laid_out_alike(const HloShape& a, const HloShape& b) { return a.dims == b.dims && a.layout.minor_to_major == b.layout.minor_to_major; }

/// Whether a scatter writes into what is read there: one of its arrays, which it does not read again.
bool scattered_into(const HloInstruction& scatter, int array) {
  const auto arrays = scatter.operands.begin() + static_cast<std::ptrdiff_t>(scatter.operands.size() / 2);
  return std::find(scatter.operands.begin(), arrays, array) != arrays && std::count(scatter.operands.begin(), scatter.operands.end(), array) == 1;
}

}  // namespace

std::vector<HloAlias> operand_aliases_of(const HloAttributes& attributes) {
  std::vector<HloAlias> aliases;
  for (const HloAttribute& attribute : attributes.others) {
    if (attribute.name != "output_to_operand_aliasing" && attribute.name != "output_operand_aliasing") continue;
    HloCursor cursor{attribute.text, 0, {}};
    if (!read_hlo_aliases(cursor, aliases)) return {};
  }
  return aliases;
}

bool updates_in_place(const HloInstruction& instruction) {
  if (instruction.opcode == HloOpcode::dynamic_update_slice) return !instruction.operands.empty();
  constexpr std::size_t of_one_array = 3;
  return instruction.opcode == HloOpcode::scatter && instruction.operands.size() == of_one_array;
}

std::vector<int> updated_parameters(const HloModule& module, const HloComputation& fused) {
  std::vector<int> updated;
  if (fused.root == HloInstruction::missing) return updated;
  const auto instruction = [&](int number) -> const HloInstruction& { return fused.instructions[static_cast<std::size_t>(number)]; };
  const auto behind_bitcasts = [&](int number) {
    while (number != HloInstruction::missing && instruction(number).opcode == HloOpcode::bitcast && !instruction(number).operands.empty())
      number = instruction(number).operands[0];
    return number;
  };
  const auto target = [&](int number) {
    number = behind_bitcasts(number);
    if (number == HloInstruction::missing) return -1;
    const HloComputation* const inside = instruction(number).opcode == HloOpcode::fusion ? called(module, instruction(number), HloRole::calls) : nullptr;
    const std::vector<int> updated = inside != nullptr ? updated_parameters(module, *inside) : std::vector<int>{updates_in_place(instruction(number)) ? 0 : -1};
    if (updated.size() != 1 || updated[0] < 0 || static_cast<std::size_t>(updated[0]) >= instruction(number).operands.size()) return -1;
    number = behind_bitcasts(instruction(number).operands[static_cast<std::size_t>(updated[0])]);
    return number != HloInstruction::missing && instruction(number).opcode == HloOpcode::parameter ? static_cast<int>(instruction(number).number)
                                                                                                   : -1;
  };
  const HloInstruction& root = instruction(fused.root);
  if (root.opcode != HloOpcode::tuple) return {target(fused.root)};
  for (const int operand : root.operands) updated.push_back(target(operand));
  return updated;
}

std::vector<Overwrite> overwrites_of_fused(const HloComputation& fused) {
  std::vector<Overwrite> overwrites;
  if (fused.root == HloInstruction::missing) return overwrites;
  const std::size_t count = fused.instructions.size();
  const auto root = static_cast<std::size_t>(fused.root);
  const bool several = fused.instructions[root].opcode == HloOpcode::tuple;
  const std::vector<int> results = several ? fused.instructions[root].operands : std::vector<int>{fused.root};
  const bool transposes = several && std::any_of(results.begin(), results.end(), [&](int result) {
    return result != HloInstruction::missing && fused.instructions[static_cast<std::size_t>(result)].opcode == HloOpcode::transpose;
  });
  std::vector<std::vector<std::size_t>> users(count);
  for (std::size_t i = 0; i < count; ++i)
    for (const int operand : fused.instructions[i].operands)
      if (operand != HloInstruction::missing) users[static_cast<std::size_t>(operand)].push_back(i);
  const auto is_result = [&](std::size_t i) { return std::find(results.begin(), results.end(), static_cast<int>(i)) != results.end(); };
  if (const HloInstruction& sort = fused.instructions[root]; sort.opcode == HloOpcode::sort) {
    for (std::size_t n = 0; n < sort.operands.size(); ++n) {
      const auto parameter = std::find(fused.parameters.begin(), fused.parameters.end(), sort.operands[n]);
      if (parameter != fused.parameters.end() && *parameter != HloInstruction::missing && users[static_cast<std::size_t>(*parameter)].size() == 1)
        overwrites.push_back({static_cast<std::size_t>(parameter - fused.parameters.begin()), n});
    }
    return overwrites;
  }
  std::vector<std::size_t> reached(count);  // the parameter plus one whose elements an instruction needs
  for (std::size_t p = 0; p < fused.parameters.size(); ++p) {
    if (fused.parameters[p] == HloInstruction::missing) continue;
    std::vector<std::size_t> next{static_cast<std::size_t>(fused.parameters[p])};
    reached[next[0]] = p + 1;
    bool aligned = true;
    while (aligned && !next.empty()) {
      const std::size_t read = next.back();
      next.pop_back();
      for (const std::size_t user : users[read]) {
        const HloInstruction& reader = fused.instructions[user];
        if ((several && user == root) || (several && reader.opcode == HloOpcode::reduce && is_result(user))) continue;
        const bool scatters = reader.opcode == HloOpcode::scatter && is_result(user) && scattered_into(reader, static_cast<int>(read));
        aligned = aligned && (scatters || in_place(reader, fused.instructions[read]));
        if (reached[user] != p + 1) next.push_back(user);
        reached[user] = p + 1;
      }
    }
    const HloShape& parameter = *fused.instructions[static_cast<std::size_t>(fused.parameters[p])].shape;
    for (std::size_t leaf = 0; aligned && leaf < results.size(); ++leaf) {
      if (results[leaf] == HloInstruction::missing || reached[static_cast<std::size_t>(results[leaf])] != p + 1) continue;
      if (!transposes || is_laid_out_alike(parameter, *fused.instructions[static_cast<std::size_t>(results[leaf])].shape)) overwrites.push_back({p, leaf});
    }
  }
  return overwrites;
}

std::vector<Overwrite> overwrites_of(const HloInstruction& instruction, std::size_t leaves) {
  std::vector<Overwrite> overwrites;
  const bool any = is_elementwise(instruction.opcode) || instruction.opcode == HloOpcode::all_reduce;
  const bool own = instruction.opcode == HloOpcode::sort || instruction.opcode == HloOpcode::scatter;  // operand n and leaf n
  if (!any && !own) return overwrites;
  for (std::size_t n = 0; n < instruction.operands.size(); ++n) {
    if (instruction.opcode == HloOpcode::scatter && !scattered_into(instruction, instruction.operands[n])) continue;
    for (std::size_t leaf = any ? 0 : n; leaf < (any ? leaves : std::min(leaves, n + 1)); ++leaf) overwrites.push_back({n, leaf});
  }
  return overwrites;
}

}  // namespace podsim::hlo_buffers
