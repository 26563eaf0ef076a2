#include "validation/calibration/fit/step_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace podsim {

namespace {

constexpr double step_meets = 5e-4;  // a tangent and the simulated time, as a share of it
constexpr double step_nudge = 0.02;   // of x, which is at least 1 where it is a rate or an efficiency of no more than the base machine's
constexpr double share_nudge = 0.02;
constexpr double time_nudge = 1e-3;   // of the step

double x_on(const Parameter& parameter, const Machine& machine) {
  return from_physical(parameter, parameter.field->get(machine, parameter.entries.front()));
}

}  // namespace

bool StepTime::is_along(const std::vector<Parameter>& parameters) const {
  return std::all_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
    return std::any_of(directions_.begin(), directions_.end(), [&](const Direction& one) { return one.parameter.path == parameter.path; });
  });
}

Expected<double> StepTime::touch(const Machine& machine, const std::vector<Parameter>& along, Cancellation stop) {
  const auto time = simulated(machine, stop);
  if (!time) return time.error();
  const double missed = laid_ ? std::abs(at(machine).count() / time->count() - 1) : 1;
  if (laid_ && missed <= step_meets && is_along(along)) {
    for (Direction& one : directions_) one.where = x_on(one.parameter, machine);
    time_ = *time;
    return 0;
  }
  std::vector<Direction> directions;
  for (const Parameter& parameter : along) {
    Direction one{parameter, x_on(parameter, machine), 0};
    const double least = parameter.kind == Parameter::Kind::time ? time_nudge * time->count() / parameter.unit : share_nudge;
    double h = std::max(step_nudge * std::abs(one.where), least);
    if (one.where + h > parameter.high) h = -h;
    Machine nudged = machine;
    for (const int entry : parameter.entries) parameter.field->set(nudged, entry, physical(parameter, one.where + h));
    const auto beside = simulated(nudged, stop);
    if (!beside) return beside.error();
    one.slope = (*beside - *time).count() / h;
    directions.push_back(std::move(one));
  }
  directions_ = std::move(directions);
  time_ = *time;
  laid_ = true;
  return missed;
}

Seconds StepTime::at(const Machine& machine) const {
  if (!laid_) return Seconds{std::numeric_limits<double>::infinity()};
  double seconds = time_.count();
  for (const Direction& one : directions_) seconds += one.slope * (x_on(one.parameter, machine) - one.where);
  return Seconds{seconds};
}

}  // namespace podsim
