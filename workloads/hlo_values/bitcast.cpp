// bitcast and bitcast-convert.
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "workloads/hlo_values/array_operation.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

/// Dimensions from the one that varies slowest in memory to the one that varies fastest; nullopt: the layout is of other dimensions.
std::optional<std::vector<std::int64_t>> major_to_minor(const HloShape& shape) {
  std::vector<std::int64_t> order;
  for (std::size_t d = 0; d < shape.rank(); ++d) order.push_back(static_cast<std::int64_t>(d));
  if (!shape.has_layout || (shape.layout.minor_to_major.empty() && shape.rank() > 0)) return order;
  order.assign(shape.layout.minor_to_major.rbegin(), shape.layout.minor_to_major.rend());
  if (!is_permutation_of(order, shape.rank())) return std::nullopt;
  return order;
}

/// The nearest number of bf16 as its 16 bits; ties to even.
std::uint64_t bf16_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return bits >> 16;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

bool has_bits(HloType type) { return is_integer(type) || type == HloType::f32 || type == HloType::bf16 || type == HloType::f64; }

/// Doubles beyond the range of float become infinite before they are cast, which is not defined for them.
double within_float(double value) {
  constexpr double largest = 0x1.fffffefffffffp127;  // of the numbers that round to a finite float
  return value > largest ? HUGE_VAL : value < -largest ? -HUGE_VAL : value;
}

std::uint64_t bits_of_real(HloType type, double value) {
  if (type == HloType::f64) return std::bit_cast<std::uint64_t>(value);
  value = within_float(value);
  if (type == HloType::bf16) return bf16_bits(value);
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

double real_of_bits(HloType type, std::uint64_t bits) {
  if (type == HloType::f64) return std::bit_cast<double>(bits);
  if (type == HloType::bf16) bits <<= 16;
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

/// The same bits as another type of the same width.
Expected<HloArray> with_type(const ArrayOperation& operation, const HloArray& x, HloType type) {
  if (x.type == type) return x;
  if (bits_of(x.type) != bits_of(type) || !has_bits(x.type) || !has_bits(type))
    return operation.error(fmt::format("{} from {} to {} is not interpreted", opcode_text(operation.instruction), name_of(x.type), name_of(type)));
  HloArray result = zeros(type, x.dims);
  const auto count = static_cast<std::size_t>(elements_of(x));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = is_float(x.type) ? bits_of_real(x.type, x.reals[i]) : static_cast<std::uint64_t>(x.integers[i]);
    if (is_float(type))
      result.reals[i] = made(operation.arithmetic, real_of_bits(type, bits));
    else
      result.integers[i] = wrapped(type, bits);
  }
  return result;
}

}  // namespace

Expected<HloArrays> bitcast_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloShape& shape = operation.shape();
  auto typed = with_type(operation, operation.operand(0), shape.type);
  if (!typed) return typed.error();
  if (elements_of(shape) != elements_of(*typed))
    return operation.error(fmt::format("expected as many elements as {} has, got {}", short_text(*typed), short_text(shape)));
  if (operation.instruction.opcode == HloOpcode::bitcast_convert) return HloArrays{*std::move(typed)};

  // The elements stand in the order of the operand's layout, and are read in that of the result's.
  const auto from = major_to_minor(operation.operand_shape(0)), to = major_to_minor(shape);
  if (!from || !to || from->size() != typed->dims.size()) return operation.error("expected layouts that list every dimension once");
  HloArray memory = transposed(*typed, *from);
  memory.dims.clear();
  std::vector<std::int64_t> back(shape.rank(), 0);
  for (std::size_t i = 0; i < to->size(); ++i) {
    memory.dims.push_back(shape.dims[static_cast<std::size_t>((*to)[i])]);
    back[static_cast<std::size_t>((*to)[i])] = static_cast<std::int64_t>(i);
  }
  return HloArrays{transposed(memory, back)};
}

}  // namespace podsim
