// Transforms and factorisations of whole arrays in float64, and what a right factorisation or solution has to satisfy. Row-major throughout.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/thread_pool.hpp"
#include "sim/schedule/reference_program.hpp"

namespace podsim {

/// The transform along `dims` of an array of these extents; complex numbers are pairs. The inverse is divided by the number of points. FFTW.
std::vector<double> reference_fft(std::vector<double> values, const Extents& extents, const std::vector<int>& dims, bool inverse);

/// P A = L U with partial pivoting, packed: L below the diagonal. Row i of P A is row `rows[i]` of A. A singular A has zeros on the diagonal of U.
struct ReferenceFactors {
  std::int64_t n = 0;
  std::vector<double> packed;
  std::vector<std::int64_t> rows;
};
ReferenceFactors reference_lu(const std::vector<double>& a, std::int64_t n);
std::vector<double> lower_of(const ReferenceFactors& factors);
std::vector<double> upper_of(const ReferenceFactors& factors);

/// x with a x = b for each system: a [systems, n, n], b [systems, n, columns]. NaN where a is singular.
std::vector<double> reference_solve(const std::vector<double>& a, const std::vector<double>& b, std::int64_t n, std::int64_t columns, ThreadPool& pool);

/// How far a result is from what it has to satisfy, relative (Frobenius norms), and what is allowed.
struct RelativeResidual {
  double found = 0, allowed = 0;
  double largest = 0;  // |element| of what should be zero
  std::string why{};   // in words, if it is no factorisation at all: P is no permutation, L has an element above 1, ...
};

/// |P A - L U| / |A|. Allowed is 1e-5, or twice what LAPACK leaves in float32 if that is more. Also: P is a permutation, L has ones on the diagonal, zeros
/// above it and no element beyond 1 + 1e-5 (so every pivot is the largest candidate but for roundings), U has zeros below its diagonal.
RelativeResidual residual_of_lu(const std::vector<double>& a, std::int64_t n, std::span<const double> p, std::span<const double> l, std::span<const double> u);

/// |b - a x| / (|a| |x|), of the worst system. Allowed is ten times what LAPACK leaves in float32, at least 10 roundings of 2^-24.
RelativeResidual residual_of_solve(const std::vector<double>& a, const std::vector<double>& b, std::int64_t n, std::int64_t columns, std::span<const double> x);

}  // namespace podsim
