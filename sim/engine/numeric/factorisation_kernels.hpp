// Factorisations and triangular solves, float32, by LAPACK and BLAS: one thread each, safe in several threads at a time. A matrix is a box of which the
// first `split` dimensions are the rows.
#pragma once

#include "sim/base/expected.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/row_kernels.hpp"

namespace podsim {

/// Factors the rows of a panel from number `first_column` on: P A = L U with partial pivoting, packed. `index` [3, columns] gets the numbers of the pivots,
/// of the row that comes to each, and of the row to which each goes. Everything is read before anything is written. Errors: a column without a pivot other
/// than 0, after the factors are written.
Status getrf_panel(const RowNumbers& rows, std::int64_t first_column, const View& a, int split, const View& factors, int factors_split,
                   const View& index, PackedOperands& workspace);

enum class Triangle { lower, upper };  // lower: with ones on the diagonal, which is not read

/// triangle * x = b. x is exactly b or overlaps it nowhere; `apart`: it overlaps the triangle.
void trsm(Triangle kind, const View& triangle, int split, const View& b, const View& x, int x_split, bool apart, PackedOperands& workspace);

/// a x = b of each system, by LU with partial pivoting: a [.., n, n], b and x [.., n] or [.., n, m]. Errors: the first matrix that is singular.
Status solve(const View& a, const View& b, const View& x, PackedOperands& workspace);

}  // namespace podsim
