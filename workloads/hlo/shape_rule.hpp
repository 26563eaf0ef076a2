// What the rules for shapes of single instructions share. Internal to shape_problem() of instruction_shapes.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

using ShapeProblem = std::optional<std::string>;
using ShapeDims = std::vector<std::int64_t>;

/// The compilers mix widths; what holds another kind of number is another value.
enum class NumberKind : std::uint8_t { truth, integer, real, complex, none };
NumberKind number_kind_of(HloType type);

/// "[4,6]", at most 200 characters.
std::string cut_text(const ShapeDims& dims);
bool is_static_array(const HloShape& shape);
/// Those at other positions than these.
ShapeDims dims_without(const ShapeDims& dims, const ShapeDims& positions);
/// How many places a window has along a dimension of this length. -1: more than a dimension may have.
std::int64_t window_places(const HloWindowDimension& window, std::int64_t length);

/// One instruction whose operands are all there, as a whole, and its result.
class ShapeRule {
 public:
  ShapeRule(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands)
      : instruction_{instruction}, attributes_{*instruction.attributes}, shape_{result}, operands_{operands} {}

 protected:
  [[nodiscard]] const HloShape& operand(std::size_t i) const { return *operands_[i]; }
  /// Whether operand i and the result are arrays of fixed dimensions.
  [[nodiscard]] bool known(std::size_t i) const { return i < operands_.size() && is_static_array(operand(i)) && is_static_array(shape_); }
  [[nodiscard]] ShapeProblem same(std::size_t o, const HloShape& told) const;
  /// The same dimensions and kind of numbers.
  static ShapeProblem alike(const HloShape& given, const HloShape& told);
  [[nodiscard]] ShapeProblem has(const ShapeDims& wanted) const;
  /// As the operand in the kind of its numbers too.
  [[nodiscard]] ShapeProblem has(const ShapeDims& wanted, const HloShape& of) const;
  [[nodiscard]] ShapeProblem counts(std::size_t wanted) const;
  /// These are dimensions of an array, each once. `name`: of the attribute.
  static ShapeProblem names_dimensions(std::string_view name, const ShapeDims& dims, const HloShape& array);

  const HloInstruction& instruction_;
  const HloAttributes& attributes_;
  const HloShape& shape_;
  std::span<const HloShape* const> operands_;
};

// Of the operations that their files are named after, as whole_shape_problem().
ShapeProblem collective_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands);
ShapeProblem indexed_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands);
ShapeProblem reduction_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands);
ShapeProblem custom_call_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands);
/// Of arrays with fixed dimensions: batches, then free dimensions of either operand.
ShapeProblem dot_shape_problem(const HloAttributes& attributes, const HloShape& lhs, const HloShape& rhs, const HloShape& result);
/// Batches, features and places of the window, where dim_labels says that they lie.
ShapeProblem convolution_shape_problem(const HloAttributes& attributes, const HloShape& input, const HloShape& kernel, const HloShape& result);

}  // namespace podsim
