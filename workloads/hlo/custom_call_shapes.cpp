// Shapes of the custom-calls whose results follow from their operands.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "workloads/hlo/shape_rule.hpp"

namespace podsim {

namespace {

class CustomCallShape : ShapeRule {
 public:
  using ShapeRule::ShapeRule;

  [[nodiscard]] ShapeProblem problem() const {
    const std::string& target = attributes_.custom_call_target;
    if (target == "ConcatBitcast") return of_parts();
    if (target == "TopK" || target == "__gpu$TopK") return of_largest();
    if (target == "X64SplitLow" || target == "X64SplitHigh") return of_half();
    if (target == "X64Combine") return of_halves();
    if (target.starts_with("__cublas$gemm") || target.starts_with("__cublas$lt$matmul")) return of_product();
    if (target.starts_with("__cudnn$conv")) return of_convolution(target);
    constexpr std::array<std::string_view, 5> identities{"AssumeGatherIndicesInBound", "MoveToDevice", "MoveToHost", "Sharding", "annotate_device_placement"};
    if (std::ranges::find(identities, target) == identities.end()) return {};
    if (auto wrong = takes(1)) return wrong;
    return same(0, shape_);
  }

 private:
  [[nodiscard]] ShapeProblem takes(std::size_t wanted) const {
    if (operands_.size() == wanted) return {};
    return fmt::format("expected {} operand{} of {}, got {}", wanted, wanted == 1 ? "" : "s", attributes_.custom_call_target, operands_.size());
  }
  [[nodiscard]] ShapeProblem expected_result(std::string_view wanted) const {
    return fmt::format("expected {} as the result of {}, got {}", wanted, attributes_.custom_call_target, cut_text(shape_));
  }

  /// All operands side by side: as many bytes, as they are or as the device stores them.
  [[nodiscard]] ShapeProblem of_parts() const {
    if (operands_.empty() || !std::ranges::all_of(operands_, [](const HloShape* part) { return part->is_array(); })) return fmt::format("expected arrays as operands of {}", attributes_.custom_call_target);
    if (!std::ranges::all_of(operands_, [](const HloShape* part) { return is_static_array(*part); })) return {};
    Bytes logical, stored;
    for (const HloShape* const part : operands_) logical = saturated_sum(logical, logical_bytes(*part)), stored = saturated_sum(stored, device_bytes(*part));
    if (shape_.is_array() && (logical_bytes(shape_) == logical || device_bytes(shape_) == stored)) return {};
    return fmt::format("expected as many bytes as its operands have, {}, got {}", logical.count(), cut_text(shape_));
  }

  /// The k largest of each row, and where they stood.
  [[nodiscard]] ShapeProblem of_largest() const {
    if (auto wrong = takes(1)) return wrong;
    if (!operand(0).is_array() || operand(0).dims.empty()) return fmt::format("expected rows as the operand of {}, got {}", attributes_.custom_call_target, cut_text(operand(0)));
    if (!is_static_array(operand(0))) return {};
    const bool is_pair = shape_.elements.size() == 2 && shape_.elements[0].is_array() && shape_.elements[0].dims == shape_.elements[1].dims && number_kind_of(shape_.elements[1].type) == NumberKind::integer;
    if (is_pair && shape_.elements[0].rank() == operand(0).rank() && number_kind_of(shape_.elements[0].type) == number_kind_of(operand(0).type)) {
      ShapeDims wanted = operand(0).dims;
      wanted.back() = std::min(wanted.back(), shape_.elements[0].dims.back());
      if (wanted == shape_.elements[0].dims) return {};
    }
    return expected_result(fmt::format("the largest of each row of {}, and as many indices", cut_text(operand(0))));
  }

  static bool is_half(const HloShape& half, const HloShape& whole) { return half.is_array() && whole.is_array() && half.dims == whole.dims && 2 * bits_of(half.type) == bits_of(whole.type); }
  [[nodiscard]] ShapeProblem of_half() const {
    if (auto wrong = takes(1)) return wrong;
    return is_half(shape_, operand(0)) ? std::nullopt : expected_result(fmt::format("half of each number of {}", cut_text(operand(0))));
  }
  [[nodiscard]] ShapeProblem of_halves() const {
    if (auto wrong = takes(2)) return wrong;
    const bool fits = is_half(operand(0), shape_) && same_dims(operand(0), operand(1));
    return fits ? std::nullopt : expected_result(fmt::format("numbers of the halves {} and {}", cut_text(operand(0)), cut_text(operand(1))));
  }

  /// The result, without the memory that the library works in.
  [[nodiscard]] const HloShape& made() const { return shape_.is_tuple() && !shape_.elements.empty() ? shape_.elements.front() : shape_; }
  [[nodiscard]] ShapeProblem takes_two_arrays() const {
    if (operands_.size() >= 2 && operand(0).is_array() && operand(1).is_array()) return {};
    return fmt::format("expected two arrays as the first operands of {}, got {} operand{}", attributes_.custom_call_target, operands_.size(), operands_.size() == 1 ? "" : "s");
  }

  /// Where gemm_backend_config tells its dimensions; with beta operand 2 is added to it, then a bias by its epilogue. Those of narrow numbers ($f8) have scales too.
  [[nodiscard]] ShapeProblem of_product() const {
    if (auto wrong = takes_two_arrays()) return wrong;
    if (!attributes_.library_product || (attributes_.lhs_contracting.empty() && attributes_.rhs_contracting.empty())) return {};
    if (!is_static_array(operand(0)) || !is_static_array(operand(1)) || !is_static_array(made())) return {};
    if (auto wrong = dot_shape_problem(attributes_, operand(0), operand(1), made())) return wrong;
    const bool adds = attributes_.library_product->side_scale != 0, is_scaled = attributes_.custom_call_target.find("matmul$") != std::string::npos;
    if (const bool has_bias = attributes_.library_product->activation.find("BIAS") != std::string::npos; !is_scaled)
      if (auto wrong = takes(2U + (adds ? 1U : 0U) + (has_bias ? 1U : 0U))) return wrong;
    if (!adds || (operands_.size() > 2 && operand(2).dims == made().dims)) return {};
    return fmt::format("expected what the product is added to, {}, as operand 2 where beta is not 0, got {}", cut_text(made()), operands_.size() > 2 ? cut_text(operand(2)) : "nothing");
  }

  /// That of the forward pass, of which the gradients are the input or the kernel.
  [[nodiscard]] ShapeProblem of_convolution(const std::string& target) const {
    if (auto wrong = takes_two_arrays()) return wrong;
    if (target == "__cudnn$convBiasActivationForward" && (operands_.size() < 3 || operands_.size() > 4)) return fmt::format("expected input, kernel, bias and maybe a side input as operands of {}, got {}", target, operands_.size());
    constexpr std::array<std::string_view, 3> plain{"__cudnn$convBackwardFilter", "__cudnn$convBackwardInput", "__cudnn$convForward"};
    if (std::ranges::find(plain, target) != plain.end())
      if (auto wrong = takes(2)) return wrong;
    if (!is_static_array(operand(0)) || !is_static_array(operand(1)) || !is_static_array(made())) return {};
    const HloShape *input = &operand(0), *kernel = &operand(1), *output = &made();
    if (target.starts_with("__cudnn$convBackwardInput")) std::swap(input, output);
    if (target.starts_with("__cudnn$convBackwardFilter")) std::swap(kernel, output);
    return convolution_shape_problem(attributes_, *input, *kernel, *output);
  }
};

}  // namespace

ShapeProblem custom_call_shape_problem(const HloInstruction& instruction, const HloShape& result, std::span<const HloShape* const> operands) {
  return CustomCallShape{instruction, result, operands}.problem();
}

}  // namespace podsim
