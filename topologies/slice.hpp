// A slice: a concrete piece of a machine, "4x4x8" of tpu_v4, and the grid of chips that it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine.hpp"
#include "sim/topology/grid.hpp"

namespace podsim {

struct Slice {
  std::vector<int> extents;   // chips per physical dimension
  bool hypothetical = false;  // the vendor does not offer this shape: a what-if of the machine's chips and links
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// "32x8"
std::string to_text(const Slice& slice);

std::int64_t chips_of(const Slice& slice);

/// A slice from "16x16", "4x8x8" or "16", or from its name at the vendor, "v5p-512", which is the first of offered_slices(). It is hypothetical
/// unless the machine
///   takes any shape (SliceRules::any_shape), or
///   is made of rails, and the slice is nodes x GPUs with no more of either than `largest`, or
///   offers it as a full torus: as many dimensions as `largest`, every extent a multiple of `cube`, and no larger than `largest` when both
///     are sorted, or
///   lists it as open: the same extents in any order, where extents of 1 do not count.
/// Errors: an extent that is no whole number or below 1, more than max_dimensions of them, more than 2^24 chips; a name of another machine, a
/// count in it that is not whole chips, or of which nothing is offered (names the near ones).
Expected<Slice> parse_slice(std::string_view text, const Machine& machine, const SourceLocation& where);

/// Every shape of so many chips that the vendor offers, each in one order of its extents; any shape at all where the machine takes any. The
/// vendor's default comes first:
///   tori and meshes   the most cubic first: least sum of extents, as "Types and topologies" of the Google Cloud TPU documentation has it
///   rails             the fewest nodes
std::vector<Slice> offered_slices(const Machine& machine, std::int64_t chips);

/// The offered shapes that are nearest in the number of chips, at most three, nearest first. None where the machine takes any shape.
std::vector<Slice> near_slices(const Machine& machine, const Slice& slice);

/// Errors: a hypothetical slice (names the near ones that are offered).
Status check_offered(const Machine& machine, const Slice& slice, const SourceLocation& where);

/// Which dimensions are to wrap.
struct Wrap {
  enum class Rule { automatic, all, none, named };
  Rule rule = Rule::automatic;
  std::vector<int> dimensions;  // of Rule::named
  friend bool operator==(const Wrap&, const Wrap&) = default;
};

/// "auto", "all", "none", or dimension names: "x,y". Errors: anything else, a name given twice.
Expected<Wrap> parse_wrap(std::string_view text, const SourceLocation& where);

/// Whether each dimension of the slice wraps. Rule::automatic says what the vendor builds:
///   rails                        none: a switch has no ends to join
///   any shape, or hypothetical   every extent above 2 wraps
///   full torus                   every dimension wraps
///   listed as open               none, but for a dimension as long as one of the machine's largest slice, where that is a torus: its wrap
///                                links are there (8x16 of a 16x16 pod wraps along 16)
/// Errors: Rule::named names a dimension that the slice does not have.
Expected<std::vector<bool>> wraps_of(const Machine& machine, const Slice& slice, const Wrap& wrap);

/// Whether a result for this slice and wiring is a what-if: a hypothetical slice, or an offered one wired otherwise than the vendor does.
/// Wrapping an extent of 1 or 2 changes nothing.
bool is_hypothetical(const Machine& machine, const Slice& slice, const Wrap& wrap);

/// The slice with the machine's links, one set of parameters per dimension, and its chips' injection and ejection. Errors: as wraps_of, and
/// as Grid::make.
Expected<Grid> build_grid(const Machine& machine, const Slice& slice, const Wrap& wrap);

}  // namespace podsim
