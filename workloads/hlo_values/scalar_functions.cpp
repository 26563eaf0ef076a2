#include "workloads/hlo_values/scalar_functions.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "workloads/hlo_values/hlo_array.hpp"

namespace podsim {

namespace {

using Word = HloOpcode;

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

double sign_of(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }  // of 0, -0 and NaN itself

// NaN if either is: unlike fmax.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

/// Division by 0 gives all ones, of signed and of unsigned types; the least value by -1 is itself. Source: openxla/xla docs/operation_semantics.md
/// leaves them open; its elemental_ir_emitter.cc has these.
std::uint64_t divided(HloType type, std::int64_t a, std::int64_t b) {
  if (b == 0) return ~std::uint64_t{0};
  if (is_unsigned(type)) return bits(a) / bits(b);
  if (b == -1) return 0 - bits(a);
  return bits(a / b);
}

std::uint64_t remainder_of(HloType type, std::int64_t a, std::int64_t b) {
  if (b == 0) return bits(a);
  if (is_unsigned(type)) return bits(a) % bits(b);
  if (b == -1) return 0;
  return bits(a % b);
}

std::uint64_t power_of(HloType type, std::int64_t base, std::int64_t exponent) {
  if (!is_unsigned(type) && exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : ~std::uint64_t{0};
    return 0;
  }
  std::uint64_t result = 1, square = bits(base);
  for (std::uint64_t left = bits(exponent); left != 0; left >>= 1, square *= square)
    if ((left & 1) != 0) result *= square;
  return result;
}

bool below(HloType type, std::int64_t a, std::int64_t b) { return is_unsigned(type) ? bits(a) < bits(b) : a < b; }

/// The bits of the type alone: amounts of shifts count without sign.
std::uint64_t field(HloType type, std::int64_t value) {
  const int width = bits_of(type);
  return width >= 64 ? bits(value) : bits(value) & ((std::uint64_t{1} << width) - 1);
}
bool shifts_all(HloType type, std::int64_t by) { return field(type, by) >= static_cast<std::uint64_t>(bits_of(type)); }

}  // namespace

RealUnary real_unary(HloOpcode opcode) {
  switch (opcode) {
    case Word::abs: return [](double x) { return std::fabs(x); };
    case Word::negate: return [](double x) { return -x; };
    case Word::sign: return sign_of;
    case Word::floor: return [](double x) { return std::floor(x); };
    case Word::ceil: return [](double x) { return std::ceil(x); };
    case Word::round_nearest_afz: return [](double x) { return std::round(x); };
    case Word::round_nearest_even: return [](double x) { return std::nearbyint(x); };
    case Word::exponential: return [](double x) { return std::exp(x); };
    case Word::exponential_minus_one: return [](double x) { return std::expm1(x); };
    case Word::log: return [](double x) { return std::log(x); };
    case Word::log_plus_one: return [](double x) { return std::log1p(x); };
    case Word::logistic: return [](double x) { return 1 / (1 + std::exp(-x)); };
    case Word::tanh: return [](double x) { return std::tanh(x); };
    case Word::sinh: return [](double x) { return std::sinh(x); };
    case Word::cosh: return [](double x) { return std::cosh(x); };
    case Word::asinh: return [](double x) { return std::asinh(x); };
    case Word::acosh: return [](double x) { return std::acosh(x); };
    case Word::atanh: return [](double x) { return std::atanh(x); };
    case Word::tan: return [](double x) { return std::tan(x); };
    case Word::sine: return [](double x) { return std::sin(x); };
    case Word::cosine: return [](double x) { return std::cos(x); };
    case Word::asin: return [](double x) { return std::asin(x); };
    case Word::acos: return [](double x) { return std::acos(x); };
    case Word::sqrt: return [](double x) { return std::sqrt(x); };
    case Word::rsqrt: return [](double x) { return 1 / std::sqrt(x); };
    case Word::cbrt: return [](double x) { return std::cbrt(x); };
    case Word::erf: return [](double x) { return std::erf(x); };
    case Word::copy:
    case Word::real:
    case Word::reduce_precision: return [](double x) { return x; };
    default: return nullptr;
  }
}

RealBinary real_binary(HloOpcode opcode) {
  switch (opcode) {
    case Word::add: return [](double a, double b) { return a + b; };
    case Word::subtract: return [](double a, double b) { return a - b; };
    case Word::multiply: return [](double a, double b) { return a * b; };
    case Word::divide: return [](double a, double b) { return a / b; };
    case Word::remainder: return [](double a, double b) { return std::fmod(a, b); };
    case Word::power: return [](double a, double b) { return std::pow(a, b); };
    case Word::maximum: return larger;
    case Word::minimum: return smaller;
    case Word::atan2: return [](double a, double b) { return std::atan2(a, b); };
    default: return nullptr;
  }
}

IntegerUnary integer_unary(HloOpcode opcode) {
  switch (opcode) {
    case Word::abs: return [](HloType type, std::int64_t x) { return !is_unsigned(type) && x < 0 ? 0 - bits(x) : bits(x); };
    case Word::negate: return [](HloType, std::int64_t x) { return 0 - bits(x); };
    case Word::sign: return [](HloType type, std::int64_t x) { return x == 0 ? 0 : below(type, x, 0) ? ~std::uint64_t{0} : 1; };
    case Word::not_: return [](HloType type, std::int64_t x) { return type == HloType::pred ? std::uint64_t{x == 0} : ~bits(x); };
    case Word::popcnt: return [](HloType type, std::int64_t x) { return static_cast<std::uint64_t>(std::popcount(field(type, x))); };
    case Word::clz:
      return [](HloType type, std::int64_t x) { return static_cast<std::uint64_t>(std::countl_zero(field(type, x)) - (64 - bits_of(type))); };
    case Word::copy: return [](HloType, std::int64_t x) { return bits(x); };
    default: return nullptr;
  }
}

IntegerBinary integer_binary(HloOpcode opcode) {
  switch (opcode) {
    case Word::add: return [](HloType, std::int64_t a, std::int64_t b) { return bits(a) + bits(b); };
    case Word::subtract: return [](HloType, std::int64_t a, std::int64_t b) { return bits(a) - bits(b); };
    case Word::multiply: return [](HloType, std::int64_t a, std::int64_t b) { return bits(a) * bits(b); };
    case Word::divide: return divided;
    case Word::remainder: return remainder_of;
    case Word::power: return power_of;
    case Word::maximum: return [](HloType type, std::int64_t a, std::int64_t b) { return below(type, a, b) ? bits(b) : bits(a); };
    case Word::minimum: return [](HloType type, std::int64_t a, std::int64_t b) { return below(type, a, b) ? bits(a) : bits(b); };
    case Word::and_: return [](HloType, std::int64_t a, std::int64_t b) { return bits(a) & bits(b); };
    case Word::or_: return [](HloType, std::int64_t a, std::int64_t b) { return bits(a) | bits(b); };
    case Word::xor_: return [](HloType, std::int64_t a, std::int64_t b) { return bits(a) ^ bits(b); };
    case Word::shift_left: return [](HloType type, std::int64_t a, std::int64_t b) { return shifts_all(type, b) ? 0 : bits(a) << field(type, b); };
    case Word::shift_right_logical:
      return [](HloType type, std::int64_t a, std::int64_t b) { return shifts_all(type, b) ? 0 : field(type, a) >> field(type, b); };
    case Word::shift_right_arithmetic:
      return [](HloType type, std::int64_t a, std::int64_t b) {
        const bool negative = ((field(type, a) >> (bits_of(type) - 1)) & 1) != 0;
        if (shifts_all(type, b)) return negative ? ~std::uint64_t{0} : 0;
        const auto by = static_cast<int>(field(type, b));
        const std::uint64_t moved = field(type, a) >> by;
        const int free = 64 - (bits_of(type) - by);  // bits above those that were moved; at least 0
        return negative && free > 0 ? moved | (free >= 64 ? ~std::uint64_t{0} : ~std::uint64_t{0} << (64 - free)) : moved;
      };
    default: return nullptr;
  }
}

bool rounds(HloOpcode opcode) {
  switch (opcode) {
    case Word::abs:
    case Word::negate:
    case Word::sign:
    case Word::floor:
    case Word::ceil:
    case Word::round_nearest_afz:
    case Word::round_nearest_even:
    case Word::copy:
    case Word::real:
    case Word::maximum:
    case Word::minimum:
    case Word::remainder: return false;  // the remainder of two numbers of a type is one
    default: return true;
  }
}

}  // namespace podsim
