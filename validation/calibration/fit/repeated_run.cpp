#include "validation/calibration/fit/repeated_run.hpp"

#include <algorithm>
#include <utility>

#include "sim/model/recost.hpp"
#include "validation/calibration/fit/predict.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_activities = 20'000;  // of a model that is kept
constexpr std::size_t most_kept = 4;
constexpr std::size_t most_runs = 4;  // whose costs are kept, of a model

/// All that recost() finds anew, in an order of its own: engines see nothing else of a machine.
std::vector<double> costs_of(const Model& model) {
  std::vector<double> costs;
  const auto add = [&costs](Seconds time) { costs.push_back(time.count()); };
  for (const auto& program : model.costs)
    for (const TaskCost& cost : program) {
      for (const Seconds time : {cost.work, cost.launch, cost.rest, cost.delay, cost.reduction}) add(time);
      costs.push_back(cost.memory_bytes);
      costs.push_back(cost.flow_bytes);
    }
  for (const ModelLink& link : model.links) costs.push_back(link.bandwidth.count());
  for (const Path& path : model.paths) {
    add(path.latency);
    costs.push_back(path.bottleneck.count());
  }
  for (const CoreShares& shares : model.core_shares) {
    std::ranges::for_each(shares.first, add);
    for (const std::vector<Seconds>& behind : shares.behind) {
      costs.push_back(static_cast<double>(behind.size()));
      std::ranges::for_each(behind, add);
    }
  }
  costs.insert(costs.end(), model.speed.begin(), model.speed.end());
  return costs;
}

}  // namespace

RepeatedRun::RepeatedRun(Schedule lowered, std::shared_ptr<const System> system)
    : lowered_{std::make_shared<const Schedule>(std::move(lowered))}, system_{std::move(system)} {
  std::size_t tasks = 0;
  for (const Program& program : lowered_->programs) tasks += program.tasks.size();
  is_small_ = static_cast<std::int64_t>(tasks) * lowered_->mesh.devices() <= most_activities;
}

Expected<Seconds> RepeatedRun::time_on(const System& turned, Cancellation stop) {
  for (Kept& kept : kept_) {
    const auto model = recost(kept.model, turned.machine, *turned.topology, turned.placement, stop);
    if (!model) return model.error();
    if (*model) return time_of(kept, **model, stop);
  }
  if (!is_small_ || kept_.size() == most_kept) return simulated_time(*lowered_, turned, stop);
  auto machine = std::make_shared<const Machine>(turned.machine);
  auto model = make_model(*lowered_, *machine, *turned.topology, turned.placement, stop);
  if (!model) return model.error();
  kept_.push_back({std::move(machine), *std::move(model)});
  return time_of(kept_.back(), kept_.back().model, stop);
}

Expected<Seconds> RepeatedRun::time_of(Kept& kept, const Model& model, Cancellation stop) {
  std::vector<double> costs = costs_of(model);
  const auto known = std::ranges::find(kept.runs, costs, &std::pair<std::vector<double>, Seconds>::first);
  if (known != kept.runs.end()) {
    std::rotate(kept.runs.begin(), known, known + 1);
    return kept.runs.front().second;
  }
  const auto time = simulated_time(model, stop);
  if (!time) return time;
  if (kept.runs.size() == most_runs) kept.runs.pop_back();
  kept.runs.emplace(kept.runs.begin(), std::move(costs), *time);
  return time;
}

bool RepeatedRun::crosses(int dimension) const {
  if (kept_.empty() || system_->topology->grid() == nullptr) return true;
  const Model& model = kept_.front().model;  // all go the same ways
  return std::any_of(model.path_links.begin(), model.path_links.end(), [&](const PathLink& link) {
    const ModelLink& of = model.links[link.link];
    return !of.is_memory && system_->topology->dimension_of(of.representative) == dimension;
  });
}

}  // namespace podsim
