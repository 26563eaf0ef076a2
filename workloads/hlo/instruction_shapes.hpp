// Whether the shape of an instruction follows from its operands.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// What is wrong with the shape of an instruction beside those of its operands (nullptr: a cut file does not have it), as "expected .., got .."; nullopt: nothing. As XLA infers shapes (xla/service/shape_inference.cc),
/// layouts left out, and no stricter than what its compilers write behind their last pass: floating-point types may mix, as may widths of integers;
/// dynamic dimensions and what a custom call gives are not looked at. Cost O(dimensions of the operands).
std::optional<std::string> shape_problem(const HloInstruction& instruction, std::span<const HloShape* const> operands);

/// Whether the entry has the parameters and the result of the header's entry_computation_layout, where it has one. Errors: the first that differs.
Status check_entry_layout(const HloModule& module);

}  // namespace podsim
