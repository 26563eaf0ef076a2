#include "validation/calibration/fit/calibrate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/base/statistics.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units.hpp"
#include "sim/machine/machine_fields.hpp"
#include "validation/calibration/fit/coverage.hpp"
#include "validation/calibration/fit/identify.hpp"
#include "validation/calibration/fit/injection.hpp"
#include "validation/calibration/fit/shapes.hpp"
#include "validation/calibration/fit/surface.hpp"
#include "validation/calibration/fit/unobserved.hpp"

namespace podsim {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

constexpr double memory_matters = 0.001;  // of a time
constexpr double launch_sigma = 0.4, latency_sigma = 0.7, own_block_sigma = 0.25, in_switch_sigma = 0.1;  // of the logarithm

constexpr double rounding = 1.01;  // of specifications

std::string_view unit_of(const Parameter& parameter) {
  if (parameter.kind == Parameter::Kind::time) return "s";
  return parameter.kind == Parameter::Kind::rate ? "B/s" : "1";
}

/// Errors: a path that is no value of machines, a prior for what is zero or unlimited.
Status check(const CalibrateOptions& options, const Machine& machine) {
  const auto known = [&](const std::string& path) -> Expected<double> {
    for (const MachineField& field : machine_fields()) {
      const std::vector<std::string> names = index_names(field.index);
      for (std::size_t entry = 0; entry < names.size(); ++entry)
        if (path == path_of(field, names[entry]) || path == path_of(field, "")) return field.get(machine, static_cast<int>(entry));
    }
    Machine copy = machine;
    const auto outcome = set_machine_value(copy, path, "1", "", {});
    return outcome ? Diagnostic{{}, "unknown machine field " + quoted(path)} : outcome.error();
  };
  for (const std::vector<std::string>* paths : {&options.hold, &options.only})
    for (const std::string& path : *paths)
      if (const auto value = known(path); !value) return value.error();
  for (const NamedPrior& prior : options.priors) {
    const auto value = known(prior.path);
    if (!value) return value.error();
    if (!(*value > 0) || std::isinf(*value))
      return Diagnostic{{}, fmt::format("{} is {} on this machine: no prior", prior.path, *value > 0 ? "unlimited" : "zero")};
    if (!(prior.relative_sigma > 0)) return Diagnostic{{}, fmt::format("the prior of {} needs a positive standard deviation", prior.path)};
  }
  return success();
}

/// What the base machine has for the rate that a parameter turns, if it has a limit there.
std::optional<double> specified(const Parameter& parameter, const Machine& base) {
  if (parameter.kind != Parameter::Kind::rate || parameter.path == "chip.own_block_bandwidth") return std::nullopt;  // no part has that in its data sheet
  const double value = parameter.field->get(base, parameter.entries.front());
  return std::isinf(value) ? std::nullopt : std::optional{value};
}

std::vector<CalibratedValue> values_of(const Fit& fit, const Machine& base, const CalibrateOptions& options) {
  const auto count = static_cast<int>(fit.parameters.size());
  const int full = static_cast<int>((fit.solution.weights.array() == 1).count());  // what counts less does not count for the scale
  const auto has_ratio = [&](const Parameter& parameter) {
    const auto of_it = [&](const NamedPrior& prior) { return prior.of_ratio && prior.path == parameter.path; };
    return parameter.smooth || std::any_of(options.priors.begin(), options.priors.end(), of_it);
  };
  // A prior of a ratio tells as much as a row.
  const auto told = static_cast<int>(std::count_if(fit.parameters.begin(), fit.parameters.end(), has_ratio));
  const int rows = static_cast<int>(fit.solution.residuals.size()) + told;
  const int freedom = rows > count ? std::max(full + told - count, 1) : 0;
  const double t = student_quantile(1 - (1 - options.confidence) / std::max(count, 1), freedom);  // Bonferroni: all of them together
  std::vector<CalibratedValue> values;
  for (int j = 0; j < count; ++j) {
    const Parameter& parameter = fit.parameters[static_cast<std::size_t>(j)];
    const double x = fit.solution.x[j], half = t * std::sqrt(std::max(fit.covariance(j, j), 0.0));
    const double below = std::isfinite(half) ? std::max(x - half, parameter.low) : parameter.low,
                 above = std::isfinite(half) ? std::min(x + half, parameter.high) : parameter.high;
    CalibratedValue value{parameter.path, parameter.at, std::string(unit_of(parameter)), physical(parameter, x), physical(parameter, below), physical(parameter, above), {}};
    if (parameter.kind == Parameter::Kind::rate && (x - half <= parameter.low || !std::isfinite(half))) value.low = infinite;
    if (value.low > value.high) std::swap(value.low, value.high);
    const auto named = [&](const NamedPrior& prior) { return prior.path == parameter.path; };
    if (parameter.smooth || std::any_of(options.priors.begin(), options.priors.end(), named)) value.origin = CalibratedValue::Origin::prior;
    value.specified = specified(parameter, base);
    values.push_back(std::move(value));
  }
  return values;
}

/// The observations that a fitted value acts on: how many, and their median error.
std::string source_of(const Fit& fit, const Parameter& parameter, const CalibratedValue& found, const CalibrateOptions& options) {
  const std::string& path = parameter.path;
  std::set<Eigen::Index> touched;
  bool prior = false;
  for (std::size_t j = 0; j < fit.parameters.size(); ++j) {
    if (fit.parameters[j].path != path) continue;
    const auto column = fit.solution.jacobian.col(static_cast<Eigen::Index>(j));
    for (Eigen::Index i = 0; i < column.size(); ++i)
      if (std::abs(column[i]) > 1e-9) touched.insert(i);
  }
  for (const NamedPrior& p : options.priors) prior = prior || p.path == path;
  std::vector<double> errors;
  for (const Eigen::Index i : touched) errors.push_back(std::abs(std::expm1(fit.solution.residuals[i])));
  return fmt::format("fitted{}: {}, {} observation{}, median error {}{}", prior ? " with its specification as prior" : "", options.dataset,
                     touched.size(), touched.size() == 1 ? "" : "s", rough_percent(median(std::move(errors))),
                     found.beyond_specification() ? fmt::format("; an effective value, {:.3g} times the specified {}", found.value / *found.specified,
                                                                to_text(BytesPerSecond{*found.specified}))
                                                  : "");
}

/// Writes the values into the base machine as texts would set them. `found`: values_of(), of each parameter one.
Status set_values(const Fit& fit, const std::vector<CalibratedValue>& found, const CalibrateOptions& options, Machine& machine) {
  for (const Parameter& parameter : fit.zero)
    if (auto ok = set_machine_value(machine, parameter.path, "0 s", fmt::format("fitted: {}, what would be below zero", options.dataset), {}); !ok)
      return ok.error();
  for (std::size_t p = 0; p < fit.parameters.size(); ++p) {
    const Parameter& parameter = fit.parameters[p];
    const std::string source = source_of(fit, parameter, found[p], options);
    const std::vector<std::string> names = index_names(parameter.field->index);
    for (const int entry : parameter.entries) {
      const std::string path = path_of(*parameter.field, names[static_cast<std::size_t>(entry)]);
      const auto outcome = set_machine_value(machine, path, value_text(*parameter.field, fit.system.machine, entry), source, {});
      if (!outcome) return outcome.error();
    }
  }
  return success();
}

/// Where curves and tables need points is found without collective matmuls, which are simulated and tell little of it; then everything is fitted.
Expected<Fit> fit_all(const std::vector<Observation>& observations, const System& start, const CalibrateOptions& options, Predictions& predictions) {
  std::vector<Observation> single = observations;
  std::erase_if(single, is_composite);
  if (!options.curves || single.empty() || single.size() == observations.size()) return fit_shapes(observations, start, options, predictions);
  auto of_single = Predictions::make(single, start, options);
  if (!of_single) return of_single.error();
  const Machine shaped = fit_shapes(single, start, options, *of_single).system.machine;
  System system = start;
  system.machine.software.efficiency = shaped.software.efficiency;
  system.machine.chip.matmul_table = shaped.chip.matmul_table;
  system.machine.chip.matmul_efficiency = shaped.chip.matmul_efficiency;
  CalibrateOptions at_these_points = options;
  at_these_points.curves = false;
  return fit_shapes(observations, system, at_these_points, predictions);
}

/// Over a switch every step of a collective crosses the same two links, so that with one number of devices the launch would take in the latency of all
/// steps, and the links the copy of the own block; a prediction for other operations or devices would have none of them. Priors of their specifications
/// divide what the observations cannot.
CalibrateOptions with_switch_priors(const std::vector<Observation>& observations, const System& base, CalibrateOptions options) {
  const Machine& machine = base.machine;
  if (machine.interconnect != Interconnect::rail) return options;
  const auto add = [&](const std::string& path, double value, double sigma) {
    const auto same = [&](const NamedPrior& prior) { return prior.path == path; };
    if (value > 0 && std::isfinite(value) && std::none_of(options.priors.begin(), options.priors.end(), same)) options.priors.push_back({path, sigma, true});
  };
  std::set<CollectiveKind> kinds;
  for (const Observation& o : observations)
    if (const auto kind = collective_kind_named(name_of(o.op)); kind) kinds.insert(*kind);
  if (kinds.empty()) return options;
  for (const CollectiveKind kind : kinds)
    add(fmt::format("software.launch[{}]", name_of(kind)), machine.software.launch.at(static_cast<std::size_t>(cost_kind_of(kind))).count(), launch_sigma);
  for (std::size_t d = 0; d < std::min<std::size_t>(base.slice.extents.size(), max_dimensions); ++d)
    add(fmt::format("link[{}].latency", dimension_name(link_dimension(base, d))), machine.link.at(static_cast<std::size_t>(link_dimension(base, d))).latency.count(),
        latency_sigma);
  if (kinds.contains(CollectiveKind::all_reduce) && has_adding_switches(machine)) {
    add("link[y].in_switch_efficiency", machine.link[1].in_switch_efficiency, in_switch_sigma);
    add("software.in_switch_launch", machine.software.in_switch_launch.count(), latency_sigma);
  }
  add("chip.own_block_bandwidth", machine.chip.own_block_bandwidth.count(), own_block_sigma);
  return options;
}

Expected<Seconds> time_of(const Observation& observation, const System& system, const CalibrateOptions& options) {
  return is_described(observation) ? options.described_time(observation, system.machine, options.stop) : predict(observation, system, options.predict);
}

/// Errors: a value of `only` that nothing of these steps can determine.
Status check_only(const std::vector<Observation>& steps, const System& base, const CalibrateOptions& options) {
  CalibrateOptions any = options;
  any.only.clear(), any.hold.clear();
  System system = base;
  std::vector<std::string> paths;
  for (const Parameter& parameter : parameters_for(steps, {}, any, system)) paths.push_back(parameter.path);
  for (const std::string& path : options.only)
    if (std::find(paths.begin(), paths.end(), path) == paths.end())
      return Diagnostic{{}, fmt::format("expected a value that training steps and runs are fitted to, {}, found {}", fmt::join(paths, ", "), quoted(path))};
  return success();
}

/// The half that each observation is in when they are held back.
std::vector<std::size_t> halves_of(const std::vector<Observation>& observations) {
  std::map<ObservedOp, std::size_t> seen;
  std::map<std::string, std::size_t> steps;
  std::vector<std::size_t> halves;
  for (const Observation& o : observations)
    halves.push_back((is_training_step(o) ? steps.try_emplace(o.step, steps.size()).first->second : seen[o.op]++) % 2);
  return halves;
}

}  // namespace

std::string_view name_of(CalibratedValue::Origin origin) {
  switch (origin) {
    case CalibratedValue::Origin::fitted: return "fitted";
    case CalibratedValue::Origin::prior: return "prior";
    case CalibratedValue::Origin::not_limiting: return "not limiting";
  }
  return {};
}

bool CalibratedValue::beyond_specification() const { return specified && low > rounding * *specified; }

Expected<Calibration> calibrate(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& given) {
  if (observations.empty()) return Diagnostic{{}, "there are no observations to calibrate from"};
  if (auto ok = check(given, base.machine); !ok) return ok.error();
  if (wants_surface(observations, base, given)) return calibrate_with_surface(observations, base, given);
  const CalibrateOptions options = with_switch_priors(observations, base, given);
  auto predictions = Predictions::make(observations, base, options);
  if (!predictions) return predictions.error();

  const bool has_steps = std::any_of(observations.begin(), observations.end(), is_described);
  if (has_steps)
    if (auto ok = check_only(observations, base, options); !ok) return ok.error();
  // A limit of the device explains more with less than curves do, so it is looked for first. Steps, which take a second each, are fitted once.
  System start = base;
  CalibrateOptions plain = options;
  plain.curves = false;
  if (const auto found = has_steps ? InjectionFinding{} : find_injection(fit_shapes(observations, base, plain, *predictions), options, *predictions); found.limited) {
    start.machine.chip.injection_bandwidth = found.limited->system.machine.chip.injection_bandwidth;
    start.machine.link = found.limited->system.machine.link;
  }
  auto best = has_steps ? Expected<Fit>{fit_shapes(observations, base, plain, *predictions)} : fit_all(observations, start, options, *predictions);
  if (!best) return best.error();
  if (auto ok = predictions->steps_ran(); !ok) return ok.error();
  const InjectionFinding injection = has_steps ? InjectionFinding{} : find_injection(*best, options, *predictions);

  Calibration result;
  result.parameters = values_of(*best, base.machine, options);
  if (injection.not_limiting) result.parameters.push_back(*injection.not_limiting);
  result.undetermined = best->undetermined;
  if (injection.undetermined) result.undetermined.push_back(*injection.undetermined);
  result.machine = base.machine;
  if (auto ok = set_values(*best, result.parameters, options, result.machine); !ok) return ok.error();
  const auto kept = keep_equal(observations, *best, base.machine, options, result.machine);
  if (!kept) return kept.error();
  result.undetermined.insert(result.undetermined.end(), kept->begin(), kept->end());
  result.scatter = best->solution.scale;
  std::vector<double> errors;
  std::size_t short_of_memory = 0;
  std::optional<System> fitted;  // made where a closed form will not do
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    double error = std::expm1(best->solution.residuals[row]);
    if (predictions->leaves_memory_out(i, result.machine)) {
      if (!fitted) {
        auto system = with_machine(base, result.machine);
        if (!system) return system.error();
        fitted = *std::move(system);
      }
      const auto time = predict(observations[i], *fitted, options.predict);
      if (!time) return time.error();
      const double simulated = time->count() / observations[i].time.count() - 1;
      if (simulated > error + memory_matters) ++short_of_memory;
      error = simulated;
    }
    result.residuals.push_back({i, Seconds{observations[i].time.count() * (1 + error)}, error, best->solution.weights[row]});
    errors.push_back(std::abs(error));
  }
  if (short_of_memory > 0)
    result.choices.push_back(fmt::format("{} of {} observations were fitted as if memory were separate; as it is shared, and short with these values, they take longer: "
                                         "state chip.memory_sharing, or chip.hbm_bandwidth from hbm_copy",
                                         short_of_memory, observations.size()));
  result.median_abs_error = median(errors);
  result.p95_abs_error = percentile(errors, 0.95);
  if (options.stop.requested()) return cancelled_work();
  auto covers = coverage_of(observations, base, options.predict);
  if (!covers) return covers.error();
  if (covers->empty())  // steps alone, which are no operation that a run could be compared with
    result.machine.trust = {TrustLevel::measured, fmt::format("{} training steps, {}", observations.size(), options.dataset), result.median_abs_error, {}};
  else
    result.machine.trust = {TrustLevel::fitted, options.dataset, result.median_abs_error, *std::move(covers)};
  return result;
}

ErrorSummary summary_of(const std::vector<double>& errors) {
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  return {sizes.size(), median(sizes), percentile(sizes, 0.95)};
}

std::optional<ErrorSummary> held_back_error(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options) {
  std::array<std::vector<Observation>, 2> halves;
  const std::vector<std::size_t> half_of = halves_of(observations);
  for (std::size_t i = 0; i < observations.size(); ++i) halves.at(half_of[i]).push_back(observations[i]);
  if (halves[1].empty()) return std::nullopt;
  CalibrateOptions of_half = options;  // a half is fitted as the whole
  of_half.surface_from = wants_surface(observations, base, options) ? 1 : std::numeric_limits<std::size_t>::max();
  std::vector<double> errors;
  for (std::size_t half = 0; half < 2; ++half) {
    if (options.counting) options.counting(half, 2);
    const auto found = calibrate(halves.at(half), base, of_half);
    if (!found) return std::nullopt;
    const auto is_fitted = [](const CalibratedValue& value) { return value.origin == CalibratedValue::Origin::fitted; };
    const auto values = std::count_if(found->parameters.begin(), found->parameters.end(), is_fitted);
    if (static_cast<std::size_t>(values) >= halves.at(half).size()) return std::nullopt;
    const auto system = with_machine(base, found->machine);
    if (!system) return std::nullopt;
    for (const Observation& observation : halves.at(1 - half)) {
      if (options.stop.requested()) return std::nullopt;
      const auto time = time_of(observation, *system, options);
      if (!time) return std::nullopt;
      errors.push_back(time->count() / observation.time.count() - 1);
    }
  }
  return summary_of(errors);
}

}  // namespace podsim
