// Boxes of values as matrices for BLAS and LAPACK. Not for what is outside this folder.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/numeric/kernels.hpp"

namespace podsim {

/// A box as BLAS sees it: rows `ld` apart, columns adjacent.
struct Matrix {
  float* data;
  int rows, cols, ld;
};

/// The first `split` dimensions are the rows. nullopt: a group is not one run of evenly spaced rows, or the columns are not adjacent.
std::optional<Matrix> as_matrix(const View& view, int split);
/// The matrix that a box is after packing.
Matrix packed_matrix(const View& view, int split, float* data);

/// `count` adjacent words, contents undefined.
View room_for(std::int64_t count, std::vector<float>& room);

/// The words of a box with the first `split` dimensions as one and all others as the other: `rows` x `columns`.
struct RowsAndColumns {
  Layout row_starts;  // of each row; its offset counts
  Layout row;         // from the start of one; offset 0
};
RowsAndColumns rows_and_columns(const View& view, int split);
/// The offset of element i of a layout, in row-major order.
std::int64_t offset_of(const Layout& layout, std::int64_t i);

}  // namespace podsim
