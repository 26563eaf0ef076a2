// bitcast, bitcast-convert, and several arrays in memory as one.
#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "workloads/hlo_values/array_operation.hpp"
#include "workloads/hlo_values/memory_places.hpp"

namespace podsim {

namespace {

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
      result.reals[i] = real_of_bits(type, bits);
    else
      result.integers[i] = wrapped(type, bits);
  }
  return result;
}

constexpr std::int64_t most_places = std::int64_t{1} << 26;

/// What lies between the elements of an array in memory: nothing that was written.
HloArray unwritten(HloType type, std::int64_t places) {
  HloArray memory = zeros(type, {places});
  std::ranges::fill(memory.reals, std::nan(""));
  std::ranges::fill(memory.imaginaries, std::nan(""));
  return memory;
}

template <class Move>
void for_each_list(HloArray& to, const HloArray& from, Move move) {
  move(to.integers, from.integers);
  move(to.reals, from.reals);
  move(to.imaginaries, from.imaginaries);
}

Expected<MemoryPlaces> places_of(const ArrayOperation& operation, const HloShape& shape) {
  auto places = memory_places(shape, most_places);
  if (!places) return operation.error(fmt::format("expected a layout that lists every dimension once, and at most 2^26 elements as stored, got {}", to_text(shape).substr(0, 200)));
  if (const auto ok = operation.spend(places->size); !ok) return ok.error();
  return *std::move(places);
}

/// The memory of an array as its layout has it, padding too.
Expected<HloArray> in_memory(const ArrayOperation& operation, const HloArray& array, const HloShape& shape) {
  const auto places = places_of(operation, shape);
  if (!places) return places.error();
  HloArray memory = unwritten(array.type, places->size);
  for_each_list(memory, array, [&](auto& to, const auto& from) {
    for (std::size_t i = 0; i < from.size(); ++i) to[to_size(places->of[i])] = from[i];
  });
  return memory;
}

/// What stands in memory, read in the layout of a shape.
Expected<HloArray> seen_as(const ArrayOperation& operation, const HloArray& memory, const HloShape& shape) {
  const auto places = places_of(operation, shape);
  if (!places) return places.error();
  for (const std::int64_t place : places->of)
    if (place >= memory.dims.front()) return operation.error(fmt::format("expected the {} elements in memory of {}, got {}", places->size, to_text(shape).substr(0, 200), memory.dims.front()));
  HloArray array = zeros(memory.type, shape.dims);
  for_each_list(array, memory, [&](auto& to, const auto& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[to_size(places->of[i])];
  });
  return array;
}

/// Elements in memory as those of a type of another width: the bytes, lowest first.
Expected<HloArray> regrouped(const ArrayOperation& operation, const HloArray& memory, HloType type) {
  if (bits_of(memory.type) == bits_of(type)) return with_type(operation, memory, type);
  const auto bytes_in = [](HloType of) { return of == HloType::pred ? 1 : bits_of(of) / 8; };
  const bool has_bytes = (memory.type == HloType::pred || bits_of(memory.type) % 8 == 0) && (type == HloType::pred || bits_of(type) % 8 == 0);
  if (!has_bytes || !has_bits(memory.type) || !has_bits(type))
    return operation.error(
        fmt::format("{} from {} to {} is not interpreted", opcode_text(operation.instruction), name_of(memory.type), name_of(type)));
  const auto from = static_cast<std::size_t>(bytes_in(memory.type)), to = static_cast<std::size_t>(bytes_in(type));
  const auto count = static_cast<std::size_t>(elements_of(memory));
  std::vector<std::uint8_t> bytes;
  bytes.reserve(count * from);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = is_float(memory.type) ? bits_of_real(memory.type, memory.reals[i]) : static_cast<std::uint64_t>(memory.integers[i]);
    for (std::size_t byte = 0; byte < from; ++byte) bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
  }
  if (bytes.size() % to != 0) return operation.error(fmt::format("expected whole elements of {}, got {} bytes", name_of(type), bytes.size()));
  HloArray result = zeros(type, {static_cast<std::int64_t>(bytes.size() / to)});
  for (std::size_t i = 0; i < bytes.size() / to; ++i) {
    std::uint64_t bits = 0;
    for (std::size_t byte = 0; byte < to; ++byte) bits |= static_cast<std::uint64_t>(bytes[i * to + byte]) << (8 * byte);
    if (is_float(type))
      result.reals[i] = real_of_bits(type, bits);
    else
      result.integers[i] = wrapped(type, bits);
  }
  return result;
}

}  // namespace

Expected<HloArrays> bitcast_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  if (operation.instruction.opcode == HloOpcode::bitcast) return memory_operation(operation);
  const HloShape& shape = operation.shape();
  auto typed = with_type(operation, operation.operand(0), shape.type);
  if (!typed) return typed.error();
  for (const double value : typed->reals) made(operation.arithmetic, value);
  return HloArrays{*std::move(typed)};
}

Expected<HloArrays> memory_operation(const ArrayOperation& operation) {
  // Each operand stands as its layout has it, one behind the other; all are read in that of the result.
  const HloShape& shape = operation.shape();
  HloArray all{shape.type};
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const auto memory = in_memory(operation, operation.operand(i), operation.operand_shape(i));
    if (!memory) return memory.error();
    const auto part = regrouped(operation, *memory, shape.type);
    if (!part) return part.error();
    for_each_list(all, *part, [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); });
  }
  all.dims = {static_cast<std::int64_t>(std::max(all.integers.size(), all.reals.size()))};
  auto seen = seen_as(operation, all, shape);
  if (!seen) return seen.error();
  for (const double value : seen->reals) made(operation.arithmetic, value);
  return HloArrays{*std::move(seen)};
}

}  // namespace podsim
