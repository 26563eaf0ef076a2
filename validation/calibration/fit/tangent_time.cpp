#include "validation/calibration/fit/tangent_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace podsim {

namespace {

constexpr double nudge = 1e-3;               // of a unit cost, towards more
constexpr double least_nudge = 1e-8;         // seconds, of times near zero
constexpr double tangent_meets = 1e-6;       // a tangent and the simulated time, as a share of it
constexpr double rounding_of_times = 1e-12;  // to which simulated times are rounded
constexpr std::size_t most_tangents = 16;    // tangents of a run

constexpr std::size_t core_share_unit = 7, first_link_unit = unit_costs - 2 * max_dimensions;

/// A machine's value behind a unit cost: a time, a rate, or neither.
template <class Time, class Rate>
struct ValueBehind {
  Time* time = nullptr;
  Rate* rate = nullptr;
  bool flows = true;  // a rate of what collective.efficiency slows
};

template <class SomeMachine>
auto value_behind(SomeMachine& machine, CostKind kind, std::size_t unit) {
  constexpr bool fixed = std::is_const_v<SomeMachine>;
  using Behind = ValueBehind<std::conditional_t<fixed, const Seconds, Seconds>, std::conditional_t<fixed, const BytesPerSecond, BytesPerSecond>>;
  auto& chip = machine.chip;
  auto& software = machine.software;
  switch (unit) {
    case 0: return Behind{&software.launch.at(static_cast<std::size_t>(kind))};
    case 1: return Behind{&software.launch.at(static_cast<std::size_t>(CostKind::local))};
    case 2: return Behind{&software.per_message};
    case 3: return Behind{nullptr, &chip.reduce_bandwidth, false};
    case 4: return Behind{nullptr, &chip.hbm_bandwidth};
    case 5: return Behind{nullptr, &chip.injection_bandwidth};
    case 6: return Behind{nullptr, &chip.ejection_bandwidth};
    case core_share_unit: return Behind{};
    default: break;
  }
  auto& link = machine.link.at((unit - first_link_unit) / 2);
  return (unit - first_link_unit) % 2 == 0 ? Behind{&link.latency} : Behind{nullptr, &link.bandwidth};
}

double cost_of(const Machine& machine, CostKind kind, double efficiency, std::size_t unit) {
  if (unit == core_share_unit) return machine.software.core_share.at(static_cast<std::size_t>(kind));
  const auto value = value_behind(machine, kind, unit);
  return value.time != nullptr ? value.time->count() : 1 / (value.rate->count() * (value.flows ? efficiency : 1));
}

double efficiency_of(const Machine& machine, CostKind kind, Bytes input) {
  return efficiency_at(machine.software.efficiency.at(static_cast<std::size_t>(kind)), input);
}

UnitCosts costs_of(const Machine& machine, CostKind kind, Bytes input) {
  const double efficiency = efficiency_of(machine, kind, input);
  UnitCosts costs{};
  for (std::size_t unit = 0; unit < unit_costs; ++unit) costs.at(unit) = cost_of(machine, kind, efficiency, unit);
  return costs;
}

/// Whether the two have limits in the same places: the time is not linear where a limit begins.
bool same_limits(const UnitCosts& one, const UnitCosts& other) {
  for (std::size_t unit = 3; unit < unit_costs; ++unit)
    if (const bool is_rate = unit < core_share_unit || (unit > first_link_unit && (unit - first_link_unit) % 2 == 1);
        is_rate && (one.at(unit) > 0) != (other.at(unit) > 0))
      return false;
  return true;
}

double missed_by(Seconds tangent, Seconds simulated) {
  return std::max(std::abs(tangent.count() - simulated.count()) - rounding_of_times, 0.0) / std::max(simulated.count(), rounding_of_times);
}

}  // namespace

Expected<Seconds> TangentTime::simulated(const Machine& machine, const OnMachine& on, Cancellation stop) {
  const UnitCosts costs = costs_of(machine, kind_, input_);
  if (const auto known = times_.find(costs); known != times_.end()) return known->second;
  const auto time = run_->time_on(on(*run_->system(), machine), stop);
  if (time) times_.emplace(costs, *time);
  return time;
}

Expected<double> TangentTime::touch(const Machine& machine, const OnMachine& on, Cancellation stop) {
  const auto time = simulated(machine, on, stop);
  if (!time) return time.error();
  const UnitCosts costs = costs_of(machine, kind_, input_);
  const auto by = [&](const Tangent& tangent) { return missed_by(tangent.at([&](std::size_t unit) { return costs.at(unit); }), *time); };
  const double missed = known_.empty() ? 1 : by(known_[present_]);
  const auto met =
      std::find_if(known_.begin(), known_.end(), [&](const Tangent& known) { return same_limits(known.where, costs) && by(known) <= tangent_meets; });
  if (met != known_.end()) {
    present_ = static_cast<std::size_t>(met - known_.begin());
  } else {
    auto tangent = tangent_at(machine, *time, on, stop);
    if (!tangent) return tangent.error();
    if (known_.size() == most_tangents) known_.erase(known_.begin());
    known_.push_back(*std::move(tangent));
    present_ = known_.size() - 1;
  }
  known_[present_].where = costs, known_[present_].time = *time;  // the same plane, seen from here
  return missed;
}

Expected<TangentTime::Tangent> TangentTime::tangent_at(const Machine& machine, Seconds time, const OnMachine& on, Cancellation stop) {
  Tangent tangent{costs_of(machine, kind_, input_), time, {}};
  const std::size_t dimensions = std::min<std::size_t>(run_->system()->slice.extents.size(), max_dimensions);
  // One value after the other and all of them in the end. Each alone would count a time that two limit alike for both of them.
  Machine nudged = machine;
  Seconds before = time;
  for (std::size_t unit = 0; unit < first_link_unit + 2 * dimensions; ++unit) {
    const auto value = value_behind(nudged, kind_, unit);
    if (value.time != nullptr) *value.time += Seconds{std::max(nudge * value.time->count(), least_nudge)};
    if (value.rate != nullptr) *value.rate = BytesPerSecond{value.rate->count() / (1 + nudge)};
    const double difference = costs_of(nudged, kind_, input_).at(unit) - tangent.where.at(unit);
    if (difference == 0 || (unit >= first_link_unit && !run_->crosses(static_cast<int>(unit - first_link_unit) / 2))) continue;  // unlimited, or of links that carry nothing
    const auto beside = run_->time_on(on(*run_->system(), nudged), stop);
    if (!beside) return beside.error();
    if (*beside != before) tangent.slopes.emplace_back(unit, (*beside - before).count() / difference);
    before = *beside;
  }
  return tangent;
}

Seconds TangentTime::at(const Machine& machine) {
  if (known_.empty()) return Seconds{std::numeric_limits<double>::infinity()};
  const double efficiency = efficiency_.on(machine, kind_, input_);
  return known_[present_].at([&](std::size_t unit) { return cost_of(machine, kind_, efficiency, unit); });
}

double TangentTime::Efficiency::on(const Machine& machine, CostKind kind, Bytes input) {
  const auto& curve = machine.software.efficiency.at(static_cast<std::size_t>(kind));
  if (curve == curve_) return value_;
  curve_ = curve;
  return value_ = efficiency_of(machine, kind, input);
}

}  // namespace podsim
