#include "validation/calibration/fit/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "sim/base/blame.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/invariant.hpp"
#include "sim/base/thread_pool.hpp"
#include "sim/base/units.hpp"

namespace podsim {

namespace {

constexpr double some_rate = 1e11;    // where an unlimited rate starts
constexpr double some_time = 1e-6;    // the unit of times that are zero
constexpr double least_share = 1e-3;  // of efficiencies, as the machine's table has it

CostKind cost_of_op(ObservedOp op) {
  switch (op) {
    case ObservedOp::all_gather: return CostKind::all_gather;
    case ObservedOp::reduce_scatter: return CostKind::reduce_scatter;
    case ObservedOp::all_reduce: return CostKind::all_reduce;
    case ObservedOp::all_to_all: return CostKind::all_to_all;
    case ObservedOp::broadcast: return CostKind::broadcast;
    case ObservedOp::reduce: return CostKind::reduce;
    case ObservedOp::permute: return CostKind::permute;
    case ObservedOp::matmul: return CostKind::matmul;
    case ObservedOp::hbm_copy:
    case ObservedOp::fft:
    case ObservedOp::ifft:
    case ObservedOp::training_step:
    case ObservedOp::run: return CostKind::local;
  }
  PODSIM_ASSERT(false);
  return {};
}

bool is_collective(CostKind kind) { return kind >= CostKind::all_gather; }
std::string curve_path(CostKind kind) { return fmt::format("collective[{}].efficiency", name_of(kind)); }

class Maker {
 public:
  Maker(const CalibrateOptions& options, Machine& machine) : options_{options}, machine_{machine} {}

  /// A value by its path; without an index every entry of `only`, or all.
  Parameter& add(const std::string& path, Parameter::Kind kind, std::vector<int> only = {}) {
    Parameter parameter;
    parameter.path = path;
    parameter.kind = kind;
    for (const MachineField& field : machine_fields()) {
      const std::vector<std::string> names = index_names(field.index);
      for (std::size_t entry = 0; entry < names.size(); ++entry) {
        if (path_of(field, names[entry]) != path && path_of(field, "") != path) continue;
        parameter.field = &field;
        if (only.empty() || std::find(only.begin(), only.end(), static_cast<int>(entry)) != only.end())
          parameter.entries.push_back(static_cast<int>(entry));
      }
    }
    PODSIM_ASSERT(parameter.field != nullptr && !parameter.entries.empty());
    const double value = parameter.field->get(machine_, parameter.entries.front());
    if (kind == Parameter::Kind::time) {
      parameter.unit = value > 0 ? value : some_time;
      parameter.high = parameter.field->high / parameter.unit;
    } else if (kind == Parameter::Kind::rate) {
      parameter.unit = 1 / (std::isinf(value) ? some_rate : value);
      parameter.high = 1 / (parameter.field->low * parameter.unit);
      parameter.low = 1e-9;
    } else if (kind == Parameter::Kind::efficiency) {
      parameter.low = 1, parameter.high = 1 / least_share;
    } else {
      parameter.high = 1;
    }
    parameters.push_back(std::move(parameter));
    return parameters.back();
  }

  std::vector<Parameter> finish() {
    std::stable_sort(parameters.begin(), parameters.end(), [](const Parameter& a, const Parameter& b) { return std::pair{a.last, a.rate} < std::pair{b.last, b.rate}; });
    const auto named = [](const std::vector<std::string>& paths, const Parameter& parameter) { return std::find(paths.begin(), paths.end(), parameter.path) != paths.end(); };
    std::erase_if(parameters, [&](const Parameter& parameter) { return named(options_.hold, parameter) || (!options_.only.empty() && !named(options_.only, parameter)); });
    return std::move(parameters);
  }

  std::vector<Parameter> parameters;

 private:
  const CalibrateOptions& options_;
  Machine& machine_;
};

void add_links(const std::vector<Observation>& observations, const System& system, const std::string& name, Parameter::Kind kind, Maker& maker) {
  std::array<bool, max_dimensions> used{};
  const std::size_t dimensions = std::min<std::size_t>(system.slice.extents.size(), max_dimensions);
  bool named = system.machine.interconnect == Interconnect::rail;
  for (std::size_t d = 0; d < dimensions; ++d)
    if (system.slice.extents[d] > 1) used.at(static_cast<std::size_t>(link_dimension(system, d))) = true;
  // Links of a grid have one latency unless the machine says otherwise; a latency per dimension could not be told from a launch.
  for (const Observation& o : observations)
    if (kind == Parameter::Kind::rate && is_collective(cost_of_op(o.op)) && !o.axis.empty()) named = true;
  for (std::size_t d = 1; d < dimensions; ++d)
    if (kind == Parameter::Kind::time && system.machine.link.at(d).latency != system.machine.link.front().latency) named = true;
  if (std::count(used.begin(), used.end(), true) < 2) named = false;
  std::vector<int> entries;
  for (std::size_t d = 0; d < used.size(); ++d) {
    if (!used.at(d)) continue;
    entries.push_back(static_cast<int>(d));
    if (named) maker.add(fmt::format("link[{}].{}", dimension_name(static_cast<int>(d)), name), kind);
  }
  if (named || entries.empty()) return;
  if (system.machine.interconnect == Interconnect::rail)
    maker.add(fmt::format("link[{}].{}", dimension_name(entries.front()), name), kind);
  else
    maker.add("link." + name, kind);
}

/// What training steps tell beside products.
void add_values_of_steps(const std::vector<Observation>& observations, const Machine& machine, Maker& maker) {
  if (std::any_of(observations.begin(), observations.end(), [](const Observation& o) { return o.pods > 1; })) {
    if (machine.dcn.nic_bandwidth != unlimited<BytesPerSecond>) maker.add("dcn.nic_bandwidth", Parameter::Kind::rate);
    maker.add("dcn.sync", Parameter::Kind::time);
  }
  maker.add("chip.attention_efficiency", Parameter::Kind::efficiency);
  for (const CostKind kind : {CostKind::all_gather, CostKind::reduce_scatter})
    maker.add(fmt::format("software.core_share[{}]", name_of(kind)), Parameter::Kind::share);
}

/// Points keep the efficiency that the machine has there.
void give_points(const Shapes& shapes, Machine& machine) {
  for (int k = 0; k < cost_kind_count; ++k) {
    const auto kind = static_cast<std::size_t>(k);
    if (shapes.curves.at(kind).empty()) continue;
    std::vector<EfficiencyPoint> points;
    for (const Bytes bytes : shapes.curves.at(kind)) points.push_back({bytes, efficiency_at(machine.software.efficiency.at(kind), bytes)});
    machine.software.efficiency.at(kind) = std::move(points);
  }
  if (shapes.products.empty()) return;
  std::vector<MatmulPoint> points = shapes.products;
  for (MatmulPoint& p : points) p.efficiency = matmul_efficiency_of(machine.chip, p.m, p.n, p.k);
  set_matmul_points(machine.chip, std::move(points));
}

/// What a link carries of an observed collective, over its time.
double achieved_rate(const Observation& o) {
  const double devices = o.devices, bytes = static_cast<double>(o.bytes.count());
  double carried = bytes;
  if (o.op == ObservedOp::all_gather) carried *= devices - 1;
  if (o.op == ObservedOp::reduce_scatter || o.op == ObservedOp::all_to_all) carried *= (devices - 1) / devices;
  if (o.op == ObservedOp::all_reduce) carried *= 2 * (devices - 1) / devices;
  return carried / o.time.count();
}

/// The point of a curve that comes nearest to the links' bandwidth: the largest, but for hosts whose larger messages leave a cache.
struct FastestPoint {
  std::size_t point = 0;
  double rate = 0;
};
FastestPoint fastest_point(const std::vector<Observation>& observations, CostKind kind, const std::vector<Bytes>& points) {
  FastestPoint fastest{points.size() - 1, 0};
  for (const Observation& o : observations) {
    if (cost_of_op(o.op) != kind || is_composite(o)) continue;
    const auto above = std::lower_bound(points.begin(), points.end(), o.bytes);
    if (above == points.end() || achieved_rate(o) <= fastest.rate) continue;
    fastest = {static_cast<std::size_t>(above - points.begin()), achieved_rate(o)};
  }
  return fastest;
}

}  // namespace

double physical(const Parameter& parameter, double x) {
  if (parameter.kind == Parameter::Kind::rate || parameter.kind == Parameter::Kind::efficiency) return 1 / (x * parameter.unit);
  return x * parameter.unit;
}

double from_physical(const Parameter& parameter, double value) {
  if (parameter.kind == Parameter::Kind::rate && std::isinf(value)) return 1;  // starts at some_rate
  if (parameter.kind == Parameter::Kind::rate || parameter.kind == Parameter::Kind::efficiency) return 1 / (value * parameter.unit);
  return value / parameter.unit;
}

std::vector<Parameter> parameters_for(const std::vector<Observation>& observations, const Shapes& shapes, const CalibrateOptions& options, System& system) {
  give_points(shapes, system.machine);
  Maker maker{options, system.machine};
  const bool one_efficiency = shapes.products.empty() && system.machine.chip.matmul_surface.empty();
  const bool has_steps = std::any_of(observations.begin(), observations.end(), is_training_step);
  if (std::all_of(observations.begin(), observations.end(), is_described)) {
    if (one_efficiency) maker.add("chip.matmul_efficiency", Parameter::Kind::efficiency);
    if (std::any_of(observations.begin(), observations.end(), is_run)) {
      add_links(observations, system, "bandwidth", Parameter::Kind::rate, maker);
      add_links(observations, system, "latency", Parameter::Kind::time, maker);
      maker.add("software.per_message", Parameter::Kind::time);
    }
    if (has_steps) add_values_of_steps(observations, system.machine, maker);
    return maker.finish();
  }
  std::array<bool, cost_kind_count> seen{}, alone{};  // alone: without a matmul
  for (const Observation& o : observations) {
    const bool passes_on = is_composite(o) && o.schedule > ObservedSchedule::plain;  // by shifts, not by a Collective
    seen.at(static_cast<std::size_t>(passes_on ? CostKind::permute : cost_of_op(o.op))) = true;
    if (!is_composite(o)) alone.at(static_cast<std::size_t>(cost_of_op(o.op))) = true;
    if (is_composite(o)) seen.at(static_cast<std::size_t>(CostKind::matmul)) = true;
  }
  maker.add("chip.hbm_bandwidth", Parameter::Kind::rate);
  if (one_efficiency) maker.add("chip.matmul_efficiency", Parameter::Kind::efficiency);
  add_links(observations, system, "bandwidth", Parameter::Kind::rate, maker);
  if (system.machine.chip.injection_bandwidth != unlimited<BytesPerSecond>) maker.add("chip.injection_bandwidth", Parameter::Kind::rate);
  for (int k = 0; k < cost_kind_count; ++k)
    if (seen.at(static_cast<std::size_t>(k))) maker.add(fmt::format("software.launch[{}]", name_of(static_cast<CostKind>(k))), Parameter::Kind::time);
  for (std::size_t i = 0; i < shapes.products.size(); ++i) {
    Parameter& parameter = maker.add("chip.matmul_efficiency", Parameter::Kind::efficiency);
    parameter.point = static_cast<int>(i);
    parameter.at = fmt::format("{}x{}x{}", shapes.products[i].m, shapes.products[i].n, shapes.products[i].k);
  }
  double fastest_of_all = 0;
  for (int k = 0; k < cost_kind_count; ++k)
    if (const auto& points = shapes.curves.at(static_cast<std::size_t>(k)); !points.empty() && alone.at(static_cast<std::size_t>(k)))
      fastest_of_all = std::max(fastest_of_all, fastest_point(observations, static_cast<CostKind>(k), points).rate);
  for (int k = 0; k < cost_kind_count; ++k) {
    const auto& points = shapes.curves.at(static_cast<std::size_t>(k));
    if (points.empty() || (!alone.at(static_cast<std::size_t>(k)) && system.machine.interconnect == Interconnect::rail)) continue;
    const bool dense = shapes.dense.at(static_cast<std::size_t>(k));
    const FastestPoint fastest = fastest_point(observations, static_cast<CostKind>(k), points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const bool anchor = i == fastest.point && fastest.rate == fastest_of_all;
      if (dense && anchor) continue;  // the link's bandwidth is what this size reaches
      Parameter& parameter = maker.add(curve_path(static_cast<CostKind>(k)), Parameter::Kind::efficiency);
      parameter.point = static_cast<int>(i);
      parameter.at = to_exact_text(points[i]);
      parameter.last = i == fastest.point && !dense;
      parameter.smooth = dense;
      if (parameter.last) parameter.rate = fastest.rate;
    }
  }
  if (system.machine.chip.own_block_bandwidth != unlimited<BytesPerSecond>) maker.add("chip.own_block_bandwidth", Parameter::Kind::rate);
  add_links(observations, system, "latency", Parameter::Kind::time, maker);
  if (has_adding_switches(system.machine) && seen.at(static_cast<std::size_t>(CostKind::all_reduce))) {
    maker.add("link[y].in_switch_efficiency", Parameter::Kind::efficiency);
    maker.add("software.in_switch_launch", Parameter::Kind::time);
  }
  maker.add("software.per_message", Parameter::Kind::time);
  // Only what overlaps tells what of a transfer's time its core loses.
  const auto overlaps = [](const Observation& o) { return is_composite(o) && o.schedule > ObservedSchedule::plain; };
  if (std::any_of(observations.begin(), observations.end(), overlaps)) maker.add("software.core_share[permute]", Parameter::Kind::share);
  maker.add("chip.overlap_hbm", Parameter::Kind::share);
  if (has_steps) add_values_of_steps(observations, system.machine, maker);
  return maker.finish();
}

// ---- Predictions ----------------------------------------------------------------------------------------------------------------------

Expected<Predictions> Predictions::make(const std::vector<Observation>& observations, const System& system, const CalibrateOptions& options) {
  Predictions result;
  result.system_ = system;
  result.stop_ = options.stop;
  result.threads_ = options.threads;
  Systems systems{system};
  using SameRun = std::tuple<const System*, ObservedOp, std::string, int, int, Bytes, std::optional<DType>, bool>;
  std::map<SameRun, std::pair<std::shared_ptr<RepeatedRun>, std::shared_ptr<TangentTime>>> collectives;  // that are simulated on a grid
  for (const Observation& o : observations) {
    if (options.stop.requested()) return cancelled_work();
    Item item;
    item.observation = &o;
    if (is_described(o)) {
      if (!options.described_time) return Diagnostic{o.where, "expected a description of the steps and runs that rows name"};
      item.step = std::make_shared<StepTime>(o, options.described_time);
      result.items_.push_back(std::move(item));
      continue;
    }
    const auto own = systems.of(o);
    if (!own) return own.error();
    const System& on = **own;
    const auto schedule = schedule_of(o, on, options.predict.unknown_matmul);
    if (!schedule) return schedule.error();
    if (const auto* collective = std::get_if<Collective>(&schedule->computes)) item.input = bytes_of(schedule->programs.front(), collective->input);
    for (const PredictOptions& way : ways_to_run(o, on, options.predict))
      if (auto form = closed_form(o, on, way)) item.forms.push_back(*std::move(form));
    const bool on_grid = std::holds_alternative<Collective>(schedule->computes) && !is_composite(o) && on.machine.interconnect == Interconnect::grid;
    auto& same = collectives[{own->get(), o.op, o.axis, o.devices, o.groups, o.bytes, o.dtype, o.in_place}];
    if (item.forms.empty() && on_grid && same.second != nullptr) {
      std::tie(item.run, item.tangent) = same;
    } else if (item.forms.empty()) {
      auto lowered = lowered_schedule_of(o, on, options.predict);
      if (!lowered) return lowered.error();
      item.run = std::make_shared<RepeatedRun>(*std::move(lowered), *own);
      const auto time = item.run->time_on(on, options.stop);
      if (!time) return blamed_on(o.where, time.error());
      if (on_grid) {
        item.tangent = std::make_shared<TangentTime>(item.run, cost_of_op(o.op), item.input);
        same = {item.run, item.tangent};
      }
    }
    result.items_.push_back(std::move(item));
  }
  return result;
}

CostKind Predictions::kind(std::size_t i) const { return cost_of_op(items_[i].observation->op); }

void Predictions::turn(const std::vector<Parameter>& parameters, const Eigen::VectorXd& x) {
  if (parameters.size() > along_.size()) along_ = parameters;
  Machine& machine = system_.machine;
  std::vector<MatmulPoint> products = machine.chip.matmul_table.points;
  bool table = false;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const Parameter& parameter = parameters[j];
    const double value = physical(parameter, x[static_cast<Eigen::Index>(j)]);
    if (parameter.point < 0) {
      for (const int entry : parameter.entries) parameter.field->set(machine, entry, value);
    } else if (parameter.field->unit == FieldUnit::efficiency) {
      const auto kind = static_cast<std::size_t>(cost_kind_of(static_cast<CollectiveKind>(parameter.entries.front())));
      machine.software.efficiency.at(kind)[static_cast<std::size_t>(parameter.point)].efficiency = value;
    } else {
      products[static_cast<std::size_t>(parameter.point)].efficiency = value;
      table = true;
    }
  }
  if (table) set_matmul_points(machine.chip, std::move(products));
  for (auto& [system, turned] : turned_) turned.stale = true;
}

const System& Predictions::turned(const System& system) {
  Turned& turned = turned_.try_emplace(&system, Turned{system}).first->second;
  if (!turned.stale) return turned.system;
  auto made = with_machine(std::move(turned.system), system_.machine);
  PODSIM_ASSERT(made);
  turned = {*std::move(made), false};
  return turned.system;
}

TangentTime::OnMachine Predictions::on_machine() {
  return [this](const System& system, const Machine& machine) -> const System& {
    if (&machine == &system_.machine) return turned(system);
    System& nudged = nudged_.try_emplace(&system, system).first->second;
    auto made = with_machine(std::move(nudged), machine);
    PODSIM_ASSERT(made);
    nudged = *std::move(made);
    return nudged;
  };
}

Seconds Predictions::predicted(std::size_t i) {
  const Item& item = items_[i];
  if (stop_.requested()) return item.observation->time;  // any fit will do: nobody will see it
  if (item.step != nullptr) {
    const auto time = item.step->simulated(system_.machine, stop_);
    return time ? *time : Seconds{std::numeric_limits<double>::infinity()};
  }
  if (!item.forms.empty()) {
    Seconds fastest = evaluate(item.forms.front(), system_.machine);
    for (std::size_t f = 1; f < item.forms.size(); ++f) fastest = std::min(fastest, evaluate(item.forms[f], system_.machine));
    return fastest;
  }
  const auto time =
      item.tangent != nullptr ? item.tangent->simulated(system_.machine, on_machine(), stop_) : item.run->time_on(turned(*item.run->system()), stop_);
  return time ? *time : Seconds{std::numeric_limits<double>::infinity()};  // it ran before: only the clock's end is left
}

bool Predictions::leaves_memory_out(std::size_t i, const Machine& machine) const {
  const auto& forms = items_[i].forms;
  return std::any_of(forms.begin(), forms.end(), [&](const ClosedForm& form) { return !has_memory_to_spare(form, machine); });
}

double Predictions::touch_steps() {
  std::vector<StepTime*> steps;
  std::vector<const Observation*> rows;
  for (const Item& item : items_)
    if (item.step != nullptr) steps.push_back(item.step.get()), rows.push_back(item.observation);
  std::vector<double> missed(steps.size(), 0);
  std::vector<std::optional<Diagnostic>> refused(steps.size());
  ThreadPool pool{steps.size() > 1 ? threads_ : 1};
  pool.for_each(steps.size(), [&](std::size_t s, std::size_t) {
    const auto found = steps[s]->touch(system_.machine, along_, stop_);
    if (found)
      missed[s] = *found;
    else
      refused[s] = Diagnostic{rows[s]->where, fmt::format("{} {} on {} devices: {}", is_run(*rows[s]) ? "run" : "step", quoted(is_run(*rows[s]) ? rows[s]->run : rows[s]->step), rows[s]->devices, to_text(found.error()))};
  });
  if (const auto first = std::find_if(refused.begin(), refused.end(), [](const auto& one) { return one.has_value(); }); first != refused.end() && !stop_.requested())
    refused_ = *first;
  return steps.empty() ? 0 : *std::max_element(missed.begin(), missed.end());
}

double Predictions::touch() {
  double most = touch_steps();
  std::set<const TangentTime*> touched;
  for (const Item& item : items_) {
    if (item.tangent == nullptr || !touched.insert(item.tangent.get()).second) continue;
    const auto missed = item.tangent->touch(system_.machine, on_machine(), stop_);
    if (!missed) return 0;  // cancelled: no fit is wanted any more
    most = std::max(most, *missed);
  }
  return most;
}

template <class TimeOf>
Eigen::VectorXd Predictions::residuals_by(TimeOf&& time_of) {
  Eigen::VectorXd residuals(static_cast<Eigen::Index>(items_.size()));
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (const double time = std::max(time_of(i).count(), 1e-12); time != item.time) item.time = time, item.residual = std::log(time / item.observation->time.count());
    residuals[static_cast<Eigen::Index>(i)] = item.residual;
  }
  return residuals;
}

Eigen::VectorXd Predictions::residuals() {
  return residuals_by([&](std::size_t i) { return predicted(i); });
}

Eigen::VectorXd Predictions::tangent_residuals() {
  return residuals_by([&](std::size_t i) {
    const Item& item = items_[i];
    if (item.step != nullptr && !stop_.requested()) return item.step->at(system_.machine);
    return item.tangent != nullptr && !stop_.requested() ? item.tangent->at(system_.machine) : predicted(i);
  });
}

}  // namespace podsim
