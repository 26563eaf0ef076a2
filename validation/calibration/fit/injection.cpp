#include "validation/calibration/fit/injection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/units.hpp"
#include "validation/calibration/fit/shapes.hpp"

namespace podsim {

namespace {

constexpr const char* path = "chip.injection_bandwidth";
constexpr double counts = 0.2;  // the share of a prediction that its transfers need to say anything
constexpr double equal_rates = 1.01;

const MachineField& injection_field() {
  return *std::find_if(machine_fields().begin(), machine_fields().end(), [](const MachineField& f) { return path_of(f, "") == path; });
}

Parameter injection_knob(double rate) {
  Parameter parameter;
  parameter.path = path;
  parameter.kind = Parameter::Kind::rate;
  parameter.field = &injection_field();
  parameter.entries = {0};
  parameter.unit = 1 / rate;
  parameter.low = 1e-9, parameter.high = 1e6;
  return parameter;
}

/// The machine without any cost but one.
Machine only(const Machine& machine, BytesPerSecond link, BytesPerSecond injection) {
  Machine bare = machine;
  for (LinkParameters& parameters : bare.link) parameters = {link, Seconds{}};
  bare.software = {};
  bare.chip.injection_bandwidth = injection;
  bare.chip.ejection_bandwidth = unlimited<BytesPerSecond>;
  bare.chip.reduce_bandwidth = bare.chip.hbm_bandwidth = unlimited<BytesPerSecond>;
  return bare;
}

}  // namespace

InjectionFinding find_injection(const Fit& without, const CalibrateOptions& options, Predictions& predictions) {
  const Machine& machine = without.system.machine;
  const bool held = std::find(options.hold.begin(), options.hold.end(), path) != options.hold.end();
  if (machine.interconnect == Interconnect::rail) return {};  // networks of switches have no such limit
  if (held || machine.chip.injection_bandwidth != unlimited<BytesPerSecond> || without.parameters.empty()) return {};
  const BytesPerSecond rate{1e9};
  // Times per byte and second, of links and of injection; how long transfers take on the machine as fitted.
  std::vector<double> by_link, by_injection, share;
  const auto times_on = [&](const Machine& on) {
    predictions.system().machine = on;
    predictions.turn({}, {});
    std::vector<double> times;
    for (std::size_t i = 0; i < predictions.size(); ++i) times.push_back(predictions.predicted(i).count());
    return times;
  };
  by_link = times_on(only(machine, rate, unlimited<BytesPerSecond>));
  by_injection = times_on(only(machine, unlimited<BytesPerSecond>, rate));
  const std::vector<double> whole = times_on(machine);
  Machine free = machine;
  for (LinkParameters& parameters : free.link) parameters.bandwidth = unlimited<BytesPerSecond>;
  const std::vector<double> rest = times_on(free);
  std::vector<double> ratios;
  double fastest = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (predictions.kind(i) < CostKind::all_gather || by_link[i] <= 0 || by_injection[i] <= 0 || 1 - rest[i] / whole[i] < counts) continue;
    ratios.push_back(by_injection[i] / by_link[i]);
    fastest = std::max(fastest, by_injection[i] * rate.count() / (whole[i] - rest[i]));
  }
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  InjectionFinding finding;
  if (ratios.back() < equal_rates * ratios.front()) {
    finding.undetermined = {path, "",
                            fmt::format("every observation puts {:.3g} bytes into the network per byte on a link: links as fitted, or an injection "
                                        "limit of {} with faster links, explain them alike",
                                        ratios.back(), to_text(BytesPerSecond{fastest})),
                            probe_for(injection_knob(1))};
    return finding;
  }
  // Try limits that would bind the observations of each ratio.
  Fit best = without;
  bool found = false;
  for (const double part : {1.0, 0.8, 0.6, 0.5}) {
    System start = without.system;
    start.machine.chip.injection_bandwidth = BytesPerSecond{fastest * part};
    for (const Parameter& parameter : without.parameters)
      if (parameter.path.starts_with("link") && parameter.kind == Parameter::Kind::rate)
        for (const int entry : parameter.entries) parameter.field->set(start.machine, entry, parameter.field->get(start.machine, entry) / part);
    std::vector<Parameter> parameters = without.parameters;
    parameters.push_back(injection_knob(start.machine.chip.injection_bandwidth.count()));
    Fit with = fit(parameters, start, options, predictions);
    if (with.parameters.size() < parameters.size() || !is_better(with, best, options)) continue;
    with.undetermined.insert(with.undetermined.begin(), without.undetermined.begin(), without.undetermined.end());
    best = std::move(with);
    found = true;
  }
  if (found) {
    finding.limited = std::move(best);
    return finding;
  }
  finding.not_limiting = {path,
                          "",
                          "B/s",
                          std::numeric_limits<double>::infinity(),
                          fastest,
                          std::numeric_limits<double>::infinity(),
                          CalibratedValue::Origin::not_limiting};
  return finding;
}

}  // namespace podsim
