// The efficiency surface of thousands of products: a smooth share of the roofline over a grid of extents, with padding to tiles and waves of blocks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validation/calibration/fit/calibrate.hpp"

namespace podsim {

/// Whether calibrate() fits a surface instead of points of a table: options.surface_from products or more, curves asked for,
/// chip.matmul_efficiency not held, a machine with a peak, and no slow devices.
bool wants_surface(const std::vector<Observation>& observations, const System& system, const CalibrateOptions& options);

struct SurfaceFit {
  Chip chip;      // with the surface
  Seconds launch;
  double launch_sigma = 0;      // standard deviation, in seconds
  double wave_share_sigma = 0;  // 0: no waves
  std::vector<Seconds> predicted;  // of each product
  std::vector<double> weights;     // Huber's
  double scale = 0;                // robust standard deviation of ln(predicted / observed)
  std::vector<std::string> choices;  // how it was found, a sentence each
};

/// Fits launch[matmul] and a MatmulSurface to matmul observations; HBM bandwidth, peaks and tiles are those of the machine.
///   time      launch + r / efficiency + (1 - overlap_hbm) h, r = max(c q^wave_share, h) (sim/machine/matmul_efficiency.hpp)
///   grid      extents from the least to the largest observed, at most a factor of 4 apart (more if it would be over a thousand efficiencies)
///   loss      Huber's on ln(predicted / observed), plus smoothness * (squared curvatures and a tenth of the squared slopes of ln efficiency along
///             m, n and k); Gauss-Newton with efficiencies in [0.001, 1]
///   smoothness  of 1e-4, 1e-3, 1e-2 and 1e-1 the one whose fits to every other product predict the others best (median of |ln|)
///   block     of 64, 128, 256 in m and n, if the machine has matmul_units, the one that explains most of the residuals; waves are kept if that is
///                 worth a value by the criterion of is_better()
/// Efficiencies are rounded to three digits, the launch to four and the wave share to two, as the machine's file has them. Repeated products count once each. Cost:
/// O(products) and a sparse factorisation per iteration, about a second for 3,500 products.
SurfaceFit fit_surface(const std::vector<Observation>& products, const Machine& machine, const CalibrateOptions& options);

/// calibrate() where wants_surface(): the surface first; the other observations on the machine with it, which hold it; if those change the HBM
/// bandwidth, the surface again. Errors: those of calibrate().
Expected<Calibration> calibrate_with_surface(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options);

}  // namespace podsim
