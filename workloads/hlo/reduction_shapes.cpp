// Shapes of operations with a function of numbers: reduce, reduce-window, select-and-scatter, map, sort.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/hlo/shape_rule.hpp"

namespace podsim {

namespace {

class ReductionShape : ShapeRule {
 public:
  using ShapeRule::ShapeRule;

  [[nodiscard]] ShapeProblem problem() const {
    switch (instruction_.opcode) {
      case HloOpcode::reduce: return of_reduce();
      case HloOpcode::reduce_window: return of_window();
      case HloOpcode::select_and_scatter: return of_selection();
      case HloOpcode::map: return of_map();
      default: return of_sort();
    }
  }

 private:
  /// Arrays of the same dimensions, then a number for each, of its kind.
  [[nodiscard]] ShapeProblem of_arrays() const {
    const std::size_t arrays = operands_.size() / 2;
    if (operands_.size() % 2 != 0 || arrays == 0) return fmt::format("expected arrays and an initial value for each, got {} operand{}", operands_.size(), operands_.size() == 1 ? "" : "s");
    for (std::size_t a = 0; a < arrays; ++a) {
      if (!operand(a).is_array()) return fmt::format("expected an array as operand {}, got {}", a, cut_text(operand(a)));
      if (is_static_array(operand(0)) && is_static_array(operand(a)) && operand(a).dims != operand(0).dims) return fmt::format("expected arrays of one shape, got {} and {}", cut_text(operand(0)), cut_text(operand(a)));
      if (auto wrong = is_initial(arrays + a, operand(a))) return wrong;
    }
    return {};
  }
  [[nodiscard]] ShapeProblem is_initial(std::size_t o, const HloShape& of) const {
    const HloShape& given = operand(o);
    if (given.is_array() && given.dims.empty() && number_kind_of(given.type) == number_kind_of(of.type)) return {};
    return fmt::format("expected a number as operand {}, where {} starts from, got {}", o, cut_text(of), cut_text(given));
  }

  /// Of each array a result of these dimensions and its kind; of several a tuple.
  [[nodiscard]] ShapeProblem gives(std::size_t arrays, const ShapeDims& wanted) const {
    if (!shape_.is_tuple()) {
      if (arrays != 1) return fmt::format("expected a tuple of {} results, got {}", arrays, cut_text(shape_));
      return is_static_array(operand(0)) ? has(wanted, operand(0)) : std::nullopt;
    }
    if (shape_.elements.size() != arrays) return fmt::format("expected a result of each of {} arrays, got {}", arrays, cut_text(shape_));
    for (std::size_t a = 0; a < arrays; ++a) {
      const HloShape& result = shape_.elements[a];
      if (!is_static_array(operand(a)) || !is_static_array(result)) continue;
      if (result.dims != wanted || number_kind_of(result.type) != number_kind_of(operand(a).type)) return fmt::format("expected results of {}, got {}", cut_text(wanted), cut_text(result));
    }
    return {};
  }

  [[nodiscard]] ShapeProblem of_reduce() const {
    if (auto wrong = of_arrays()) return wrong;
    if (!is_static_array(operand(0))) return {};
    if (auto wrong = names_dimensions("dimensions", attributes_.dimensions, operand(0))) return wrong;
    return gives(operands_.size() / 2, dims_without(operand(0).dims, attributes_.dimensions));
  }

  [[nodiscard]] ShapeProblem has_window(ShapeDims& places) const {
    const HloShape& array = operand(0);
    if (attributes_.window.size() != array.rank()) return fmt::format("expected a window of the {} dimensions of {}, got {}", array.rank(), cut_text(array), attributes_.window.size());
    for (std::size_t d = 0; d < array.rank(); ++d) places.push_back(window_places(attributes_.window[d], array.dims[d]));
    return {};
  }
  [[nodiscard]] ShapeProblem of_window() const {
    if (auto wrong = of_arrays()) return wrong;
    ShapeDims places;
    if (!is_static_array(operand(0))) return {};
    if (auto wrong = has_window(places)) return wrong;
    return gives(operands_.size() / 2, places);
  }

  /// One number of the source goes where each place of the window has its choice.
  [[nodiscard]] ShapeProblem of_selection() const {
    if (auto wrong = alike(operand(0), shape_)) return wrong;
    if (auto wrong = is_initial(2, operand(0))) return wrong;
    ShapeDims places;
    if (!is_static_array(operand(0)) || !is_static_array(operand(1))) return {};
    if (auto wrong = has_window(places)) return wrong;
    if (operand(1).dims == places) return {};
    return fmt::format("expected a number for each of {} places, got {}", cut_text(places), cut_text(operand(1)));
  }

  [[nodiscard]] ShapeProblem of_map() const {
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (operand(o).is_array() && shape_.is_array() && operand(o).dims != shape_.dims) return fmt::format("expected operands of the dimensions of the result, {}, got {}", cut_text(shape_), cut_text(operand(o)));
    return {};
  }

  [[nodiscard]] ShapeProblem of_sort() const {
    if (attributes_.dimensions.size() != 1) return fmt::format("expected dimensions={{D}} of sort, found {} of them", attributes_.dimensions.size());
    if (operands_.empty()) return fmt::format("expected arrays to sort, got none");
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (is_static_array(operand(0)) && (!operand(o).is_array() || operand(o).dims != operand(0).dims)) return fmt::format("expected arrays of one shape, got {} and {}", cut_text(operand(0)), cut_text(operand(o)));
    return is_static_array(operand(0)) ? gives(operands_.size(), operand(0).dims) : std::nullopt;
  }
};

}  // namespace

ShapeProblem reduction_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands) {
  return ReductionShape{instruction, result, operands}.problem();
}

}  // namespace podsim
