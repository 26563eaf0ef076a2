// Numbers of narrow types, stored as floats that hold exactly what the type can.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The nearest bfloat16, ties to even; overflow gives infinity. A NaN stays a NaN with its sign, made quiet.
inline float round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
  const std::uint32_t quiet = (bits | 0x00400000U) & 0xffff0000U;  // rounding up a NaN of full payload would carry into the sign
  return std::bit_cast<float>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

/// The nearest number with `mantissa` bits behind the leading one and exponents from `least` on, ties to even; above `largest` it is `overflow`, which
/// has the value's sign.
inline float round_to_f8(float value, int mantissa, int least, float largest, float overflow) {
  if (value == 0 || std::isnan(value)) return value;
  const int exponent = std::isinf(value) ? std::numeric_limits<float>::max_exponent : std::max(std::ilogb(value), least);
  const float rounded = std::ldexp(std::nearbyint(std::ldexp(value, mantissa - exponent)), exponent - mantissa);
  return std::abs(rounded) > largest ? std::copysign(overflow, value) : rounded;
}
/// As XLA converts (ml_dtypes): what rounds beyond 448 is a NaN, as the type has no infinity.
inline float round_to_f8e4m3fn(float value) { return round_to_f8(value, 3, -6, 448, std::numeric_limits<float>::quiet_NaN()); }
/// What rounds beyond 57344 is infinite.
inline float round_to_f8e5m2(float value) { return round_to_f8(value, 2, -14, 57344, std::numeric_limits<float>::infinity()); }
/// Whole numbers wrap at 8 bits. What is no number stays so.
inline float wrap_to_s8(float value) {
  if (!(std::abs(value) < 0x1p62F)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(static_cast<std::int8_t>(static_cast<std::int64_t>(value)));
}

/// Whether floats change where they are stored in this type.
constexpr bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::f8e4m3fn || dtype == DType::f8e5m2 || dtype == DType::s8; }

/// What is held of a number that is stored in this type.
inline float stored_in(DType dtype, float value) {
  switch (dtype) {
    case DType::bf16: return round_to_bf16(value);
    case DType::f8e4m3fn: return round_to_f8e4m3fn(value);
    case DType::f8e5m2: return round_to_f8e5m2(value);
    case DType::s8: return wrap_to_s8(value);
    default: return value;
  }
}

/// Significant binary digits of a float of this type.
constexpr int digits_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 8;
    case DType::f8e4m3fn: return 4;
    case DType::f8e5m2: return 3;
    default: return 24;
  }
}

}  // namespace podsim
