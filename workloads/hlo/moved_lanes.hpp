// What a TPU's kernel takes to move elements to other lanes or sublanes of its vector registers.
#pragma once

#include <cstdint>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// The dimensions of an array in the lanes and in the sublanes of registers: the two most minor ones that have an extent. -1: there is none.
struct LanesAndSublanes {
  std::int64_t lanes = -1, sublanes = -1;
};
LanesAndSublanes lanes_and_sublanes(const HloShape& array);

/// Cycles of one core for what an instruction moves to other lanes or sublanes; 0: whole rows of registers keep their places, or what moves is not known (offsets that are
/// computed). Lanes hold 32 bits, so 1024 elements of 16 bits are a register, too:
///
///   reverse                            5 for each register along lanes, 4 along sublanes: the kernel first copies what it reverses
///   transpose, copy, reshape           2 where another dimension comes into the lanes, or one of another extent; of operand and result the one with less padding
///   slice, pad, concatenate            2 for what is moved by other than whole registers along lanes, 1 along sublanes
///   with a stride, padding inside      along lanes each lane by itself: 256, 2 for each
///   broadcast                          2 for each row that is spread over lanes, where it is read from memory: within a kernel it may lie so
///
/// `is_fused`: it stands in a fused computation, where parameters alone are read from memory. Source: bundles of the code that libtpu 0.0.42.1 makes for v5e, 2026-11-29
/// (validation/aot/README.md, Lanes and sublanes).
double cycles_of_moved_lanes(const HloComputation& computation, const HloInstruction& instruction, bool is_fused);

}  // namespace podsim
