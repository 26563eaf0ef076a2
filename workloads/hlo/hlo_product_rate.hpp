// At which rate the matrix unit computes a product: by the element types of its operands and by the precision that the module asks for.
#pragma once

#include "sim/schedule/schedule.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

struct HloProductRate {
  DType operands = DType::bf16;  // whose rate it has, peak_of()
  int float32_passes = 0;        // of f32, as Matmul::float32_passes
  int products = 1;              // of parts of the operands, each at that rate, whose sum stands for the product
  bool attention = false;        // by a kernel of attention, which chip.attention_efficiency is of
  friend bool operator==(const HloProductRate&, const HloProductRate&) = default;
};

/// Of operands of these types:
///   f8e4m3fn, f8e5m2 and the other floats of 8 and 4 bits     f8e4m3fn; f8e5m2 where both are f8e5m2 or f8e5m2fnuz
///   integers of up to 8 bits, pred                            s8
///   f16, bf16; floats of 8 bits with integers of 8            bf16
///   f32                                                       f32, by the precision: HIGH 3 passes, HIGHEST 6, otherwise as the machine does
///   f64, complex numbers, integers of 16 bits and more        f32 of 6 passes: an estimate, as machines state no rate for them
/// Of two types the slower one decides. `algorithm` decides instead, where it names what floats are rounded to: dot_bf16_bf16_f32_x3, _x6, _x9 are 3, 6 and 9
/// products in bf16, dot_tf32_tf32_f32_x3 three in TF32 (on TPUs in bf16). Without one an accelerator without bf16 passes gives TF32 for HIGH, as XLA does.
/// Source: openxla/xla, PrecisionConfig.Algorithm of xla/xla_data.proto ("An algorithm which uses 3 BF16_BF16_F32 matmuls to achieve better precision"), read 2026-11-29.
HloProductRate product_rate_of(HloType left, HloType right, HloPrecision precision = HloPrecision::standard, std::string_view algorithm = {});

/// Of a dot or convolution.
HloProductRate product_rate_of(const HloComputation& computation, const HloInstruction& product);

}  // namespace podsim
