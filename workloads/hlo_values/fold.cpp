#include "workloads/hlo_values/fold.hpp"

#include <fmt/format.h>

namespace podsim {

Fold::Fold(const HloModule& module, const HloInstruction& instruction, const HloComputation& computation, HloType type, std::size_t count,
           HloArithmetic& arithmetic, const ArrayOperation::Call& call)
    : module_{module}, instruction_{instruction}, computation_{computation}, type_{type}, arithmetic_{arithmetic}, call_{call} {
  if (count != 1 || computation.parameters.size() != 2) return;
  const HloInstruction& root = computation.instructions[static_cast<std::size_t>(computation.root)];
  if (root.operands.size() != 2 || root.phase != HloPhase::whole) return;
  const int first = computation.parameters[0], second = computation.parameters[1];
  const bool forward = root.operands[0] == first && root.operands[1] == second, backward = root.operands[0] == second && root.operands[1] == first;
  const auto is_scalar = [&](const HloInstruction& part) { return part.shape->type == type && part.shape->dims.empty(); };
  if (!(forward || backward) || !is_scalar(root) || !is_scalar(computation.instructions[static_cast<std::size_t>(first)]) ||
      !is_scalar(computation.instructions[static_cast<std::size_t>(second)]))
    return;
  swapped_ = backward;
  if (is_float(type)) real_ = real_binary(root.opcode);
  if (is_integer(type)) integer_ = integer_binary(root.opcode);
  is_sum_ = root.opcode == HloOpcode::add;
  is_rounded_ = rounds(root.opcode);
}

Status Fold::apply(std::vector<HloArray>& accumulators, std::size_t i, const std::vector<const HloArray*>& values, std::size_t j) const {
  if (real_ != nullptr) {
    double& accumulator = accumulators[0].reals[i];
    const double value = values[0]->reals[j];
    const double result = swapped_ ? real_(value, accumulator) : real_(accumulator, value);
    accumulator = is_rounded_ ? rounded(arithmetic_, type_, result) : made(arithmetic_, result);
    return success();
  }
  if (integer_ != nullptr) {
    std::int64_t& accumulator = accumulators[0].integers[i];
    const std::int64_t value = values[0]->integers[j];
    accumulator = wrapped(type_, swapped_ ? integer_(type_, value, accumulator) : integer_(type_, accumulator, value));
    return success();
  }
  return run(accumulators, i, values, j);
}

Status Fold::run(std::vector<HloArray>& accumulators, std::size_t i, const std::vector<const HloArray*>& values, std::size_t j) const {
  HloArrays scalars;
  for (const HloArray& accumulator : accumulators) scalars.push_back(element_of(accumulator, i));
  for (const HloArray* value : values) scalars.push_back(element_of(*value, j));
  std::vector<const HloArray*> arguments;
  for (const HloArray& scalar : scalars) arguments.push_back(&scalar);
  const auto results = call_(computation_, arguments);
  if (!results) return results.error();
  bool good = results->size() == accumulators.size();
  for (std::size_t n = 0; good && n < accumulators.size(); ++n) good = (*results)[n].type == accumulators[n].type && (*results)[n].dims.empty();
  if (!good)
    return Diagnostic{module_.where(instruction_),
                      fmt::format("{}: expected {} to return a scalar of each operand's type", instruction_.name, computation_.name)};
  for (std::size_t n = 0; n < accumulators.size(); ++n) set_element(accumulators[n], i, (*results)[n]);
  return success();
}

HloArray element_of(const HloArray& array, std::size_t i) {
  HloArray scalar{array.type};
  if (is_integer(array.type)) scalar.integers = {array.integers[i]};
  if (has_reals(array.type)) scalar.reals = {array.reals[i]};
  if (is_complex(array.type)) scalar.imaginaries = {array.imaginaries[i]};
  return scalar;
}

void set_element(HloArray& array, std::size_t i, const HloArray& scalar) {
  if (is_integer(array.type)) array.integers[i] = scalar.integers[0];
  if (has_reals(array.type)) array.reals[i] = scalar.reals[0];
  if (is_complex(array.type)) array.imaginaries[i] = scalar.imaginaries[0];
}

}  // namespace podsim
