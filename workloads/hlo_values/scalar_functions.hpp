// The elementwise operations of HLO on single numbers. Internal.
#pragma once

#include <cstdint>

#include "workloads/hlo/hlo_opcode.hpp"
#include "workloads/hlo/hlo_shape.hpp"

namespace podsim {

using RealUnary = double (*)(double);
using RealBinary = double (*)(double, double);
using IntegerUnary = std::uint64_t (*)(HloType, std::int64_t);                 // the result is still to be wrapped to the type
using IntegerBinary = std::uint64_t (*)(HloType, std::int64_t, std::int64_t);  // likewise

/// nullptr where an operation is not one of these on such numbers.
RealUnary real_unary(HloOpcode opcode);
RealBinary real_binary(HloOpcode opcode);
IntegerUnary integer_unary(HloOpcode opcode);
IntegerBinary integer_binary(HloOpcode opcode);

/// Whether a real result is rounded to its type: not of maximum, negate, floor, ...
bool rounds(HloOpcode opcode);

}  // namespace podsim
