// Regions of a Collective: blocks along its dimension, parts of blocks, the own shard. Shared by the collective algorithms.
#pragma once

#include <vector>

#include "sim/schedule/lower.hpp"

namespace podsim {

/// A part of every block: `length` elements from `begin` along dimension `dim`.
struct Part {
  std::size_t dim = 0;
  std::int64_t begin = 0, length = 0;
};

/// The blocks of a region along `dim`: P equal pieces.
class Blocks {
 public:
  /// Errors: the region begins at a place along `dim` that depends on the device, so that blocks could not be addressed.
  static Expected<Blocks> make(const Region& region, int dim, int count);

  /// Block `index` (an affine function with values in [0, P)), or a part of it.
  [[nodiscard]] Region block(const Affine& index) const;
  [[nodiscard]] Region block(const Affine& index, const Part& part) const;
  /// The two halves, ceil first, along the outermost dimension other than `dim` that is longer than 1, else along `dim`; one part, the whole,
  /// where a block has a single element.
  [[nodiscard]] std::vector<Part> halves() const;
  [[nodiscard]] Part whole() const;

 private:
  Region region_;
  std::size_t dim_ = 0;
  std::int64_t block_length_ = 0;
};

/// Where a Collective works, and the places (free copies) that bring its data there and away.
struct Workspace {
  Blocks blocks;                 // all-gather: of the output; reduce-scatter: of what accumulates
  Expansion expansion;           // holds the first place, if there is one
  std::vector<Edge> after_start; // edges for the tasks that touch the own data first
};

/// The collective's only axis. Errors: several axes.
Expected<AxisView> single_axis(const Collective& collective);

/// all-gather: the input is placed on the output's own block unless it is that block.
/// reduce-scatter: partial sums accumulate in the input if it is scratch, else in a scratch copy of it.
/// Errors: another kind of collective; regions that cannot be cut into blocks.
Expected<Workspace> open_workspace(const Program& program, const Collective& collective, const AxisView& axis);

/// reduce-scatter: places the own block on the output unless it is the output, after `last`.
void close_workspace(Workspace& workspace, const Collective& collective, const AxisView& axis, std::vector<Edge> last);

}  // namespace podsim
