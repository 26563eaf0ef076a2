// Regions of a Collective: blocks along a dimension, parts of blocks, chunks. Shared by the collective algorithms.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/lower.hpp"

namespace podsim {

/// A part of every block: `length` elements from `begin` along dimension `dim`.
struct Part {
  std::size_t dim = 0;
  std::int64_t begin = 0, length = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// The blocks of a region along `dim`: equal pieces. The region may itself be a block that depends on the device's coordinates, so blocks nest: the
/// phases of a collective along several axes address each other's blocks without moving data.
class Blocks {
 public:
  /// Errors: no such dimension; its length is not a multiple of `count`; the blocks cannot be addressed, because the region does not begin at a
  /// multiple of a block or its index has a modulus.
  static Expected<Blocks> make(const Region& region, int dim, int count);

  /// Block `index` (an affine function with values in [0, P), without modulus), a part of it, or `count` blocks from it on.
  [[nodiscard]] Region block(const Affine& index) const;
  [[nodiscard]] Region block(const Affine& index, const Part& part) const;
  [[nodiscard]] Region run(const Affine& first, std::int64_t count) const;
  /// The same part of each of `count` blocks. The part must not be along the blocks' dimension, unless it is the whole block.
  [[nodiscard]] Region run(const Affine& first, std::int64_t count, const Part& part) const;
  /// The two halves of a block, the larger first, along the outermost dimension other than `dim` of even length, else the longest of them, so that
  /// they are as equal as they can be; where all have length 1, along `dim`. A block of a single element has one part, the whole.
  [[nodiscard]] std::vector<Part> halves() const { return parts(2); }
  /// Parts of a block that are about these shares of it (their sum is 1), in order, along the longest dimension other than `dim` (the outermost of
  /// equals); where all of them have length 1, along `dim`. Some are empty if there are too few elements.
  [[nodiscard]] std::vector<Part> parts(const std::vector<double>& shares) const;
  /// At most `count` parts, the larger ones first, along the dimension that halves() cuts.
  [[nodiscard]] std::vector<Part> parts(int count) const;
  [[nodiscard]] Part whole() const;
  [[nodiscard]] int dim() const { return static_cast<int>(dim_); }
  /// Whether the blocks follow each other in row-major order, so that all of them form one region [blocks, elements of a block].
  [[nodiscard]] bool outermost() const;

 private:
  Region region_;               // dims[dim_]: only the offset is used
  std::vector<AxisTerm> base_;  // the position of block 0, in blocks
  std::size_t dim_ = 0;
  std::int64_t block_length_ = 0;
};

/// Whether two regions are equal on every device, however they are written.
bool same_place(const Region& a, const Region& b);
/// The same parts of a region that has the same elements in the same order, but for dimensions of length 1. nullopt: the shapes differ.
std::optional<std::vector<Part>> same_parts(const std::vector<Part>& parts, const Region& from, const Region& to);
/// At most `count` pieces of a region, in order, that can all be cut into `blocks` blocks along `dim`: along the longest other dimension, else along `dim`
/// itself.
std::vector<Region> pieces_of(const Region& region, std::size_t dim, std::int64_t blocks, int count);
/// Cuts a region into at most `count` pieces along the outermost dimension longer than 1, in order; their lengths differ by at most 1.
std::vector<Region> chunks_of(const Region& region, int count);

}  // namespace podsim
