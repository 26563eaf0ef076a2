#include "workloads/hlo/reordered.hpp"

#include <algorithm>
#include <queue>

#include "sim/base/invariant.hpp"

namespace podsim {

Reordered::Reordered(HloComputation& computation) : computation_{computation} {
  for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) places_.emplace_back(i, 1);
  instead_.assign(computation.instructions.size(), HloInstruction::missing);
}

int Reordered::add(HloInstruction instruction, int place) {
  computation_.instructions.push_back(std::move(instruction));
  places_.emplace_back(place, 0);
  instead_.push_back(HloInstruction::missing);
  changed_ = true;
  return static_cast<int>(places_.size()) - 1;
}

void Reordered::remove(int instruction, int instead) {
  instead_[static_cast<std::size_t>(instruction)] = instead;
  changed_ = true;
}

void Reordered::finish() {
  if (!changed_) return;
  std::vector<HloInstruction>& instructions = computation_.instructions;
  const std::size_t count = instructions.size();
  for (HloInstruction& instruction : instructions) {
    const auto is_gone = [&](int before) { return before != HloInstruction::missing && instead_[static_cast<std::size_t>(before)] != HloInstruction::missing; };
    if (std::ranges::none_of(instruction.attributes->control_predecessors, is_gone)) continue;
    HloAttributes attributes = *instruction.attributes;
    for (int& before : attributes.control_predecessors)
      if (is_gone(before)) before = instead_[static_cast<std::size_t>(before)];
    instruction.attributes = std::move(attributes);
  }
  std::vector<std::vector<int>> followers(count);
  std::vector<int> missing(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (instead_[i] != HloInstruction::missing) continue;
    const auto after = [&](int before) {
      if (before == HloInstruction::missing) return;
      followers[static_cast<std::size_t>(before)].push_back(static_cast<int>(i));
      ++missing[i];
    };
    for (const int operand : instructions[i].operands) after(operand);
    for (const int before : instructions[i].attributes->control_predecessors) after(before);
  }
  using Ready = std::pair<std::pair<int, int>, int>;  // place, instruction
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  std::size_t left = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (instead_[i] != HloInstruction::missing) continue;
    ++left;
    if (missing[i] == 0) ready.push({places_[i], static_cast<int>(i)});
  }
  std::vector<int> position(count, HloInstruction::missing);
  std::vector<HloInstruction> ordered;
  ordered.reserve(left);
  while (!ready.empty()) {
    const int i = ready.top().second;
    ready.pop();
    position[static_cast<std::size_t>(i)] = static_cast<int>(ordered.size());
    ordered.push_back(std::move(instructions[static_cast<std::size_t>(i)]));
    for (const int follower : followers[static_cast<std::size_t>(i)])
      if (--missing[static_cast<std::size_t>(follower)] == 0) ready.push({places_[static_cast<std::size_t>(follower)], follower});
  }
  PODSIM_ASSERT(ordered.size() == left);
  const auto moved = [&](int& i) {
    if (i != HloInstruction::missing) i = position[static_cast<std::size_t>(i)];
  };
  for (HloInstruction& instruction : ordered) {
    for (int& operand : instruction.operands) moved(operand);
    if (instruction.attributes->control_predecessors.empty()) continue;
    HloAttributes attributes = *instruction.attributes;
    for (int& before : attributes.control_predecessors) moved(before);
    instruction.attributes = std::move(attributes);
  }
  moved(computation_.root);
  for (int& parameter : computation_.parameters) moved(parameter);
  instructions = std::move(ordered);
}

std::vector<bool> runs_in_order(const HloModule& module) {
  std::vector<bool> runs(module.computations.size(), false);
  if (module.entry != HloInstruction::missing) runs[static_cast<std::size_t>(module.entry)] = true;
  for (std::size_t c = module.computations.size(); c-- > 0;) {  // callers come behind what they call
    if (!runs[c]) continue;
    for (const HloInstruction& instruction : module.computations[c].instructions) {
      const bool goes_on = instruction.opcode == HloOpcode::while_ || instruction.opcode == HloOpcode::conditional || instruction.opcode == HloOpcode::call;
      for (const HloCall& call : instruction.calls)
        if (goes_on && call.role != HloRole::condition) runs[static_cast<std::size_t>(call.computation)] = true;
    }
  }
  return runs;
}

}  // namespace podsim
