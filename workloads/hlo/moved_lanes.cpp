#include "workloads/hlo/moved_lanes.hpp"

#include <algorithm>

namespace podsim {

namespace {

constexpr std::int64_t lanes_of_a_register = 128, sublanes_of_a_register = 8;
constexpr double words_of_a_register = 1024;
// Cycles of a register.
constexpr double to_other_lanes = 2, to_other_sublanes = 1, reversed_lanes = 5, reversed_sublanes = 4, lane_by_lane = 2 * lanes_of_a_register;

/// Registers that hold the elements of an array, padded to its tiles, 32 bits of one in each lane; more of elements that have more bits.
double registers_of(const HloShape& array) {
  const int bits = array.layout.element_bits > 0 ? array.layout.element_bits : bits_of(array.type);
  const double elements = 8 * static_cast<double>(device_bytes(array).count()) / std::max(bits, 1);
  return elements * std::max(1, bits / 32) / words_of_a_register;
}

std::int64_t extent(const HloShape& array, std::int64_t dimension) { return dimension < 0 ? 1 : array.dims[static_cast<std::size_t>(dimension)]; }

/// Of elements that are not neighbours any more, or become some, along a dimension of `array`.
double cycles_of_spacing(const HloShape& array, std::int64_t dimension) {
  const auto [lanes, sublanes] = lanes_and_sublanes(array);
  if (dimension < 0) return 0;
  return dimension == lanes ? lane_by_lane : dimension == sublanes ? to_other_sublanes : 0;
}

/// Cycles of a register that is shifted.
struct ShiftCycles {
  double lanes = to_other_lanes, sublanes = to_other_sublanes;
};
constexpr ShiftCycles of_an_update{7, 3};

/// Of elements that move by so many places, or a multiple of them, along a dimension of `array`.
double cycles_of_shift(const HloShape& array, std::int64_t dimension, std::int64_t places, ShiftCycles shift = {}) {
  const auto [lanes, sublanes] = lanes_and_sublanes(array);
  if (dimension < 0) return 0;
  if (dimension == lanes) return places % lanes_of_a_register != 0 ? shift.lanes : 0;
  return dimension == sublanes && places % rows_of_a_tile(array) != 0 ? shift.sublanes : 0;
}

/// What divides an index of a dynamic slice or update, which are its operands from `first_index` on; a constant itself.
std::int64_t divisor_of_index(const HloComputation& computation, const HloInstruction& instruction, std::size_t first_index, std::size_t dimension) {
  const std::vector<std::int64_t>& known = instruction.attributes->index_multiples;
  if (dimension < known.size()) return known[dimension];
  const std::size_t position = first_index + dimension;
  if (position >= instruction.operands.size() || instruction.operands[position] == HloInstruction::missing) return 1;
  const HloInstruction& index = computation.instructions[static_cast<std::size_t>(instruction.operands[position])];
  const std::vector<std::int64_t>& value = index.attributes->literal.integers;
  return index.opcode == HloOpcode::constant && value.size() == 1 ? value.front() : 1;
}

/// `part` of `whole` begins at indices that may be computed.
double cycles_of_indexed_part(const HloComputation& computation, const HloInstruction& instruction, std::size_t first_index, const HloShape& whole, const HloShape& part, ShiftCycles shift) {
  double most = 0;
  for (std::size_t d = 0; d < whole.rank() && d < part.rank(); ++d)
    if (part.dims[d] != whole.dims[d]) most = std::max(most, cycles_of_shift(whole, static_cast<std::int64_t>(d), divisor_of_index(computation, instruction, first_index, d), shift));
  return most * registers_of(part);
}

double cycles_of_slice(const HloShape& from, const HloInstruction& slice) {
  double most = 0;
  for (std::size_t d = 0; d < slice.attributes->slice.size() && d < from.rank(); ++d) {
    const HloSliceExtent& part = slice.attributes->slice[d];
    const auto dimension = static_cast<std::int64_t>(d);
    most = std::max(most, part.stride == 1 ? cycles_of_shift(from, dimension, part.start) : cycles_of_spacing(from, dimension));
  }
  return most * registers_of(*slice.shape);
}

double cycles_of_pad(const HloShape& from, const HloInstruction& pad) {
  double most = 0;
  for (std::size_t d = 0; d < pad.attributes->padding.size() && d < from.rank(); ++d) {
    const HloPadding& padding = pad.attributes->padding[d];
    const auto dimension = static_cast<std::int64_t>(d);
    most = std::max(most, padding.interior == 0 ? cycles_of_shift(*pad.shape, dimension, padding.low) : cycles_of_spacing(*pad.shape, dimension));
  }
  return most * std::min(registers_of(from), registers_of(*pad.shape));
}

double cycles_of_reverse(const HloInstruction& reverse) {
  const auto [lanes, sublanes] = lanes_and_sublanes(*reverse.shape);
  const auto turns = [&](std::int64_t dimension) { return dimension >= 0 && std::ranges::find(reverse.attributes->dimensions, dimension) != reverse.attributes->dimensions.end(); };
  return (turns(lanes) ? reversed_lanes : turns(sublanes) ? reversed_sublanes : 0) * registers_of(*reverse.shape);
}

double cycles_of_transpose(const HloShape& from, const HloInstruction& transpose) {
  const std::int64_t before = lanes_and_sublanes(from).lanes, after = lanes_and_sublanes(*transpose.shape).lanes;
  const std::vector<std::int64_t>& dimensions = transpose.attributes->dimensions;
  if (before < 0 || after < 0 || static_cast<std::size_t>(after) >= dimensions.size()) return 0;
  return dimensions[static_cast<std::size_t>(after)] != before ? to_other_lanes * std::min(registers_of(from), registers_of(*transpose.shape)) : 0;
}

double cycles_of_broadcast(const HloShape& from, const HloInstruction& broadcast) {
  const HloShape& to = *broadcast.shape;
  const std::int64_t lanes = lanes_and_sublanes(to).lanes;
  const std::vector<std::int64_t>& kept = broadcast.attributes->dimensions;
  if (lanes < 0 || elements_of(from) <= 1 || std::ranges::find(kept, lanes) != kept.end()) return 0;
  const double registers = registers_of(to);
  return to_other_lanes * std::min(registers, registers * static_cast<double>(lanes_of_a_register) / static_cast<double>(extent(to, lanes)));
}

}  // namespace

std::int64_t rows_of_a_tile(const HloShape& array) {
  if (array.layout.tiles.empty() || array.layout.tiles.front().size() < 2) return sublanes_of_a_register;
  return std::max(std::int64_t{1}, array.layout.tiles.front()[array.layout.tiles.front().size() - 2]);
}

LanesAndSublanes lanes_and_sublanes(const HloShape& array) {
  LanesAndSublanes found;
  for (const std::int64_t d : array.layout.minor_to_major) {
    if (array.dims[static_cast<std::size_t>(d)] == 1) continue;
    if (found.lanes >= 0) return {found.lanes, d};
    found.lanes = d;
  }
  return found;
}

double stores_of_reshape(const HloShape& from, const HloShape& to) {
  constexpr std::int64_t whole = sublanes_of_a_register, far_apart = 512, regrouped = 2, unaligned = 4;
  if (!from.is_array() || !to.is_array()) return 0;
  const auto [lanes_from, sublanes_from] = lanes_and_sublanes(from);
  const auto [lanes_to, sublanes_to] = lanes_and_sublanes(to);
  if (lanes_from < 0 || lanes_to < 0) return 0;
  const std::int64_t before = extent(from, lanes_from), after = extent(to, lanes_to), rows_from = std::min(whole, rows_of_a_tile(from)), rows_to = std::min(whole, rows_of_a_tile(to));
  const auto packed = [](std::int64_t rows) { return rows > 1 && rows < whole ? whole / rows : 0; };
  std::int64_t stores = whole;
  if (before == after) {
    const auto fills_tiles = [](const HloShape& array, std::int64_t dimension, std::int64_t rows) { return extent(array, dimension) % rows == 0; };
    if (rows_from != rows_to)
      stores = whole / std::min(rows_from, rows_to);
    else if (extent(from, sublanes_from) == extent(to, sublanes_to) || (fills_tiles(from, sublanes_from, rows_from) && fills_tiles(to, sublanes_to, rows_to)))
      return 0;
    else
      stores = regrouped;
  } else if (sublanes_from < 0 || sublanes_to < 0) {
    stores = regrouped;
  } else if (before % after == 0 || after % before == 0) {
    const std::int64_t times = std::max(before / after, after / before);
    if (before % lanes_of_a_register != 0 || after % lanes_of_a_register != 0)
      stores = unaligned;
    else if (after > before)
      stores = std::min(whole, 3 + times);
    else if (rows_to < whole)
      stores = std::clamp(whole * after / far_apart, regrouped, whole);  // each row into tiles of its own
    else
      stores = times < whole && after > lanes_of_a_register ? times : std::clamp(before / far_apart, std::int64_t{1}, whole);
  }
  return static_cast<double>(stores + packed(rows_from) + packed(rows_to)) * std::min(registers_of(from), registers_of(to));
}

double cycles_of_moved_lanes(const HloComputation& computation, const HloInstruction& instruction, bool is_fused) {
  const auto operand = [&](std::size_t i) -> const HloInstruction* {
    if (i >= instruction.operands.size() || instruction.operands[i] == HloInstruction::missing) return nullptr;
    const HloInstruction& found = computation.instructions[static_cast<std::size_t>(instruction.operands[i])];
    return found.shape->is_array() ? &found : nullptr;
  };
  const HloInstruction* const first = operand(0);
  if (first == nullptr || !instruction.shape->is_array()) return 0;
  const HloShape &from = *first->shape, &to = *instruction.shape;
  switch (instruction.opcode) {
    case HloOpcode::reverse: return cycles_of_reverse(instruction);
    case HloOpcode::transpose: return cycles_of_transpose(from, instruction);
    case HloOpcode::copy: {
      const std::int64_t before = lanes_and_sublanes(from).lanes, after = lanes_and_sublanes(to).lanes;
      return before >= 0 && after >= 0 && before != after ? to_other_lanes * std::min(registers_of(from), registers_of(to)) : 0;
    }
    case HloOpcode::dynamic_slice: return cycles_of_indexed_part(computation, instruction, 1, from, to, {});
    case HloOpcode::dynamic_update_slice: {
      const HloInstruction* const update = operand(1);
      return update == nullptr ? 0 : cycles_of_indexed_part(computation, instruction, 2, to, *update->shape, is_fused ? ShiftCycles{} : of_an_update);
    }
    case HloOpcode::slice: return cycles_of_slice(from, instruction);
    case HloOpcode::pad: return cycles_of_pad(from, instruction);
    case HloOpcode::concatenate: {
      double cycles = 0;
      std::int64_t places = 0;
      const std::int64_t along = instruction.attributes->dimensions.empty() ? -1 : instruction.attributes->dimensions.front();
      for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
        const HloInstruction* const part = operand(i);
        if (part == nullptr || along < 0 || static_cast<std::size_t>(along) >= part->shape->rank()) return cycles;
        cycles += cycles_of_shift(to, along, places) * registers_of(*part->shape);
        places += extent(*part->shape, along);
      }
      return cycles;
    }
    case HloOpcode::broadcast: return is_fused && first->opcode != HloOpcode::parameter ? 0 : cycles_of_broadcast(from, instruction);
    default: return 0;
  }
}

}  // namespace podsim
