// Rows of matrices by their numbers: indices, triangles, rows that are picked. A matrix is a box of which the first `split` dimensions are the rows.
#pragma once

#include <optional>

#include "sim/base/expected.hpp"
#include "sim/engine/numeric/kernels.hpp"

namespace podsim {

/// A Numbering on one device.
struct RowNumbers {
  std::int64_t first = 0, block = 0, apart = 1;

  [[nodiscard]] std::int64_t of(std::int64_t row) const { return block == 0 ? first + row : first + row / block * block * apart + row % block; }
  /// The row with this number, of `rows`.
  [[nodiscard]] std::optional<std::int64_t> row_of(std::int64_t number, std::int64_t rows) const;
};
/// Numbering i of a Local; without it, rows count from 0.
RowNumbers row_numbers(const Local& local, std::size_t i, const Coordinates& at);

/// An error of the run: the schedule is right, but it cannot work on this data.
inline Diagnostic wrong_data(std::string message) { return {{}, std::move(message), Cause::data}; }

void iota(const RowNumbers& numbers, const View& out);

/// The part of a matrix below its diagonal, with ones on it; on and above its diagonal. `out` is exactly the matrix or overlaps it nowhere.
void lower_triangle(const RowNumbers& rows, const RowNumbers& columns, const View& a, int split, const View& out, int out_split);
void upper_triangle(const RowNumbers& rows, const RowNumbers& columns, const View& a, int split, const View& out, int out_split);

// Numbers of rows are below `numbers`. Errors, before anything is written: an index that is not.
/// Row i of `out` is the row number index[i] of `a`, or 0 if that is not among its rows.
Status gather_rows(const RowNumbers& rows, double numbers, const View& a, int split, const View& index, const View& out, int out_split);
/// The row number index[i] of `a` becomes row i of b, if it is among its rows; of equal ones, the last. `a` is read and written.
Status scatter_rows(const RowNumbers& rows, double numbers, const View& b, int b_split, const View& index, const View& a, int split);
/// The row number r of `a` is the sum of the rows i of `b` with index[i] = r, in order of i, in float32; it is rounded once.
Status add_rows(const RowNumbers& rows, double numbers, const View& b, int b_split, const View& index, const View& a, int split, std::vector<float>& room);
/// Row i of `out` is 1 in the column number index[i], if that is among its columns, else 0.
Status one_hot(const RowNumbers& columns, double numbers, const View& index, const View& out, int out_split);
/// Rows number first.of(i) and index[i] of `a` change places, one pair after the other. Errors: a row that is not among those of `a`.
Status swap_rows(const RowNumbers& rows, const RowNumbers& first, const View& index, const View& a, int split);

}  // namespace podsim
