// Whether the shape of an instruction follows from its operands.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// What is wrong with the shape of an instruction beside those of its operands (nullptr: a cut file does not have it), as "expected .., got .."; nullopt: nothing. As XLA infers shapes (xla/service/shape_inference.cc),
/// layouts left out, and no stricter than what its compilers write behind their last pass: floating-point types may mix, as may widths of integers;
/// dynamic dimensions are not looked at, nor what kernels give: of custom-calls those of libraries' products, TopK, halves of words and what passes values on. Cost O(dimensions of the operands).
std::optional<std::string> shape_problem(const HloInstruction& instruction, std::span<const HloShape* const> operands);

/// The same of the whole operation that an instruction is or starts, with this result, and operands that are all there.
std::optional<std::string> whole_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands);

}  // namespace podsim
