// Whether what communicates finds its other end: groups with every device, pairs in which a device takes part once, a -done for each -start.
#pragma once

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Of all computations, run or not, as XLA's verifier asks (hlo_verifier.cc, 2026):
///
///   permutes, sends, recvs     a device sends to at most one and receives from at most one
///   other collectives          groups have every device once: of equal size, but for an all-reduce; {} is one group of all
///   collective-broadcast       groups may leave devices out, which get zeros, and may differ in size
///   -start, -update, -done     a -done or -update has the -start or -update of the same operation as its operand; a -start ends in one -done of its computation. What a
///                              send or recv began may end in the next iteration of a loop that carries it
///
/// Errors (at the instruction): none of these. O(devices listed).
Status check_communication(const HloModule& module);

}  // namespace podsim
