#include "sim/machine/matmul_efficiency.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

double distance(const MatmulPoint& a, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto between = [](std::int64_t x, std::int64_t y) { return std::log(static_cast<double>(x) / static_cast<double>(y)); };
  return std::hypot(between(a.m, m), between(a.n, n), between(a.k, k));
}

/// Gaussian elimination with row pivoting; `rows` are [coefficients..., right side].
std::vector<double> solution_of(std::vector<std::vector<double>> rows) {
  const std::size_t size = rows.size();
  for (std::size_t column = 0; column < size; ++column) {
    const auto larger = [&](const auto& a, const auto& b) { return std::abs(a[column]) < std::abs(b[column]); };
    std::swap(rows[column], *std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(column), rows.end(), larger));
    PODSIM_ASSERT(rows[column][column] != 0);
    for (std::size_t row = column + 1; row < size; ++row) {
      const double factor = rows[row][column] / rows[column][column];
      for (std::size_t i = column; i <= size; ++i) rows[row][i] -= factor * rows[column][i];
    }
  }
  std::vector<double> solution(size);
  for (std::size_t row = size; row-- > 0;) {
    double right = rows[row][size];
    for (std::size_t i = row + 1; i < size; ++i) right -= rows[row][i] * solution[i];
    solution[row] = right / rows[row][row];
  }
  return solution;
}

}  // namespace

MatmulTable matmul_table_of(std::vector<MatmulPoint> points) {
  if (points.empty()) return {};
  const std::size_t count = points.size();
  std::vector<std::vector<double>> rows(count + 1, std::vector<double>(count + 2));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) rows[i][j] = distance(points[i], points[j].m, points[j].n, points[j].k);
    rows[i][count] = rows[count][i] = 1;
    rows[i][count + 1] = std::log(points[i].efficiency);
  }
  return {std::move(points), solution_of(std::move(rows))};
}

double efficiency_at(const MatmulTable& table, std::int64_t m, std::int64_t n, std::int64_t k) {
  PODSIM_ASSERT(!table.points.empty() && table.weights.size() == table.points.size() + 1);
  double logarithm = table.weights.back(), least = table.points.front().efficiency, largest = least;
  for (std::size_t i = 0; i < table.points.size(); ++i) {
    const MatmulPoint& point = table.points[i];
    logarithm += table.weights[i] * distance(point, m, n, k);
    least = std::min(least, point.efficiency);
    largest = std::max(largest, point.efficiency);
  }
  return std::clamp(std::exp(logarithm), least, largest);
}

MatmulSurface matmul_surface_of(MatmulSurface surface) {
  const auto logarithm = [](auto x) { return std::log(static_cast<double>(x)); };
  std::size_t values = 1;
  for (std::size_t axis = 0; axis < surface.extents.size(); ++axis) {
    const std::vector<std::int64_t>& extents = surface.extents.at(axis);
    PODSIM_ASSERT(!extents.empty() && extents.front() > 0 && std::adjacent_find(extents.begin(), extents.end(), std::greater_equal<>{}) == extents.end());
    surface.logarithms.at(axis).resize(extents.size());
    std::transform(extents.begin(), extents.end(), surface.logarithms.at(axis).begin(), logarithm);
    values *= extents.size();
  }
  PODSIM_ASSERT(surface.efficiency.size() == values);
  surface.logarithms_of_efficiency.resize(values);
  std::transform(surface.efficiency.begin(), surface.efficiency.end(), surface.logarithms_of_efficiency.begin(), logarithm);
  return surface;
}

GridCorners corners_of(const std::array<std::vector<double>, 3>& logarithms, std::int64_t m, std::int64_t n, std::int64_t k) {
  GridCorners corners;
  corners.weight.fill(1);
  const std::array<std::int64_t, 3> place{m, n, k};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::vector<double>& at = logarithms.at(axis);
    const double x = std::clamp(std::log(static_cast<double>(place.at(axis))), at.front(), at.back());
    const auto above = std::upper_bound(at.begin() + 1, at.end() - (at.size() > 1 ? 1 : 0), x);
    const auto upper = at.size() > 1 ? static_cast<std::size_t>(above - at.begin()) : 0, lower = at.size() > 1 ? upper - 1 : 0;
    const double share = at.size() > 1 ? (x - at[lower]) / (at[upper] - at[lower]) : 0;
    for (std::size_t corner = 0; corner < 8; ++corner) {
      const bool is_upper = ((corner >> axis) & 1U) != 0;
      corners.position.at(corner) = corners.position.at(corner) * at.size() + (is_upper ? upper : lower);
      corners.weight.at(corner) *= is_upper ? share : 1 - share;
    }
  }
  return corners;
}

double efficiency_at(const MatmulSurface& surface, std::int64_t m, std::int64_t n, std::int64_t k) {
  PODSIM_ASSERT(!surface.empty());
  const GridCorners corners = corners_of(surface.logarithms, m, n, k);
  double logarithm = 0;
  for (std::size_t corner = 0; corner < 8; ++corner) logarithm += corners.weight[corner] * surface.logarithms_of_efficiency[corners.position[corner]];
  return std::exp(std::min(logarithm, 0.0));
}

double wave_loss(int block_m, int block_n, int units, std::int64_t m, std::int64_t n) {
  const std::int64_t blocks = ((m + block_m - 1) / block_m) * ((n + block_n - 1) / block_n);
  if (blocks < units) return 0;
  const std::int64_t places = (blocks + units - 1) / units * units;
  return std::log(static_cast<double>(places) / static_cast<double>(blocks));
}

}  // namespace podsim
