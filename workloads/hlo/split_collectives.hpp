// Collectives of several arrays as one for each array: what is left of a module where XLA's combiners are off.
#pragma once

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

struct SplitModule {
  HloModule module;
  std::int64_t before = 0, after = 0;  // collectives of several arrays, instructions of the text, and what they became
};

/// All-reduces, all-gathers and reduce-scatters of several arrays as one for each of them, which needs only its operand and is needed only by what uses its result.
///
///   before   %c = (f32[8], f32[16]) all-reduce(%x, %y)             after   %c.0 = f32[8] all-reduce(%x)
///            %a = f32[8] get-tuple-element(%c), index=0                    %c.1 = f32[16] all-reduce(%y)
///            %n = f32[8] negate(%a)                                        %n = f32[8] negate(%c.0)
///
/// Of pairs of -start and -done each start follows its operand and each done comes before the first user of its result, as far as the order of the text allows; plain ones stand where the one
/// stood. Collectives within fusions and asynchronous computations, those with control dependencies and those of other slices stay as they are. O(module).
SplitModule split_collectives(const HloModule& module);

}  // namespace podsim
