#include "validation/calibration/fit/surface.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "sim/base/statistics.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/machine/machine_fields.hpp"
#include "validation/calibration/fit/coverage.hpp"
#include "validation/calibration/fit/surface_solver.hpp"

namespace podsim {

namespace {

constexpr double finest_factor = 4;  // between extents of the grid
constexpr std::size_t most_grid_values = 1000;
constexpr double microsecond = 1e-6;
constexpr std::array smoothnesses{1e-4, 1e-3, 1e-2, 1e-1};
constexpr std::array block_sizes{64, 128, 256};

std::vector<std::int64_t> extents_along(std::int64_t least, std::int64_t most, double factor) {
  const double span = std::log(static_cast<double>(most) / static_cast<double>(least));
  const auto steps = static_cast<int>(std::ceil(span / std::log(factor) - 1e-9));
  std::vector<std::int64_t> extents;
  for (int i = 0; i <= steps; ++i) {
    const double exact = static_cast<double>(least) * std::exp(steps == 0 ? 0 : span * i / steps);
    const auto rounded = static_cast<std::int64_t>(std::llround(exact));
    if (extents.empty() || rounded > extents.back()) extents.push_back(rounded);
  }
  return extents;
}

struct GridChoice {
  std::array<std::vector<std::int64_t>, 3> extents;
  double factor = finest_factor;
};

GridChoice grid_for(const std::vector<SurfaceRow>& rows) {
  GridChoice grid;
  for (;; grid.factor *= std::sqrt(2.0)) {
    std::size_t values = 1, longest = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto along = [axis](const SurfaceRow& a, const SurfaceRow& b) { return a.extents.at(axis) < b.extents.at(axis); };
      const auto [least, most] = std::minmax_element(rows.begin(), rows.end(), along);
      grid.extents.at(axis) = extents_along(least->extents.at(axis), most->extents.at(axis), grid.factor);
      values *= grid.extents.at(axis).size();
      longest = std::max(longest, grid.extents.at(axis).size());
    }
    if (values <= most_grid_values && longest <= most_surface_extents) return grid;
  }
}

SurfaceGrid logarithms_of(const GridChoice& grid) {
  SurfaceGrid logarithms;
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (const std::int64_t extent : grid.extents.at(axis)) logarithms.at(axis).push_back(std::log(static_cast<double>(extent)));
  return logarithms;
}

std::vector<SurfaceRow> surface_rows(const std::vector<Observation>& products, const Machine& machine) {
  std::vector<SurfaceRow> rows;
  Machine plain = machine;  // at the peak
  plain.chip.matmul_surface = {}, plain.chip.matmul_table = {}, plain.chip.matmul_efficiency = 1;
  for (const Observation& o : products) {
    Matmul matmul;
    const auto region = [](std::int64_t a, std::int64_t b) { return Region{BufferId{0}, {span(0, a), span(0, b)}}; };
    matmul.left = region(o.m, o.k), matmul.right = region(o.k, o.n), matmul.out = region(o.m, o.n);
    const DType dtype = o.dtype.value_or(DType::bf16);
    SurfaceRow row;
    row.extents = {o.m, o.n, o.k};
    row.measured = o.time.count() / microsecond;
    row.arithmetic = arithmetic_time(plain, matmul, dtype).count() / microsecond;
    row.memory = memory_time(plain, matmul, dtype).count() / microsecond;
    rows.push_back(row);
  }
  return rows;
}

/// The smoothness with which fits to every other product predict the others best.
struct Smoothness {
  double value = 0;
  std::vector<double> misses;  // of each candidate, median of |ln|
};
Smoothness choose_smoothness(const std::vector<SurfaceRow>& rows, SurfaceSolver& solver) {
  std::array<std::vector<const SurfaceRow*>, 2> halves;
  for (std::size_t i = 0; i < rows.size(); ++i) halves.at(i % 2).push_back(&rows[i]);
  Smoothness choice;
  double best = std::numeric_limits<double>::infinity();
  std::array<SurfaceUnknowns, 2> from{solver.start(halves[0]), solver.start(halves[1])};
  for (std::size_t s = smoothnesses.size(); s-- > 0;) {  // the smoothest first: each starts where the one before ended
    std::vector<double> misses;
    for (std::size_t half = 0; half < 2; ++half) {
      from.at(half) = solver.solve(halves.at(half), std::move(from.at(half)), smoothnesses.at(s)).unknowns;
      for (const SurfaceRow* row : halves.at(1 - half)) misses.push_back(std::abs(std::log(solver.predict(*row, from.at(half)).time / row->measured)));
    }
    choice.misses.insert(choice.misses.begin(), median(std::move(misses)));
    if (choice.misses.front() >= best) continue;
    best = choice.misses.front();
    choice.value = smoothnesses.at(s);
  }
  return choice;
}

double cauchy_loss(const Eigen::VectorXd& residuals, double noise) {
  double sum = 0;
  for (const double r : residuals) sum += 2 * std::log1p(r * r / (noise * noise));
  return sum;
}

struct Waves {
  int block_m = 1, block_n = 1;
  bool kept = false;
  double gain = 0;
};

void set_block(std::vector<SurfaceRow>& rows, int block_m, int block_n, int units) {
  for (SurfaceRow& row : rows) row.waves = wave_loss(block_m, block_n, units, row.extents[0], row.extents[1]);
}

/// Adds waves to the state if a block explains enough of what is missed.
Waves add_waves(std::vector<SurfaceRow>& rows, const std::vector<const SurfaceRow*>& all, int units, double smoothness, double noise, SurfaceSolver& solver,
                SurfaceState& state) {
  Waves best;
  double largest = 0;
  for (const int block_m : block_sizes)
    for (const int block_n : block_sizes) {
      set_block(rows, block_m, block_n, units);
      double xy = 0, xx = 0;  // the slope of the residuals along ln q
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto part = solver.predict(rows[i], state.unknowns);
        const double x = part.by_arithmetic ? rows[i].waves * part.of_surface / part.time : 0;
        const double weight = state.weights[static_cast<Eigen::Index>(i)];
        xy -= weight * x * state.residuals[static_cast<Eigen::Index>(i)];
        xx += weight * x * x;
      }
      if (xx <= 0 || xy <= 0 || xy * xy / xx <= largest) continue;
      largest = xy * xy / xx;
      best = {block_m, block_n, false, 0};
    }
  if (largest == 0) return best;
  set_block(rows, best.block_m, best.block_n, units);
  SurfaceUnknowns with = state.unknowns;
  with.waves = true;
  SurfaceState better = solver.solve(all, std::move(with), smoothness);
  best.gain = cauchy_loss(state.residuals, noise) - cauchy_loss(better.residuals, noise);
  best.kept = best.gain > 2 * std::log(static_cast<double>(rows.size())) && better.unknowns.wave_share() >= 0.005;
  if (best.kept) state = std::move(better);
  return best;
}

double rounded_to(int digits, double value) {
  if (!(value > 0)) return 0;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

std::string wave_choice(const Waves& waves, const MatmulSurface& surface, int units) {
  if (units <= 1) return "waves of blocks: none, chip.matmul_units is 1";
  if (waves.kept)
    return fmt::format("waves of blocks: {}x{} of the result per unit, {} units; {:.2g} of the time that idle units lose (of blocks of 64, 128 and 256 "
                       "this explains most)",
                       waves.block_m, waves.block_n, units, surface.wave_share);
  return fmt::format("waves of blocks: none on {} units; no block of 64, 128 or 256 explains enough of the residuals", units);
}

}  // namespace

bool wants_surface(const std::vector<Observation>& observations, const System& system, const CalibrateOptions& options) {
  const auto is_product = [](const Observation& o) { return o.op == ObservedOp::matmul; };
  const bool limited = std::all_of(observations.begin(), observations.end(), [&](const Observation& o) {
    return o.op != ObservedOp::matmul || std::isfinite(peak_of(system.machine, o.dtype.value_or(DType::bf16)).count());
  });
  const bool held = std::find(options.hold.begin(), options.hold.end(), "chip.matmul_efficiency") != options.hold.end();
  return options.curves && limited && !held && system.placement.speed.empty() &&
         static_cast<std::size_t>(std::count_if(observations.begin(), observations.end(), is_product)) >= options.surface_from;
}

SurfaceFit fit_surface(const std::vector<Observation>& products, const Machine& machine, const CalibrateOptions& options) {
  PODSIM_ASSERT(!products.empty());
  std::vector<SurfaceRow> rows = surface_rows(products, machine);
  const GridChoice grid = grid_for(rows);
  const SurfaceGrid logarithms = logarithms_of(grid);
  std::vector<const SurfaceRow*> all;
  for (SurfaceRow& row : rows) {
    row.corners = corners_of(logarithms, row.extents[0], row.extents[1], row.extents[2]);
    all.push_back(&row);
  }
  SurfaceSolver solver{logarithms, machine.chip.overlap_hbm, options.stop};
  const Smoothness smoothness = choose_smoothness(rows, solver);
  SurfaceState state = solver.solve(all, solver.start(all), smoothness.value);
  Waves waves;
  if (machine.chip.matmul_units > 1) waves = add_waves(rows, all, machine.chip.matmul_units, smoothness.value, options.noise, solver, state);

  SurfaceFit result;
  MatmulSurface surface;
  surface.extents = grid.extents;
  for (Eigen::Index i = 0; i < state.unknowns.corners(); ++i) {
    const double rounded = rounded_to(3, std::exp(-state.unknowns.x[i]));
    surface.efficiency.push_back(std::clamp(rounded, 1e-3, 1.0));
    state.unknowns.x[i] = -std::log(surface.efficiency.back());
  }
  Eigen::VectorXd& x = state.unknowns.x;
  x[x.size() - 1] = waves.kept ? std::round(100 * x[x.size() - 1]) / 100 : 0;
  x[x.size() - 2] = rounded_to(4, x[x.size() - 2]);
  surface.wave_share = x[x.size() - 1];
  if (waves.kept) surface.block_m = waves.block_m, surface.block_n = waves.block_n;
  result.chip = machine.chip;
  set_matmul_surface(result.chip, matmul_surface_of(surface));
  result.launch = Seconds{rounded_to(4, state.unknowns.launch() * microsecond)};
  result.launch_sigma = state.sigma[0] * microsecond;
  result.wave_share_sigma = waves.kept ? state.sigma[1] : 0;
  result.scale = state.scale;
  const auto [shortest, longest] = std::minmax_element(rows.begin(), rows.end(), [](const SurfaceRow& a, const SurfaceRow& b) { return a.measured < b.measured; });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    result.predicted.emplace_back(solver.predict(rows[i], state.unknowns).time * microsecond);
    result.weights.push_back(state.weights[static_cast<Eigen::Index>(i)]);
  }
  std::vector<std::string> misses;
  for (std::size_t s = 0; s < smoothnesses.size(); ++s) misses.push_back(fmt::format("{:g}: {:.1f} %", smoothnesses.at(s), 100 * smoothness.misses.at(s)));
  result.choices = {
      fmt::format("{} products of {} to {}: an efficiency surface (chip.matmul_efficiency), a share of the roofline at the machine's peak, tiles and HBM "
                  "bandwidth",
                  rows.size(), to_text(Seconds{microsecond * shortest->measured}), to_text(Seconds{microsecond * longest->measured})),
      fmt::format("grid: {} x {} x {} extents of m, n, k, a factor of {:.3g} or less apart", grid.extents[0].size(), grid.extents[1].size(),
                  grid.extents[2].size(), grid.factor),
      fmt::format("smoothness: {:g}; every other product predicts the others with median misses of {}", smoothness.value, fmt::join(misses, ", ")),
      wave_choice(waves, result.chip.matmul_surface, machine.chip.matmul_units)};
  return result;
}

namespace {

constexpr const char* efficiency_path = "chip.matmul_efficiency";
constexpr const char* launch_path = "software.launch[matmul]";

/// The fitted values that have intervals; the efficiencies are too many for a line each.
std::vector<CalibratedValue> surface_values(const SurfaceFit& fit, std::size_t rows, const CalibrateOptions& options) {
  const bool waves = fit.chip.matmul_surface.wave_share > 0;
  const int values = waves ? 2 : 1;
  const double t = student_quantile(1 - (1 - options.confidence) / values, static_cast<int>(rows));
  const double launch = fit.launch.count(), share = fit.chip.matmul_surface.wave_share;
  std::vector<CalibratedValue> found;
  found.push_back({launch_path, "", "s", launch, std::max(launch - t * fit.launch_sigma, 0.0), launch + t * fit.launch_sigma});
  if (waves)
    found.push_back({efficiency_path, "waves", "1", share, std::max(share - t * fit.wave_share_sigma, 0.0), std::min(share + t * fit.wave_share_sigma, 1.0)});
  return found;
}

Status set_surface(const SurfaceFit& fit, const std::vector<double>& errors, const CalibrateOptions& options, Machine& machine) {
  const std::string source = fmt::format("fitted: {}, {} observations, median error {}", options.dataset, errors.size(), rough_percent(summary_of(errors).median));
  machine.chip.matmul_table = fit.chip.matmul_table;
  machine.chip.matmul_surface = fit.chip.matmul_surface;
  machine.chip.matmul_efficiency = fit.chip.matmul_efficiency;
  machine.sources[efficiency_path] = source;
  return set_machine_value(machine, launch_path, to_exact_text(fit.launch), source, {});
}

}  // namespace

Expected<Calibration> calibrate_with_surface(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options) {
  std::vector<Observation> products, others;
  for (const Observation& o : observations) (o.op == ObservedOp::matmul ? products : others).push_back(o);
  Machine machine = base.machine;
  SurfaceFit fit = fit_surface(products, machine, options);
  if (options.stop.requested()) return cancelled_work();
  if (options.progress) options.progress(fit.chip.matmul_surface.efficiency.size() + 1);
  Calibration result;
  if (!others.empty()) {
    machine.chip.matmul_table = {}, machine.chip.matmul_surface = fit.chip.matmul_surface;
    machine.chip.matmul_efficiency = fit.chip.matmul_efficiency;
    machine.software.launch[static_cast<std::size_t>(CostKind::matmul)] = fit.launch;
    const auto system = with_machine(base, machine);
    if (!system) return system.error();
    CalibrateOptions rest = options;
    for (const char* path : {efficiency_path, launch_path, "chip.overlap_hbm"}) rest.hold.emplace_back(path);
    auto found = calibrate(others, *system, rest);
    if (!found) return found.error();
    result = *std::move(found);
    machine = result.machine;
    if (machine.chip.hbm_bandwidth != base.machine.chip.hbm_bandwidth) fit = fit_surface(products, machine, options);  // copies told the bandwidth
  } else {
    const std::string why = "the surface is a share of the roofline with the value that it has";
    for (const char* path : {"chip.hbm_bandwidth", "chip.overlap_hbm"})
      result.undetermined.push_back({path, "", why, "hbm_copy of several sizes, the largest of hundreds of MiB"});
  }
  std::vector<CalibratedValue> values = surface_values(fit, products.size(), options);
  result.parameters.insert(result.parameters.begin(), values.begin(), values.end());
  result.choices.insert(result.choices.begin(), fit.choices.begin(), fit.choices.end());

  std::vector<Residual> residuals;
  std::vector<double> errors, of_products, logarithms;
  std::size_t product = 0, other = 0;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    if (observations[i].op != ObservedOp::matmul) {
      residuals.push_back(result.residuals[other++]);
      residuals.back().observation = i;
    } else {
      const double error = fit.predicted[product].count() / observations[i].time.count() - 1;
      residuals.push_back({i, fit.predicted[product], error, fit.weights[product]});
      of_products.push_back(error), ++product;
    }
    errors.push_back(residuals.back().error);
    logarithms.push_back(std::abs(std::log1p(std::max(residuals.back().error, -0.999))));
  }
  result.residuals = std::move(residuals);
  const ErrorSummary summary = summary_of(errors);
  result.median_abs_error = summary.median, result.p95_abs_error = summary.p95;
  result.scatter = others.empty() ? fit.scale : 1.4826 * median(std::move(logarithms));
  result.machine = machine;
  if (auto ok = set_surface(fit, of_products, options, result.machine); !ok) return ok.error();
  auto covers = coverage_of(observations, base, options.predict);
  if (!covers) return covers.error();
  result.machine.trust = {TrustLevel::fitted, options.dataset, result.median_abs_error, *std::move(covers)};
  return result;
}

}  // namespace podsim
