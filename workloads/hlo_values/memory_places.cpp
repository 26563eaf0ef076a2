#include "workloads/hlo_values/memory_places.hpp"

#include <algorithm>

#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Dims = std::vector<std::int64_t>;

/// One tile: dimensions [first, last] of the array, several where they are combined, become one that is cut into pieces of `extent`.
struct Cut {
  std::size_t first = 0, last = 0;
  std::int64_t extent = 1, pieces = 1;
};
struct Level {
  std::size_t kept = 0;  // dimensions in front that are not cut
  std::vector<Cut> cuts{};
  Dims before{};  // the dimensions that are cut
};

/// Replaces the dimensions by those behind the cut: those in front, the numbers of the tiles, places within a tile.
Level level_of(Dims& dims, const Dims& tile) {
  if (dims.size() < tile.size()) dims.insert(dims.begin(), tile.size() - dims.size(), 1);
  Level level{dims.size() - tile.size(), {}, dims};
  Dims after(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(level.kept)), inner;
  for (std::size_t t = 0; t < tile.size(); ++t) {
    Cut cut{level.kept + t, level.kept + t, 1, 1};
    std::int64_t length = dims[cut.first];
    for (; tile[t] == HloLayout::combined && t + 1 < tile.size(); length *= dims[cut.last]) ++t, ++cut.last;
    cut.extent = std::max<std::int64_t>(tile[t], 1);
    cut.pieces = (length + cut.extent - 1) / cut.extent;
    after.push_back(cut.pieces);
    inner.push_back(cut.extent);
    level.cuts.push_back(cut);
  }
  after.insert(after.end(), inner.begin(), inner.end());
  dims = std::move(after);
  return level;
}

/// The place of one element. `order`: its dimensions from the slowest to the fastest.
std::int64_t place_of(const Dims& index, const Dims& order, const std::vector<Level>& levels, const Dims& strides) {
  Dims at, next;
  for (const std::int64_t d : order) at.push_back(index[static_cast<std::size_t>(d)]);
  for (const Level& level : levels) {
    if (at.size() < level.before.size()) at.insert(at.begin(), level.before.size() - at.size(), 0);
    next.assign(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(level.kept));
    next.resize(level.kept + 2 * level.cuts.size());
    for (std::size_t c = 0; c < level.cuts.size(); ++c) {
      const Cut& cut = level.cuts[c];
      std::int64_t position = at[cut.first];
      for (std::size_t d = cut.first + 1; d <= cut.last; ++d) position = position * level.before[d] + at[d];
      next[level.kept + c] = position / cut.extent;
      next[level.kept + level.cuts.size() + c] = position % cut.extent;
    }
    std::swap(at, next);
  }
  return offset_of(at, strides);
}

}  // namespace

std::optional<MemoryPlaces> memory_places(const HloShape& array, std::int64_t most) {
  Dims order = array.layout.minor_to_major;
  if (order.empty())
    for (std::size_t d = array.rank(); d-- > 0;) order.push_back(static_cast<std::int64_t>(d));
  if (!is_permutation_of(order, array.rank())) return std::nullopt;
  std::ranges::reverse(order);
  Dims dims;
  for (const std::int64_t d : order) dims.push_back(array.dims[static_cast<std::size_t>(d)]);
  std::vector<Level> levels;
  for (const Dims& tile : array.layout.tiles) levels.push_back(level_of(dims, tile));
  MemoryPlaces places;
  places.size = 1;
  for (const std::int64_t dim : dims) {
    if (dim > 0 && places.size > most / dim) return std::nullopt;
    places.size *= dim;
  }
  const std::int64_t elements = elements_of(array);
  if (elements > most) return std::nullopt;
  const Dims strides = row_major_strides(dims);
  places.of.reserve(static_cast<std::size_t>(elements));
  Dims index(array.rank(), 0);
  const auto for_each_index = [&](auto add) {
    for (std::int64_t i = 0; i < elements; ++i) {
      places.of.push_back(add());
      for (std::size_t d = array.rank(); d-- > 0;) {
        if (++index[d] < array.dims[d]) break;
        index[d] = 0;
      }
    }
  };
  const bool combines = std::ranges::any_of(levels, [](const Level& level) { return std::ranges::any_of(level.cuts, [](const Cut& cut) { return cut.first < cut.last; }); });
  if (combines) {
    for_each_index([&] { return place_of(index, order, levels, strides); });
    return places;
  }
  // Each dimension is cut by itself, so a place is a sum of what each index adds to it.
  std::vector<Dims> added(array.rank());
  for (std::size_t d = 0; d < array.rank(); ++d, std::ranges::fill(index, 0))
    for (; elements > 0 && index[d] < array.dims[d]; ++index[d]) added[d].push_back(place_of(index, order, levels, strides));
  for_each_index([&] {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < array.rank(); ++d) place += added[d][static_cast<std::size_t>(index[d])];
    return place;
  });
  return places;
}

}  // namespace podsim
