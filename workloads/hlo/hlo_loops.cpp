#include "workloads/hlo/hlo_loops.hpp"

#include <fmt/format.h>

#include <optional>

#include "sim/base/diagnostic.hpp"

namespace podsim {

namespace {

constexpr int most_steps = 4096, deepest = 64;

/// What a scalar is: a constant, or an element of the loop's tuple plus a constant.
struct Scalar {
  int element = -1;  // none
  std::int64_t value = 0;
};

/// A computation, and where it was called if that was by a fusion, or by the only call of it.
struct Frame {
  const HloComputation* computation = nullptr;
  const HloInstruction* caller = nullptr;
  const Frame* outer = nullptr;
};

class ScalarTracer {
 public:
  explicit ScalarTracer(const HloModule& module) : module_{module} {}

  std::optional<Scalar> scalar(const Frame& frame, int number, int depth = 0) {
    if (number == HloInstruction::missing || ++steps_ > most_steps || depth > deepest) return std::nullopt;
    const HloInstruction& instruction = frame.computation->instructions[static_cast<std::size_t>(number)];
    const auto operand = [&](std::size_t i) -> std::optional<Scalar> {
      return i < instruction.operands.size() ? scalar(frame, instruction.operands[i], depth + 1) : std::nullopt;
    };
    switch (instruction.opcode) {
      case HloOpcode::constant:
        if (instruction.attributes->literal.integers.size() != 1) return std::nullopt;
        return Scalar{-1, instruction.attributes->literal.integers.front()};
      case HloOpcode::copy:
      case HloOpcode::convert:
      case HloOpcode::bitcast:
      case HloOpcode::reshape:
        if (instruction.phase == HloPhase::start) return operand(0);
        if (elements_of(*instruction.shape) != 1 || !is_integer(instruction.shape->type)) return std::nullopt;
        return operand(0);
      case HloOpcode::parameter: {
        if (frame.caller == nullptr || static_cast<std::size_t>(instruction.number) >= frame.caller->operands.size()) return std::nullopt;
        return scalar(*frame.outer, frame.caller->operands[static_cast<std::size_t>(instruction.number)], depth + 1);
      }
      case HloOpcode::get_tuple_element:
        return element(frame, instruction.operands.empty() ? HloInstruction::missing : instruction.operands[0], instruction.number, depth + 1);
      case HloOpcode::add:
      case HloOpcode::subtract: {
        const auto left = operand(0), right = operand(1);
        const bool minus = instruction.opcode == HloOpcode::subtract;
        if (!left || !right || (left->element >= 0 && right->element >= 0) || (minus && right->element >= 0)) return std::nullopt;
        Scalar sum{std::max(left->element, right->element), 0};
        if (minus ? __builtin_sub_overflow(left->value, right->value, &sum.value) : __builtin_add_overflow(left->value, right->value, &sum.value))
          return std::nullopt;
        return sum;
      }
      case HloOpcode::fusion: {
        const HloComputation* const fused = called(module_, instruction, HloRole::calls);
        if (fused == nullptr) return std::nullopt;
        const Frame inner{fused, &instruction, &frame};
        return scalar(inner, fused->root, depth + 1);
      }
      default: return std::nullopt;
    }
  }

  /// Element `index` of the tuple that an instruction gives.
  std::optional<Scalar> element(const Frame& frame, int number, std::int64_t index, int depth = 0) {
    if (number == HloInstruction::missing || ++steps_ > most_steps || depth > deepest) return std::nullopt;
    const HloInstruction& tuple = frame.computation->instructions[static_cast<std::size_t>(number)];
    if (tuple.opcode == HloOpcode::tuple && static_cast<std::size_t>(index) < tuple.operands.size())
      return scalar(frame, tuple.operands[static_cast<std::size_t>(index)], depth + 1);
    // The parameter of a loop's body or condition is its tuple.
    if (tuple.opcode == HloOpcode::parameter && frame.caller == nullptr && tuple.number == 0) return Scalar{static_cast<int>(index), 0};
    if (tuple.opcode == HloOpcode::parameter && frame.caller != nullptr && static_cast<std::size_t>(tuple.number) < frame.caller->operands.size())
      return element(*frame.outer, frame.caller->operands[static_cast<std::size_t>(tuple.number)], index, depth + 1);
    if ((tuple.opcode == HloOpcode::opt_barrier || tuple.opcode == HloOpcode::copy) && !tuple.operands.empty() && tuple.phase == HloPhase::whole)
      return element(frame, tuple.operands[0], index, depth + 1);
    if (tuple.opcode == HloOpcode::fusion)
      if (const HloComputation* const fused = called(module_, tuple, HloRole::calls); fused != nullptr) {
        const Frame inner{fused, &tuple, &frame};
        return element(inner, fused->root, index, depth + 1);
      }
    return std::nullopt;
  }

  /// The comparison that a condition ends in, and the frame of its operands, handed to `use`.
  template <class Use>
  std::optional<std::int64_t> comparison(const Frame& frame, int number, Use use, int depth = 0) {
    if (number == HloInstruction::missing || ++steps_ > most_steps || depth > deepest) return std::nullopt;
    const HloInstruction& instruction = frame.computation->instructions[static_cast<std::size_t>(number)];
    if (instruction.opcode == HloOpcode::compare) return use(frame, instruction);
    if ((instruction.opcode == HloOpcode::copy || instruction.opcode == HloOpcode::bitcast) && !instruction.operands.empty())
      return comparison(frame, instruction.operands[0], use, depth + 1);
    if (instruction.opcode != HloOpcode::fusion) return std::nullopt;
    const HloComputation* const fused = called(module_, instruction, HloRole::calls);
    if (fused == nullptr) return std::nullopt;
    const Frame inner{fused, &instruction, &frame};
    return comparison(inner, fused->root, use, depth + 1);
  }

 private:
  const HloModule& module_;
  int steps_ = 0;
};

HloDirection mirrored(HloDirection direction) {
  switch (direction) {
    case HloDirection::ge: return HloDirection::le;
    case HloDirection::gt: return HloDirection::lt;
    case HloDirection::le: return HloDirection::ge;
    case HloDirection::lt: return HloDirection::gt;
    default: return direction;
  }
}

/// Iterations from `first` in steps while `direction` holds; nullopt if it never ends, or could run over.
std::optional<std::int64_t> iterations(std::int64_t first, std::int64_t step, HloDirection direction, std::int64_t bound) {
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(bound, first, &distance)) return std::nullopt;
  if (direction == HloDirection::ne) {
    if (distance == 0) return 0;
    if (step == 0 || distance % step != 0 || distance / step < 0) return std::nullopt;
    return distance / step;
  }
  if (direction == HloDirection::gt || direction == HloDirection::ge) {
    if (step == std::numeric_limits<std::int64_t>::min() || distance == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
    step = -step;
    distance = -distance;
  } else if (direction != HloDirection::lt && direction != HloDirection::le) {
    return std::nullopt;
  }
  const bool equal = direction == HloDirection::le || direction == HloDirection::ge;
  if (distance < 0 || (distance == 0 && !equal)) return 0;
  if (step <= 0) return std::nullopt;
  return equal ? distance / step + 1 : (distance - 1) / step + 1;
}

/// Where a computation is called, if one `call` alone does: XLA for CPUs puts loops into computations of their own. No caller: anything else.
Frame only_call_of(const HloModule& module, const HloComputation& computation) {
  Frame found;
  for (const HloComputation& by : module.computations)
    for (const HloInstruction& instruction : by.instructions)
      for (const HloCall& call : instruction.calls) {
        if (&module.computations[static_cast<std::size_t>(call.computation)] != &computation) continue;
        if (found.caller != nullptr || instruction.opcode != HloOpcode::call) return {};
        found = {&by, &instruction, nullptr};
      }
  return found;
}

std::optional<std::int64_t> count_of_condition(const HloModule& module, const HloComputation& around, const HloInstruction& loop) {
  const HloComputation *const condition = called(module, loop, HloRole::condition), *const body = called(module, loop, HloRole::body);
  if (condition == nullptr || body == nullptr || loop.operands.size() != 1) return std::nullopt;
  ScalarTracer tracer{module};
  const bool is_handed_in = loop.operands[0] != HloInstruction::missing && around.instructions[static_cast<std::size_t>(loop.operands[0])].opcode == HloOpcode::parameter;
  const Frame call = is_handed_in ? only_call_of(module, around) : Frame{}, caller{call.computation, nullptr, nullptr};
  const Frame outside{&around, call.caller, &caller}, in_condition{condition, nullptr, nullptr}, in_body{body, nullptr, nullptr};
  // The value of an element before the loop: a constant, not something that a loop around this one carries.
  const auto initial = [&](int element) -> std::optional<std::int64_t> {
    const auto value = tracer.element(outside, loop.operands[0], element);
    return value && value->element < 0 ? std::optional{value->value} : std::nullopt;
  };
  const auto change = [&](int element) -> std::optional<std::int64_t> {
    const auto next = tracer.element(in_body, body->root, element);
    return next && next->element == element ? std::optional{next->value} : std::nullopt;
  };
  return tracer.comparison(in_condition, condition->root, [&](const Frame& frame, const HloInstruction& compare) -> std::optional<std::int64_t> {
    if (compare.operands.size() != 2) return std::nullopt;
    auto left = tracer.scalar(frame, compare.operands[0]), right = tracer.scalar(frame, compare.operands[1]);
    HloDirection direction = compare.attributes->direction;
    if (!left || !right) return std::nullopt;
    const auto constant = [&](const Scalar& scalar) -> std::optional<std::int64_t> {
      if (scalar.element < 0) return scalar.value;
      const auto first = initial(scalar.element);
      std::int64_t value = 0;
      if (!first || change(scalar.element) != 0 || __builtin_add_overflow(*first, scalar.value, &value)) return std::nullopt;
      return value;
    };
    auto bound = constant(*right);
    if (!bound) {
      std::swap(left, right);
      direction = mirrored(direction);
      bound = constant(*right);
    }
    if (!bound || left->element < 0) return std::nullopt;
    const auto first = initial(left->element), step = change(left->element);
    std::int64_t begin = 0;
    if (!first || !step || __builtin_add_overflow(*first, left->value, &begin)) return std::nullopt;
    return iterations(begin, *step, direction, *bound);
  });
}

}  // namespace

Expected<HloTripCount> trip_count_of(const HloModule& module, const HloComputation& computation, const HloInstruction& loop,
                                     const HloTripCounts& given) {
  using Source = HloTripCount::Source;
  if (const auto found = given.find(loop.name); found != given.end()) return HloTripCount{found->second, Source::given, {}};
  const auto counted = count_of_condition(module, computation, loop);
  if (const auto& told = loop.attributes->known_trip_count) return HloTripCount{*told, Source::told, counted != told ? counted : std::nullopt};
  if (counted) return HloTripCount{*counted, Source::condition, {}};
  return Diagnostic{module.where(loop),
                    fmt::format("how often does the loop {} run? Neither its backend_config nor its condition tells; `trip_count` {}=N does",
                                quoted(loop.name), loop.name)};
}

}  // namespace podsim
