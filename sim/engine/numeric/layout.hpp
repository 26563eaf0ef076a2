// Boxes of row-major arrays as offsets and strides, and iteration over several of them in step.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/base/invariant.hpp"

namespace podsim {

/// The most dimensions of a buffer. A larger limit would slow down every access; algorithms write at most 5.
inline constexpr int max_rank = 8;
using BoxExtents = std::array<std::int64_t, max_rank + 1>;  // and one more for the two words of a complex number

/// Element (i0, i1, ...) is at offset + sum i*stride; elements count in row-major order.
struct Layout {
  std::int64_t offset = 0;
  int rank = 0;
  BoxExtents length{}, stride{};
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// `count` adjacent elements.
Layout contiguous(std::int64_t count);
/// The box [begin, begin + length) of an array of these extents.
Layout box_of(std::span<const std::int64_t> extents, std::span<const std::int64_t> begin, std::span<const std::int64_t> length);
/// Dimensions [first, last) of a layout with as few dimensions as possible: length-1 dimensions are dropped, contiguous ones merged.
Layout coalesced(const Layout& layout, int first, int last);
inline Layout coalesced(const Layout& layout) { return coalesced(layout, 0, layout.rank); }
std::int64_t elements_of(const Layout& layout);
/// A layout of elements that have several adjacent words each, as one of words: with a last dimension of that length, unless it is 1.
Layout in_words(const Layout& elements, std::int64_t words);

/// Iterates over a layout in row-major order, by runs of evenly spaced elements.
class RunCursor {
 public:
  explicit RunCursor(const Layout& layout);
  [[nodiscard]] std::int64_t offset() const { return offset_; }
  [[nodiscard]] std::int64_t stride() const { return stride_; }
  [[nodiscard]] std::int64_t left() const { return left_; }  // in this run
  /// The distance to the same position four runs ahead, for prefetching: hardware does not predict jumps between short runs.
  [[nodiscard]] std::int64_t ahead() const { return outer_.rank > 0 ? 4 * outer_.stride[static_cast<std::size_t>(outer_.rank) - 1] : 0; }
  /// count <= left().
  void advance(std::int64_t count) {
    offset_ += count * stride_;
    left_ -= count;
    if (left_ == 0) next_run();
  }

 private:
  void next_run();
  Layout outer_;  // without the innermost dimension
  BoxExtents at_{};  // position in it
  std::int64_t run_start_ = 0, run_length_ = 1;
  std::int64_t offset_ = 0, stride_ = 1, left_ = 1;
};

/// Calls body(count, cursors) for the longest runs that are evenly spaced in all layouts. All layouts must have equally many elements.
template <std::size_t n, class Body>
void for_each_run(const std::array<const Layout*, n>& layouts, Body body) {
  std::int64_t remaining = elements_of(*layouts[0]);
  auto cursors = [&]<std::size_t... i>(std::index_sequence<i...>) { return std::array<RunCursor, n>{RunCursor{*layouts[i]}...}; }
  (std::make_index_sequence<n>{});
  for ([[maybe_unused]] const Layout* layout : layouts) PODSIM_ASSERT(elements_of(*layout) == remaining);
  while (remaining > 0) {
    std::int64_t count = cursors[0].left();
    for (const RunCursor& cursor : cursors) count = std::min(count, cursor.left());
    body(count, cursors);
    for (RunCursor& cursor : cursors) cursor.advance(count);
    remaining -= count;
  }
}

}  // namespace podsim
