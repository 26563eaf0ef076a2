#include "validation/validate/training_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <Eigen/Dense>

#include "sim/machine/machine_fields.hpp"
#include "workloads/collectives.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/training/maxtext.hpp"
#include "workloads/training/step_schedule.hpp"

namespace podsim {

namespace {

const StudyStep* step_named(const Study& study, const std::string& name) {
  const auto found = std::find_if(study.steps.begin(), study.steps.end(), [&](const StudyStep& step) { return step.name == name; });
  return found == study.steps.end() ? nullptr : &*found;
}

Expected<Slice> slice_of_row(const Observation& row, const System& base) {
  if (row.slice.empty()) return base.slice;
  auto slice = parse_slice(row.slice, base.machine, {});
  if (!slice) return Diagnostic{row.where, slice.error().message};
  return slice;
}

Expected<System> system_of_step(const Observation& row, const TrainingStep& step, const System& base) {
  SystemSpec spec;
  spec.machine = base.machine;
  auto slice = slice_of_row(row, base);
  if (!slice) return slice.error();
  spec.slice = *std::move(slice);
  spec.wrap = base.wrap;
  spec.topology = base.joined_by;
  spec.slices = row.pods;
  spec.order = base.order;
  for (const std::string_view axis : training_axes)
    if (const std::int64_t size = size_of(step.mesh, axis); size > 1) spec.mesh.emplace_back(axis, static_cast<int>(size));
  if (spec.mesh.empty()) spec.mesh.emplace_back("data", 1);
  auto system = make_system(spec);
  if (!system) return Diagnostic{row.where, system.error().message};
  return system;
}

/// A value that is fitted. Times are linear in x: it is the value itself, or of a rate or share its inverse.
struct FittedValue {
  const MachineField* field = nullptr;
  std::vector<int> entries;  // of the field's index
  bool inverse = false;
  double unit = 1;

  [[nodiscard]] double value(double x) const { return inverse ? 1 / (x * unit) : x * unit; }
  [[nodiscard]] double x(double value) const { return inverse ? 1 / (value * unit) : value / unit; }
};

std::optional<FittedValue> fitted_value(const std::string& path, const Machine& machine) {
  FittedValue found;
  for (const MachineField& field : machine_fields()) {
    const std::vector<std::string> names = index_names(field.index);
    for (std::size_t entry = 0; entry < names.size(); ++entry)
      if (path_of(field, names[entry]) == path || path_of(field, "") == path) found.field = &field, found.entries.push_back(static_cast<int>(entry));
  }
  if (found.field == nullptr) return std::nullopt;
  found.inverse = found.field->unit != FieldUnit::seconds;
  const double now = found.field->get(machine, found.entries.front());
  constexpr double some_time = 1e-6;  // the unit of times
  found.unit = found.inverse ? 1 / now : some_time;
  if (!std::isfinite(now) || (found.inverse && !(now > 0))) return std::nullopt;
  return found;
}

constexpr int most_rounds = 5, steps_of_round = 3;
constexpr double relative_step = 0.05;
constexpr double exact = 1e-4;  // of the residuals together: below the digits of published figures

/// The step of least squares; unknowns on a bound that it would leave stay there.
Eigen::VectorXd bounded_step(Eigen::MatrixXd jacobian, const Eigen::VectorXd& residuals, const Eigen::VectorXd& x, const Eigen::VectorXd& low, const Eigen::VectorXd& high) {
  Eigen::VectorXd step = jacobian.colPivHouseholderQr().solve(residuals);
  for (Eigen::Index j = 0; j < x.size(); ++j)
    if ((x[j] <= low[j] && step[j] > 0) || (x[j] >= high[j] && step[j] < 0)) jacobian.col(j).setZero();
  return jacobian.colPivHouseholderQr().solve(residuals);
}

}  // namespace

Expected<TrainingStep> step_of(const Observation& row, const Study& study, const System& base) {
  const StudyStep* named = step_named(study, row.step);
  if (named == nullptr) return Diagnostic{row.where, "the study has no step " + quoted(row.step)};
  TrainingStep step = named->step;
  if (!named->maxtext.empty()) {
    const auto slice = slice_of_row(row, base);
    if (!slice) return slice.error();
    auto read = read_maxtext("", "", named->maxtext, {chips_of(*slice) * base.machine.chip.devices, row.pods});
    if (!read) return Diagnostic{named->where, to_text(read.error())};
    step = *std::move(read);
  }
  const auto whole = divided(step);
  if (!whole) return Diagnostic{named->where, whole.error().message};
  if (step.mesh.devices() != row.devices)
    return Diagnostic{row.where, fmt::format("expected {} devices, those of the mesh {}, found {}", step.mesh.devices(), to_text(step.mesh), row.devices)};
  return whole->step;
}

Expected<Seconds> predict_step(const Observation& row, const Study& study, const System& base, Cancellation stop) {
  const auto step = step_of(row, study, base);
  if (!step) return step.error();
  const auto system = system_of_step(row, *step, base);
  if (!system) return system.error();
  const auto layer = workload_of(layer_of(step->model, 1), 1);
  if (!layer) return Diagnostic{row.where, layer.error().message};
  Plan plan = default_layer_plan(*layer);
  if (step->mesh.row * step->mesh.col > 1)
    for (StagePlan& stage : plan.stages)
      if (stage.product) stage.product->algorithm = step_named(study, row.step)->products;
  const auto training = training_schedule(*step, system->mesh, plan);
  if (!training) return Diagnostic{row.where, training.error().message};
  RunOptions options;
  options.threads = 1;
  options.control.stop = stop;
  const auto run = simulate(*system, training->schedule, options, {std::string{direct_between_slices_name}, {}});
  if (!run) return Diagnostic{row.where, to_text(run.error())};
  if (run->timeline.interrupted) return cancelled_work();
  return Seconds{run->row.result.makespan_s};
}

Expected<Machine> fit_to_steps(const std::vector<Observation>& rows, const Study& study, const System& base, const std::vector<std::string>& paths,
                               Cancellation stop) {
  if (paths.empty() || paths.size() > rows.size())
    return Diagnostic{{}, fmt::format("expected a value to fit for each row or fewer, found {} values and {} rows", paths.size(), rows.size())};
  const auto size = static_cast<Eigen::Index>(paths.size());
  Eigen::VectorXd x(size), low(size), high(size);
  std::vector<FittedValue> values;
  for (const std::string& path : paths) {
    const auto value = fitted_value(path, base.machine);
    if (!value) return Diagnostic{{}, "expected a number of the machine, above 0 if it is no time, found " + quoted(path)};
    const auto j = static_cast<Eigen::Index>(values.size());
    x[j] = value->x(value->field->get(base.machine, value->entries.front()));
    const double at_low = value->x(value->field->low), at_high = value->x(value->field->high);
    low[j] = std::min(at_low, at_high), high[j] = std::max(at_low, at_high);
    values.push_back(*value);
  }
  const auto machine_at = [&](const Eigen::VectorXd& at) {
    Machine machine = base.machine;
    for (std::size_t v = 0; v < values.size(); ++v)
      for (const int entry : values[v].entries) values[v].field->set(machine, entry, values[v].value(at[static_cast<Eigen::Index>(v)]));
    return machine;
  };
  const auto residuals_at = [&](const Eigen::VectorXd& at) -> Expected<Eigen::VectorXd> {
    Eigen::VectorXd residuals(static_cast<Eigen::Index>(rows.size()));
    System system = base;  // only its machine is looked at
    system.machine = machine_at(at);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto time = predict_step(rows[r], study, system, stop);
      if (!time) return time.error();
      residuals[static_cast<Eigen::Index>(r)] = std::log(time->count() / rows[r].time.count());
    }
    return residuals;
  };

  auto residuals = residuals_at(x);
  if (!residuals) return residuals.error();
  for (int round = 0; round < most_rounds; ++round) {
    Eigen::MatrixXd jacobian(residuals->size(), size);
    for (Eigen::Index j = 0; j < size; ++j) {
      Eigen::VectorXd beside = x;
      const double h = relative_step * std::max(x[j], 1.0);
      beside[j] += h <= high[j] - x[j] ? h : -h;
      const auto there = residuals_at(beside);
      if (!there) return there.error();
      jacobian.col(j) = (*there - *residuals) / (beside[j] - x[j]);
    }
    const double before = residuals->norm();
    // Times are nearly linear in x, so one matrix serves several steps.
    for (int step = 0; step < steps_of_round; ++step) {
      const Eigen::VectorXd next = (x - bounded_step(jacobian, *residuals, x, low, high)).cwiseMax(low).cwiseMin(high);
      const auto there = residuals_at(next);
      if (!there) return there.error();
      if (there->norm() >= residuals->norm()) break;
      x = next, residuals = there;
      if (residuals->norm() < exact) return machine_at(x);
    }
    if (residuals->norm() > before * (1 - 1e-3)) break;
  }
  return machine_at(x);
}

}  // namespace podsim
