#include "sim/engine/numeric/layout.hpp"

#include "sim/base/invariant.hpp"

namespace podsim {

Layout contiguous(std::int64_t count) {
  Layout layout;
  layout.rank = 1;
  layout.length[0] = count;
  layout.stride[0] = 1;
  return layout;
}

Layout box_of(std::span<const std::int64_t> extents, std::span<const std::int64_t> begin, std::span<const std::int64_t> length) {
  PODSIM_ASSERT(extents.size() <= static_cast<std::size_t>(max_rank) && begin.size() == extents.size() && length.size() == extents.size());
  Layout layout;
  layout.rank = static_cast<int>(extents.size());
  std::int64_t stride = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    layout.length[i] = length[i];
    layout.stride[i] = stride;
    layout.offset += begin[i] * stride;
    stride *= extents[i];
  }
  return layout;
}

Layout coalesced(const Layout& layout, int first, int last) {
  Layout result;
  result.offset = layout.offset;
  for (int d = first; d < last; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (layout.length[i] == 1) continue;
    const auto back = static_cast<std::size_t>(result.rank) - 1;  // wraps at rank 0, unused then
    if (result.rank > 0 && result.stride[back] == layout.length[i] * layout.stride[i]) {
      result.length[back] *= layout.length[i];
      result.stride[back] = layout.stride[i];
    } else {
      result.length[back + 1] = layout.length[i];
      result.stride[back + 1] = layout.stride[i];
      ++result.rank;
    }
  }
  return result;
}

std::int64_t elements_of(const Layout& layout) {
  std::int64_t count = 1;
  for (int d = 0; d < layout.rank; ++d) count *= layout.length[static_cast<std::size_t>(d)];
  return count;
}

Layout in_words(const Layout& elements, std::int64_t words) {
  if (words == 1) return elements;
  Layout result = elements;
  const auto rank = static_cast<std::size_t>(result.rank++);
  PODSIM_ASSERT(rank < result.length.size());
  result.offset *= words;
  for (std::size_t i = 0; i < rank; ++i) result.stride[i] *= words;
  result.length[rank] = words;
  result.stride[rank] = 1;
  return result;
}

RunCursor::RunCursor(const Layout& layout) : outer_{coalesced(layout)} {
  if (outer_.rank > 0) {
    --outer_.rank;
    run_length_ = outer_.length[static_cast<std::size_t>(outer_.rank)];
    stride_ = outer_.stride[static_cast<std::size_t>(outer_.rank)];
  }
  offset_ = run_start_ = outer_.offset;
  left_ = run_length_;
}

void RunCursor::next_run() {
  left_ = run_length_;
  for (auto i = static_cast<std::size_t>(outer_.rank); i-- > 0;) {
    run_start_ += outer_.stride[i];
    if (++at_[i] < outer_.length[i]) break;
    run_start_ -= outer_.length[i] * outer_.stride[i];
    at_[i] = 0;
  }
  offset_ = run_start_;
}

}  // namespace podsim
