#include "validation/calibration/fit/unobserved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "sim/machine/machine_fields.hpp"

namespace podsim {

namespace {

using enum CollectiveKind;

constexpr double least_efficiency = 1e-3;

constexpr std::array all_kinds{all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce, permute};

/// Which to take after, the nearest first: what moves data in the same steps.
std::array<CollectiveKind, 6> nearest(CollectiveKind kind) {
  switch (kind) {
    case all_gather: return {reduce_scatter, all_reduce, broadcast, all_to_all, reduce, permute};
    case reduce_scatter: return {all_gather, all_reduce, reduce, all_to_all, broadcast, permute};
    case all_reduce: return {reduce_scatter, all_gather, reduce, all_to_all, broadcast, permute};
    case all_to_all: return {all_gather, reduce_scatter, all_reduce, permute, broadcast, reduce};
    case broadcast: return {all_gather, reduce, reduce_scatter, all_reduce, all_to_all, permute};
    case reduce: return {reduce_scatter, broadcast, all_reduce, all_gather, all_to_all, permute};
    case permute: return {all_to_all, all_gather, reduce_scatter, all_reduce, broadcast, reduce};
  }
  return {};
}

/// The input of a collective over the message of one of its steps.
std::int64_t messages_of_input(CollectiveKind kind, std::int64_t devices) {
  return kind == reduce_scatter || kind == all_reduce || kind == all_to_all ? devices : 1;
}

std::optional<CollectiveKind> kind_of(ObservedOp op) { return collective_kind_named(name_of(op)); }

/// The number of devices that most observations of each kind have; of several the least.
std::map<CollectiveKind, std::int64_t> observed_devices(const std::vector<Observation>& observations) {
  std::map<CollectiveKind, std::map<std::int64_t, int>> counts;
  for (const Observation& o : observations)
    if (const auto kind = kind_of(o.op); kind && !is_composite(o)) ++counts[*kind][o.devices];
  std::map<CollectiveKind, std::int64_t> result;
  for (const auto& [kind, by_devices] : counts)
    result[kind] = std::max_element(by_devices.begin(), by_devices.end(), [](const auto& a, const auto& b) {
                     return std::pair{a.second, a.first} < std::pair{b.second, b.first};
                   })->first;
  return result;
}

std::string launch_path(CollectiveKind kind) { return fmt::format("software.launch[{}]", name_of(kind)); }
std::string curve_path(CollectiveKind kind) { return fmt::format("collective[{}].efficiency", name_of(kind)); }

bool is_fitted(const Fit& fit, const std::string& path) {
  const auto named = [&](const Parameter& parameter) { return parameter.path == path; };
  return std::any_of(fit.parameters.begin(), fit.parameters.end(), named) || std::any_of(fit.zero.begin(), fit.zero.end(), named);
}

/// An all-reduce that is a reduce-scatter and an all-gather of its result, each at its own efficiency, at all points of both.
std::vector<EfficiencyPoint> in_two_phases(const std::vector<EfficiencyPoint>& scatter, const std::vector<EfficiencyPoint>& gather,
                                           std::int64_t devices) {
  std::set<Bytes> inputs;
  for (const EfficiencyPoint& point : scatter) inputs.insert(point.input);
  for (const EfficiencyPoint& point : gather) inputs.insert(devices * point.input);
  std::vector<EfficiencyPoint> points;
  for (const Bytes input : inputs) points.push_back({input, 2 / (1 / efficiency_at(scatter, input) + 1 / efficiency_at(gather, input / devices))});
  return points;
}

/// The curve of one kind as that of another whose messages are as large; what would be less than a byte is one.
std::vector<EfficiencyPoint> with_messages_of(CollectiveKind kind, CollectiveKind other, const std::vector<EfficiencyPoint>& curve,
                                              std::int64_t devices) {
  std::vector<EfficiencyPoint> points;
  for (const EfficiencyPoint& point : curve) {
    const std::int64_t message = std::max<std::int64_t>(point.input.count() / messages_of_input(other, devices), 1);
    const Bytes input{message * messages_of_input(kind, devices)};
    if (points.empty() || points.back().input < input) points.push_back({input, point.efficiency});
  }
  return points;
}

/// Whether what the observations say of one kind's curve may be said of the other's: the base machine has one curve for both, or a curve for each.
bool comparable(CollectiveKind kind, CollectiveKind other, const Machine& base) {
  const auto& own = base.software.efficiency.at(static_cast<std::size_t>(cost_kind_of(kind)));
  const auto& its = base.software.efficiency.at(static_cast<std::size_t>(cost_kind_of(other)));
  return own == its || (own.size() > 1 && its.size() > 1);
}

/// Where the base machine has a curve for each kind: the fitted curve of `other` times the ratio of the two, at equal messages.
std::vector<EfficiencyPoint> with_ratio_of(CollectiveKind kind, CollectiveKind other, const Machine& base, std::vector<EfficiencyPoint> curve,
                                           std::int64_t devices) {
  const auto& own = base.software.efficiency.at(static_cast<std::size_t>(cost_kind_of(kind)));
  const auto& its = base.software.efficiency.at(static_cast<std::size_t>(cost_kind_of(other)));
  if (own == its) return curve;
  for (EfficiencyPoint& point : curve) {
    const Bytes message = std::max(point.input / messages_of_input(kind, devices), Bytes{1});
    const double ratio = efficiency_at(own, point.input) / efficiency_at(its, messages_of_input(other, devices) * message);
    point.efficiency = std::clamp(point.efficiency * ratio, least_efficiency, 1.0);
  }
  return curve;
}

/// A value of the machine as the text that sets it.
std::string text_of(const Machine& machine, const std::string& path) {
  for (const MachineField& field : machine_fields()) {
    const std::vector<std::string> names = index_names(field.index);
    for (std::size_t entry = 0; entry < names.size(); ++entry)
      if (path_of(field, names[entry]) == path) return value_text(field, machine, static_cast<int>(entry));
  }
  return {};
}

}  // namespace

Expected<std::vector<Undetermined>> keep_equal(const std::vector<Observation>& observations, const Fit& fit, const Machine& base,
                                               const CalibrateOptions& options, Machine& machine) {
  const std::map<CollectiveKind, std::int64_t> devices = observed_devices(observations);
  std::vector<Undetermined> kept;
  const auto held = [&](const std::string& path) { return std::find(options.hold.begin(), options.hold.end(), path) != options.hold.end(); };
  const auto set = [&](const std::string& path, const std::string& like, const std::string& value) -> Status {
    const std::string source = fmt::format("as {}: fitted to {}; not observed itself", like, options.dataset);
    if (auto ok = set_machine_value(machine, path, value, source, {}); !ok) return ok;
    kept.push_back({path, "", fmt::format("not observed: it goes with {}, as on the base machine", like),
                     "the collectives themselves, of a few KiB and of tens of MiB"});
    return success();
  };
  for (const CollectiveKind kind : all_kinds) {
    if (devices.contains(kind)) continue;
    const auto at = static_cast<std::size_t>(cost_kind_of(kind));
    for (const CollectiveKind other : nearest(kind)) {
      const auto from = static_cast<std::size_t>(cost_kind_of(other));
      const bool one_launch = base.software.launch.at(at) == base.software.launch.at(from);
      if (!devices.contains(other) || !one_launch || !comparable(kind, other, base)) continue;
      if (is_fitted(fit, launch_path(other)) && !held(launch_path(kind)))
        if (auto ok = set(launch_path(kind), launch_path(other), text_of(machine, launch_path(other))); !ok) return ok.error();
      const auto gather = static_cast<std::size_t>(cost_kind_of(all_gather));
      if (kind == all_reduce && other == reduce_scatter && devices.contains(all_gather) && devices.at(all_gather) == devices.at(reduce_scatter) &&
          comparable(kind, all_gather, base) && !held(curve_path(kind)) &&
          (is_fitted(fit, curve_path(other)) || is_fitted(fit, curve_path(all_gather)))) {
        Machine moved = machine;
        moved.software.efficiency.at(at) =
            in_two_phases(machine.software.efficiency.at(from), machine.software.efficiency.at(gather), devices.at(all_gather));
        if (auto ok = set(curve_path(kind), curve_path(other) + " and " + curve_path(all_gather), text_of(moved, curve_path(kind))); !ok)
          return ok.error();
      } else if (is_fitted(fit, curve_path(other)) && !held(curve_path(kind))) {
        Machine moved = machine;
        moved.software.efficiency.at(from) = with_ratio_of(
            kind, other, base, with_messages_of(kind, other, machine.software.efficiency.at(from), devices.at(other)), devices.at(other));
        if (auto ok = set(curve_path(kind), curve_path(other), text_of(moved, curve_path(other))); !ok) return ok.error();
      }
      break;
    }
  }
  return kept;
}

}  // namespace podsim
