#include "workloads/hlo_values/array_operation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace podsim {

Diagnostic ArrayOperation::error(const std::string& message) const {
  return {module.where(instruction), fmt::format("{}: {}", instruction.name, message)};
}

Diagnostic ArrayOperation::not_interpreted() const { return error(fmt::format("{} is not interpreted", opcode_text(instruction))); }

Status ArrayOperation::takes(std::size_t count) const {
  if (operands.size() == count) return success();
  return error(fmt::format("expected {} operands of {}, got {}", count, opcode_text(instruction), operands.size()));
}

Status ArrayOperation::spend(std::int64_t steps) const {
  if (budget.cancelled()) return cancelled_work();
  if (!budget.spend(steps)) return error("expected the module to take fewer steps: the bound of the interpreter is passed here");
  return success();
}

Status ArrayOperation::spend(double steps) const { return spend(steps < 0x1p62 ? static_cast<std::int64_t>(steps) : std::int64_t{-1}); }

bool is_sane(const HloWindowDimension& window) {
  for (const std::int64_t number : {window.size, window.stride, window.pad_low, window.pad_high, window.lhs_dilate, window.rhs_dilate})
    if (number > largest_window || number < -largest_window) return false;
  return true;
}

double nearest(HloType type, double value) {
  struct Format {
    HloType type;
    int digits;    // of the fraction
    int smallest;  // exponent of normal numbers
    double largest;
  };
  constexpr std::array<Format, 7> formats{{{HloType::f32, 23, -126, 0x1.fffffep127},
                                           {HloType::bf16, 7, -126, 0x1.fep127},
                                           {HloType::f16, 10, -14, 65504},
                                           {HloType::f8e4m3fn, 3, -6, 448},
                                           {HloType::f8e5m2, 2, -14, 57344},
                                           {HloType::f8e4m3fnuz, 3, -7, 240},
                                           {HloType::f8e5m2fnuz, 2, -15, 57344}}};
  const auto* const format = std::find_if(formats.begin(), formats.end(), [&](const Format& each) { return each.type == type; });
  if (format == formats.end() || value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format->smallest);
  const double unit = std::ldexp(1.0, exponent - format->digits), found = std::nearbyint(value / unit) * unit;
  if (std::fabs(found) <= format->largest) return found;
  return bits_of(type) == 8 ? std::nan("") : std::copysign(std::numeric_limits<double>::infinity(), value);
}

}  // namespace podsim
