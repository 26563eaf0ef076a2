#include "workloads/hlo/tpu_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "workloads/hlo/moved_lanes.hpp"

namespace podsim {

bool is_of_tpu_compiler(const HloModule& module) {
  return std::ranges::any_of(module.computations, [](const HloComputation& computation) {
    return std::ranges::any_of(computation.instructions, [](const HloInstruction& instruction) { return instruction.attributes->estimated_cycles.has_value(); });
  });
}

std::optional<TpuKernels> tpu_kernels(const HloModule& module, const Machine& machine) {
  if (machine.chip.cycle == Seconds{} || !is_of_tpu_compiler(module)) return std::nullopt;
  const int cores = std::max(1, machine.slices.cores_per_chip / std::max(1, machine.chip.devices));
  return TpuKernels{machine.chip.memory_wait, machine.chip.cycle, cores, machine.chip.vmem_load_bandwidth, machine.chip.vmem_store_bandwidth};
}

namespace {

constexpr std::int64_t sublanes = 8, register_bytes = 4096, row_bytes = register_bytes / sublanes;

/// Of an array without tiles: a register's.
std::int64_t tile_bytes(const HloShape& array) {
  if (array.layout.tiles.empty()) return register_bytes;
  std::int64_t bits = array.layout.element_bits > 0 ? array.layout.element_bits : bits_of(array.type);
  for (const std::int64_t extent : array.layout.tiles.front()) bits *= std::clamp(extent, std::int64_t{1}, register_bytes);
  return bits / 8;
}

/// A store fills one tile of fewer than eight rows, and no less than a row of lanes.
std::int64_t stores_of_a_register(const HloShape& array) {
  const std::int64_t tile = tile_bytes(array);
  return tile <= row_bytes ? sublanes : rows_of_a_tile(array) < sublanes ? std::max(std::int64_t{1}, register_bytes / tile) : 1;
}

/// Bytes of the registers whose stores write an array, or the arrays of a tuple, on the chip; `of`: their padded bytes.
double stored(const HloShape& shape, double& of) {
  double sum = 0;
  for (const HloShape& element : shape.elements) sum += stored(element, of);
  if (!shape.is_array()) return sum;
  const auto bytes = static_cast<double>(device_bytes_on_chip(shape).count());
  of += bytes;
  return bytes * static_cast<double>(stores_of_a_register(shape));
}

}  // namespace

Seconds time_on_chip(const TpuKernels& kernels, const HloTraffic::Amount& traffic, const HloShape& result) {
  double padded = 0;
  const double registers = stored(result, padded), each = padded > 0 ? registers / padded : 1;
  return std::max(traffic.read / kernels.vmem_load, each * (traffic.written / kernels.vmem_store));
}

Seconds time_of_store_on_a_core(const TpuKernels& kernels) { return Bytes{kernels.cores * register_bytes} / kernels.vmem_store; }

Seconds time_of_copied_rows(const TpuKernels& kernels, const HloShape& from, const HloShape& to) {
  if (!from.is_array() || !to.is_array() || from.dims != to.dims || tile_bytes(from) <= row_bytes || rows_of_a_tile(to) == 1) return {};
  const auto [lanes, before] = lanes_and_sublanes(from);
  const auto [same_lanes, after] = lanes_and_sublanes(to);
  if (lanes != same_lanes || before == after) return {};
  const Bytes bytes = std::min(device_bytes(to), Bytes{std::numeric_limits<std::int64_t>::max() / sublanes});
  const std::int64_t stores = stores_of_a_register(to);
  return sublanes * bytes / kernels.vmem_load + (stores > 1 ? stores : 0) * bytes / kernels.vmem_store;
}

// Bundles of the code that libtpu 0.0.42.1 makes for v5e, v6e about as many, 2026-11-28 (README.md, Small kernels).

double cycles_of_gathered_row(double bytes, bool in_hbm) {
  constexpr auto row = static_cast<double>(row_bytes), whole = static_cast<double>(register_bytes);
  if (in_hbm) return 6 + std::ceil(bytes / row);
  return bytes <= row ? 2 : 4 * std::ceil(bytes / whole);
}

double cycles_of_scattered_row(double bytes, bool in_hbm) {
  const double parts = std::ceil(bytes / 512);
  return in_hbm ? 45 + 3 * parts : 5 + parts;
}

double cycles_of_sort(double elements, double row, double arrays) {
  constexpr double register_elements = 1024, lanes = 128, least_of_a_pass = 15;
  const double steps = std::ceil(std::log2(std::max(2.0, row))), passes = steps * (steps + 1) / 2, registers = std::ceil(elements / register_elements);
  const bool lie_in_lanes = elements >= lanes * row;  // rows side by side, so that what is compared lies in the same lane
  return passes * std::max(least_of_a_pass, registers * ((lie_in_lanes ? 4 : 9) + 2 * (arrays - 1)));
}

}  // namespace podsim
