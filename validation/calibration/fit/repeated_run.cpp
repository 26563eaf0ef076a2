#include "validation/calibration/fit/repeated_run.hpp"

#include <utility>

#include "sim/model/recost.hpp"
#include "validation/calibration/fit/predict.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_activities = 20'000;  // of a model that is kept

}  // namespace

RepeatedRun::RepeatedRun(Schedule lowered, std::shared_ptr<const System> system)
    : lowered_{std::make_shared<const Schedule>(std::move(lowered))}, system_{std::move(system)} {
  std::size_t tasks = 0;
  for (const Program& program : lowered_->programs) tasks += program.tasks.size();
  if (static_cast<std::int64_t>(tasks) * lowered_->mesh.devices() > most_activities) return;
  if (auto model = make_model(*lowered_, system_->machine, *system_->topology, system_->placement)) model_ = *std::move(model);
}

Expected<Seconds> RepeatedRun::time_on(const System& turned, Cancellation stop) const {
  if (model_) {
    const auto model = recost(*model_, turned.machine, *turned.topology, turned.placement, stop);
    if (!model) return model.error();
    if (*model) return simulated_time(**model, stop);
  }
  return simulated_time(*lowered_, turned, stop);
}

}  // namespace podsim
