#include "workloads/hlo_values/hlo_array.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 62;

bool is_array_type(HloType type) { return type != HloType::token && type != HloType::opaque && type != HloType::tuple; }

}  // namespace

std::int64_t elements_of(const HloArray& array) {
  if (!is_array_type(array.type)) return 0;
  if (std::find(array.dims.begin(), array.dims.end(), 0) != array.dims.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t dim : array.dims) {
    if (dim < 0) return 0;
    if (count > most_elements / dim) return most_elements;
    count *= dim;
  }
  return count;
}

bool has_values(HloType type) { return is_integer(type) || has_reals(type); }

bool mixes(HloType a, HloType b) {
  const auto is_whole = [](HloType type) { return is_integer(type) && type != HloType::pred; };
  return a == b || (is_float(a) && is_float(b)) || (is_complex(a) && is_complex(b)) || (is_whole(a) && is_whole(b));
}

HloType part_of(HloType type) { return type == HloType::c64 ? HloType::f32 : type == HloType::c128 ? HloType::f64 : type; }

HloArray zeros(HloType type, std::vector<std::int64_t> dims) {
  HloArray array{type, std::move(dims), {}, {}};
  const std::int64_t count = elements_of(array);
  PODSIM_ASSERT(count < most_elements);
  if (is_integer(type)) array.integers.assign(static_cast<std::size_t>(count), 0);
  if (has_reals(type)) array.reals.assign(static_cast<std::size_t>(count), 0.0);
  if (is_complex(type)) array.imaginaries.assign(static_cast<std::size_t>(count), 0.0);
  return array;
}

HloArray integer_array(HloType type, std::vector<std::int64_t> dims, std::vector<std::int64_t> values) {
  HloArray array{type, std::move(dims), std::move(values), {}};
  for (std::int64_t& value : array.integers) value = wrapped(type, static_cast<std::uint64_t>(value));
  return array;
}

HloArray real_array(HloType type, std::vector<std::int64_t> dims, std::vector<double> values) {
  return {type, std::move(dims), {}, std::move(values)};
}

HloArray integer_scalar(HloType type, std::int64_t value) { return integer_array(type, {}, {value}); }

HloArray real_scalar(HloType type, double value) { return real_array(type, {}, {value}); }

bool fits(const HloArray& array, const HloShape& shape) {
  if (array.type != shape.type || array.dims != shape.dims || shape.is_tuple()) return false;
  const auto count = static_cast<std::size_t>(elements_of(array));
  return array.integers.size() == (is_integer(array.type) ? count : 0) && array.reals.size() == (has_reals(array.type) ? count : 0) &&
         array.imaginaries.size() == (is_complex(array.type) ? count : 0);
}

std::string short_text(const HloArray& array) {
  HloShape shape;
  shape.type = array.type;
  shape.dims = array.dims;
  return short_text(shape);
}

std::int64_t wrapped(HloType type, std::uint64_t bits) {
  if (type == HloType::pred) return bits != 0 ? 1 : 0;
  const int width = bits_of(type);
  if (width >= 64) return static_cast<std::int64_t>(bits);
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  bits &= mask;
  const bool negative = !is_unsigned(type) && (bits >> (width - 1)) != 0;
  return static_cast<std::int64_t>(negative ? bits | ~mask : bits);
}

bool is_unsigned(HloType type) {
  switch (type) {
    case HloType::pred:
    case HloType::u1:
    case HloType::u2:
    case HloType::u4:
    case HloType::u8:
    case HloType::u16:
    case HloType::u32:
    case HloType::u64: return true;
    default: return false;
  }
}

double real_of(HloType type, std::int64_t value) {
  return is_unsigned(type) ? static_cast<double>(static_cast<std::uint64_t>(value)) : static_cast<double>(value);
}

std::int64_t integer_of(HloType type, double value) {
  if (type == HloType::pred) return value != 0 ? 1 : 0;  // also NaN
  if (std::isnan(value)) return 0;
  const int width = bits_of(type);
  const int digits = is_unsigned(type) ? width : width - 1;
  const double beyond = std::ldexp(1.0, digits);  // one more than the largest value
  value = std::trunc(value);
  if (is_unsigned(type)) {
    if (value <= 0) return 0;
    const std::uint64_t largest = ~std::uint64_t{0} >> (64 - width);
    return static_cast<std::int64_t>(value >= beyond ? largest : static_cast<std::uint64_t>(value));
  }
  if (digits == 0) return value <= -1 ? -1 : 0;  // s1
  const auto largest = static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - digits));
  if (value >= beyond) return largest;
  if (value < -beyond) return -largest - 1;
  return static_cast<std::int64_t>(value);
}

}  // namespace podsim
