// What share of the peak matmuls reach, by their extents: points that were measured, and what is assumed between them.
#pragma once

#include <cstdint>
#include <vector>

namespace podsim {

struct MatmulPoint {
  std::int64_t m = 1, n = 1, k = 1;
  double efficiency = 1;
  friend bool operator==(const MatmulPoint&, const MatmulPoint&) = default;
};

/// Points with distinct extents, and what interpolation needs of them.
struct MatmulTable {
  std::vector<MatmulPoint> points;  // none: no table
  std::vector<double> weights;      // one per point, and the constant
  friend bool operator==(const MatmulTable&, const MatmulTable&) = default;
};

inline constexpr std::size_t most_matmul_points = 64;

/// Before: distinct extents. Cost O(points^3).
MatmulTable matmul_table_of(std::vector<MatmulPoint> points);

/// ln(efficiency) = c + sum of w_i * distance to point i in (ln m, ln n, ln k), through all points, the w_i summing to zero. Along one line of
/// points this is linear interpolation of ln(efficiency) over ln(extent), constant beyond the ends; elsewhere it is the same idea in three
/// dimensions (a biharmonic spline). Never below the least or above the largest efficiency of a point. Cost O(points).
double efficiency_at(const MatmulTable& table, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace podsim
