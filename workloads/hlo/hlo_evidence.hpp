// How far the cost of an instruction is to be trusted.
#pragma once

#include <cstdint>

namespace podsim {

/// known: arithmetic and bytes follow from shapes. estimated: from a formula, or from what a kernel's author states. unknown: only the bytes of operands and
/// results are known, so the time is a lower bound. In order: of several parts the last one.
enum class HloEvidence : std::uint8_t { known, estimated, unknown };

}  // namespace podsim
