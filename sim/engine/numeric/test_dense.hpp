// Dense matrices by LAPACK and BLAS, to compare results with. Not for production code.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/numeric/math_libraries.hpp"

namespace podsim::testing {

/// Row-major.
using Matrix = std::vector<double>;

inline double norm(const Matrix& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return std::sqrt(sum);
}

/// a . b - c
inline Matrix product_less(const Matrix& a, const Matrix& b, Matrix c, std::int64_t n, std::int64_t m) {
  const auto rows = static_cast<int>(n), columns = static_cast<int>(m);
  math().cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, rows, 1, a.data(), rows, b.data(), columns, -1, c.data(), columns);
  return c;
}

inline std::vector<float> by_columns(const Matrix& a, std::int64_t rows, std::int64_t columns) {
  std::vector<float> result(a.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      result[static_cast<std::size_t>(j * rows + i)] = static_cast<float>(a[static_cast<std::size_t>(i * columns + j)]);
  return result;
}

struct Factors {
  std::vector<std::int64_t> P;
  Matrix L, U;
};

inline Factors unpacked(const std::vector<float>& packed_by_columns, const std::vector<int>& pivots) {
  const std::size_t n = pivots.size();
  Factors factors{{}, Matrix(n * n, 0), Matrix(n * n, 0)};
  for (std::size_t i = 0; i < n; ++i) factors.P.push_back(static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < n; ++i) std::swap(factors.P[i], factors.P[static_cast<std::size_t>(pivots[i] - 1)]);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double value = static_cast<double>(packed_by_columns[j * n + i]);
      (j < i ? factors.L : factors.U)[i * n + j] = value;
      if (i == j) factors.L[i * n + j] = 1;
    }
  return factors;
}

/// In single precision.
inline Factors lapack_factors(const Matrix& a, std::int64_t n) {
  std::vector<float> packed = by_columns(a, n, n);
  std::vector<int> pivots(static_cast<std::size_t>(n));
  int info = 0;
  const auto size = static_cast<int>(n);
  math().sgetrf(&size, &size, packed.data(), &size, pivots.data(), &info);
  return unpacked(packed, pivots);
}

/// |P A - L U| / |A|, Frobenius.
inline double lu_residual(const Matrix& a, const Factors& factors, std::int64_t n) {
  Matrix permuted(a.size());
  for (std::size_t i = 0; i < factors.P.size(); ++i)
    std::copy_n(a.begin() + factors.P[i] * n, n, permuted.begin() + static_cast<std::int64_t>(i) * n);
  return norm(product_less(factors.L, factors.U, permuted, n, n)) / norm(a);
}

/// |A x - b| / (|A| |x|)
inline double solve_residual(const Matrix& a, const Matrix& x, const Matrix& b, std::int64_t n, std::int64_t m) {
  return norm(product_less(a, x, b, n, m)) / (norm(a) * norm(x));
}
inline Matrix lapack_solution(const Matrix& a, const Matrix& b, std::int64_t n, std::int64_t m) {
  std::vector<float> packed = by_columns(a, n, n), x = by_columns(b, n, m);
  std::vector<int> pivots(static_cast<std::size_t>(n));
  const auto size = static_cast<int>(n), columns = static_cast<int>(m);
  int info = 0;
  math().sgesv(&size, &columns, packed.data(), &size, pivots.data(), x.data(), &size, &info);
  Matrix result(b.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j) result[static_cast<std::size_t>(i * m + j)] = static_cast<double>(x[static_cast<std::size_t>(j * n + i)]);
  return result;
}

}  // namespace podsim::testing
