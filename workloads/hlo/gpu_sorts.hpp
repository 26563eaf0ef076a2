// Kernels in which a GPU sorts: those that XLA writes itself, and cub's radix sort.
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// The kernels in which XLA sorts rows of n on a GPU, `bytes` of all arrays for each element: steps of the bitonic network over less than a tile are one kernel, each
/// other step is one. A tile: 4 elements for each of 1024 threads, as far as 48 KiB of shared memory hold them.
/// Source: openxla/xla, EmitBitonicSortLLVMIR (read 2026-11-28).
int sort_kernels_on_gpu(double row, double bytes);

/// Keys, and values that go with them.
struct RadixSort {
  std::int64_t rows = 1, length = 0;  // of each row
  int key_bits = 32;
  std::int64_t value_bytes = 0;       // of each key
  bool makes_keys = false;            // a kernel before makes whole numbers of floating-point keys
};

/// What cub's radix sort of all rows takes.
///
///   one row       Onesweep: two fills, a histogram of all digits, sums of it, and for each digit of 8 bits a fill and a kernel, which reads and writes keys and values
///   more rows     a kernel for each digit of 6 bits (of keys of one byte 5), in which a thread block sorts a row: it reads keys twice, values once and writes both
///
/// They get 0.68 of the memory's bandwidth: Onesweep sorts 29.4e9 keys of 32 bits in a second on an A100, 36 bytes each, of 1.555 TB/s; of pairs and of rows no such figure is known.
/// Assumed: fewer rows than the 132 multiprocessors of Hopper get the bandwidth of as many of them.
/// Sources, read 2026-11-28: NVIDIA/cccl @002af086, cub/device/dispatch/dispatch_radix_sort.cuh, InvokeOnesweep and DispatchSegmentedRadixSort, and its policies for sm_80 and
/// sm_90; Adinets and Merrill, Onesweep, arXiv 2206.01784, abstract.
struct RadixSortCost {
  int kernels = 1;  // also fills
  double bytes = 0;
  double bandwidth = 29.4e9 * 36 / 1.555e12;  // its share of that of the memory
};
RadixSortCost radix_sort_cost(const RadixSort& sort);

/// A sort that XLA has cub do on Hopper and Blackwell: of rows in the last dimension, by one key, with at most one array beside the keys, and long enough. Floating-point keys alone
/// are sorted as whole numbers that go in NumPy's order, the keys themselves beside them. nullopt: XLA sorts by kernels of its own.
///
/// XLA on such a GPU writes the custom-call in its place; without a GPU the compiler of JAX 0.10.2 leaves the sort (why is not known), and adds an iota
/// as the last key, so that equal keys keep their order: it is no array of the sort here. Comparisons are not looked at but for which arrays they read.
/// Source: openxla/xla @8f0dbcd8, xla/service/gpu/transforms/sort_rewriter.cc, IsCubSortFasterOnH100 (read 2026-11-28), with 132 multiprocessors; Ampere has other thresholds of
/// the same size. Measured: every row of validation/gpu_h200 and gpu_h100 names the kernels that this says, but that argsort has a pair where this source asks for single keys.
std::optional<RadixSort> radix_sort_of(const HloModule& module, const HloComputation& computation, const HloInstruction& sort);

}  // namespace podsim
