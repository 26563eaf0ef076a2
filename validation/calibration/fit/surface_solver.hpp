// The penalised least squares behind an efficiency surface (surface.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <Eigen/Dense>
#include <Eigen/Sparse>

#include "sim/base/cancellation.hpp"
#include "sim/machine/matmul_efficiency.hpp"

namespace podsim {

using SurfaceGrid = std::array<std::vector<double>, 3>;  // logarithms of m, n, k

/// A product as the fit sees it; times in microseconds.
struct SurfaceRow {
  std::array<std::int64_t, 3> extents{};
  double measured = 0, arithmetic = 0, memory = 0;  // arithmetic: padded, at the peak
  GridCorners corners;
  double waves = 0;  // ln q of the block under trial
};

/// g = -ln(efficiency) at every corner of the grid, then the launch in microseconds, then the wave share, which is fitted only with `waves`.
struct SurfaceUnknowns {
  Eigen::VectorXd x;
  bool waves = false;
  [[nodiscard]] Eigen::Index corners() const { return x.size() - 2; }
  [[nodiscard]] double launch() const { return x[corners()]; }
  [[nodiscard]] double wave_share() const { return x[corners() + 1]; }
};

struct SurfaceState {
  SurfaceUnknowns unknowns;
  Eigen::VectorXd residuals, weights;  // ln(predicted / measured); Huber's
  double scale = 0;                    // robust standard deviation of the residuals
  std::array<double, 2> sigma{};       // standard deviations of launch and wave share
};

/// Minimises Huber's loss plus smoothness * |P g|^2 by Gauss-Newton with efficiencies in [1e-3, 1]. Equal inputs give equal results.
class SurfaceSolver {
 public:
  using Sparse = Eigen::SparseMatrix<double>;
  using Rows = std::vector<const SurfaceRow*>;

  /// `overlap`: chip.overlap_hbm.
  SurfaceSolver(const SurfaceGrid& grid, double overlap, Cancellation stop);

  [[nodiscard]] SurfaceUnknowns start(const Rows& rows) const;
  [[nodiscard]] SurfaceState solve(const Rows& rows, SurfaceUnknowns start, double smoothness) const;

  struct Part {
    double time = 0, of_surface = 0;  // of the whole product, and max(c q^share, h) / efficiency in it; microseconds
    bool by_arithmetic = false;       // c q^share > h
  };
  [[nodiscard]] Part predict(const SurfaceRow& row, const SurfaceUnknowns& unknowns) const;

 private:
  [[nodiscard]] Eigen::VectorXd residuals(const Rows& rows, const SurfaceUnknowns& unknowns) const;
  [[nodiscard]] double loss(const Eigen::VectorXd& residuals, double scale, const SurfaceUnknowns& unknowns, double smoothness) const;
  void assemble(const Rows& rows, const SurfaceState& state, double smoothness, Sparse& normal, Eigen::VectorXd& gradient) const;

  double overlap_ = 1;
  Sparse penalty_;
  Cancellation stop_;
};

}  // namespace podsim
