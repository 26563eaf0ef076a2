// A slice: a concrete piece of a machine ("4x4x8" of tpu_v4), and its grid of chips.
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

/// Parses "16x16", "4x8x8" or "16", or a vendor's name such as "v5p-512", which stands for the first of offered_slices(). The slice is hypothetical
/// unless the machine
///   takes any shape (SliceRules::any_shape), or
///   is made of rails, and the slice is nodes x GPUs with no more of either than `largest`, or
///   offers it as a full torus: as many dimensions as `largest`, every extent a multiple of `cube`, and no larger than `largest` when both
///     are sorted, or
///   lists it as open: the same extents in any order, ignoring extents of 1.
/// Errors: an extent that is not a whole number or is below 1, more than max_dimensions extents, more than 2^24 chips; a name of another machine, or
/// one whose number is not whole chips or is not offered (the message names similar ones).
Expected<Slice> parse_slice(std::string_view text, const Machine& machine, const SourceLocation& where);

/// All shapes with this number of chips that the vendor offers, each in one order of its extents; all shapes if the machine takes any shape. The
/// vendor's default comes first:
///   tori and meshes   the most cubic first: least sum of extents, as "Types and topologies" of the Google Cloud TPU documentation has it
///   rails             the fewest nodes
std::vector<Slice> offered_slices(const Machine& machine, std::int64_t chips);

/// At most three offered shapes with the nearest number of chips, nearest first. Empty if the machine takes any shape.
std::vector<Slice> near_slices(const Machine& machine, const Slice& slice);

/// Errors: a hypothetical slice (the message names similar offered ones).
Status check_offered(const Machine& machine, const Slice& slice, const SourceLocation& where);

/// The dimensions that should wrap.
struct Wrap {
  enum class Rule { automatic, all, none, named };
  Rule rule = Rule::automatic;
  std::vector<int> dimensions;  // for Rule::named
  friend bool operator==(const Wrap&, const Wrap&) = default;
};

/// "auto", "all", "none", or dimension names: "x,y". Errors: anything else, a name given twice.
Expected<Wrap> parse_wrap(std::string_view text, const SourceLocation& where);

/// Whether each dimension of the slice wraps. Rule::automatic is the vendor's wiring:
///   rails                        none: dimensions over switches have no ends
///   any shape, or hypothetical   every extent above 2 wraps
///   full torus                   every dimension wraps
///   listed as open               none, except a dimension as long as one of the machine's largest slice, if that is a torus: its wraparound links
///                                exist (8x16 of a 16x16 pod wraps along 16)
/// Errors: Rule::named names a dimension that the slice does not have.
Expected<std::vector<bool>> wraps_of(const Machine& machine, const Slice& slice, const Wrap& wrap);

/// Whether a result for this slice and wiring is hypothetical: the vendor does not offer the slice, or wires it differently. Wrapping an extent of 1
/// or 2 changes nothing.
bool is_hypothetical(const Machine& machine, const Slice& slice, const Wrap& wrap);

/// The grid of the slice with the machine's links (one set of parameters per dimension), injection and ejection. Errors: those of wraps_of() and
/// Grid::make().
Expected<Grid> build_grid(const Machine& machine, const Slice& slice, const Wrap& wrap);

}  // namespace podsim
