// How far the cost of an instruction is to be trusted.
#pragma once

#include <cstdint>
#include <string_view>

namespace podsim {

/// known: arithmetic and bytes follow from shapes. estimated: from a formula, or from what a kernel's author states. lower_bound: operations are counted, but they depend
/// on each other, and no unit reaches its rate on such. unknown: only the bytes of operands and results are known, so the time is a lower bound, too. In order: of
/// several parts the last one.
enum class HloEvidence : std::uint8_t { known, estimated, lower_bound, unknown };
/// As in JSON: the same words.
constexpr std::string_view name_of(HloEvidence evidence) {
  switch (evidence) {
    case HloEvidence::known: return "known";
    case HloEvidence::estimated: return "estimated";
    case HloEvidence::lower_bound: return "lower_bound";
    case HloEvidence::unknown: break;
  }
  return "unknown";
}

}  // namespace podsim
