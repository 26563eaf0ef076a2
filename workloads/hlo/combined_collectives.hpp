// Several small collectives of a module as one: what XLA's AllReduceCombiner, AllGatherCombiner and ReduceScatterCombiner do.
#pragma once

#include <string>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// What xla_gpu_all_reduce_combine_threshold_bytes and its like are where nobody sets them (xla/xla.proto, debug_options_flags.cc: 30 MiB).
inline constexpr Bytes usual_combine_threshold{std::int64_t{30} << 20};

struct CombinedModule {
  HloModule module;
  std::int64_t before = 0, after = 0;  // collectives that were combined, instructions of the text, and what they became
};

/// All-reduces, all-gathers and reduce-scatters of one computation that have the same groups, type, dimension and sum, of which none needs another, as one of
/// all their arrays, as long as their results have no more than `threshold` together.
///
///   before   %a = f32[8] all-reduce(%x)         after   %a.combined = (f32[8], f32[16]) all-reduce(%x, %y)
///            %b = f32[16] all-reduce(%y)                %a = f32[8] get-tuple-element(%a.combined), index=0
///                                                       %b = f32[16] get-tuple-element(%a.combined), index=1
///
/// Pairs of -start and -done likewise. The one begins where the last of them began, and what needs any of them comes later; all else keeps its order.
/// Collectives within fusions, those with control dependencies and those of other slices stay as they are. O(module * kinds).
CombinedModule combine_collectives(const HloModule& module, Bytes threshold);

}  // namespace podsim
