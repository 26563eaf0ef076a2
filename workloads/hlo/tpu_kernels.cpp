#include "workloads/hlo/tpu_kernels.hpp"

#include <algorithm>
#include <cmath>

namespace podsim {

bool is_of_tpu_compiler(const HloModule& module) {
  return std::ranges::any_of(module.computations, [](const HloComputation& computation) {
    return std::ranges::any_of(computation.instructions, [](const HloInstruction& instruction) { return instruction.attributes->estimated_cycles.has_value(); });
  });
}

std::optional<TpuKernels> tpu_kernels(const HloModule& module, const Machine& machine) {
  if (machine.chip.cycle == Seconds{} || !is_of_tpu_compiler(module)) return std::nullopt;
  return TpuKernels{machine.chip.memory_wait, machine.chip.cycle};
}

// Bundles of the code that libtpu 0.0.42.1 makes for v5e, v6e about as many, 2026-11-28 (README.md, Small kernels).

double cycles_of_gathered_row(double bytes, bool in_hbm) {
  constexpr double row_of_register = 512, register_bytes = 4096;
  if (in_hbm) return 6 + std::ceil(bytes / row_of_register);
  return bytes <= row_of_register ? 2 : 4 * std::ceil(bytes / register_bytes);
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
