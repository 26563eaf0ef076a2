// Whether computations hold only what their callers can run, and where their values are.
#pragma once

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// What a caller runs as one operation holds nothing that has an order or a time of its own:
///
///   a fusion                                   no call, conditional, while, infeed, outfeed, send or recv, and nothing that starts and ends apart; collectives, which TPUs fuse
///   a function of numbers (reductions, sorts)  no collective either
///
/// also in what these call in turn. Source: HloInstruction::IsFusible of XLA. Errors (at the instruction): none of these. O(instructions).
Status check_called_computations(const HloModule& module);

/// What passes a value on (bitcast, get-tuple-element, tuple, opt-barrier, the end of an asynchronous operation, calls and loops) leaves it in its memory space, S(n): only copies move it. Fusions have no
/// memory within, so their computations are left out. Source: HloVerifier, layout-sensitive. Errors (at the instruction): another space. O(arrays of the shapes).
Status check_memory_spaces(const HloModule& module);

}  // namespace podsim
