#include "sim/machine/matmul_efficiency.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

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
    assert(rows[column][column] != 0);
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
  assert(!table.points.empty() && table.weights.size() == table.points.size() + 1);
  double logarithm = table.weights.back(), least = table.points.front().efficiency, largest = least;
  for (std::size_t i = 0; i < table.points.size(); ++i) {
    const MatmulPoint& point = table.points[i];
    logarithm += table.weights[i] * distance(point, m, n, k);
    least = std::min(least, point.efficiency);
    largest = std::max(largest, point.efficiency);
  }
  return std::clamp(std::exp(logarithm), least, largest);
}

}  // namespace podsim
