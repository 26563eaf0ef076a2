#include "sim/engine/numeric/reference_linear_algebra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/math_libraries.hpp"

namespace podsim {
namespace {

/// FFTW's planner is not safe to call from several threads.
std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

double norm_of(std::span<const double> values) { return math().cblas_dnrm2(static_cast<int>(values.size()), values.data(), 1); }

std::vector<float> rounded(const std::vector<double>& values) { return {values.begin(), values.end()}; }

std::vector<double> widened(const std::vector<float>& values) { return {values.begin(), values.end()}; }

/// LAPACK takes matrices by columns.
template <class T>
std::vector<T> transposed(const std::vector<T>& matrix, std::int64_t rows, std::int64_t columns) {
  std::vector<T> turned(matrix.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) turned[static_cast<std::size_t>(j * rows + i)] = matrix[static_cast<std::size_t>(i * columns + j)];
  return turned;
}

void getrf(const lapack_int* n, double* a, lapack_int* exchanges, lapack_int* info) { math().dgetrf(n, n, a, n, exchanges, info); }
void getrf(const lapack_int* n, float* a, lapack_int* exchanges, lapack_int* info) { math().sgetrf(n, n, a, n, exchanges, info); }
void gesv(const lapack_int* n, const lapack_int* columns, double* a, lapack_int* exchanges, double* b, lapack_int* info) {
  math().dgesv(n, columns, a, n, exchanges, b, n, info);
}
void gesv(const lapack_int* n, const lapack_int* columns, float* a, lapack_int* exchanges, float* b, lapack_int* info) {
  math().sgesv(n, columns, a, n, exchanges, b, n, info);
}

/// Factors a square matrix in place; the row exchanges, counted from 1. A NaN stays one.
template <class T>
std::vector<lapack_int> factor(std::vector<T>& a, std::int64_t n) {
  std::vector<lapack_int> exchanges(static_cast<std::size_t>(n), 1);
  const auto size = static_cast<lapack_int>(n);
  lapack_int info = 0;
  std::vector<T> columns = transposed(a, n, n);
  getrf(&size, columns.data(), exchanges.data(), &info);
  a = transposed(columns, n, n);
  return exchanges;
}

/// Solves in place. False: the matrix is singular.
template <class T>
bool solve_in_place(const std::vector<T>& a, std::vector<T>& b, std::int64_t n, std::int64_t columns) {
  const auto size = static_cast<lapack_int>(n), width = static_cast<lapack_int>(columns);
  std::vector<lapack_int> exchanges(static_cast<std::size_t>(n));
  std::vector<T> factors = transposed(a, n, n), right = transposed(b, n, columns);
  lapack_int info = 0;
  gesv(&size, &width, factors.data(), exchanges.data(), right.data(), &info);
  b = transposed(right, columns, n);
  return info == 0;
}

/// The order of rows that LAPACK's row exchanges, counted from 1, lead to.
std::vector<std::int64_t> rows_after(const std::vector<lapack_int>& exchanges) {
  std::vector<std::int64_t> rows(exchanges.size());
  std::iota(rows.begin(), rows.end(), 0);
  for (std::size_t i = 0; i < exchanges.size(); ++i) std::swap(rows[i], rows[static_cast<std::size_t>(exchanges[i] - 1)]);
  return rows;
}

/// P A - L U, where row i of P A is row `rows[i]` of A.
std::vector<double> difference(const std::vector<double>& a, std::int64_t n, const std::vector<std::int64_t>& rows, const double* l, const double* u) {
  std::vector<double> rest;
  rest.reserve(a.size());
  for (const std::int64_t row : rows) rest.insert(rest.end(), a.begin() + row * n, a.begin() + (row + 1) * n);
  const auto size = static_cast<int>(n);
  math().cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, -1, l, size, u, size, 1, rest.data(), size);
  return rest;
}

double relative(double part, double whole) { return part == 0 ? 0 : part / whole; }

/// What LAPACK leaves of P A - L U in float32, relative.
double residual_of_lapack(const std::vector<double>& a, std::int64_t n) {
  std::vector<float> packed = rounded(a);
  const std::vector<lapack_int> exchanges = factor(packed, n);
  const ReferenceFactors factors{n, widened(packed), rows_after(exchanges)};
  const std::vector<double> l = lower_of(factors), u = upper_of(factors);
  return relative(norm_of(difference(a, n, factors.rows, l.data(), u.data())), norm_of(a));
}

double residual_of_system(const double* a, const double* b, const double* x, std::int64_t n, std::int64_t columns, double* largest = nullptr) {
  const auto size = static_cast<int>(n), width = static_cast<int>(columns);
  std::vector<double> rest(b, b + n * columns);
  math().cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, width, size, -1, a, size, x, width, 1, rest.data(), width);
  if (largest != nullptr)
    for (const double value : rest) *largest = std::max(*largest, std::abs(value));
  return relative(norm_of(rest), norm_of({a, static_cast<std::size_t>(n * n)}) * norm_of({x, static_cast<std::size_t>(n * columns)}));
}

/// Why these are no permutation and triangles; empty: they are.
std::string why_no_factors(std::int64_t n, std::span<const double> p, std::span<const double> l, std::span<const double> u) {
  constexpr double roundings = 1e-5;
  std::vector<bool> named(static_cast<std::size_t>(n), false);
  for (std::int64_t i = 0; i < n; ++i) {
    const double row = p[static_cast<std::size_t>(i)];
    if (!(row >= 0 && row < static_cast<double>(n)) || row != std::floor(row) || named[static_cast<std::size_t>(row)])
      return fmt::format("P[{}] is {}: P is no permutation of {} rows", i, row, n);
    named[static_cast<std::size_t>(row)] = true;
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const double of_l = l[static_cast<std::size_t>(i * n + j)], of_u = u[static_cast<std::size_t>(i * n + j)];
      if (j >= i && of_l != (i == j ? 1 : 0)) return fmt::format("L[{},{}] is {}, not {}", i, j, of_l, i == j ? 1 : 0);
      if (j < i && !(std::abs(of_l) <= 1 + roundings))
        return fmt::format("L[{},{}] is {}: the pivot of column {} is smaller than another candidate", i, j, of_l, j);
      if (j < i && of_u != 0) return fmt::format("U[{},{}] is {}, not 0", i, j, of_u);
    }
  return {};
}

}  // namespace

std::vector<double> reference_fft(std::vector<double> values, const Extents& extents, const std::vector<int>& dims, bool inverse) {
  std::vector<fftw_iodim64> along, over;
  std::int64_t stride = 1, points = 1;
  for (std::size_t d = extents.size(); d-- > 0;) {
    const bool transformed = std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end();
    (transformed ? along : over).push_back({extents[d], stride, stride});
    stride *= extents[d];
    if (transformed) points *= extents[d];
  }
  auto* const data = reinterpret_cast<fftw_complex*>(values.data());  // NOLINT: pairs of doubles, as FFTW documents
  const auto count = [](const std::vector<fftw_iodim64>& list) { return static_cast<int>(list.size()); };
  fftw_plan plan = nullptr;
  {
    const std::lock_guard lock{planner()};
    plan = math().fftw_plan_guru64_dft(count(along), along.data(), count(over), over.data(), data, data, inverse ? FFTW_BACKWARD : FFTW_FORWARD,
                                       FFTW_ESTIMATE | FFTW_UNALIGNED);
  }
  PODSIM_ASSERT(plan != nullptr);
  math().fftw_execute(plan);
  {
    const std::lock_guard lock{planner()};
    math().fftw_destroy_plan(plan);
  }
  if (inverse)
    for (double& value : values) value /= static_cast<double>(points);
  return values;
}

ReferenceFactors reference_lu(const std::vector<double>& a, std::int64_t n) {
  ReferenceFactors factors{n, a, {}};
  factors.rows = rows_after(factor(factors.packed, n));
  return factors;
}

std::vector<double> lower_of(const ReferenceFactors& factors) {
  std::vector<double> l(factors.packed.size(), 0);
  for (std::int64_t i = 0; i < factors.n; ++i) {
    std::copy_n(factors.packed.begin() + i * factors.n, i, l.begin() + i * factors.n);
    l[static_cast<std::size_t>(i * factors.n + i)] = 1;
  }
  return l;
}

std::vector<double> upper_of(const ReferenceFactors& factors) {
  std::vector<double> u(factors.packed.size(), 0);
  for (std::int64_t i = 0; i < factors.n; ++i)
    std::copy(factors.packed.begin() + i * factors.n + i, factors.packed.begin() + (i + 1) * factors.n, u.begin() + i * factors.n + i);
  return u;
}

std::vector<double> reference_solve(const std::vector<double>& a, const std::vector<double>& b, std::int64_t n, std::int64_t columns, ThreadPool& pool) {
  std::vector<double> x(b.size());
  const std::int64_t systems = static_cast<std::int64_t>(a.size()) / (n * n);
  pool.for_each(static_cast<std::size_t>(systems), [&](std::size_t s, std::size_t) {
    const auto system = static_cast<std::int64_t>(s);
    std::vector<double> own(b.begin() + system * n * columns, b.begin() + (system + 1) * n * columns);
    if (!solve_in_place(std::vector<double>(a.begin() + system * n * n, a.begin() + (system + 1) * n * n), own, n, columns))
      std::fill(own.begin(), own.end(), std::numeric_limits<double>::quiet_NaN());
    std::copy(own.begin(), own.end(), x.begin() + system * n * columns);
  });
  return x;
}

RelativeResidual residual_of_lu(const std::vector<double>& a, std::int64_t n, std::span<const double> p, std::span<const double> l, std::span<const double> u) {
  RelativeResidual residual;
  residual.allowed = std::max(1e-5, 2 * residual_of_lapack(a, n));
  residual.why = why_no_factors(n, p, l, u);
  residual.found = std::numeric_limits<double>::infinity();
  if (!residual.why.empty()) return residual;
  const std::vector<std::int64_t> rows(p.begin(), p.end());
  const std::vector<double> rest = difference(a, n, rows, l.data(), u.data());
  for (const double value : rest) residual.largest = std::max(residual.largest, std::abs(value));
  residual.found = relative(norm_of(rest), norm_of(a));
  if (!std::isfinite(residual.found)) residual.found = std::numeric_limits<double>::infinity();
  return residual;
}

RelativeResidual residual_of_solve(const std::vector<double>& a, const std::vector<double>& b, std::int64_t n, std::int64_t columns, std::span<const double> x) {
  RelativeResidual worst{0, 1, 0, {}};
  const std::int64_t systems = static_cast<std::int64_t>(a.size()) / (n * n);
  for (std::int64_t s = 0; s < systems; ++s) {
    const double *of_a = a.data() + s * n * n, *of_b = b.data() + s * n * columns;
    std::vector<float> own(of_b, of_b + n * columns);
    const bool solved = solve_in_place(std::vector<float>(of_a, of_a + n * n), own, n, columns);
    const std::vector<double> of_lapack = widened(own);
    RelativeResidual residual;
    residual.allowed = 10 * std::max(0x1p-24, solved ? residual_of_system(of_a, of_b, of_lapack.data(), n, columns) : 0.0);
    residual.found = residual_of_system(of_a, of_b, x.data() + s * n * columns, n, columns, &residual.largest);
    if (!std::isfinite(residual.found)) residual.found = std::numeric_limits<double>::infinity();
    if (s == 0 || residual.found / residual.allowed > worst.found / worst.allowed) worst = residual;
  }
  return worst;
}

}  // namespace podsim
