#include "workloads/hlo_values/interpreter.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo_values/collectives.hpp"
#include "workloads/hlo_values/interpreter_step.hpp"

namespace podsim {

namespace {

using Word = HloOpcode;

constexpr int deepest_call = 200;

Expected<HloArrays> array_operation(const ArrayOperation& operation) {
  switch (operation.instruction.opcode) {
    case Word::constant:
    case Word::iota:
    case Word::broadcast:
    case Word::reshape:
    case Word::transpose:
    case Word::reverse:
    case Word::slice:
    case Word::dynamic_slice:
    case Word::dynamic_update_slice:
    case Word::concatenate:
    case Word::pad: return move_operation(operation);
    case Word::bitcast:
    case Word::bitcast_convert: return bitcast_operation(operation);
    case Word::custom_call: return library_call(operation.attributes().custom_call_target)(operation);  // others do not come here
    case Word::copy: return elementwise_operation(operation);
    case Word::fft: return transform_operation(operation);
    case Word::dot: return is_complex(operation.shape().type) ? complex_product(operation, dot_operation) : dot_operation(operation);
    case Word::ragged_dot: return ragged_dot_operation(operation);
    case Word::convolution: return is_complex(operation.shape().type) ? complex_product(operation, convolution_operation) : convolution_operation(operation);
    case Word::reduce: return reduce_operation(operation);
    case Word::reduce_window: return reduce_window_operation(operation);
    case Word::select_and_scatter: return select_and_scatter_operation(operation);
    case Word::map: return map_operation(operation);
    case Word::sort: return sort_operation(operation);
    case Word::gather: return gather_operation(operation);
    case Word::scatter: return scatter_operation(operation);
    default: break;
  }
  if (is_elementwise(operation.instruction.opcode)) return elementwise_operation(operation);
  return operation.not_interpreted();
}

/// Results in the types that the instruction has: what a compiler made wider or narrower on the way.
void give_types(const ArrayOperation& operation, HloArrays& results) {
  const std::vector<const HloShape*> leaves = leaves_of(operation.shape());
  for (std::size_t i = 0; i < std::min(leaves.size(), results.size()); ++i) {
    HloArray& array = results[i];
    const HloType type = leaves[i]->type;
    if (array.type == type || !mixes(array.type, type)) continue;
    for (std::int64_t& value : array.integers) value = wrapped(type, static_cast<std::uint64_t>(value));
    if (bits_of(type) < bits_of(array.type))
      for (std::vector<double>* values : {&array.reals, &array.imaginaries})
        for (double& value : *values) value = rounded(operation.arithmetic, part_of(type), value);
    array.type = type;
  }
}

}  // namespace

Diagnostic HloInterpreter::Step::error(const std::string& message) const {
  return {module.where(instruction), fmt::format("{}: {}", instruction.name, message)};
}

Diagnostic HloInterpreter::Step::not_interpreted() const { return error(fmt::format("{} is not interpreted", opcode_text(instruction))); }

HloInterpreter::HloInterpreter(const HloModule& module, HloArithmetic& arithmetic, HloBudget& budget, std::int64_t most_elements)
    : module_{module}, arithmetic_{arithmetic}, budget_{budget}, most_elements_{most_elements} {}

HloLeaf HloInterpreter::leaf(HloArray array) {
  const std::int64_t count = elements_of(array);
  *alive_ += count;
  return {new HloArray(std::move(array)), [alive = alive_, count](const HloArray* gone) {
            *alive -= count;
            delete gone;
          }};
}

/// The last instruction that uses each one; of the root the end, so that it stays.
const std::vector<int>& HloInterpreter::last_uses(const HloComputation& computation) {
  const auto [found, is_new] = last_uses_.try_emplace(&computation);
  if (!is_new) return found->second;
  std::vector<int>& last = found->second;
  const int count = static_cast<int>(computation.instructions.size());
  for (int i = 0; i < count; ++i) last.push_back(i);
  for (int i = 0; i < count; ++i)
    for (const int operand : computation.instructions[to_size(i)].operands)
      if (operand >= 0 && operand < count) last[to_size(operand)] = std::max(last[to_size(operand)], i);
  last[to_size(computation.root)] = count;
  return last;
}

Expected<HloInterpreter::Values> HloInterpreter::run(const HloComputation& computation, const Devices& devices,
                                                     const std::vector<Values>& arguments) {
  const SourceLocation where{module_.file, computation.line, computation.column};
  if (computation.root == HloInstruction::missing) return Diagnostic{where, fmt::format("{} has no instructions", computation.name)};
  if (arguments.size() != computation.parameters.size())
    return Diagnostic{where, fmt::format("expected {} operands of {}, as it has parameters, got {}", computation.parameters.size(), computation.name,
                                         arguments.size())};
  if (depth_ == deepest_call) return Diagnostic{where, fmt::format("expected calls at most {} deep, got {} beyond", deepest_call, computation.name)};
  ++depth_;
  const std::vector<int>& last = last_uses(computation);
  Frame frame;
  frame.values.resize(computation.instructions.size());
  frame.pending.resize(computation.instructions.size());
  frame.arguments = &arguments;
  std::vector<const Values*> operands;
  for (std::size_t i = 0; i < computation.instructions.size(); ++i) {
    const HloInstruction& instruction = computation.instructions[i];
    operands.clear();
    for (const int operand : instruction.operands) {
      if (operand < 0 || to_size(operand) >= i) {
        --depth_;
        return Diagnostic{module_.where(instruction), fmt::format("{}: an operand is not in the text", instruction.name)};
      }
      operands.push_back(&frame.values[to_size(operand)]);
    }
    auto value = step(computation, instruction, devices, operands, frame);
    if (!value) {
      --depth_;
      return value.error();
    }
    frame.values[i] = *std::move(value);
    for (const int operand : instruction.operands)
      if (last[to_size(operand)] == static_cast<int>(i)) frame.values[to_size(operand)].clear();
    if (last[i] == static_cast<int>(i)) frame.values[i].clear();
  }
  --depth_;
  return std::move(frame.values[to_size(computation.root)]);
}

Expected<HloInterpreter::Values> HloInterpreter::step(const HloComputation& computation, const HloInstruction& instruction, const Devices& devices,
                                                      const std::vector<const Values*>& operands, Frame& frame) {
  const Step step{module_, computation, instruction, devices, operands};
  if (budget_.cancelled()) return cancelled_work();
  if (!budget_.spend(static_cast<std::int64_t>(devices.size())))
    return step.error("expected the module to take fewer steps: the bound of the interpreter is passed here");
  auto values = instruction.phase == HloPhase::whole ? whole(step, frame) : started(step, frame);
  if (!values) return values.error();
  for (const HloValue& value : *values)
    if (const auto ok = check_value(step, *instruction.shape, value, "a result"); !ok) return ok.error();
  return values;
}

Status HloInterpreter::check_value(const Step& step, const HloShape& shape, const HloValue& value, std::string_view what) const {
  const std::vector<const HloShape*> leaves = leaves_of(shape);
  if (leaves.size() != value.size())
    return step.error(fmt::format("expected {} of {}, got {} arrays", what, short_text(shape).substr(0, 200), value.size()));
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i]->is_array() && !has_values(leaves[i]->type)) return step.error(fmt::format("{} is not interpreted", short_text(*leaves[i])));
    if (!leaves[i]->dynamic_dims.empty()) return step.error(fmt::format("the dynamic dimensions of {} are not interpreted", short_text(*leaves[i])));
    if (!fits(*value[i], *leaves[i]))
      return step.error(fmt::format("expected {} of {}, got {}", what, short_text(*leaves[i]), short_text(*value[i])));
  }
  return success();
}

Status HloInterpreter::check_room(const Step& step) const {
  // All results beside what is alive.
  std::int64_t room = most_elements_ - *alive_;
  for (const HloShape* shape : leaves_of(*step.instruction.shape)) {
    if (!shape->dynamic_dims.empty()) return step.error(fmt::format("the dynamic dimensions of {} are not interpreted", short_text(*shape)));
    const std::int64_t count = elements_of(*shape), devices = std::max<std::int64_t>(static_cast<std::int64_t>(step.devices.size()), 1);
    if (count > room / devices)
      return step.error(fmt::format("expected at most {} elements at one time on all devices, got {} beside {} others on each of {}", most_elements_,
                                    short_text(*shape), *alive_, devices));
    room -= count * devices;
  }
  return success();
}

ArrayOperation::Call HloInterpreter::scalar_call(const HloDevice& device) {
  return [this, device](const HloComputation& computation, const std::vector<const HloArray*>& arguments) -> Expected<HloArrays> {
    std::vector<Values> values;
    values.reserve(arguments.size());
    for (const HloArray* argument : arguments) values.push_back({{HloLeaf{HloLeaf{}, argument}}});  // refers to it, owns nothing
    const auto results = run(computation, {device}, values);
    if (!results) return results.error();
    HloArrays arrays;
    for (const HloLeaf& array : results->front()) arrays.push_back(*array);
    return arrays;
  };
}

Expected<HloInterpreter::Values> HloInterpreter::same_on_all(const Step& step, HloArray array) {
  return Values(step.devices.size(), HloValue{leaf(std::move(array))});
}

Expected<HloInterpreter::Values> HloInterpreter::arrays(const Step& step) {
  if (const auto ok = check_room(step); !ok) return ok.error();
  Values values;
  std::int64_t steps = 0;
  for (const HloShape* shape : leaves_of(*step.instruction.shape)) steps += elements_of(*shape);
  for (std::size_t device = 0; device < step.devices.size(); ++device) {
    std::vector<const HloArray*> operands;
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const HloValue& operand = (*step.operands[i])[device];
      if (operand.size() != 1 || !has_values(operand[0]->type)) return step.error(fmt::format("expected operand {} to be an array of numbers", i));
      operands.push_back(operand[0].get());
    }
    std::int64_t read = 0;
    for (const HloArray* operand : operands) read += elements_of(*operand);
    const ArrayOperation::Call call = scalar_call(step.devices[device]);
    const ArrayOperation operation{module_, step.computation, step.instruction, operands, arithmetic_, budget_, call};
    if (const auto ok = operation.spend(steps + read); !ok) return ok.error();
    // What an operation without operands makes is the same everywhere.
    if (device > 0 && operands.empty()) {
      values.push_back(values.front());
      continue;
    }
    auto results = array_operation(operation);
    if (!results) return results.error();
    give_types(operation, *results);
    HloValue& value = values.emplace_back();
    for (HloArray& array : *results) value.push_back(leaf(std::move(array)));
  }
  return values;
}

Expected<HloInterpreter::Values> HloInterpreter::collective(const Step& step) {
  const std::int64_t all = devices_of(module_), partitions = all / std::max<std::int64_t>(module_.replica_count, 1);
  if (const auto ok = check_room(step); !ok) return ok.error();
  CollectiveOperands operands(to_size(all));
  std::vector<std::size_t> number;  // of each device of the step
  for (const HloDevice& device : step.devices) number.push_back(to_size(device.replica * partitions + device.partition));
  std::int64_t read = 0;
  for (std::size_t i = 0; i < step.operands.size(); ++i)
    for (std::size_t device = 0; device < step.devices.size(); ++device) {
      const HloValue& operand = (*step.operands[i])[device];
      if (operand.size() != 1 || !has_values(operand[0]->type)) return step.error(fmt::format("expected operand {} to be an array of numbers", i));
      operands[number[device]].push_back(operand[0].get());
      read += elements_of(*operand[0]);
    }
  const ArrayOperation::Call call = scalar_call(step.devices.front());
  if (!budget_.spend(read)) return step.error("expected the module to take fewer steps: the bound of the interpreter is passed here");
  auto results = collective_results(module_, step.instruction, operands, most_elements_, arithmetic_, call);
  if (!results) return results.error();
  Values values;
  for (const std::size_t device : number) {
    HloValue& value = values.emplace_back();
    for (HloArray& array : (*results)[device]) value.push_back(leaf(std::move(array)));
  }
  return values;
}

Expected<HloInterpreter::Values> HloInterpreter::whole(const Step& step, Frame& frame) {
  const HloInstruction& instruction = step.instruction;
  if (is_collective(instruction.opcode)) return collective(step);
  switch (instruction.opcode) {
    case Word::parameter: {
      const auto number = static_cast<std::size_t>(instruction.number);
      if (frame.arguments == nullptr || number >= frame.arguments->size()) return step.error("expected an operand for this parameter");
      return (*frame.arguments)[number];
    }
    case Word::tuple: {
      Values values(step.devices.size());
      for (const Values* operand : step.operands)
        for (std::size_t device = 0; device < values.size(); ++device)
          values[device].insert(values[device].end(), (*operand)[device].begin(), (*operand)[device].end());
      return values;
    }
    case Word::get_tuple_element: {
      const HloShape& tuple = *step.computation.instructions[to_size(instruction.operands.at(0))].shape;
      const auto element = static_cast<std::size_t>(instruction.number);
      if (!tuple.is_tuple() || element >= tuple.elements.size()) return step.error("expected an element of a tuple");
      const auto first = static_cast<std::ptrdiff_t>(first_leaf(tuple, element)),
                 count = static_cast<std::ptrdiff_t>(count_leaves(tuple.elements[element]));
      Values values;
      for (const HloValue& value : *step.operands[0]) values.emplace_back(value.begin() + first, value.begin() + first + count);
      return values;
    }
    case Word::copy:
    case Word::domain:
    case Word::add_dependency:
      if (step.operands.empty()) return step.error("expected an operand");
      // A TPU's compiler makes a copy of a conversion between floating-point types.
      if (instruction.opcode == Word::copy && instruction.shape->type != step.computation.instructions[to_size(instruction.operands[0])].shape->type) return arrays(step);
      return *step.operands[0];
    case Word::opt_barrier: {
      if (step.operands.size() != 1) return step.error("expected one operand");
      return *step.operands[0];
    }
    case Word::after_all: return same_on_all(step, {HloType::token, {}, {}, {}});
    case Word::partition_id:
    case Word::replica_id: {
      Values values;
      for (const HloDevice& device : step.devices)
        values.push_back(
            {leaf(integer_scalar(instruction.shape->type, instruction.opcode == Word::partition_id ? device.partition : device.replica))});
      return values;
    }
    case Word::get_dimension_size: {
      const auto& dimension = instruction.attributes->dimensions;
      if (step.operands.size() != 1 || dimension.size() != 1) return step.error("expected one operand and one dimension");
      const HloShape& shape = *step.computation.instructions[to_size(instruction.operands[0])].shape;
      if (static_cast<std::size_t>(dimension[0]) >= shape.rank()) return step.error("expected a dimension of the operand");
      return same_on_all(step, integer_scalar(HloType::s32, shape.dims[static_cast<std::size_t>(dimension[0])]));
    }
    case Word::fusion: return calls(step, HloRole::calls);
    case Word::call: return calls(step, HloRole::to_apply);
    case Word::while_: return while_loop(step);
    case Word::conditional: return conditional(step);
    case Word::custom_call: return custom_call(step);
    default: return arrays(step);
  }
}

}  // namespace podsim
