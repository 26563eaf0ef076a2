// Discrete Fourier transforms along one dimension of a box, by FFTW in single precision.
#pragma once

#include <array>

#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/row_kernels.hpp"

namespace podsim {

/// Transforms along dimension dims[0] of x, which becomes dims[1] of y. x is f32 or c64, y is c64, and either exactly x with the same dimension or apart
/// from it. The inverse divides by the number of points.
///
/// Lines are gathered and scattered, so that the bits of a line's transform depend on its values alone: not on strides, alignment, other lines or
/// threads. Safe in several threads at a time.
void fft(bool inverse, std::array<int, 2> dims, const View& x, const View& y, PackedOperands& workspace);

/// y = x exp(-2 pi i jk / points): j and k are the numbers of the element along dims. Factors are float64, of jk modulo `points`, which is exact
/// (points are at most 2^31).
void twiddle(double points, std::array<int, 2> dims, const RowNumbers& j, const RowNumbers& k, const View& x, const View& y);

}  // namespace podsim
