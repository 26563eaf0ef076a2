#include "workloads/hlo/hlo_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "workloads/hlo/hlo_product_rate.hpp"
#include "workloads/hlo/sliced_all_reduces.hpp"

namespace podsim {

namespace {

HloWork plus(HloWork a, const HloWork& b) { return {a.flops + b.flops, a.vector + b.vector, a.bytes + b.bytes, a.time + b.time}; }
HloWork minus(const HloWork& a, const HloWork& b) { return {a.flops - b.flops, a.vector - b.vector, a.bytes - b.bytes, a.time - b.time}; }
HloWork times(double n, const HloWork& work) { return {n * work.flops, n * work.vector, n * work.bytes, n * work.time}; }

/// Longer on the machine; of two that take as long there the one with more arithmetic, then with more bytes.
bool is_shorter(const HloWork* a, const HloWork* b) {
  return std::tuple{a->time, a->flops + a->vector, a->bytes} < std::tuple{b->time, b->flops + b->vector, b->bytes};
}

std::vector<bool> reached_computations(const HloModule& module) {
  std::vector<bool> reached(module.computations.size(), module.entry == HloInstruction::missing);
  if (module.entry != HloInstruction::missing) reached[static_cast<std::size_t>(module.entry)] = true;
  for (std::size_t c = module.computations.size(); c-- > 0;)
    if (reached[c])
      for (const HloInstruction& instruction : module.computations[c].instructions)
        for (const HloCall& call : instruction.calls) reached[static_cast<std::size_t>(call.computation)] = true;
  return reached;
}

}  // namespace

HloCosts::HloCosts(const HloModule& module, const Machine& machine, const HloCountOptions& options)
    : module_{&module},
      machine_{&machine},
      options_{options},
      costs_(module.computations.size()),
      totals_(module.computations.size()),
      windows_(module.computations.size()),
      before_(module.computations.size()) {}

Expected<HloCosts> HloCosts::of(const HloModule& module, const Machine& machine, const HloCountOptions& options) {
  HloCosts costs{module, machine, options};
  HloTaskCosts each{module, options.custom_calls, &machine, options.tolerant};
  const std::vector<bool> reached = reached_computations(module);
  for (int c = 0; c < static_cast<int>(module.computations.size()); ++c)
    if (const auto ok = costs.add_computation(c, reached[static_cast<std::size_t>(c)], each); !ok) return ok.error();
  return costs;
}

const HloInstruction& HloCosts::at(const HloPlace& place) const {
  return module_->computations[static_cast<std::size_t>(place.computation)].instructions[static_cast<std::size_t>(place.instruction)];
}

void HloCosts::warn(const std::string& message, const HloInstruction& instruction) {
  for (HloWarning& warning : warnings_)
    if (warning.message == message) {
      ++warning.count;
      return;
    }
  warnings_.push_back({message, 1, module_->where(instruction)});
}

Status HloCosts::decide(const HloPlace& place) {
  const HloInstruction& instruction = at(place);
  const HloComputation& computation = module_->computations[static_cast<std::size_t>(place.computation)];
  if (instruction.opcode == HloOpcode::dot || instruction.opcode == HloOpcode::convolution) {
    auto product = product_of(*module_, computation, instruction);
    if (!product && !options_.tolerant) return product.error();
    if (product)
      products_.emplace(place, *product);
    else
      warn("products that are not counted", instruction);
  }
  if (instruction.opcode == HloOpcode::while_ && instruction.phase == HloPhase::whole) {
    auto trips = trip_count_of(*module_, computation, instruction, options_.trip_counts);
    if (!trips && !options_.tolerant) return trips.error();
    if (!trips) warn("loops of unknown trip count, counted once", instruction);
    if (trips && trips->by_condition) warn("loops whose known_trip_count is not what their condition gives", instruction);
    trips_.emplace(place, trips ? *trips : HloTripCount{});
  }
  if (instruction.opcode == HloOpcode::conditional) {
    std::vector<const HloWork*> works;
    std::vector<std::size_t> calls;
    for (std::size_t n = 0; n < instruction.calls.size(); ++n) {
      if (instruction.calls[n].role != HloRole::branch) continue;
      works.push_back(&totals_[static_cast<std::size_t>(instruction.calls[n].computation)]);
      calls.push_back(n);
    }
    if (works.empty()) return success();
    const auto longest = std::max_element(works.begin(), works.end(), is_shorter);
    int branch = static_cast<int>(longest - works.begin());
    if (const auto given = options_.branches.find(instruction.name); given != options_.branches.end()) {
      branch = given->second;
      if (branch < 0 || static_cast<std::size_t>(branch) >= works.size())
        return Diagnostic{of_field("branch"),
                          fmt::format("expected a branch of {} from 0 to {}, got {}", quoted(instruction.name), works.size() - 1, branch)};
    }
    branches_.emplace(place, Branch{branch, calls[static_cast<std::size_t>(branch)]});
  }
  return success();
}

Status HloCosts::add_computation(int c, bool reached, HloTaskCosts& costs) {
  if (!reached) return success();
  const HloComputation& computation = module_->computations[static_cast<std::size_t>(c)];
  HloWork& total = totals_[static_cast<std::size_t>(c)];
  std::vector<int> begun_by(computation.instructions.size(), HloInstruction::missing);
  std::vector<std::pair<int, int>>& windows = windows_[static_cast<std::size_t>(c)];
  for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) {
    const HloInstruction& instruction = computation.instructions[static_cast<std::size_t>(i)];
    const bool sends = instruction.opcode == HloOpcode::send || instruction.opcode == HloOpcode::recv;  // begin without -start
    if (instruction.phase == HloPhase::start || (sends && instruction.phase == HloPhase::whole)) begun_by[static_cast<std::size_t>(i)] = i;
    if (instruction.phase != HloPhase::update && instruction.phase != HloPhase::done) continue;
    const int operand = instruction.operands.empty() ? HloInstruction::missing : instruction.operands[0];
    const int start = operand == HloInstruction::missing ? operand : begun_by[static_cast<std::size_t>(operand)];
    if (instruction.phase == HloPhase::update) begun_by[static_cast<std::size_t>(i)] = start;
    if (instruction.phase == HloPhase::done && start != HloInstruction::missing) windows.emplace_back(start, i);
  }
  std::sort(windows.begin(), windows.end());
  std::vector<HloWork>& before = before_[static_cast<std::size_t>(c)];
  for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) {
    const HloPlace place{c, i};
    if (const auto ok = decide(place); !ok) return ok;
    auto cost = costs.of(computation, i);
    if (!cost) return cost.error();
    costs_[static_cast<std::size_t>(c)].push_back(*std::move(cost));
    if (!windows.empty()) before.push_back(total);
    total = plus(total, work_of(place));
  }
  return success();
}

/// With what it calls, but for asynchronous computations.
HloWork HloCosts::work_of(const HloPlace& place) const {
  const HloInstruction& instruction = at(place);
  const HloTaskCost& cost = this->cost(place);
  HloWork work{cost.matrix + cost.transforms, cost.vector - cost.transforms, cost.bytes, time_of(cost, *machine_)};
  for (std::size_t n = 0; n < instruction.calls.size(); ++n) {
    const Call how = call(place, n);
    if (how.times > 0 && !how.asynchronous && !how.fused) work = plus(work, times(static_cast<double>(how.times), totals_[static_cast<std::size_t>(instruction.calls[n].computation)]));
  }
  return work;
}

HloCosts::Call HloCosts::call(const HloPlace& place, std::size_t n) const {
  const HloInstruction& instruction = at(place);
  const HloRole role = instruction.calls[n].role;
  switch (instruction.opcode) {
    case HloOpcode::while_: {
      const auto found = trips_.find(place);
      if (found == trips_.end()) return {};
      if (role == HloRole::body) return {found->second.count};
      return {role == HloRole::condition ? found->second.count + 1 : 0};
    }
    case HloOpcode::conditional: {
      const auto found = branches_.find(place);
      return {found != branches_.end() && found->second.call == n ? 1 : 0};
    }
    case HloOpcode::call: return {role == HloRole::to_apply || role == HloRole::called ? 1 : 0};
    case HloOpcode::fusion: return {role == HloRole::calls ? 1 : 0, true};
    case HloOpcode::async: return {instruction.phase == HloPhase::start && role == HloRole::calls ? 1 : 0, false, !instruction.attributes->is_sync};
    case HloOpcode::custom_call: return {role == HloRole::called ? 1 : 0, true};
    default: return {};
  }
}

const HloProduct* HloCosts::product(const HloPlace& place) const {
  const auto found = products_.find(place);
  return found == products_.end() ? nullptr : &found->second;
}

std::optional<HloTripCount> HloCosts::trips(const HloPlace& loop) const {
  const auto found = trips_.find(loop);
  return found == trips_.end() ? std::nullopt : std::optional{found->second};
}

std::optional<int> HloCosts::branch(const HloPlace& conditional) const {
  const auto found = branches_.find(conditional);
  return found == branches_.end() ? std::nullopt : std::optional{found->second.branch};
}

HloWork HloCosts::between(int computation, int first, int last) const {
  const std::vector<HloWork>& before = before_[static_cast<std::size_t>(computation)];
  return minus(before[static_cast<std::size_t>(last)], before[static_cast<std::size_t>(first) + 1]);
}

Bytes HloCosts::boundary_bytes(const HloPlace& place) const {
  const HloComputation& computation = module_->computations[static_cast<std::size_t>(place.computation)];
  const HloInstruction& instruction = at(place);
  Bytes bytes = device_bytes(*instruction.shape);
  for (const int operand : instruction.operands)
    if (operand != HloInstruction::missing)
      bytes = saturated_sum(bytes, device_bytes(*computation.instructions[static_cast<std::size_t>(operand)].shape));
  return bytes;
}

std::optional<HloCosts::Move> HloCosts::move_of(const HloPlace& place) const {
  const HloInstruction& instruction = at(place);
  const HloComputation& computation = module_->computations[static_cast<std::size_t>(place.computation)];
  const HloShape* to = &*instruction.shape;
  const HloShape* from = instruction.operands.empty() || instruction.operands[0] == HloInstruction::missing
                             ? nullptr
                             : &*computation.instructions[static_cast<std::size_t>(instruction.operands[0])].shape;
  if (instruction.opcode == HloOpcode::custom_call) {
    const HloCustomCall::Kind kind = custom_call_of(computation, instruction, options_.custom_calls).kind;
    if (kind == HloCustomCall::Kind::to_host) return Move{HloMemory::hbm, HloMemory::host, device_bytes(*to)};
    if (kind == HloCustomCall::Kind::to_device) return Move{HloMemory::host, HloMemory::hbm, device_bytes(*to)};
    return std::nullopt;
  }
  const bool moves = instruction.opcode == HloOpcode::copy || instruction.opcode == HloOpcode::slice ||
                     instruction.opcode == HloOpcode::dynamic_slice || instruction.opcode == HloOpcode::dynamic_update_slice ||
                     instruction.opcode == HloOpcode::concatenate;
  if (!moves) return std::nullopt;
  if (instruction.phase == HloPhase::start) {
    // copy-start is (destination, source, context), others ((operands), result, context).
    const std::size_t result = instruction.opcode == HloOpcode::copy ? 0 : 1;
    if (instruction.shape->elements.size() <= result) return std::nullopt;
    to = &instruction.shape->elements[result];
    if (from == nullptr && instruction.opcode == HloOpcode::copy && instruction.shape->elements.size() > 1) from = &instruction.shape->elements[1];
  }
  if (from == nullptr || !from->is_array() || !to->is_array() || from->layout.memory_space == to->layout.memory_space) return std::nullopt;
  return Move{from->layout.memory_space, to->layout.memory_space, device_bytes(*to)};
}

std::map<int, int> HloCosts::sliced(int computation, bool is_fused) const {
  const HloComputation& in = module_->computations[static_cast<std::size_t>(computation)];
  return sliced_all_reduces(*module_, in, HloUsers{in}, is_fused);
}

}  // namespace podsim
