// Calls, loops, branches, custom-calls and asynchronous operations.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo_values/interpreter_step.hpp"

namespace podsim {

Expected<HloInterpreter::Values> HloInterpreter::calls(const Step& step, HloRole role) {
  const HloComputation* computation = called(module_, step.instruction, role);
  if (computation == nullptr) return step.error("expected a computation that it calls");
  std::vector<Values> arguments;
  for (const Values* operand : step.operands) arguments.push_back(*operand);
  return run(*computation, step.devices, arguments);
}

Expected<HloInterpreter::Values> HloInterpreter::while_loop(const Step& step) {
  const HloComputation *condition = called(module_, step.instruction, HloRole::condition), *body = called(module_, step.instruction, HloRole::body);
  if (condition == nullptr || body == nullptr || step.operands.size() != 1) return step.error("expected one operand, a condition and a body");
  Values state = *step.operands[0];
  while (true) {
    const auto goes_on = run(*condition, step.devices, {state});
    if (!goes_on) return goes_on.error();
    std::size_t yes = 0;
    for (const HloValue& value : *goes_on) {
      if (value.size() != 1 || value[0]->type != HloType::pred || !value[0]->dims.empty())
        return step.error("expected a condition that returns a scalar pred");
      yes += value[0]->integers[0] != 0 ? 1 : 0;
    }
    if (yes == 0) return state;
    if (yes != goes_on->size())
      return step.error(fmt::format("expected a condition that is the same on all devices, got true on {} of {}", yes, goes_on->size()));
    std::vector<Values> arguments;
    arguments.push_back(std::move(state));
    auto next = run(*body, step.devices, arguments);
    if (!next) return next.error();
    state = *std::move(next);
  }
}

std::string other_branch(const HloInstruction& conditional, std::int64_t taken, std::int64_t told) {
  return fmt::format("takes branch {}, and the schedule has branch {}; `branch` {}={} is the schedule that it takes", taken, told, conditional.name, taken);
}

Status HloInterpreter::check_branch(const Step& step, std::size_t chosen) const {
  if (branches_ == nullptr) return success();
  const auto told = branches_->find(step.instruction.name);
  if (told == branches_->end() || std::cmp_equal(told->second, chosen)) return success();
  Diagnostic other = step.error(other_branch(step.instruction, static_cast<std::int64_t>(chosen), told->second));
  other.cause = Cause::data;
  return other;
}

Expected<HloInterpreter::Values> HloInterpreter::conditional(const Step& step) {
  std::vector<const HloComputation*> branches;
  while (const HloComputation* branch = called(module_, step.instruction, HloRole::branch, branches.size())) branches.push_back(branch);
  if (branches.empty() || step.operands.size() != branches.size() + 1) return step.error("expected an index, branches and an operand for each");
  std::vector<std::size_t> chosen;
  for (const HloValue& value : *step.operands[0]) {
    if (value.size() != 1 || !is_integer(value[0]->type) || !value[0]->dims.empty()) return step.error("expected a scalar pred or integer as index");
    const std::int64_t index = value[0]->integers[0];
    if (value[0]->type == HloType::pred)
      chosen.push_back(index != 0 ? 0 : branches.size() - 1);
    else
      chosen.push_back(index < 0 || static_cast<std::size_t>(index) >= branches.size() ? branches.size() - 1 : static_cast<std::size_t>(index));
  }
  for (const std::size_t branch : chosen)
    if (auto ok = check_branch(step, branch); !ok) return ok.error();
  Values values(step.devices.size());
  for (std::size_t branch = 0; branch < branches.size(); ++branch) {
    Devices devices;
    Values arguments;
    std::vector<std::size_t> which;
    for (std::size_t device = 0; device < chosen.size(); ++device) {
      if (chosen[device] != branch) continue;
      which.push_back(device);
      devices.push_back(step.devices[device]);
      arguments.push_back((*step.operands[branch + 1])[device]);
    }
    if (which.empty()) continue;
    auto results = run(*branches[branch], devices, {arguments});
    if (!results) return results.error();
    for (std::size_t i = 0; i < which.size(); ++i) values[which[i]] = std::move((*results)[i]);
  }
  return values;
}

namespace {

// GatherScatterIndicesBitpacked says of indices that they were put into one number and taken out of it again.
constexpr std::array<std::string_view, 6> identities{"Sharding", "MoveToHost", "MoveToDevice", "annotate_device_placement", "AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked"};
constexpr std::array<std::string_view, 3> without_values{"AllocateBuffer", "PrepareAsyncCallStart", "PrepareAsyncCallDone"};

bool is_among(const auto& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

bool is_known(const HloInstruction& call) {
  const std::string& target = call.attributes->custom_call_target;
  return is_among(without_values, target) || (!call.operands.empty() && (is_among(identities, target) || library_call(target) != nullptr));
}

}  // namespace

std::vector<const HloInstruction*> calls_without_values(const HloModule& module) {
  std::vector<const HloInstruction*> calls;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      if (instruction.opcode == HloOpcode::custom_call && instruction.phase != HloPhase::done && instruction.phase != HloPhase::update && !is_known(instruction)) calls.push_back(&instruction);
  return calls;
}

Expected<HloInterpreter::Values> HloInterpreter::custom_call(const Step& step) {
  const std::string& target = step.instruction.attributes->custom_call_target;
  if (!is_known(step.instruction)) return stand_in(step);
  if (is_among(without_values, target)) return uninitialised(step);
  return is_among(identities, target) ? *step.operands[0] : arrays(step);
}

Expected<HloInterpreter::Values> HloInterpreter::stand_in(const Step& step) {
  if (const auto ok = check_room(step); !ok) return ok.error();
  const std::vector<const HloShape*> leaves = leaves_of(*step.instruction.shape);
  Values values;
  for (std::size_t device = 0; device < step.devices.size(); ++device) {
    std::vector<const HloArray*> given;
    for (const Values* operand : step.operands)
      for (const HloLeaf& array : (*operand)[device])
        if (has_reals(array->type) && !array->reals.empty()) given.push_back(array.get());
    const double part = std::ldexp(1.0, -static_cast<int>(std::bit_width(given.size())));
    HloValue& value = values.emplace_back();
    for (const HloShape* shape : leaves) {
      if (!budget_.spend(elements_of(*shape))) return step.error("expected the module to take fewer steps: the bound of the interpreter is passed here");
      HloArray array = zeros(shape->type, shape->dims);
      for (std::size_t i = 0; i < array.reals.size(); ++i) {
        double sum = 0;
        for (const HloArray* operand : given) sum += operand->reals[i % operand->reals.size()];
        array.reals[i] = rounded(arithmetic_, part_of(shape->type), sum * part);
      }
      value.push_back(leaf(std::move(array)));
    }
  }
  return values;
}

Expected<HloInterpreter::Values> HloInterpreter::uninitialised(const Step& step) {
  if (const auto ok = check_room(step); !ok) return ok.error();
  constexpr std::uint64_t no_number = 0x5a5a5a5a;  // of 32 bits, so that buffers hold it
  HloValue value;
  for (const HloShape* shape : leaves_of(*step.instruction.shape)) {
    HloArray array = zeros(shape->type, shape->dims);
    std::ranges::fill(array.reals, std::nan(""));
    std::ranges::fill(array.imaginaries, std::nan(""));
    std::fill(array.integers.begin(), array.integers.end(), wrapped(shape->type, no_number));
    value.push_back(leaf(std::move(array)));
  }
  return Values(step.devices.size(), value);
}

/// The value of a -start: what its shape says of operands, results and contexts, in either order; contexts are zero.
Expected<HloInterpreter::Values> HloInterpreter::with_operands_in_front(const Step& step, const Values& results) {
  const std::vector<const HloShape*> leaves = leaves_of(*step.instruction.shape);
  const auto composed = [&](std::size_t device, bool operands_first) {
    HloValue value = operands_first ? HloValue{} : results[device];
    for (const Values* operand : step.operands) value.insert(value.end(), (*operand)[device].begin(), (*operand)[device].end());
    if (operands_first) value.insert(value.end(), results[device].begin(), results[device].end());
    return value;
  };
  Values values;
  for (std::size_t device = 0; device < step.devices.size(); ++device) {
    bool found = false;
    for (HloValue value : {results[device], composed(device, true), composed(device, false)}) {
      bool good = value.size() <= leaves.size();
      for (std::size_t i = 0; good && i < value.size(); ++i) good = fits(*value[i], *leaves[i]);
      for (std::size_t i = value.size(); good && i < leaves.size(); ++i) good = !leaves[i]->is_array() || leaves[i]->dims.empty();
      // A result alone is meant only if the shape has nothing more.
      if (!good || (value.size() == results[device].size() && value.size() != leaves.size() && !step.operands.empty())) continue;
      while (value.size() < leaves.size()) value.push_back(leaf(zeros(leaves[value.size()]->type, {})));
      values.push_back(std::move(value));
      found = true;
      break;
    }
    if (!found)
      return step.error(fmt::format("expected the shape of {} to hold its operands and results, got {}", opcode_text(step.instruction),
                                    short_text(*step.instruction.shape).substr(0, 200)));
  }
  return values;
}

Expected<HloInterpreter::Values> HloInterpreter::started(const Step& step, Frame& frame) {
  const HloInstruction& instruction = step.instruction;
  if (instruction.opcode == HloOpcode::send || instruction.opcode == HloOpcode::recv) return step.not_interpreted();
  if (frame.pending.empty()) return step.not_interpreted();  // an instruction alone
  const auto self = static_cast<std::size_t>(&instruction - step.computation.instructions.data());
  if (instruction.phase != HloPhase::start) {
    if (instruction.operands.empty()) return step.not_interpreted();
    Values& pending = frame.pending[to_size(instruction.operands[0])];
    if (pending.empty()) return step.error("expected the operation that it ends to have begun in the same computation, and to end once");
    Values results = std::move(pending);
    pending.clear();
    if (instruction.phase == HloPhase::done) return results;
    frame.pending[self] = std::move(results);
    return *step.operands[0];
  }
  Expected<Values> results = Values{};
  if (instruction.opcode == HloOpcode::async || (is_collective(instruction.opcode) && called(module_, instruction, HloRole::calls) != nullptr)) {
    results = calls(step, HloRole::calls);
  } else if (instruction.opcode == HloOpcode::copy && !step.operands.empty()) {
    results = *step.operands[0];
  } else if (is_collective(instruction.opcode)) {
    results = collective(step);
  } else {
    // foo-start, whose shape is ((operands), result, contexts), stands for foo.
    const HloShape& shape = *instruction.shape;
    if (!shape.is_tuple() || shape.elements.size() < 2) return step.not_interpreted();
    HloInstruction operation = instruction;
    operation.phase = HloPhase::whole;
    operation.shape = HloShape{shape.elements[1]};
    const Step inner{module_, step.computation, operation, step.devices, step.operands};
    results = whole(inner, frame);
    if (results)
      for (const HloValue& value : *results)
        if (const auto ok = check_value(inner, *operation.shape, value, "a result"); !ok) return ok.error();
  }
  if (!results) return results.error();
  auto value = with_operands_in_front(step, *results);
  if (!value) return value.error();
  frame.pending[self] = *std::move(results);
  return value;
}

}  // namespace podsim
