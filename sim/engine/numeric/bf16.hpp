// bfloat16 values stored as floats whose low 16 bits are zero.
#pragma once

#include <bit>
#include <cstdint>

namespace podsim {

/// The nearest bfloat16, ties to even; overflow gives infinity. A NaN stays a NaN with its sign, made quiet.
inline float round_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
  const std::uint32_t quiet = (bits | 0x00400000U) & 0xffff0000U;  // rounding up a NaN of full payload would carry into the sign
  return std::bit_cast<float>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

}  // namespace podsim
