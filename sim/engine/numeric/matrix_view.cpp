#include "sim/engine/numeric/matrix_view.hpp"

#include <limits>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

bool fits_int(std::int64_t value) { return value <= std::numeric_limits<int>::max(); }

}  // namespace

std::optional<Matrix> as_matrix(const View& view, int split) {
  const Layout rows = coalesced(view.layout, 0, split);
  const Layout cols = coalesced(view.layout, split, view.layout.rank);
  if (rows.rank > 1 || cols.rank > 1 || (cols.rank == 1 && cols.stride[0] != 1)) return std::nullopt;
  const std::int64_t m = elements_of(rows), n = elements_of(cols);
  const std::int64_t ld = rows.rank == 1 ? rows.stride[0] : n;
  if (!fits_int(m) || !fits_int(n) || !fits_int(ld)) return std::nullopt;
  return Matrix{view.data + view.layout.offset, static_cast<int>(m), static_cast<int>(n), static_cast<int>(ld)};
}

Matrix packed_matrix(const View& view, int split, float* data) {
  const std::int64_t m = elements_of(coalesced(view.layout, 0, split)), n = elements_of(coalesced(view.layout, split, view.layout.rank));
  PODSIM_ASSERT(fits_int(m) && fits_int(n) && "a matrix of more than 2^31 rows or columns");
  return {data, static_cast<int>(m), static_cast<int>(n), static_cast<int>(n)};
}

View room_for(std::int64_t count, std::vector<float>& room) {
  if (room.size() < static_cast<std::size_t>(count)) room.resize(static_cast<std::size_t>(count));
  return {room.data(), contiguous(count), DType::f32};
}

RowsAndColumns rows_and_columns(const View& view, int split) {
  RowsAndColumns result{coalesced(view.layout, 0, split), coalesced(view.layout, split, view.layout.rank)};
  result.row.offset = 0;
  return result;
}

std::int64_t offset_of(const Layout& layout, std::int64_t i) {
  std::int64_t offset = layout.offset;
  for (auto d = static_cast<std::size_t>(layout.rank); d-- > 0; i /= layout.length[d]) offset += i % layout.length[d] * layout.stride[d];
  return offset;
}

}  // namespace podsim
