#include "workloads/hlo_values/array_operation.hpp"

#include <charconv>

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

std::vector<std::int64_t> listed_dimensions(const HloAttributes& attributes, std::string_view name) {
  std::vector<std::int64_t> dimensions;
  for (const HloAttribute& attribute : attributes.others) {
    if (attribute.name != name) continue;
    const char *at = attribute.text.data(), *const end = at + attribute.text.size();
    while (at != end) {
      std::int64_t value = 0;
      const auto [rest, status] = std::from_chars(at, end, value);
      if (status == std::errc{}) dimensions.push_back(value);
      at = status == std::errc{} ? rest : at + 1;
    }
  }
  return dimensions;
}

std::optional<std::int64_t> number_named(const HloAttributes& attributes, std::string_view name) {
  const std::vector<std::int64_t> numbers = listed_dimensions(attributes, name);
  if (numbers.size() != 1) return std::nullopt;
  return numbers[0];
}

}  // namespace podsim
