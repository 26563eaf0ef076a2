#include "workloads/hlo/hlo_memory.hpp"

#include <algorithm>
#include <vector>

#include "workloads/hlo/buffer_heap.hpp"
#include "workloads/hlo/hlo_leaves.hpp"
#include "workloads/hlo/live_ranges.hpp"

namespace podsim {

namespace {

/// Only layouts of TPUs have tiles.
hlo_buffers::Compiler compiler_of(const HloComputation& entry) {
  for (const HloInstruction& instruction : entry.instructions)
    for (const HloShape* const leaf : leaves_of(*instruction.shape))
      if (!leaf->layout.tiles.empty()) return hlo_buffers::Compiler::tpu;
  return hlo_buffers::Compiler::gpu;
}

}  // namespace

std::optional<HloPeakMemory> peak_memory_of(const HloModule& module) {
  using namespace hlo_buffers;
  if (module.entry == HloInstruction::missing) return std::nullopt;
  std::optional<Need> need = need_of_entry(module);
  if (!need) return std::nullopt;
  const HloComputation& entry = module.entry_computation();
  HloPeakMemory memory;
  const Compiler compiler = compiler_of(entry);
  reuse_results(*need, compiler);
  const Bytes heap{heap_of(need->intervals, compiler)};
  for (const int parameter : entry.parameters) {
    if (parameter == HloInstruction::missing) continue;
    const HloShape& shape = *entry.instructions[static_cast<std::size_t>(parameter)].shape;
    memory.parameters = saturated_sum(memory.parameters, device_bytes_in(shape, HloMemory::hbm));
    for (const HloShape* const leaf : leaves_of(shape)) need->intervals.push_back({sizes_of(*leaf), 0, need->steps});
  }
  if (entry.root != HloInstruction::missing) {
    const HloShape& results = *entry.instructions[static_cast<std::size_t>(entry.root)].shape;
    const std::vector<const HloShape*> leaves = leaves_of(results);
    memory.outputs = device_bytes_in(results, HloMemory::hbm);
    for (const HloAlias& alias : module.aliases)
      if (const auto leaf = leaf_at(results, alias.output))
        memory.aliased = saturated_sum(memory.aliased, device_bytes_in(*leaves[*leaf], HloMemory::hbm));
  }
  const Sizes peaks = peaks_of(need->intervals);
  memory.hbm = Bytes{peaks[hbm]};
  memory.vmem = Bytes{peaks[vmem]};
  memory.cmem = Bytes{peaks[cmem]};
  memory.host = Bytes{peaks[host]};
  memory.temporary = std::max(Bytes{}, Bytes{heap.count() - memory.outputs.count() + memory.aliased.count()});
  memory.allocated = std::max(memory.hbm, saturated_sum(memory.parameters, heap));
  memory.required = compiler == Compiler::tpu ? memory.hbm : memory.allocated;
  return memory;
}

}  // namespace podsim
