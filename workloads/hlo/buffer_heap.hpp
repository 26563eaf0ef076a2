// The places of buffers in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/hlo/live_ranges.hpp"

namespace podsim::hlo_buffers {

/// The largest live set of each memory space.
Sizes peaks_of(const std::vector<Interval>& intervals);

/// Which compiler made the module: they place buffers otherwise.
enum class Compiler : std::uint8_t { tpu, gpu };

/// Results of the entry have places of their own throughout, or those of donated parameters. Buffers that are not larger lie in them while they are free, the largest
/// first, each in the last one that takes it; the heap has only the others. On TPUs none that other devices write, as the caller owns the results
/// (must_not_live_out), and none in the places of parameters: the allocations that libtpu 0.0.42.1 tells are nearer to that (validation/aot/README.md). Source: openxla/xla, xla/service/buffer_assignment.cc, AssignSingleHloBuffer.
void reuse_results(Need& need, Compiler compiler);

/// Bytes in HBM that XLA says the buffers take. GPUs: packed by size and by time, the smaller heap. Source: openxla/xla, xla/service/heap_simulator,
/// GlobalDecreasingSizeBestFitHeap. TPUs: in the order in which they are made, and the gaps, heap less live set, count once more: the offsets in
/// what libtpu 0.0.42.1 writes with --xla_jf_dump_to, and temp_size_in_bytes beside them (validation/aot/README.md). Of more than 30 million pairs of buffers
/// that live about the same time: the live set, which is less.
std::int64_t heap_of(const std::vector<Interval>& intervals, Compiler compiler);

}  // namespace podsim::hlo_buffers
