// Elementwise operations, and conversions between types.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "workloads/hlo_values/array_operation.hpp"
#include "workloads/hlo_values/scalar_functions.hpp"

namespace podsim {

namespace {

using Word = HloOpcode;

bool same_form(const HloArray& a, const HloArray& b) { return mixes(a.type, b.type) && a.dims == b.dims; }

/// Of the result, where the compiler gave it another width than the operand has.
HloType type_of_result(const ArrayOperation& operation, HloType operand) { return mixes(operation.shape().type, operand) ? operation.shape().type : operand; }

Diagnostic unlike(const ArrayOperation& operation, const HloArray& a, const HloArray& b) {
  return operation.error(fmt::format("expected operands of one shape, got {} and {}", short_text(a), short_text(b)));
}

Expected<HloArrays> unary(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  const Word opcode = operation.instruction.opcode;
  const HloType type = type_of_result(operation, x.type);
  HloArray result = zeros(type, x.dims);
  if (is_float(x.type)) {
    const RealUnary function = real_unary(opcode);
    if (function == nullptr) return operation.not_interpreted();
    const bool is_rounded = rounds(opcode) || bits_of(type) < bits_of(x.type);
    for (std::size_t i = 0; i < x.reals.size(); ++i) {
      const double value = function(x.reals[i]);
      result.reals[i] = is_rounded ? rounded(operation.arithmetic, type, value) : made(operation.arithmetic, value);
    }
  } else {
    const IntegerUnary function = integer_unary(opcode);
    if (function == nullptr) return operation.not_interpreted();
    for (std::size_t i = 0; i < x.integers.size(); ++i) result.integers[i] = wrapped(type, function(x.type, x.integers[i]));
  }
  return HloArrays{std::move(result)};
}

Expected<HloArrays> binary(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  const HloArray &a = operation.operand(0), &b = operation.operand(1);
  if (!same_form(a, b)) return unlike(operation, a, b);
  const Word opcode = operation.instruction.opcode;
  const HloType type = type_of_result(operation, a.type);
  HloArray result = zeros(type, a.dims);
  if (is_float(a.type)) {
    const RealBinary function = real_binary(opcode);
    if (function == nullptr) return operation.not_interpreted();
    const bool is_rounded = rounds(opcode) || bits_of(type) < std::max(bits_of(a.type), bits_of(b.type)), is_sum = opcode == Word::add || opcode == Word::subtract, is_product = opcode == Word::multiply;
    for (std::size_t i = 0; i < a.reals.size(); ++i) {
      const double x = a.reals[i], y = b.reals[i], value = function(x, y);
      result.reals[i] = is_rounded ? rounded(operation.arithmetic, type, value) : made(operation.arithmetic, value);
      if (is_sum) note_sum(operation.arithmetic, finite_or_zero(std::fabs(x)) + finite_or_zero(std::fabs(y)));
      if (is_product) note_sum(operation.arithmetic, std::fabs(x * y));
    }
  } else {
    const IntegerBinary function = integer_binary(opcode);
    if (function == nullptr) return operation.not_interpreted();
    for (std::size_t i = 0; i < a.integers.size(); ++i) result.integers[i] = wrapped(type, function(a.type, a.integers[i], b.integers[i]));
  }
  return HloArrays{std::move(result)};
}

Expected<HloArrays> is_finite(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  if (!is_float(x.type)) return operation.not_interpreted();
  HloArray result = zeros(HloType::pred, x.dims);
  for (std::size_t i = 0; i < x.reals.size(); ++i) result.integers[i] = std::isfinite(x.reals[i]) ? 1 : 0;
  return HloArrays{std::move(result)};
}

/// Ordered as -NaN < -inf < .. < -0 < 0 < .. < inf < NaN.
std::int64_t total_order(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits < 0 ? std::numeric_limits<std::int64_t>::max() ^ bits : bits;
}

template <class T>
bool holds(HloDirection direction, T a, T b) {
  switch (direction) {
    case HloDirection::eq: return a == b;
    case HloDirection::ne: return a != b;
    case HloDirection::ge: return a >= b;
    case HloDirection::gt: return a > b;
    case HloDirection::le: return a <= b;
    case HloDirection::lt: return a < b;
    case HloDirection::none: break;
  }
  return false;
}

Expected<HloArrays> compare(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  const HloArray &a = operation.operand(0), &b = operation.operand(1);
  if (!same_form(a, b)) return unlike(operation, a, b);
  const HloDirection direction = operation.attributes().direction;
  if (direction == HloDirection::none) return operation.error("expected a direction of the comparison");
  bool total = false;
  for (const HloAttribute& attribute : operation.attributes().others) total = total || (attribute.name == "type" && attribute.text == "TOTALORDER");
  HloArray result = zeros(HloType::pred, a.dims);
  for (std::size_t i = 0; i < result.integers.size(); ++i) {
    bool yes = false;
    if (is_float(a.type))
      yes = total ? holds(direction, total_order(a.reals[i]), total_order(b.reals[i])) : holds(direction, a.reals[i], b.reals[i]);
    else if (is_unsigned(a.type))
      yes = holds(direction, static_cast<std::uint64_t>(a.integers[i]), static_cast<std::uint64_t>(b.integers[i]));
    else
      yes = holds(direction, a.integers[i], b.integers[i]);
    result.integers[i] = yes ? 1 : 0;
  }
  return HloArrays{std::move(result)};
}

Expected<HloArrays> select(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(3); !ok) return ok.error();
  const HloArray &which = operation.operand(0), &a = operation.operand(1), &b = operation.operand(2);
  if (which.type != HloType::pred || (which.dims != a.dims && !which.dims.empty()))
    return operation.error(fmt::format("expected a pred of the shape of {} or a scalar, got {}", short_text(a), short_text(which)));
  if (!same_form(a, b)) return unlike(operation, a, b);
  HloArray result = b;
  const auto choose = [&](auto& into, const auto& first) {
    for (std::size_t i = 0; i < first.size(); ++i)
      if (which.integers[which.dims.empty() ? 0 : i] != 0) into[i] = first[i];
  };
  choose(result.integers, a.integers);
  choose(result.reals, a.reals);
  choose(result.imaginaries, a.imaginaries);
  return HloArrays{std::move(result)};
}

/// clamp(low, x, high): the bounds are scalars or of the shape of x.
Expected<HloArrays> clamp(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(3); !ok) return ok.error();
  const HloArray &low = operation.operand(0), &x = operation.operand(1), &high = operation.operand(2);
  for (const HloArray* bound : {&low, &high})
    if (!mixes(bound->type, x.type) || (bound->dims != x.dims && !bound->dims.empty())) return unlike(operation, *bound, x);
  const auto place = [](const HloArray& bound, std::size_t i) { return bound.dims.empty() ? std::size_t{0} : i; };
  HloArray result = x;
  const RealBinary larger = real_binary(Word::maximum), smaller = real_binary(Word::minimum);
  const IntegerBinary larger_integer = integer_binary(Word::maximum), smaller_integer = integer_binary(Word::minimum);
  for (std::size_t i = 0; i < result.reals.size(); ++i)
    result.reals[i] = smaller(larger(x.reals[i], low.reals[place(low, i)]), high.reals[place(high, i)]);
  for (std::size_t i = 0; i < result.integers.size(); ++i) {
    const std::int64_t above = wrapped(x.type, larger_integer(x.type, x.integers[i], low.integers[place(low, i)]));
    result.integers[i] = wrapped(x.type, smaller_integer(x.type, above, high.integers[place(high, i)]));
  }
  return HloArrays{std::move(result)};
}

Expected<HloArrays> convert(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  const HloType type = operation.shape().type;
  if (!has_values(type)) return operation.not_interpreted();
  HloArray result = zeros(type, x.dims);
  const auto count = static_cast<std::size_t>(elements_of(x));
  const bool narrows = is_float(x.type) && bits_of(type) < bits_of(x.type);
  const double largest_exact = bits_of(type) <= 16 ? 0x1p8 : bits_of(type) == 64 ? 0x1p53 : 0x1p24;  // of whole numbers
  for (std::size_t i = 0; i < count; ++i) {
    if (is_float(type)) {
      const double value = is_float(x.type) ? x.reals[i] : real_of(x.type, x.integers[i]);
      const bool is_rounded = narrows || (is_integer(x.type) && std::fabs(value) > largest_exact);
      result.reals[i] = is_rounded ? rounded(operation.arithmetic, type, value) : made(operation.arithmetic, value);
    } else {
      result.integers[i] = is_float(x.type) ? integer_of(type, x.reals[i]) : wrapped(type, static_cast<std::uint64_t>(x.integers[i]));
    }
  }
  return HloArrays{std::move(result)};
}

}  // namespace

Expected<HloArrays> elementwise_operation(const ArrayOperation& operation) {
  const bool with_complex = is_complex(operation.shape().type) || std::ranges::any_of(operation.operands, [](const HloArray* operand) { return is_complex(operand->type); });
  if (with_complex && operation.instruction.opcode != Word::select) return complex_operation(operation);
  switch (operation.instruction.opcode) {
    case Word::add:
    case Word::subtract:
    case Word::multiply:
    case Word::divide:
    case Word::remainder:
    case Word::power:
    case Word::maximum:
    case Word::minimum:
    case Word::atan2:
    case Word::and_:
    case Word::or_:
    case Word::xor_:
    case Word::shift_left:
    case Word::shift_right_arithmetic:
    case Word::shift_right_logical: return binary(operation);
    case Word::is_finite: return is_finite(operation);
    case Word::compare: return compare(operation);
    case Word::select: return select(operation);
    case Word::clamp: return clamp(operation);
    case Word::convert: return convert(operation);
    default: return unary(operation);
  }
}

}  // namespace podsim
