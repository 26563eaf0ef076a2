#include "workloads/hlo/hlo_product_rate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace podsim {

namespace {

/// The slowest first.
enum class Arithmetic { exact, f32, bf16, f8, f8e5m2, s8 };

Arithmetic arithmetic_of(HloType type) {
  const int bits = bits_of(type);
  if (is_integer(type)) return bits <= 8 ? Arithmetic::s8 : Arithmetic::exact;
  if (!is_float(type) || bits > 32) return Arithmetic::exact;
  if (bits == 32) return Arithmetic::f32;
  if (bits == 16) return Arithmetic::bf16;
  return type == HloType::f8e5m2 || type == HloType::f8e5m2fnuz ? Arithmetic::f8e5m2 : Arithmetic::f8;
}

Arithmetic of_both(Arithmetic left, Arithmetic right) {
  const auto [slower, faster] = std::minmax(left, right);
  const bool mixes = faster == Arithmetic::s8 && (slower == Arithmetic::f8 || slower == Arithmetic::f8e5m2);
  return mixes ? Arithmetic::bf16 : slower;
}

int passes_of(HloPrecision precision) {
  switch (precision) {
    case HloPrecision::standard: return 0;
    case HloPrecision::high: return 3;
    case HloPrecision::highest: return most_float32_passes;
  }
  return 0;
}

/// What an algorithm rounds floats to; nullopt: it leaves them, or is not known.
std::optional<HloProductRate> rate_of(std::string_view algorithm) {
  const auto begins = [&](std::string_view with) { return algorithm.starts_with(with); };
  if (begins("dot_f64") || begins("dot_f32")) return HloProductRate{DType::f32, most_float32_passes};
  if (begins("dot_tf32_tf32_f32_x3")) return HloProductRate{DType::f32, 1, 3};
  if (begins("dot_tf32_tf32_f32")) return HloProductRate{DType::f32, 1};
  for (const int products : {3, 6, 9})
    if (algorithm == fmt::format("dot_bf16_bf16_f32_x{}", products)) return HloProductRate{DType::bf16, 0, products};
  if (begins("dot_bf16_bf16") || begins("dot_f16_f16")) return HloProductRate{DType::bf16};
  return std::nullopt;
}

}  // namespace

HloProductRate product_rate_of(HloType left, HloType right, HloPrecision precision, std::string_view algorithm) {
  const Arithmetic operands = of_both(arithmetic_of(left), arithmetic_of(right));
  if (is_float(left) && is_float(right))
    if (const auto rate = rate_of(algorithm)) return *rate;
  switch (operands) {
    case Arithmetic::exact: break;
    case Arithmetic::f32: return {DType::f32, passes_of(precision)};
    case Arithmetic::bf16: return {DType::bf16};
    case Arithmetic::f8: return {DType::f8e4m3fn};
    case Arithmetic::f8e5m2: return {DType::f8e5m2};
    case Arithmetic::s8: return {DType::s8};
  }
  return {DType::f32, most_float32_passes};
}

HloProductRate product_rate_of(const HloComputation& computation, const HloInstruction& product) {
  const auto type = [&](std::size_t o) { return computation.instructions[static_cast<std::size_t>(product.operands[o])].shape->type; };
  return product_rate_of(type(0), type(1), product.attributes->precision, product.attributes->algorithm);
}

}  // namespace podsim
