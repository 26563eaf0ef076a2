// Gathers of loops one trip ahead: what XLA's collective pipeliner does with all-gathers (xla_gpu_enable_pipelined_all_gather), as FSDP prefetches the weights of the next layer.
#pragma once

#include <cstdint>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

struct PrefetchedModule {
  HloModule module;
  std::int64_t gathers = 0, loops = 0;  // that begin a trip ahead, and those that have such
  std::int64_t others = 0;              // gathers in loops that need what the trip before computes
};

/// An all-gather in the body of a loop whose operand depends on nothing but what all trips have alike and on the count of trips begins at the beginning of the trip before, and is done at that trip's end; the first one
/// is before the loop. In the last trip it gathers what nobody uses.
///
///   before   body(p)    %w = dynamic-slice(p.1, p.0), %g = all-gather(%w), .., ROOT (p.0 + 1, p.1)
///   after    main       %g.first = all-gather(dynamic-slice(stack, 0)), while (0, stack, %g.first)
///            body(p)    %g.next = all-gather-start(dynamic-slice(p.1, p.0 + 1)), %g = p.2, .., ROOT (p.0 + 1, p.1, all-gather-done(%g.next))
///
/// Values are the same; memory is that of the gathered arrays more. Loops whose body or condition something else calls too, and gathers within fusions, stay as they are. O(module * loops).
PrefetchedModule prefetch_gathers(const HloModule& module);

}  // namespace podsim
