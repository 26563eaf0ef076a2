#include "workloads/hlo/gpu_sorts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace podsim {

namespace {

constexpr std::int64_t multiprocessors = 132;  // of an H100 and an H200

/// Which arrays a comparison reads: parameters 2 n and 2 n + 1 are elements of array n.
std::vector<bool> compared_arrays(const HloComputation& comparison, std::size_t arrays) {
  std::vector<bool> compared(arrays);
  for (const HloInstruction& instruction : comparison.instructions)
    for (const int operand : instruction.operands) {
      if (operand == HloInstruction::missing) continue;
      const HloInstruction& read = comparison.instructions[static_cast<std::size_t>(operand)];
      if (read.opcode == HloOpcode::parameter && static_cast<std::size_t>(read.number) / 2 < arrays) compared[static_cast<std::size_t>(read.number) / 2] = true;
    }
  return compared;
}

bool is_long_enough(const RadixSort& sort) {
  struct Threshold {
    std::int64_t rows, length;  // more of both
  };
  const auto beyond = [&](const auto& thresholds) {
    return std::ranges::any_of(thresholds, [&](const Threshold& least) { return sort.rows > least.rows && sort.length > least.length; });
  };
  const bool one = sort.rows == 1;
  switch (sort.key_bits) {
    case 8: return one || (sort.length > 1300 && (sort.rows > 8 || sort.length < 26000));
    case 16:
      return (one && sort.length > 1 << 9) ||
             beyond(std::to_array<Threshold>({{12, 1 << 16}, {14, 1 << 15}, {16, 1 << 14}, {18, 1 << 13}, {33, 1 << 12}, {66, 1 << 11}}));
    case 32:
      return (one && sort.length > 22000) || beyond(std::to_array<Threshold>({{26, 1 << 17}, {31, 1 << 16}, {38, 1 << 15}, {44, 1 << 14}, {52, 1 << 13}})) ||
             (sort.rows > 88 && sort.rows <= multiprocessors && sort.length > 1 << 12);
    case 64:
      return (one && sort.length > 1 << 17) || beyond(std::to_array<Threshold>({{55, 1 << 17}, {70, 1 << 16}, {92, 1 << 15}, {354, 1 << 14}})) ||
             (sort.rows > 160 && sort.rows <= 2 * multiprocessors && sort.length > 1 << 14);
    default: return false;
  }
}

}  // namespace

int sort_kernels_on_gpu(double row, double bytes) {
  constexpr double most_in_tile = 4 * 1024, shared_memory = 48 * 1024;
  const int stages = static_cast<int>(std::ceil(std::log2(std::max(2.0, row))));
  const int in_tile = std::min(stages, static_cast<int>(std::floor(std::log2(std::min(most_in_tile, shared_memory / std::max(1.0, bytes))))));
  int kernels = 1;
  // Of stage s the first step spans 2^(s+1), the others 2^(s-1) and less; what spans less than a tile is done at the end, together.
  for (int beyond = 1; beyond <= stages - in_tile; ++beyond) kernels += beyond + 1;
  return kernels;
}

RadixSortCost radix_sort_cost(const RadixSort& sort) {
  const std::int64_t keys = (sort.key_bits + 7) / 8;
  const auto passes_of = [&](int bits) { return (sort.key_bits + bits - 1) / bits; };
  const auto of_all = [&](std::int64_t bytes_of_key) { return static_cast<double>(sort.rows) * static_cast<double>(sort.length) * static_cast<double>(bytes_of_key); };
  const int makes = sort.makes_keys ? 1 : 0;  // kernels
  RadixSortCost cost;
  if (sort.rows > 1) {
    const int passes = passes_of(keys > 1 ? 6 : 5);
    cost.kernels = makes + passes;
    cost.bytes = of_all(makes * 2 * keys + passes * (3 * keys + 2 * sort.value_bytes));
    cost.bandwidth *= static_cast<double>(std::min(sort.rows, multiprocessors)) / static_cast<double>(multiprocessors);
    return cost;
  }
  const int passes = passes_of(8);
  cost.kernels = makes + 4 + 2 * passes;
  cost.bytes = of_all(makes * 2 * keys + keys + passes * 2 * (keys + sort.value_bytes));
  return cost;
}

std::optional<RadixSort> radix_sort_of(const HloModule& module, const HloComputation& computation, const HloInstruction& sort) {
  const HloComputation* const comparison = called(module, sort, HloRole::to_apply);
  if (comparison == nullptr || sort.operands.empty() || std::ranges::count(sort.operands, HloInstruction::missing) > 0) return std::nullopt;
  const auto array = [&](std::size_t n) -> const HloInstruction& { return computation.instructions[static_cast<std::size_t>(sort.operands[n])]; };
  std::vector<bool> compared = compared_arrays(*comparison, sort.operands.size());
  if (compared.size() > 1 && compared.back() && array(compared.size() - 1).opcode == HloOpcode::iota) compared.pop_back();
  constexpr std::size_t keys_and_values = 2;
  if (compared.size() > keys_and_values || std::ranges::count(compared, true) != 1) return std::nullopt;
  const auto key = static_cast<std::size_t>(std::ranges::find(compared, true) - compared.begin());
  const HloShape& keys = *array(key).shape;
  if (!keys.is_array() || keys.rank() == 0 || sort.attributes->dimensions != std::vector{static_cast<std::int64_t>(keys.rank()) - 1} || keys.dims.back() <= 0) return std::nullopt;
  const auto bytes = [](const HloShape& shape) { return (static_cast<std::int64_t>(bits_of(shape.type)) + 7) / 8; };
  RadixSort made{elements_of(keys) / keys.dims.back(), keys.dims.back(), static_cast<int>(bits_of(keys.type))};
  if (compared.size() == keys_and_values) made.value_bytes = bytes(*array(1 - key).shape);
  else if (is_float(keys.type)) made.value_bytes = bytes(keys);
  made.makes_keys = is_float(keys.type);
  return is_long_enough(made) ? std::optional{made} : std::nullopt;
}

}  // namespace podsim
