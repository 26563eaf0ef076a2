#include "workloads/hlo/instruction_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "workloads/hlo/async_shapes.hpp"
#include "workloads/hlo/hlo_transform.hpp"
#include "workloads/hlo/shape_rule.hpp"

namespace podsim {

namespace {

/// Products of attributes, which are any numbers below 2^53, with dimensions.
__extension__ typedef __int128 Wide;
/// -1, the length of no dimension, where it is out of their range.
std::int64_t length_of(Wide length) { return length < 0 || length > (Wide{1} << 53) ? -1 : static_cast<std::int64_t>(length); }

/// One instruction whose operands are all there, as a whole.
class Shapes : ShapeRule {
 public:
  using ShapeRule::ShapeRule;

  [[nodiscard]] ShapeProblem problem() const {
    if (calls_a_computation() && instruction_.calls.empty()) return fmt::format("expected the computation of {}, calls= or to_apply=, found none", name_of(instruction_.opcode));
    if (auto wrong = of_operands()) return wrong;
    if (auto wrong = of_named_dimensions()) return wrong;
    using enum HloOpcode;
    switch (instruction_.opcode) {
      case add_dependency: return of_dependency();
      case after_all: return shape_.type == HloType::token ? std::nullopt : std::optional{fmt::format("expected a token, got {}", cut_text(shape_))};
      case all_gather:
      case all_reduce:
      case all_to_all:
      case collective_broadcast:
      case collective_permute:
      case ragged_all_to_all:
      case reduce_scatter: return collective_shape_problem(instruction_, shape_, operands_);
      case dynamic_slice:
      case dynamic_update_slice:
      case gather:
      case scatter: return indexed_shape_problem(instruction_, shape_, operands_);
      case map:
      case reduce:
      case reduce_window:
      case select_and_scatter:
      case sort: return reduction_shape_problem(instruction_, shape_, operands_);
      case convolution: return known(0) && known(1) ? convolution_shape_problem(attributes_, operand(0), operand(1), shape_) : std::nullopt;
      case custom_call: return custom_call_shape_problem(instruction_, shape_, operands_);
      case dot: return known(0) && known(1) ? dot_shape_problem(attributes_, operand(0), operand(1), shape_) : std::nullopt;
      case get_tuple_element: return of_element();
      case tuple: return of_tuple();
      case domain:
      case opt_barrier: return same(0, shape_);
      case cholesky:
      case copy:
      case reverse: return alike(operand(0), shape_);
      case triangular_solve: return alike(operand(1), shape_);
      case partition_id:
      case replica_id: return same_dims(shape_, HloShape{HloType::u32}) ? std::nullopt : std::optional{fmt::format("expected u32[], got {}", cut_text(shape_))};
      case fft: return transform_problem(instruction_, operand(0), shape_);
      case slice: return of_slice();
      case pad: return of_pad();
      case reshape: return of_reshape();
      case bitcast: return of_bitcast();
      case bitcast_convert: return of_bits();
      case transpose: return of_transpose();
      case broadcast: return of_broadcast();
      case concatenate: return of_concatenate();
      default: return is_elementwise(instruction_.opcode) ? of_elementwise() : std::nullopt;
    }
  }

 private:
  [[nodiscard]] bool calls_a_computation() const {
    using enum HloOpcode;
    constexpr auto callers = std::to_array<HloOpcode>({all_reduce, call, fusion, map, reduce, reduce_scatter, reduce_window, scatter, select_and_scatter});
    return std::ranges::find(callers, instruction_.opcode) != callers.end();
  }

  /// Of what goes along dimensions of the result.
  [[nodiscard]] ShapeProblem of_named_dimensions() const {
    using enum HloOpcode;
    if (instruction_.opcode != reverse && instruction_.opcode != sort && instruction_.opcode != iota && instruction_.opcode != all_to_all) return {};
    const HloShape& array = shape_.is_tuple() && !shape_.elements.empty() ? shape_.elements.front() : shape_;
    for (const std::int64_t dim : attributes_.dimensions)
      if (array.is_array() && (dim < 0 || static_cast<std::size_t>(dim) >= array.rank())) return fmt::format("expected dimensions of {}, got {}", cut_text(array), dim);
    return {};
  }

  /// As XLA has it (hlo_opcode.h); nullopt: more than one number is right.
  [[nodiscard]] std::optional<std::size_t> operands_wanted() const {
    using enum HloOpcode;
    switch (instruction_.opcode) {
      case batch_norm_grad:
      case batch_norm_inference: return 5;
      case batch_norm_training:
      case clamp:
      case select:
      case select_and_scatter: return 3;
      case add:
      case add_dependency:
      case and_:
      case atan2:
      case compare:
      case complex:
      case convolution:
      case divide:
      case dot:
      case gather:
      case maximum:
      case minimum:
      case multiply:
      case or_:
      case pad:
      case power:
      case remainder:
      case set_dimension_size:
      case shift_left:
      case shift_right_arithmetic:
      case shift_right_logical:
      case stochastic_convert:
      case subtract:
      case triangular_solve:
      case xor_: return 2;
      case bitcast:
      case broadcast:
      case cholesky:
      case copy:
      case domain:
      case fft:
      case get_dimension_size:
      case get_tuple_element:
      case opt_barrier:
      case reshape:
      case reverse:
      case rng_bit_generator:
      case slice:
      case topk:
      case transpose: return 1;
      case iota:
      case partition_id:
      case replica_id:
      case rng_get_and_update_state: return 0;
      default: return is_elementwise(instruction_.opcode) ? std::optional<std::size_t>{1} : std::nullopt;
    }
  }
  /// Operations that are not on arrays alone.
  [[nodiscard]] bool may_take_tuples() const {
    using enum HloOpcode;
    constexpr auto passes = std::to_array<HloOpcode>({add_dependency, bitcast, copy, domain, get_tuple_element, opt_barrier});
    return std::ranges::find(passes, instruction_.opcode) != passes.end();
  }
  [[nodiscard]] bool may_give_tuples() const {
    using enum HloOpcode;
    constexpr auto several = std::to_array<HloOpcode>({batch_norm_grad, batch_norm_training, rng_bit_generator, topk});
    return may_take_tuples() || std::ranges::find(several, instruction_.opcode) != several.end();
  }
  [[nodiscard]] ShapeProblem of_operands() const {
    const auto wanted = operands_wanted();
    if (!wanted) return {};
    if (auto wrong = counts(*wanted)) return wrong;
    for (std::size_t o = 0; o < *wanted; ++o)
      if (operand(o).is_tuple() && !may_take_tuples()) return fmt::format("expected an array as operand {}, got {}", o, cut_text(operand(o)));
    if (shape_.is_tuple() && !may_give_tuples()) return fmt::format("expected an array as the result of {}, got {}", name_of(instruction_.opcode), cut_text(shape_));
    return {};
  }

  [[nodiscard]] ShapeProblem of_element() const {
    const auto index = static_cast<std::size_t>(instruction_.number);
    if (index >= operand(0).elements.size())
      return fmt::format("expected an index below the {} elements of the tuple, got {}", operand(0).elements.size(), instruction_.number);
    if (same_dims(operand(0).elements[index], shape_)) return {};
    return fmt::format("expected the shape of element {}, {}, got {}", index, cut_text(operand(0).elements[index]), cut_text(shape_));
  }

  [[nodiscard]] ShapeProblem of_tuple() const {
    if (operands_.size() != shape_.elements.size()) return fmt::format("expected a tuple of {} elements, as it has operands, got {}", operands_.size(), shape_.elements.size());
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (auto wrong = same(o, shape_.elements[o])) return wrong;
    return {};
  }

  [[nodiscard]] ShapeProblem of_slice() const {
    if (!known(0)) return {};
    ShapeDims wanted;
    for (const HloSliceExtent& extent : attributes_.slice) wanted.push_back(extent.stride > 0 ? (extent.limit - extent.start + extent.stride - 1) / extent.stride : 0);
    if (operand(0).rank() != wanted.size()) return fmt::format("expected a slice of the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), wanted.size());
    for (std::size_t d = 0; d < wanted.size(); ++d)
      if (attributes_.slice[d].limit > operand(0).dims[d]) return fmt::format("expected a slice within dimension {} of {}, got one that ends at {}", d, cut_text(operand(0)), attributes_.slice[d].limit);
    return has(wanted, operand(0));
  }

  [[nodiscard]] ShapeProblem of_pad() const {
    if (!known(0)) return {};
    if (attributes_.padding.size() != operand(0).rank()) return fmt::format("expected padding of the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), attributes_.padding.size());
    ShapeDims wanted = operand(0).dims;
    for (std::size_t d = 0; d < wanted.size(); ++d) {
      const HloPadding& padding = attributes_.padding[d];
      wanted[d] = length_of(Wide{wanted[d]} + padding.low + padding.high + Wide{std::max<std::int64_t>(wanted[d] - 1, 0)} * padding.interior);
    }
    return has(wanted, operand(0));
  }

  [[nodiscard]] ShapeProblem of_reshape() const {
    if (!known(0)) return {};
    if (elements_of(operand(0)) == elements_of(shape_) && number_kind_of(operand(0).type) == number_kind_of(shape_.type)) return {};
    return fmt::format("expected as many elements as its operand has, {}, got {}", cut_text(operand(0)), cut_text(shape_));
  }

  /// The same bytes, as they are or as the device stores them.
  [[nodiscard]] ShapeProblem of_bitcast() const {
    if (!known(0) || logical_bytes(operand(0)) == logical_bytes(shape_) || device_bytes(operand(0)) == device_bytes(shape_)) return {};
    return fmt::format("expected as many bytes as its operand has, {}, got {}", cut_text(operand(0)), cut_text(shape_));
  }

  /// The same bits: of another width, the last dimension is as many numbers as one of the wider has narrower ones, and the wider array lacks it.
  [[nodiscard]] ShapeProblem of_bits() const {
    if (!known(0)) return {};
    const HloShape& given = operand(0);
    const bool widens = bits_of(given.type) < bits_of(shape_.type);
    const HloShape &wide = widens ? shape_ : given, &narrow = widens ? given : shape_;
    ShapeDims wanted = wide.dims;
    if (bits_of(wide.type) != bits_of(narrow.type)) wanted.push_back(bits_of(wide.type) / bits_of(narrow.type));
    if (wanted == narrow.dims && is_complex(given.type) == is_complex(shape_.type)) return {};
    return fmt::format("expected the bits of its operand, {}, got {}", cut_text(given), cut_text(shape_));
  }

  [[nodiscard]] ShapeProblem of_dependency() const {
    if (operand(1).type != HloType::token) return fmt::format("expected a token as operand 1, got {}", cut_text(operand(1)));
    return same(0, shape_);
  }

  [[nodiscard]] ShapeProblem of_dimensions() const {
    return fmt::format("expected dimensions= for the {} dimensions of {}, got {}", operand(0).rank(), cut_text(operand(0)), attributes_.dimensions.size());
  }

  [[nodiscard]] ShapeProblem of_transpose() const {
    if (!known(0)) return {};
    if (attributes_.dimensions.size() != operand(0).rank()) return of_dimensions();
    ShapeDims wanted;
    for (const std::int64_t from : attributes_.dimensions) {
      if (from < 0 || static_cast<std::size_t>(from) >= operand(0).rank()) return fmt::format("expected dimensions of {}, got {}", cut_text(operand(0)), from);
      wanted.push_back(operand(0).dims[static_cast<std::size_t>(from)]);
    }
    return has(wanted, operand(0));
  }

  [[nodiscard]] ShapeProblem of_broadcast() const {
    if (!known(0)) return {};
    if (attributes_.dimensions.size() != operand(0).rank()) return of_dimensions();
    ShapeDims wanted = shape_.dims;
    for (std::size_t d = 0; d < operand(0).rank(); ++d) {
      const std::int64_t to = attributes_.dimensions[d];
      if (to < 0 || static_cast<std::size_t>(to) >= wanted.size()) return fmt::format("expected dimensions of {}, got {}", cut_text(shape_), to);
      wanted[static_cast<std::size_t>(to)] = operand(0).dims[d];
    }
    return has(wanted, operand(0));
  }

  [[nodiscard]] ShapeProblem of_concatenate() const {
    if (operands_.empty()) return fmt::format("expected arrays to concatenate, got none");
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (number_kind_of(operand(o).type) != number_kind_of(operand(0).type) || !operand(o).is_array()) return fmt::format("expected an array as operand {}, of numbers like those of operand 0, {}, got {}", o, cut_text(operand(0)), cut_text(operand(o)));
    if (shape_.is_tuple()) return fmt::format("expected an array as the result of concatenate, got {}", cut_text(shape_));
    if (attributes_.dimensions.size() != 1) return fmt::format("expected dimensions={{D}} of concatenate, found {} of them", attributes_.dimensions.size());
    if (!std::ranges::all_of(operands_, [](const HloShape* o) { return is_static_array(*o); })) return {};
    const auto dim = static_cast<std::size_t>(attributes_.dimensions.front());
    ShapeDims wanted = operand(0).dims;
    if (dim >= wanted.size()) return fmt::format("expected a dimension of {}, got {}", cut_text(operand(0)), dim);
    for (std::size_t o = 1; o < operands_.size(); ++o) {
      ShapeDims other = operand(o).dims;
      if (other.size() != wanted.size()) return fmt::format("expected operands of {} dimensions, got {}", wanted.size(), cut_text(operand(o)));
      const std::int64_t length = wanted[dim] + other[dim];
      wanted[dim] = other[dim] = length;
      if (other != wanted) return fmt::format("expected operands that differ in dimension {} only, got {} and {}", dim, cut_text(operand(0)), cut_text(operand(o)));
    }
    return has(wanted, operand(0));
  }

  /// Scalars may stand for the bounds of a clamp and the choice of a select.
  [[nodiscard]] ShapeProblem of_elementwise() const {
    if (!shape_.is_array()) return {};
    const bool takes_scalars = instruction_.opcode == HloOpcode::select || instruction_.opcode == HloOpcode::clamp;
    for (std::size_t o = 0; o < operands_.size(); ++o)
      if (operand(o).is_array() && operand(o).dims != shape_.dims && !(takes_scalars && operand(o).dims.empty()))
        return fmt::format("expected operands of the dimensions of the result, {}, got {}", cut_text(shape_), cut_text(operand(o)));
    return of_numbers();
  }

  [[nodiscard]] ShapeProblem of_numbers() const {
    using enum HloOpcode;
    const auto expect = [&](std::size_t o, HloType like) -> ShapeProblem {
      if (o >= operands_.size() || !operand(o).is_array() || number_kind_of(operand(o).type) == number_kind_of(like)) return {};
      return fmt::format("expected operand {} of the kind of {}, got {}", o, name_of(like), cut_text(operand(o)));
    };
    switch (instruction_.opcode) {
      case abs:
      case bitcast_convert:
      case convert:
      case power:
      case stochastic_convert: return {};
      case complex:
        if (auto wrong = expect(0, HloType::f32)) return wrong;
        if (auto wrong = expect(1, HloType::f32)) return wrong;
        return is_complex(shape_.type) ? std::nullopt : ShapeProblem{fmt::format("expected a result of complex numbers, got {}", cut_text(shape_))};
      case imag:
      case real: return is_float(shape_.type) ? std::nullopt : ShapeProblem{fmt::format("expected a result of real numbers, got {}", cut_text(shape_))};
      case compare:
        if (shape_.type != HloType::pred) return fmt::format("expected a result of pred, got {}", cut_text(shape_));
        return operands_.empty() ? std::nullopt : expect(1, operand(0).type);
      case is_finite: return shape_.type == HloType::pred ? std::nullopt : ShapeProblem{fmt::format("expected a result of pred, got {}", cut_text(shape_))};
      case select:
        if (auto wrong = expect(0, HloType::pred)) return wrong;
        for (const std::size_t o : {1, 2})
          if (auto wrong = expect(o, shape_.type)) return wrong;
        return {};
      default:
        for (std::size_t o = 0; o < operands_.size(); ++o)
          if (auto wrong = expect(o, shape_.type)) return wrong;
        return {};
    }
  }
};

}  // namespace

std::optional<std::string> whole_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands) {
  return Shapes{instruction, result, operands}.problem();
}

std::optional<std::string> shape_problem(const HloInstruction& instruction, std::span<const HloShape* const> operands) {
  if (std::ranges::find(operands, nullptr) != operands.end()) return {};
  const bool moves = instruction.opcode == HloOpcode::send || instruction.opcode == HloOpcode::recv;
  return moves || instruction.phase != HloPhase::whole ? async_shape_problem(instruction, operands) : whole_shape_problem(instruction, *instruction.shape, operands);
}

}  // namespace podsim
