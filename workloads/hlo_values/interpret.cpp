#include "workloads/hlo_values/interpret.hpp"

#include <fmt/format.h>

#include "sim/engine/numeric/kernels.hpp"
#include "workloads/hlo/communication.hpp"
#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo_values/interpreter.hpp"

namespace podsim {

namespace {

using Values = HloInterpreter::Values;

constexpr std::int64_t most_devices = 65536;

/// Arrays that the caller keeps, as leaves that own nothing.
HloValue borrowed(const HloArrays& arrays) {
  HloValue value;
  for (const HloArray& array : arrays) value.push_back(HloLeaf{HloLeaf{}, &array});
  return value;
}

HloDevice place_of(const HloModule& module, std::int64_t device) {
  const std::int64_t partitions = devices_of(module) / module.replica_count;
  return {device % partitions, device / partitions};
}

HloArrays copied(const HloValue& value) {
  HloArrays arrays;
  for (const HloLeaf& array : value) arrays.push_back(*array);
  return arrays;
}

}  // namespace

Expected<HloArrays> evaluate(const HloModule& module, const HloComputation& computation, const HloInstruction& instruction,
                             const std::vector<const HloArrays*>& operands, const HloDevice& device, HloArithmetic& arithmetic) {
  HloBudget budget{std::int64_t{1} << 40, {}};
  HloInterpreter interpreter{module, arithmetic, budget, std::int64_t{1} << 26};
  if (operands.size() != instruction.operands.size())
    return Diagnostic{module.where(instruction),
                      fmt::format("{}: expected {} operands, got {}", instruction.name, instruction.operands.size(), operands.size())};
  std::vector<Values> values;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    values.push_back({borrowed(*operands[i])});
    const auto* defined = instruction.operands[i] < 0 ? nullptr : &computation.instructions[static_cast<std::size_t>(instruction.operands[i])];
    const auto leaves = defined != nullptr ? leaves_of(*defined->shape) : std::vector<const HloShape*>{};
    bool fitting = leaves.size() == operands[i]->size();
    for (std::size_t leaf = 0; fitting && leaf < leaves.size(); ++leaf) fitting = fits((*operands[i])[leaf], *leaves[leaf]);
    if (!fitting) return Diagnostic{module.where(instruction), fmt::format("{}: expected operand {} to be of its shape", instruction.name, i)};
  }
  std::vector<const Values*> pointers;
  for (const Values& value : values) pointers.push_back(&value);
  HloInterpreter::Frame frame;
  const auto result = interpreter.step(computation, instruction, {device}, pointers, frame);
  if (!result) return result.error();
  return copied(result->front());
}

Expected<std::vector<HloArrays>> evaluate_on_all(const HloModule& module, const HloComputation& computation, const HloInstruction& instruction,
                                                 const std::vector<std::vector<HloArrays>>& operands, HloArithmetic& arithmetic) {
  HloBudget budget{std::int64_t{1} << 40, {}};
  HloInterpreter interpreter{module, arithmetic, budget, std::int64_t{1} << 26};
  HloInterpreter::Devices places;
  std::vector<Values> values(instruction.operands.size());
  for (std::size_t device = 0; device < operands.size(); ++device) {
    places.push_back(place_of(module, static_cast<std::int64_t>(device)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      HloValue& value = values[i].emplace_back();
      for (const HloArray& array : operands[device].at(i)) value.push_back(HloLeaf{HloLeaf{}, &array});
    }
  }
  std::vector<const Values*> pointers;
  for (const Values& value : values) pointers.push_back(&value);
  HloInterpreter::Frame frame;
  const auto results = interpreter.step(computation, instruction, places, pointers, frame);
  if (!results) return results.error();
  std::vector<HloArrays> arrays;
  for (const HloValue& value : *results) arrays.push_back(copied(value));
  return arrays;
}

Expected<std::vector<HloArrays>> interpret(const HloModule& module, const std::vector<std::vector<HloArrays>>& parameters, HloRunOptions& options) {
  const SourceLocation file{module.file, 0, 0};
  if (module.entry == HloInstruction::missing) return Diagnostic{file, "expected a module with an ENTRY"};
  if (auto ok = check_communication(module); !ok) return ok.error();  // not asked of a module that was read tolerantly
  const bool few = module.replica_count >= 1 && module.replica_count <= most_devices && module.num_partitions.value_or(1) >= 1 &&
                   module.num_partitions.value_or(1) <= most_devices;
  const std::int64_t devices = few ? devices_of(module) : 0;
  if (devices < 1 || devices > most_devices) return Diagnostic{file, fmt::format("expected a module on 1 to {} devices", most_devices)};
  if (static_cast<std::int64_t>(parameters.size()) != devices)
    return Diagnostic{file, fmt::format("expected parameters of {} devices, got {}", devices, parameters.size())};
  const HloComputation& entry = module.entry_computation();
  if (const Status ready = use_one_blas_thread(); !ready) return ready.error();

  HloBudget budget{options.most_steps, options.stop};
  HloInterpreter interpreter{module, options.arithmetic, budget, options.most_elements};
  interpreter.expect_branches(options.branches);
  HloInterpreter::Devices places;
  std::vector<Values> arguments(entry.parameters.size());
  for (std::int64_t device = 0; device < devices; ++device) {
    places.push_back(place_of(module, device));
    const auto& mine = parameters[static_cast<std::size_t>(device)];
    if (mine.size() != entry.parameters.size())
      return Diagnostic{file, fmt::format("expected {} parameters of device {}, got {}", entry.parameters.size(), device, mine.size())};
    for (std::size_t i = 0; i < mine.size(); ++i) {
      for (const HloArray& array : mine[i])
        for (const double value : array.reals) made(options.arithmetic, value);
      arguments[i].push_back(borrowed(mine[i]));
    }
  }
  const auto results = interpreter.run(entry, places, arguments);
  if (!results) return results.error();
  std::vector<HloArrays> arrays;
  for (const HloValue& value : *results) arrays.push_back(copied(value));
  return arrays;
}

}  // namespace podsim
