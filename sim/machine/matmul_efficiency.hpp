// Matmul efficiency by extents: a few measured points, or a surface fitted to thousands of products, and the interpolation between them.
#pragma once

#include <array>
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

/// Efficiencies on a grid of extents, as a share of the roofline. With it the arithmetic of an m x n x k product takes
///   max(c * q^wave_share, h) / efficiency(m, n, k)     c: padded flops / peak, h: bytes / HBM bandwidth
///   q = ceil(T / units) * units / T >= 1               T = ceil(m / block_m) * ceil(n / block_n) blocks of the result, dealt out to `units` in waves
/// q is 1 while T < units: below one wave a library splits k, and the grid holds what remains of that.
struct MatmulSurface {
  std::array<std::vector<std::int64_t>, 3> extents;  // of m, n, k; increasing; none: no surface
  std::vector<double> efficiency;                    // in (0, 1]; k varies fastest, then n
  int block_m = 1, block_n = 1;
  double wave_share = 0;                                // in [0, 1]; 0: no waves
  std::array<std::vector<double>, 3> logarithms{};      // of the extents
  std::vector<double> logarithms_of_efficiency{};
  [[nodiscard]] bool empty() const { return efficiency.empty(); }
  friend bool operator==(const MatmulSurface&, const MatmulSurface&) = default;
};

inline constexpr std::size_t most_surface_extents = 24;  // along m, n or k
inline constexpr std::size_t most_surface_values = 4096;

/// Needs increasing extents and as many efficiencies as their product; fills in the logarithms.
MatmulSurface matmul_surface_of(MatmulSurface surface);

/// ln(efficiency) is linear in ln m, ln n and ln k between neighbouring extents of the grid and constant beyond its ends: never outside the least and
/// largest efficiency of the eight corners. Cost O(log extents), about 0.1 us.
double efficiency_at(const MatmulSurface& surface, std::int64_t m, std::int64_t n, std::int64_t k);

/// The corners of a place on a grid (of logarithms of m, n, k), as positions in the list of values, and their weights, which sum to 1.
struct GridCorners {
  std::array<std::size_t, 8> position{};
  std::array<double, 8> weight{};
};
GridCorners corners_of(const std::array<std::vector<double>, 3>& logarithms, std::int64_t m, std::int64_t n, std::int64_t k);

/// ln q of the waves, without the exponent.
double wave_loss(int block_m, int block_n, int units, std::int64_t m, std::int64_t n);

}  // namespace podsim
