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

/// Rows of a tile, which are moved whole along the sublanes; of an array without tiles those of a register.
std::int64_t rows_of_a_tile(const HloShape& array);

/// Cycles of one core for what an instruction moves to other lanes or sublanes; 0: whole rows of registers keep their places. Lanes hold 32 bits, so 1024 elements of 16
/// bits are a register, too:
///
///   reverse                            5 for each register along lanes, 4 along sublanes: the kernel first copies what it reverses
///   transpose, copy                    2 where another dimension comes into the lanes; of operand and result the one with less padding
///   slice, pad, concatenate            2 for what is moved by other than whole registers along lanes, 1 along sublanes
///   dynamic-slice                      the same, also by an index that is computed, unless the compiler knows that whole registers divide it
///   dynamic-update-slice               by itself 7 for each register of the update along lanes, 3 along sublanes, as the kernel copies the update, shifts it, and merges it with
///                                      what was there; in a fusion as a dynamic-slice
///   with a stride, padding inside      along lanes each lane by itself: 256, 2 for each
///   broadcast                          2 for each row that is spread over lanes, where it is read from memory: within a kernel it may lie so
///
/// `is_fused`: it stands in a fused computation, where parameters alone are read from memory. Source: bundles of the code that libtpu 0.0.42.1 makes for v5e, 2026-11-29
/// (validation/aot/README.md, Lanes and sublanes).
double cycles_of_moved_lanes(const HloComputation& computation, const HloInstruction& instruction, bool is_fused);

/// Vector stores of a reshape, for each register of operand or result, whichever has less padding: the rows of a register go to as many places.
///
///   rows of another length             n times as long: 3 + n, at most 8; the n-th part: n, and from 8 on one for each 512 elements of a row, at most 8; 8 where neither length
///                                      divides the other, 4 where they are no multiples of 128; 2 where operand or result has one dimension
///   of the same length                 8 / r between tiles of 8 rows and of r; 2 where a dimension that fills no whole tiles comes into the sublanes or leaves them
///   tiles of r rows, 1 < r < 8         8 / r more for operand and result each, which are packed apart
///
/// Source: as above, Lanes and sublanes, reshapes.
double stores_of_reshape(const HloShape& from, const HloShape& to);

}  // namespace podsim
