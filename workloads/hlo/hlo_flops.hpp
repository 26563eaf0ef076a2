// Floating-point operations of products: dot and convolution, by the pairs of elements that are really multiplied.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// A product as `batch` matrix products [m,k] @ [k,n]; flops = 2 * batch * m * n * k.
///
/// Of a dot: m and n are the free dimensions of the left and the right operand, k the contracted ones.
/// Of a convolution, per spatial dimension the (output position, tap) pairs that read an element of the input (in range, not in a hole of the
/// dilation): all pairs together are split into m and k. With T pairs in a dimension of O positions: T is a multiple of O: k takes T/O, m takes O;
/// else m takes T. Features: k the input features of a group, n the output features of a group; batch the groups. So `bf_io->bf` is x @ w, and
/// `window={size=32 pad=31_31 rhs_reversal=1}, bf0_i0o->b0f`, one valid tap per position, is 32 times as many outputs and not 32 times the FLOPs.
struct HloProduct {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  std::int64_t flops = 0;
  friend bool operator==(const HloProduct&, const HloProduct&) = default;
};

/// Pairs of an output position in [0, outputs) and a tap in [0, window.size) whose input index, position*stride + tap*rhs_dilate - pad_low, is a
/// multiple of lhs_dilate within [0, (inputs-1)*lhs_dilate]. A reversed window has as many. O(log) of the extents: sums of floors, no loop over
/// positions or taps; with an lhs_dilate above 1 as many such sums as positions or taps differ modulo it. Saturates at 2^62. nullopt: those are more
/// than 2^20.
std::optional<std::int64_t> valid_taps(const HloWindowDimension& window, std::int64_t inputs, std::int64_t outputs);

/// The product of a dot or convolution with operands of these shapes. Errors (at `where`): dimensions that are not there or do not agree; FLOPs
/// beyond 2^62. Source: the counting rule of openxla/xla HloCostAnalysis::HandleConvolution and HandleDot.
Expected<HloProduct> product_of(const HloInstruction& product, const HloShape& left, const HloShape& right, const SourceLocation& where);
/// The same of an instruction in its computation. Errors: also an operand that a cut file does not have.
Expected<HloProduct> product_of(const HloModule& module, const HloComputation& computation, const HloInstruction& product);

}  // namespace podsim
