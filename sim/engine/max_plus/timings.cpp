#include "sim/engine/max_plus/timings.hpp"

#include <algorithm>

namespace podsim::max_plus {

Timings::Timings(const Model& model, const LinkRates& rates) : model_{model}, rates_{rates} {
  std::map<std::pair<double, std::int64_t>, std::uint32_t> kinds;
  class_of_path_.reserve(model.paths.size());
  for (std::uint32_t p = 0; p < model.paths.size(); ++p) {
    const std::pair kind{model.paths[p].latency.count(), rates.path_rate[p]};
    const auto [entry, is_new] = kinds.try_emplace(kind, static_cast<std::uint32_t>(path_kinds_.size()));
    if (is_new) path_kinds_.emplace_back(model.paths[p].latency, rates.path_rate[p]);
    class_of_path_.push_back(entry->second);
  }
  if (model.speed.empty()) {
    speeds_ = {1};
  } else {
    speeds_ = model.speed;
    std::sort(speeds_.begin(), speeds_.end());
    speeds_.erase(std::unique(speeds_.begin(), speeds_.end()), speeds_.end());
    for (const double speed : model.speed)
      class_of_node_.push_back(static_cast<std::uint32_t>(std::lower_bound(speeds_.begin(), speeds_.end(), speed) - speeds_.begin()));
  }
}

const Timings::OfTransfer* Timings::of_transfer(const TaskCost& cost) {
  auto& times = transfers_[{cost.delay.count(), cost.flow_bytes}];
  if (times.empty())
    for (const auto& [latency, rate] : path_kinds_)
      times.push_back({ceil_to_clock(cost.delay + latency).count(),
                       cost.flow_bytes > 0 && rate != LinkRates::unlimited_rate ? rates_.duration(cost.flow_bytes, rate) : 0});
  return times.data();
}

/// The phases add up to the time that the work takes alone, rounded once.
const Timings::OfWork* Timings::of_work(const TaskCost& cost) {
  const bool draws = !model_.memory_paths.empty() && cost.memory_bytes > 0;
  auto& times = works_[{cost.work.count(), draws ? cost.launch.count() : -1, draws ? cost.rest.count() : -1, cost.on_core}];
  if (times.empty())
    for (const double speed : speeds_) {
      const auto on_clock = [&](Seconds time) { return ceil_to_clock(cost.on_core && !model_.speed.empty() ? time / speed : time).count(); };
      const std::int64_t whole = on_clock(cost.work), launch = draws ? on_clock(cost.launch) : 0, rest = draws ? on_clock(cost.rest) : 0;
      times.push_back({launch, whole - launch - rest, rest});
    }
  return times.data();
}

const std::int64_t* Timings::of_reduction(const TaskCost& cost) {
  auto& times = reductions_[cost.reduction.count()];
  if (times.empty())
    for (const double speed : speeds_) times.push_back(ceil_to_clock(model_.speed.empty() ? cost.reduction : cost.reduction / speed).count());
  return times.data();
}

}  // namespace podsim::max_plus
