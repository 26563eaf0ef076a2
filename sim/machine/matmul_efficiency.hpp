// Matmul efficiency as a fraction of peak by extents: measured points and the interpolation between them.
#pragma once

#include <cstdint>
#include <vector>

namespace podsim {

struct MatmulPoint {
  std::int64_t m = 1, n = 1, k = 1;
  double efficiency = 1;
  friend bool operator==(const MatmulPoint&, const MatmulPoint&) = default;
};

/// Points with distinct extents, and the weights of their interpolation.
struct MatmulTable {
  std::vector<MatmulPoint> points;  // none: no table
  std::vector<double> weights;      // one per point, then the constant
  friend bool operator==(const MatmulTable&, const MatmulTable&) = default;
};

inline constexpr std::size_t most_matmul_points = 64;

/// The extents must be distinct. Cost O(points^3).
MatmulTable matmul_table_of(std::vector<MatmulPoint> points);

/// ln(efficiency) = c + sum of w_i * distance to point i in (ln m, ln n, ln k), with the w_i summing to zero; exact at every point. Along a line of
/// points this is linear interpolation of ln(efficiency) over ln(extent), constant beyond the ends; in general it is a biharmonic spline in three
/// dimensions. The result stays between the least and the largest efficiency of a point. Cost O(points).
double efficiency_at(const MatmulTable& table, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace podsim
