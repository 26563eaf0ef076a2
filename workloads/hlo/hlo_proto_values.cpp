#include "workloads/hlo/hlo_proto_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "workloads/hlo/xla_hlo.pb.h"

namespace podsim {

namespace {

constexpr std::int64_t most_literal_numbers = std::int64_t{1} << 20;  // as the text's reader takes
constexpr int deepest_proto_tuple = 64;
constexpr int most_proto_dimensions = 64;

/// PrimitiveType
std::optional<HloType> type_numbered(int number) {
  using T = HloType;
  static const std::unordered_map<int, HloType> types{{1, T::pred},
                                                      {2, T::s8},
                                                      {3, T::s16},
                                                      {4, T::s32},
                                                      {5, T::s64},
                                                      {6, T::u8},
                                                      {7, T::u16},
                                                      {8, T::u32},
                                                      {9, T::u64},
                                                      {10, T::f16},
                                                      {11, T::f32},
                                                      {12, T::f64},
                                                      {13, T::tuple},
                                                      {14, T::opaque},
                                                      {15, T::c64},
                                                      {16, T::bf16},
                                                      {17, T::token},
                                                      {18, T::c128},
                                                      {19, T::f8e5m2},
                                                      {20, T::f8e4m3fn},
                                                      {21, T::s4},
                                                      {22, T::u4},
                                                      {23, T::f8e4m3b11fnuz},
                                                      {24, T::f8e5m2fnuz},
                                                      {25, T::f8e4m3fnuz},
                                                      {26, T::s2},
                                                      {27, T::u2},
                                                      {28, T::f8e4m3},
                                                      {29, T::f8e3m4},
                                                      {30, T::s1},
                                                      {31, T::u1},
                                                      {32, T::f4e2m1fn},
                                                      {33, T::f8e8m0fnu}};
  const auto found = types.find(number);
  if (found == types.end()) return std::nullopt;
  return found->second;
}

/// Two bytes of a little-endian array.
std::uint16_t half_word(const std::string& bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[2 * at]) | static_cast<unsigned char>(bytes[2 * at + 1]) << 8);
}
float bf16_of(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
float f16_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN())
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

std::string real_text(double value, int digits) { return std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits); }
/// As XLA prints it: with as few digits as surely are a decimal number's own, or with as many as any value needs.
template <class Real>
std::string real_text(Real value) {
  std::string text = real_text(value, std::numeric_limits<Real>::digits10);
  Real same{};
  std::from_chars(text.data(), text.data() + text.size(), same);
  return same == value || std::isnan(value) ? text : real_text(value, std::numeric_limits<Real>::max_digits10);
}

/// The values of a literal, one after the other; empty: they are not read, or not there.
std::vector<std::string> values_of(const xla::Literal& literal, HloType type) {
  std::vector<std::string> values;
  const auto integers = [&](const auto& numbers) {
    for (const auto number : numbers) values.push_back(std::to_string(number));
  };
  const auto reals = [&](const auto& numbers) {
    for (const auto number : numbers) values.push_back(real_text(number));
  };
  const auto pairs = [&](const auto& numbers) {
    for (int i = 0; i + 1 < numbers.size(); i += 2) values.push_back(fmt::format("({}, {})", real_text(numbers[i]), real_text(numbers[i + 1])));
  };
  const auto bytes = [&](const std::string& all, auto number) {
    for (const char byte : all) values.push_back(std::to_string(static_cast<decltype(number)>(byte)));
  };
  const auto half_words = [&](const std::string& all, auto text) {
    for (std::size_t i = 0; 2 * i + 1 < all.size(); ++i) values.push_back(text(half_word(all, i)));
  };
  switch (type) {
    case HloType::pred:
      for (const bool value : literal.preds()) values.emplace_back(value ? "true" : "false");
      break;
    case HloType::s8: bytes(literal.s8s(), static_cast<signed char>(0)); break;
    case HloType::u8: bytes(literal.u8s(), static_cast<unsigned char>(0)); break;
    case HloType::s16: half_words(literal.s16s(), [](std::uint16_t word) { return std::to_string(static_cast<std::int16_t>(word)); }); break;
    case HloType::u16: half_words(literal.u16s(), [](std::uint16_t word) { return std::to_string(word); }); break;
    case HloType::s32: integers(literal.s32s()); break;
    case HloType::s64: integers(literal.s64s()); break;
    case HloType::u32: integers(literal.u32s()); break;
    case HloType::u64: integers(literal.u64s()); break;
    case HloType::f16: half_words(literal.f16s(), [](std::uint16_t word) { return real_text(f16_of(word), 5); }); break;
    case HloType::bf16: half_words(literal.bf16s(), [](std::uint16_t word) { return real_text(bf16_of(word), 4); }); break;
    case HloType::f32: reals(literal.f32s()); break;
    case HloType::f64: reals(literal.f64s()); break;
    case HloType::c64: pairs(literal.c64s()); break;
    case HloType::c128: pairs(literal.c128s()); break;
    default: break;
  }
  return values;
}

std::optional<Diagnostic> read_layout(const xla::Layout& proto, HloShape& shape) {
  HloLayout& layout = shape.layout;
  layout.minor_to_major.assign(proto.minor_to_major().begin(), proto.minor_to_major().end());
  for (const xla::Tile& tile : proto.tiles()) {
    std::vector<std::int64_t>& dims = layout.tiles.emplace_back();
    for (const std::int64_t size : tile.dimensions()) dims.push_back(size == std::numeric_limits<std::int64_t>::min() ? HloLayout::combined : size);
  }
  if (proto.element_size_in_bits() < 0 || proto.element_size_in_bits() > 1024 || proto.memory_space() < 0 || proto.memory_space() > 1 << 20)
    return Diagnostic{{}, "expected the bits of an element and the number of a memory space"};
  layout.element_bits = static_cast<int>(proto.element_size_in_bits());
  layout.memory_space = static_cast<int>(proto.memory_space());
  if (proto.tail_padding_alignment_in_elements() > 1) layout.others += fmt::format("L({})", proto.tail_padding_alignment_in_elements());
  for (const xla::SplitConfig& split : proto.split_configs())
    layout.others += fmt::format("SC({}:{})", split.dimension(), fmt::join(split.split_indices(), ","));
  shape.has_layout = layout != HloLayout{};
  return std::nullopt;
}

std::optional<Diagnostic> read_shape(const xla::Shape& proto, HloShape& shape, int depth) {
  const auto type = type_numbered(proto.element_type());
  if (!type) return Diagnostic{{}, fmt::format("expected the number of an element type, found {}", proto.element_type())};
  if (depth > deepest_proto_tuple) return Diagnostic{{}, "expected at most 64 tuples in each other"};
  shape.type = *type;
  if (shape.is_tuple()) {
    for (const xla::Shape& element : proto.tuple_shapes())
      if (auto problem = read_shape(element, shape.elements.emplace_back(), depth + 1)) return problem;
    return std::nullopt;
  }
  if (proto.dimensions_size() > most_proto_dimensions) return Diagnostic{{}, "expected at most 64 dimensions"};
  for (int d = 0; d < proto.dimensions_size(); ++d) {
    const bool dynamic = d < proto.is_dynamic_dimension_size() && proto.is_dynamic_dimension(d);
    std::int64_t size = proto.dimensions(d);
    if (dynamic) shape.dynamic_dims.push_back(d);
    if (dynamic && size == std::numeric_limits<std::int64_t>::min())
      size = HloShape::unbounded;
    else if (size < 0)
      return Diagnostic{{}, fmt::format("expected a dimension from 0 on, found {}", size)};
    shape.dims.push_back(size);
  }
  return read_layout(proto.layout(), shape);
}

}  // namespace

Expected<HloShape> shape_of_proto(const xla::Shape& proto) {
  HloShape shape;
  if (auto problem = read_shape(proto, shape, 0)) return *std::move(problem);
  return shape;
}

std::string literal_text(const xla::Literal& literal, const HloShape& shape) {
  const std::int64_t elements = shape.is_array() ? elements_of(shape) : 0;
  std::vector<std::string> values;
  if (elements <= most_literal_numbers) values = values_of(literal, shape.type);
  if (!shape.is_array() || (values.empty() && elements > 0)) return "{...}";
  const std::string list = fmt::format("{}", fmt::join(values, ", "));
  return shape.dims.empty() ? list : '{' + list + '}';
}

}  // namespace podsim
