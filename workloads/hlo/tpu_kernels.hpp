// What the kernels of a TPU's compiler take beside arithmetic and the bandwidth of the memory.
#pragma once

#include <optional>

#include "sim/machine/machine.hpp"
#include "workloads/hlo/hlo_module.hpp"
#include "workloads/hlo/hlo_traffic.hpp"

namespace podsim {

/// Of a core of a TPU. Sources: README.md, Small kernels.
struct TpuKernels {
  Seconds hbm_wait;  // of a kernel with an array in HBM: from the beginning until the first of it is there, and until the last is written
  Seconds cycle;     // of its units
  int cores;         // of a device, each of which takes a part of a kernel
  BytesPerSecond vmem_load, vmem_store;  // of its vector registers
};

/// All that a kernel computes comes out of the memory on the chip and goes back there through vector registers, loads beside stores; a store fills one tile of the result
/// where that has fewer than eight rows. `traffic`: padded bytes of its arrays in VMEM, or in v4's CMEM, whose own bandwidth is not known: a kernel loads
/// registers from there, or has it moved through VMEM.
Seconds time_on_chip(const TpuKernels& kernels, const HloTraffic::Amount& traffic, const HloShape& result);

/// Of one register by one of the cores of a device.
Seconds time_of_store_on_a_core(const TpuKernels& kernels);

/// What a copy takes that keeps the dimension in the lanes and puts another one beside it into the sublanes: it loads each row of lanes of a register by itself, and behind that
/// stores the tiles of the result, where they have fewer than eight rows. 0: another copy.
Seconds time_of_copied_rows(const TpuKernels& kernels, const HloShape& from, const HloShape& to);

/// Rows that a gather or scatter moves one after the other: the cycles of a row of so many bytes, by where the array lies that it is read from or written into. What a
/// scatter waits for between reading a row of HBM and writing it back is not known and not in it.
double cycles_of_gathered_row(double bytes, bool in_hbm);
double cycles_of_scattered_row(double bytes, bool in_hbm);

/// A network of log2 n (log2 n + 1) / 2 passes over rows of n: its cycles for so many arrays, the keys and what goes with them, each of `elements`.
double cycles_of_sort(double elements, double row, double arrays);

/// Whether the TPU's compiler made it, which writes estimated_cycles beside its kernels. O(module).
bool is_of_tpu_compiler(const HloModule& module);

/// chip.memory_wait and chip.cycle; nullopt: a machine whose cycle is not known, or a module that is not of the TPU's compiler. O(module).
std::optional<TpuKernels> tpu_kernels(const HloModule& module, const Machine& machine);

}  // namespace podsim
