#include "workloads/hlo/shape_rule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace podsim {

namespace {

/// Products of attributes, which are any numbers below 2^53, with dimensions.
__extension__ typedef __int128 Wide;

}  // namespace

NumberKind number_kind_of(HloType type) {
  if (type == HloType::pred) return NumberKind::truth;
  if (is_float(type)) return NumberKind::real;
  if (is_complex(type)) return NumberKind::complex;
  return is_integer(type) ? NumberKind::integer : NumberKind::none;
}

std::string cut_text(const ShapeDims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")).substr(0, 200); }

bool is_static_array(const HloShape& shape) { return shape.is_array() && shape.dynamic_dims.empty(); }

ShapeDims dims_without(const ShapeDims& dims, const ShapeDims& positions) {
  ShapeDims rest;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (std::ranges::find(positions, static_cast<std::int64_t>(d)) == positions.end()) rest.push_back(dims[d]);
  return rest;
}

std::int64_t window_places(const HloWindowDimension& window, std::int64_t length) {
  const Wide base = Wide{std::max<std::int64_t>(length - 1, 0)} * window.lhs_dilate + std::min<std::int64_t>(length, 1) + window.pad_low + window.pad_high;
  const Wide reach = Wide{window.size - 1} * window.rhs_dilate + 1;
  if (base < reach || window.stride < 1) return 0;
  const Wide places = (base - reach) / window.stride + 1;
  return places > (Wide{1} << 53) ? -1 : static_cast<std::int64_t>(places);
}

ShapeProblem ShapeRule::same(std::size_t o, const HloShape& told) const {
  if (same_dims(told, operand(o))) return {};
  return fmt::format("expected the shape of operand {}, {}, got {}", o, cut_text(operand(o)), cut_text(told));
}

ShapeProblem ShapeRule::alike(const HloShape& given, const HloShape& told) {
  if (!is_static_array(given) || !is_static_array(told)) return {};
  if (given.dims == told.dims && number_kind_of(given.type) == number_kind_of(told.type)) return {};
  return fmt::format("expected a result like its operand, {}, got {}", cut_text(given), cut_text(told));
}

ShapeProblem ShapeRule::has(const ShapeDims& wanted) const {
  if (!is_static_array(shape_) || wanted == shape_.dims) return {};
  return fmt::format("expected a result of {}, got {}", cut_text(wanted), cut_text(shape_));
}

ShapeProblem ShapeRule::has(const ShapeDims& wanted, const HloShape& of) const {
  if (auto wrong = has(wanted)) return wrong;
  if (!is_static_array(shape_) || number_kind_of(of.type) == number_kind_of(shape_.type)) return {};
  return fmt::format("expected a result like its operand, {}, got {}", cut_text(of), cut_text(shape_));
}

ShapeProblem ShapeRule::counts(std::size_t wanted) const {
  if (operands_.size() == wanted) return {};
  return fmt::format("expected {} operand{} of {}, got {}", wanted, wanted == 1 ? "" : "s", opcode_text(instruction_), operands_.size());
}

ShapeProblem ShapeRule::names_dimensions(std::string_view name, const ShapeDims& dims, const HloShape& array) {
  for (const std::int64_t dim : dims)
    if (dim < 0 || static_cast<std::size_t>(dim) >= array.rank()) return fmt::format("expected dimensions of {} in {}, got {}", cut_text(array), name, dim);
  ShapeDims sorted = dims;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) == sorted.end()) return {};
  return fmt::format("expected each dimension once in {}, got {}", name, cut_text(dims));
}

}  // namespace podsim
