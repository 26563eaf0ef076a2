#include "validation/calibration/fit/surface_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/statistics.hpp"

namespace podsim {

namespace {

constexpr double most_efficiency_log = 6.9;  // of 1 / efficiency; the least efficiency of a machine is 1e-3
constexpr double huber_edge = 1.345;         // scales
constexpr double least_surface_scale = 1e-4;
constexpr int most_surface_steps = 40, most_halvings = 12;
constexpr double enough_progress = 1e-7;  // relative, of the loss
constexpr double slope_part = 0.1;        // power laws are cheap: dear slopes would be made up for by a longer launch
constexpr double first_launch = 0.7;      // of the shortest time
constexpr double first_surface = 0.3;     // ln(1 / efficiency)
constexpr double shortest_time = 1e-9;       // us, so that a logarithm exists

using Sparse = SurfaceSolver::Sparse;

/// P with |P g|^2 = sum of squared curvatures of g on the grid, and slope_part of its squared slopes, integrated along its lines.
Sparse roughness(const SurfaceGrid& grid) {
  const std::array<std::size_t, 3> size{grid[0].size(), grid[1].size(), grid[2].size()};
  const std::array<std::size_t, 3> stride{size[1] * size[2], size[2], 1};
  std::vector<Eigen::Triplet<double>> entries;
  int row = 0;
  const auto add = [&](std::size_t column, double value) { entries.emplace_back(row, static_cast<int>(column), value); };
  const std::size_t values = size[0] * size[1] * size[2];
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::size_t at = 0; at < values; ++at) {
      const std::size_t i = at / stride.at(axis) % size.at(axis), next = at + stride.at(axis);
      if (i + 1 >= size.at(axis)) continue;
      const double step = grid.at(axis)[i + 1] - grid.at(axis)[i];
      const double slope = std::sqrt(slope_part / step);
      add(at, -slope), add(next, slope), ++row;
      if (i + 2 >= size.at(axis)) continue;
      const double after = grid.at(axis)[i + 2] - grid.at(axis)[i + 1], weight = std::sqrt(after);
      add(at, weight / step), add(next, -weight / step - weight / after), add(next + stride.at(axis), weight / after), ++row;
    }
  Sparse matrix(row, static_cast<Eigen::Index>(values));
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

double shortest(const SurfaceSolver::Rows& rows) {
  double least = std::numeric_limits<double>::infinity();
  for (const SurfaceRow* row : rows) least = std::min(least, row->measured);
  return least;
}

double longest_launch(const SurfaceSolver::Rows& rows) { return 0.999 * shortest(rows); }

Eigen::VectorXd clamped(Eigen::VectorXd x, double most_launch) {
  const Eigen::Index corners = x.size() - 2;
  x.head(corners) = x.head(corners).cwiseMax(0.0).cwiseMin(most_efficiency_log);
  x[corners] = std::clamp(x[corners], 0.0, most_launch);
  x[corners + 1] = std::clamp(x[corners + 1], 0.0, 1.0);
  return x;
}

}  // namespace

SurfaceSolver::SurfaceSolver(const SurfaceGrid& grid, double overlap, Cancellation stop) : overlap_{overlap}, stop_{std::move(stop)} {
  const Sparse p = roughness(grid);
  penalty_ = p.transpose() * p;
}

SurfaceUnknowns SurfaceSolver::start(const Rows& rows) const {
  SurfaceUnknowns unknowns;
  unknowns.x = Eigen::VectorXd::Constant(penalty_.cols() + 2, first_surface);
  unknowns.x[unknowns.corners()] = first_launch * shortest(rows);
  unknowns.x[unknowns.corners() + 1] = 0;
  return unknowns;
}

SurfaceSolver::Part SurfaceSolver::predict(const SurfaceRow& row, const SurfaceUnknowns& unknowns) const {
  double g = 0;
  for (std::size_t c = 0; c < 8; ++c) g += row.corners.weight[c] * unknowns.x[static_cast<Eigen::Index>(row.corners.position[c])];
  const double arithmetic = row.arithmetic * std::exp(unknowns.waves ? unknowns.wave_share() * row.waves : 0.0);
  const double part = std::max(arithmetic, row.memory) * std::exp(g);
  return {std::max(unknowns.launch() + part + (1 - overlap_) * row.memory, shortest_time), part, arithmetic > row.memory};
}

Eigen::VectorXd SurfaceSolver::residuals(const Rows& rows, const SurfaceUnknowns& unknowns) const {
  Eigen::VectorXd r(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) r[static_cast<Eigen::Index>(i)] = std::log(predict(*rows[i], unknowns).time / rows[i]->measured);
  return r;
}

double SurfaceSolver::loss(const Eigen::VectorXd& residuals, double scale, const SurfaceUnknowns& unknowns, double smoothness) const {
  const double edge = huber_edge * scale;
  const auto g = unknowns.x.head(unknowns.corners());
  double sum = smoothness * g.dot(penalty_ * g);
  for (const double r : residuals) sum += std::abs(r) <= edge ? r * r : edge * (2 * std::abs(r) - edge);
  return sum;
}

/// The normal equations of the linearised residuals; unknowns at a bound that the gradient pushes against stay there.
void SurfaceSolver::assemble(const Rows& rows, const SurfaceState& state, double smoothness, Sparse& normal,
                             Eigen::VectorXd& gradient) const {
  const SurfaceUnknowns& unknowns = state.unknowns;
  const Eigen::Index corners = unknowns.corners(), size = unknowns.x.size();
  gradient = Eigen::VectorXd::Zero(size);
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(rows.size() * 100);
  std::array<std::pair<Eigen::Index, double>, 10> column;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SurfaceRow& row = *rows[i];
    const Part part = predict(row, unknowns);
    for (std::size_t c = 0; c < 8; ++c)
      column[c] = {static_cast<Eigen::Index>(row.corners.position[c]), row.corners.weight[c] * part.of_surface / part.time};
    column[8] = {corners, 1 / part.time};
    column[9] = {corners + 1, unknowns.waves && part.by_arithmetic ? row.waves * part.of_surface / part.time : 0.0};
    const double weight = state.weights[static_cast<Eigen::Index>(i)], r = state.residuals[static_cast<Eigen::Index>(i)];
    for (const auto& [a, da] : column) {
      if (da == 0) continue;
      gradient[a] += weight * da * r;
      for (const auto& [b, db] : column)
        if (db != 0) entries.emplace_back(static_cast<int>(a), static_cast<int>(b), weight * da * db);
    }
  }
  const auto g = unknowns.x.head(corners);
  gradient.head(corners) += smoothness * (penalty_ * g);
  for (Eigen::Index c = 0; c < penalty_.outerSize(); ++c)
    for (Sparse::InnerIterator it(penalty_, c); it; ++it)
      entries.emplace_back(static_cast<int>(it.row()), static_cast<int>(it.col()), smoothness * it.value());
  const double launch_limit = longest_launch(rows);
  std::vector<bool> fixed(static_cast<std::size_t>(size), false);
  for (Eigen::Index c = 0; c < size; ++c) {
    const bool low = unknowns.x[c] <= 0 && gradient[c] > 0;
    const double most = c < corners ? most_efficiency_log : c == corners ? launch_limit : 1;
    const bool high = unknowns.x[c] >= most && gradient[c] < 0;
    fixed[static_cast<std::size_t>(c)] = low || high || (c == corners + 1 && !unknowns.waves);
  }
  std::erase_if(entries, [&](const Eigen::Triplet<double>& e) {
    return fixed[static_cast<std::size_t>(e.row())] || fixed[static_cast<std::size_t>(e.col())];
  });
  for (Eigen::Index c = 0; c < size; ++c) {
    entries.emplace_back(static_cast<int>(c), static_cast<int>(c), fixed[static_cast<std::size_t>(c)] ? 1.0 : 1e-10);
    if (fixed[static_cast<std::size_t>(c)]) gradient[c] = 0;
  }
  normal.resize(size, size);
  normal.setFromTriplets(entries.begin(), entries.end());
}

SurfaceState SurfaceSolver::solve(const Rows& rows, SurfaceUnknowns start, double smoothness) const {
  SurfaceState state;
  state.unknowns = std::move(start);
  state.weights = Eigen::VectorXd::Ones(static_cast<Eigen::Index>(rows.size()));
  const double most_launch = longest_launch(rows);
  state.unknowns.x = clamped(state.unknowns.x, most_launch);
  state.residuals = residuals(rows, state.unknowns);
  Sparse normal;
  Eigen::VectorXd gradient;
  Eigen::SimplicialLDLT<Sparse> factors;
  for (int iteration = 0; iteration < most_surface_steps && !stop_.requested(); ++iteration) {
    std::vector<double> sizes;
    for (const double r : state.residuals) sizes.push_back(std::abs(r));
    state.scale = std::max(1.4826 * median(std::move(sizes)), least_surface_scale);
    state.weights = (huber_edge * state.scale / state.residuals.array().abs().max(1e-300)).min(1.0).matrix();
    const double before = loss(state.residuals, state.scale, state.unknowns, smoothness);
    assemble(rows, state, smoothness, normal, gradient);
    factors.compute(normal);
    if (factors.info() != Eigen::Success) break;
    const Eigen::VectorXd step = -factors.solve(gradient);
    double share = 1, now = before;
    SurfaceUnknowns next = state.unknowns;
    Eigen::VectorXd there = state.residuals;
    for (int halving = 0; halving < most_halvings; ++halving, share /= 2) {
      next.x = clamped(state.unknowns.x + share * step, most_launch);
      there = residuals(rows, next);
      now = loss(there, state.scale, next, smoothness);
      if (now < before) break;
    }
    if (!(now < before)) break;
    const bool done = before - now < enough_progress * before;
    state.unknowns = std::move(next);
    state.residuals = std::move(there);
    if (done) break;
  }
  if (normal.rows() > 0 && factors.info() == Eigen::Success)
    for (std::size_t last = 0; last < 2; ++last) {
      Eigen::VectorXd unit = Eigen::VectorXd::Zero(state.unknowns.x.size());
      unit[state.unknowns.corners() + static_cast<Eigen::Index>(last)] = 1;
      state.sigma.at(last) = state.scale * std::sqrt(std::max(unit.dot(factors.solve(unit)), 0.0));
    }
  return state;
}

}  // namespace podsim
