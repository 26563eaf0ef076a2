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

/// Rows of a tile, which are moved whole along the sublanes.
std::int64_t rows_of_a_tile(const HloShape& array) {
  if (array.layout.tiles.empty() || array.layout.tiles.front().size() < 2) return sublanes_of_a_register;
  return std::max(std::int64_t{1}, array.layout.tiles.front()[array.layout.tiles.front().size() - 2]);
}

/// Of elements that are not neighbours any more, or become some, along a dimension of `array`.
double cycles_of_spacing(const HloShape& array, std::int64_t dimension) {
  const auto [lanes, sublanes] = lanes_and_sublanes(array);
  if (dimension < 0) return 0;
  return dimension == lanes ? lane_by_lane : dimension == sublanes ? to_other_sublanes : 0;
}

/// Of elements that move by so many places along a dimension of `array`.
double cycles_of_shift(const HloShape& array, std::int64_t dimension, std::int64_t places) {
  const auto [lanes, sublanes] = lanes_and_sublanes(array);
  if (dimension < 0) return 0;
  if (dimension == lanes) return places % lanes_of_a_register != 0 ? to_other_lanes : 0;
  return dimension == sublanes && places % rows_of_a_tile(array) != 0 ? to_other_sublanes : 0;
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

LanesAndSublanes lanes_and_sublanes(const HloShape& array) {
  LanesAndSublanes found;
  for (const std::int64_t d : array.layout.minor_to_major) {
    if (array.dims[static_cast<std::size_t>(d)] == 1) continue;
    if (found.lanes >= 0) return {found.lanes, d};
    found.lanes = d;
  }
  return found;
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
    case HloOpcode::copy:
    case HloOpcode::reshape: {
      const std::int64_t before = lanes_and_sublanes(from).lanes, after = lanes_and_sublanes(to).lanes;
      if (before < 0 || after < 0) return 0;
      const bool moves = instruction.opcode == HloOpcode::copy ? before != after : extent(from, before) != extent(to, after);
      return moves ? to_other_lanes * std::min(registers_of(from), registers_of(to)) : 0;
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
