#include "validation/calibration/fit/repeated_run.hpp"

#include <algorithm>
#include <utility>

#include "sim/model/recost.hpp"
#include "validation/calibration/fit/predict.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_activities = 20'000;  // of a model that is kept
constexpr std::size_t most_kept = 4;

}  // namespace

RepeatedRun::RepeatedRun(Schedule lowered, std::shared_ptr<const System> system)
    : lowered_{std::make_shared<const Schedule>(std::move(lowered))}, system_{std::move(system)} {
  std::size_t tasks = 0;
  for (const Program& program : lowered_->programs) tasks += program.tasks.size();
  is_small_ = static_cast<std::int64_t>(tasks) * lowered_->mesh.devices() <= most_activities;
}

Expected<Seconds> RepeatedRun::time_on(const System& turned, Cancellation stop) {
  for (const Kept& kept : kept_) {
    const auto model = recost(kept.model, turned.machine, *turned.topology, turned.placement, stop);
    if (!model) return model.error();
    if (*model) return simulated_time(**model, stop);
  }
  if (!is_small_ || kept_.size() == most_kept) return simulated_time(*lowered_, turned, stop);
  auto machine = std::make_shared<const Machine>(turned.machine);
  auto model = make_model(*lowered_, *machine, *turned.topology, turned.placement, stop);
  if (!model) return model.error();
  kept_.push_back({std::move(machine), *std::move(model)});
  return simulated_time(kept_.back().model, stop);
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
