#include "sim/engine/numeric/factorisation_kernels.hpp"

#include <fmt/format.h>

#include <bit>
#include <numeric>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/math_libraries.hpp"
#include "sim/engine/numeric/matrix_view.hpp"

namespace podsim {

namespace {

/// The words of `view` by columns, as LAPACK takes a matrix: packed in `room`.
View by_columns(const View& view, std::int64_t rows, std::int64_t columns, std::vector<float>& room) {
  View result = room_for(rows * columns, room);
  result.layout = {0, 2, {rows, columns}, {1, rows}};
  copy(view, result);
  return result;
}

std::string singular(std::int64_t column) { return fmt::format("matrix is singular: column {} is zero below the diagonal", column); }

/// Of rows 0, 1, .. after row i and row pivots[i] - 1 >= i changed places, one after the other: the row that comes to each place. (Of numbers that are
/// none, LAPACK may choose pivots that are none.)
std::vector<std::int64_t> places_after(const std::vector<lapack_int>& pivots, std::int64_t rows) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(rows));
  std::iota(at.begin(), at.end(), 0);
  for (std::size_t i = 0; i < pivots.size(); ++i) std::swap(at[i], at[static_cast<std::size_t>(pivots[i] - 1)]);
  return at;
}

}  // namespace

Status getrf_panel(const RowNumbers& rows, std::int64_t first_column, const View& a, int split, const View& factors, int factors_split,
                   const View& index, PackedOperands& workspace) {
  PODSIM_ASSERT(elements_of(coalesced(factors.layout, 0, factors_split)) == elements_of(coalesced(a.layout, 0, split)));
  const std::int64_t m = elements_of(coalesced(a.layout, 0, split)), b = elements_of(coalesced(a.layout, split, a.layout.rank));
  const std::int64_t kept = first_column - rows.first;
  const View panel = by_columns(a, m, b, workspace.left);
  const auto lda = static_cast<lapack_int>(m), factored = static_cast<lapack_int>(m - kept), columns = static_cast<lapack_int>(b);
  std::vector<lapack_int> pivots(static_cast<std::size_t>(b));
  lapack_int info = 0;
  math().sgetrf(&factored, &columns, panel.data + kept, &lda, pivots.data(), &info);
  PODSIM_ASSERT(info >= 0);
  copy(panel, factors);

  for (std::size_t i = 0; i < pivots.size(); ++i) pivots[i] = std::clamp(pivots[i], static_cast<lapack_int>(i + 1), factored);
  const std::vector<std::int64_t> source = places_after(pivots, m - kept);
  std::vector<std::int64_t> target(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) target[static_cast<std::size_t>(source[i])] = static_cast<std::int64_t>(i);
  const View room = room_for(3 * b, workspace.right);
  for (std::int64_t i = 0; i < b; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::array<std::int64_t, 3> rows_named{pivots[at] - 1, source[at], target[at]};
    for (std::size_t r = 0; r < rows_named.size(); ++r)
      room.data[static_cast<std::int64_t>(r) * b + i] = std::bit_cast<float>(static_cast<std::int32_t>(first_column + rows_named[r]));
  }
  copy(room, index);
  if (info > 0) return wrong_data(singular(first_column + info - 1));
  return success();
}

void trsm(Triangle kind, const View& triangle, int split, const View& b, const View& x, int x_split, bool apart, PackedOperands& workspace) {
  const std::optional<Matrix> as_it_lies = apart ? std::nullopt : as_matrix(triangle, split);
  const Matrix of = as_it_lies ? *as_it_lies : packed_matrix(triangle, split, packed(triangle, workspace.left).data);
  const std::optional<Matrix> in_place = as_matrix(x, x_split);
  const Matrix result = in_place ? *in_place : packed_matrix(x, x_split, packed(b, workspace.out).data);
  if (in_place) copy(b, x);
  const bool lower = kind == Triangle::lower;
  math().cblas_strsm(CblasRowMajor, CblasLeft, lower ? CblasLower : CblasUpper, CblasNoTrans, lower ? CblasUnit : CblasNonUnit, result.rows,
                     result.cols, 1.0F, of.data, of.ld, result.data, result.ld);
  if (!in_place) copy({result.data, contiguous(elements_of(x.layout)), DType::f32}, x);
}

Status solve(const View& a, const View& b, const View& x, PackedOperands& workspace) {
  const int leading = a.layout.rank - 2;
  const auto n = a.layout.length[static_cast<std::size_t>(leading)];
  const bool one_column = b.layout.rank == leading + 1;
  const std::int64_t m = one_column ? 1 : b.layout.length[static_cast<std::size_t>(leading) + 1];
  Layout systems = a.layout;
  systems.rank = leading;
  const std::int64_t count = elements_of(systems);
  const auto system = [&](const View& view, std::int64_t i) {
    Layout starts = view.layout;
    starts.rank = leading;
    View one{view.data, {}, view.dtype};
    one.layout.offset = offset_of(starts, i);
    for (auto d = static_cast<std::size_t>(leading); d < static_cast<std::size_t>(view.layout.rank); ++d) {
      one.layout.length[d - static_cast<std::size_t>(leading)] = view.layout.length[d];
      one.layout.stride[d - static_cast<std::size_t>(leading)] = view.layout.stride[d];
    }
    one.layout.rank = view.layout.rank - leading;
    return one;
  };
  Status status = success();
  const auto order = static_cast<lapack_int>(n), columns = static_cast<lapack_int>(m);
  std::vector<lapack_int> pivots(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < count && !workspace.stop.requested(); ++i) {
    const View matrix = by_columns(system(a, i), n, n, workspace.left), sides = by_columns(system(b, i), n, m, workspace.right);
    lapack_int info = 0;
    math().sgesv(&order, &columns, matrix.data, &order, pivots.data(), sides.data, &order, &info);
    PODSIM_ASSERT(info >= 0);
    copy(sides, system(x, i));
    if (info > 0 && status) status = wrong_data((count > 1 ? fmt::format("system {} of {}: ", i, count) : "") + singular(info - 1));
  }
  return status;
}

}  // namespace podsim
