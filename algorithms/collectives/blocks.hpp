// Regions of a Collective: blocks along a dimension, parts of blocks, chunks. Shared by the collective algorithms.
#pragma once

#include <vector>

#include "sim/schedule/lower.hpp"

namespace podsim {

/// A part of every block: `length` elements from `begin` along dimension `dim`.
struct Part {
  std::size_t dim = 0;
  std::int64_t begin = 0, length = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// The blocks of a region along `dim`: equal pieces. The region may itself be a block that depends on the device's coordinates, so that
/// blocks nest: phases along several axes address each other's blocks without moving anything.
class Blocks {
 public:
  /// Errors: no such dimension; it does not divide by `count`; the region begins at a place that is no multiple of a block, or is reduced by a
  /// modulus, so that blocks could not be addressed.
  static Expected<Blocks> make(const Region& region, int dim, int count);

  /// Block `index` (an affine function with values in [0, P), without modulus), a part of it, or `count` blocks from there.
  [[nodiscard]] Region block(const Affine& index) const;
  [[nodiscard]] Region block(const Affine& index, const Part& part) const;
  [[nodiscard]] Region run(const Affine& first, std::int64_t count) const;
  /// The same part of each of them: not along the dimension of the blocks, unless it is all of a block.
  [[nodiscard]] Region run(const Affine& first, std::int64_t count, const Part& part) const;
  /// The two halves, ceil first, along the outermost dimension other than `dim` that is longer than 1, else along `dim`; one part, the whole,
  /// where a block has a single element.
  [[nodiscard]] std::vector<Part> halves() const;
  [[nodiscard]] Part whole() const;
  [[nodiscard]] int dim() const { return static_cast<int>(dim_); }
  /// Whether the blocks follow each other in row-major order, so that all of them are one region of [blocks, elements of a block].
  [[nodiscard]] bool outermost() const;

 private:
  Region region_;               // dims[dim_]: only the offset is used
  std::vector<AxisTerm> base_;  // where block 0 is, in blocks
  std::size_t dim_ = 0;
  std::int64_t block_length_ = 0;
};

/// Whether two regions are the same place on every device, however they are written.
bool same_place(const Region& a, const Region& b);
/// At most `count` pieces along the outermost dimension longer than 1, in order; their lengths differ by at most 1.
std::vector<Region> chunks_of(const Region& region, int count);

}  // namespace podsim
