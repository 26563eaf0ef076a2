#include "validation/calibration/fit/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace podsim {

namespace {

constexpr std::size_t enough_for_overlap = 8;  // products
constexpr std::size_t enough_for_dense = 10;   // observations of a collective
constexpr const char* overlap_path = "chip.overlap_hbm";
constexpr std::size_t tries = 2;  // places of a kind where another point is tried
constexpr double price = 2;       // of a value, in units of the criterion: its place was chosen too
constexpr int patience = 4;       // points that may be added in vain before giving up

/// How far a fit misses, each observation by itself, so that a few that nothing can explain do not hide the others: -2 ln of Cauchy's density with
/// the noise as its width.
double loss_of(const Fit& fit, double noise) {
  double sum = 0;
  for (const double r : fit.solution.residuals) sum += 2 * std::log1p(r * r / (noise * noise));
  return sum;
}

/// What a fit costs: the Bayesian information criterion.
double score_of(const Fit& fit, double noise) {
  const double n = static_cast<double>(fit.solution.residuals.size());
  return loss_of(fit, noise) + price * std::log(std::max(n, 2.0)) * static_cast<double>(fit.parameters.size());
}

using Place = std::tuple<Bytes, std::int64_t, std::int64_t, std::int64_t>;  // input of a collective; m, n, k of a product

Place place_of(const Predictions& predictions, std::size_t i) {
  const Observation& o = predictions.observation(i);
  return predictions.kind(i) == CostKind::matmul ? Place{Bytes{}, o.m, o.n, o.k} : Place{predictions.input(i), 0, 0, 0};
}

std::size_t count_of(const Predictions& predictions, CostKind kind) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) count += predictions.kind(i) == kind ? 1 : 0;
  return count;
}

std::size_t count_alone(const Predictions& predictions, CostKind kind) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) count += predictions.kind(i) == kind && !is_composite(predictions.observation(i)) ? 1 : 0;
  return count;
}

bool taken(const Shapes& shapes, CostKind kind, const Place& place) {
  if (kind != CostKind::matmul) {
    const auto& points = shapes.curves.at(static_cast<std::size_t>(kind));
    return std::find(points.begin(), points.end(), std::get<0>(place)) != points.end();
  }
  return std::any_of(shapes.products.begin(), shapes.products.end(), [&](const MatmulPoint& p) { return Place{Bytes{}, p.m, p.n, p.k} == place; });
}

void take(Shapes& shapes, CostKind kind, const Place& place) {
  if (taken(shapes, kind, place)) return;
  if (kind == CostKind::matmul) {
    shapes.products.push_back({std::get<1>(place), std::get<2>(place), std::get<3>(place), 1});
    return;
  }
  auto& points = shapes.curves.at(static_cast<std::size_t>(kind));
  points.insert(std::upper_bound(points.begin(), points.end(), std::get<0>(place)), std::get<0>(place));
}

/// The work of a product, the input of a collective.
double size_of_place(CostKind kind, const Place& place) {
  if (kind != CostKind::matmul) return static_cast<double>(std::get<0>(place).count());
  return static_cast<double>(std::get<1>(place)) * static_cast<double>(std::get<2>(place)) * static_cast<double>(std::get<3>(place));
}

/// Between two places of a kind, in logarithms.
double distance(const Place& a, const Place& b) {
  const auto between = [](std::int64_t x, std::int64_t y) {
    return std::log(static_cast<double>(std::max<std::int64_t>(x, 1)) / static_cast<double>(std::max<std::int64_t>(y, 1)));
  };
  return std::hypot(
      between(std::get<0>(a).count(), std::get<0>(b).count()),
      std::hypot(between(std::get<1>(a), std::get<1>(b)), between(std::get<2>(a), std::get<2>(b)), between(std::get<3>(a), std::get<3>(b))));
}

/// What a point of the curve could do for each observation, as part of the prediction: where it is too long, take away the time on links; where it is
/// too short, add up to a thousand times of that. Points of the matmul table can do anything.
Eigen::VectorXd reach_of(const Fit& fit, Predictions& predictions) {
  predictions.system().machine = fit.system.machine;
  for (LinkParameters& link : predictions.system().machine.link) link.bandwidth = unlimited<BytesPerSecond>;
  predictions.system().machine.chip.injection_bandwidth = unlimited<BytesPerSecond>;
  predictions.turn({}, {});
  const Eigen::VectorXd without = predictions.residuals();
  Eigen::VectorXd reach = Eigen::VectorXd::Constant(without.size(), 1e3);
  for (Eigen::Index i = 0; i < reach.size(); ++i)
    if (predictions.kind(static_cast<std::size_t>(i)) != CostKind::matmul)
      reach[i] = -std::expm1(without[i] - fit.solution.residuals[i]) * (fit.solution.residuals[i] > 0 ? 1 : 1e3);
  return reach;
}

/// Places of a kind without a point, those that are missed most first; how far each is missed on average.
std::vector<std::pair<double, Place>> missed(const Fit& fit, const Eigen::VectorXd& reach, const Predictions& predictions, CostKind kind,
                                             const Shapes& shapes) {
  std::map<Place, std::pair<double, int>> sums;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (predictions.kind(i) != kind || is_composite(predictions.observation(i))) continue;
    auto& [sum, count] = sums[place_of(predictions, i)];
    const auto row = static_cast<Eigen::Index>(i);
    sum += std::clamp(fit.solution.residuals[row], -reach[row], reach[row]);
    ++count;
  }
  std::vector<std::pair<double, Place>> places;
  for (const auto& [place, sum] : sums)
    if (!taken(shapes, kind, place)) places.emplace_back(std::abs(sum.first / sum.second), place);
  // Where a point is missed itself, the ones next to it pull it away: the nearest place without a point takes over.
  for (const auto& [place, sum] : sums) {
    if (!taken(shapes, kind, place) || places.empty()) continue;
    const auto nearest = std::min_element(places.begin(), places.end(),
                                          [&, at = place](const auto& a, const auto& b) { return distance(a.second, at) < distance(b.second, at); });
    nearest->first = std::max(nearest->first, std::abs(sum.first / sum.second));
  }
  std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return places;
}

/// Whether the launch explains the point equally well: its efficiency would then be arbitrary. The last point of a curve may be fixed by the
/// bandwidth.
bool has_idle_point(const Fit& fit) {
  return std::any_of(fit.undetermined.begin(), fit.undetermined.end(), [&](const Undetermined& u) { return !u.at.empty() && !u.anchor; });
}

/// Points of a dense curve: a factor of four apart, over the observed sizes.
std::vector<Bytes> dense_points(const Predictions& predictions, CostKind kind) {
  Bytes least{std::numeric_limits<std::int64_t>::max()}, most{};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (predictions.kind(i) != kind || is_composite(predictions.observation(i))) continue;
    least = std::min(least, predictions.input(i));
    most = std::max(most, predictions.input(i));
  }
  std::vector<Bytes> points;
  for (std::int64_t at = most.count(); at >= std::max<std::int64_t>(least.count(), 1); at /= 4) points.insert(points.begin(), Bytes{at});
  return points;
}

}  // namespace

bool is_better(const Fit& more, const Fit& fewer, const CalibrateOptions& options) {
  return score_of(more, options.noise) < score_of(fewer, options.noise);
}

Fit fit_shapes(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options, Predictions& predictions) {
  struct ShapeModel {
    Shapes shapes;
    bool overlap = false;
  };
  const auto fit_with = [&](const ShapeModel& model) {
    System system = base;
    std::vector<Parameter> parameters = parameters_for(observations, model.shapes, options, system);
    const auto overlap = std::find_if(parameters.begin(), parameters.end(), [](const Parameter& parameter) { return parameter.path == overlap_path; });
    const bool left_out = overlap != parameters.end() && !model.overlap;
    if (left_out) parameters.erase(overlap);
    Fit result = fit(parameters, system, options, predictions);
    Parameter named;
    named.path = overlap_path;
    if (left_out) result.undetermined.push_back({overlap_path, "", "the observations are met as well with the value that it has", probe_for(named)});
    return result;
  };
  ShapeModel model;
  for (int k = 0; k < cost_kind_count; ++k)
    for (const EfficiencyPoint& point : base.machine.software.efficiency.at(static_cast<std::size_t>(k)))
      model.shapes.curves.at(static_cast<std::size_t>(k)).push_back(point.input);  // a curve that the machine has is fitted at its own points
  model.shapes.products = base.machine.chip.matmul_table.points;
  std::set<CostKind> dense;
  for (int k = static_cast<int>(CostKind::all_gather); k < cost_kind_count; ++k) {
    const auto kind = static_cast<CostKind>(k);
    const std::size_t count = count_alone(predictions, kind);
    auto& points = model.shapes.curves.at(static_cast<std::size_t>(k));
    const bool table = options.curves && count >= enough_for_dense;
    if (base.machine.interconnect != Interconnect::rail || count == 0 || !(table || points.size() > 1)) continue;
    dense.insert(kind);
    model.shapes.dense.at(static_cast<std::size_t>(k)) = true;
    if (table) points = dense_points(predictions, kind);
  }
  Fit best = fit_with(model);
  std::set<CostKind> kinds;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (predictions.kind(i) == CostKind::matmul && !base.machine.chip.matmul_surface.empty()) continue;  // which a few products do not replace
    if (predictions.kind(i) != CostKind::local && !is_composite(predictions.observation(i))) kinds.insert(predictions.kind(i));
  }
  for (const CostKind kind : dense) kinds.erase(kind);
  const auto score = [&](const Fit& f) { return score_of(f, options.noise); };
  if (count_of(predictions, CostKind::matmul) >= enough_for_overlap) {
    model.overlap = true;
    Fit with = fit_with(model);
    model.overlap = score(with) < score(best);
    if (model.overlap) best = std::move(with);
  }
  // Points are added where they help most, even if the first ones alone are not worth it; the best of all stages is kept.
  Fit stage = best;
  for (int vain = 0; options.curves && vain < patience;) {
    std::optional<Fit> next;
    ShapeModel next_model;
    const Eigen::VectorXd reach = reach_of(stage, predictions);
    for (const CostKind kind : kinds) {
      const auto missing = missed(stage, reach, predictions, kind, model.shapes);
      for (std::size_t p = 0; p < std::min(missing.size(), tries) && missing[p].first > options.noise; ++p) {
        ShapeModel more = model;
        take(more.shapes, kind, missing[p].second);
        const bool first = kind == CostKind::matmul ? model.shapes.products.empty() : model.shapes.curves.at(static_cast<std::size_t>(kind)).empty();
        if (first) {
          Place largest = missing.front().second;
          for (const auto& place : missing)
            if (size_of_place(kind, place.second) > size_of_place(kind, largest)) largest = place.second;
          take(more.shapes, kind, largest);
        }
        Fit with = fit_with(more);
        if (with.parameters.size() > predictions.size() || has_idle_point(with)) continue;
        if (next && loss_of(with, options.noise) >= loss_of(*next, options.noise)) continue;
        next = std::move(with);
        next_model = std::move(more);
      }
    }
    if (!next) break;
    stage = *std::move(next);
    if (options.progress) options.progress(stage.parameters.size());
    model = std::move(next_model);
    ++vain;
    if (score(stage) >= score(best)) continue;
    best = stage;
    vain = 0;
  }
  return best;
}

}  // namespace podsim
