#include "tools/page/recorded_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text.hpp"
#include "tools/report/device_events.hpp"
#include "workloads/ledger/label_place.hpp"

namespace podsim {

namespace {

std::optional<PipelineRole> role_of(StepPass pass) {
  switch (pass) {
    case StepPass::none: return std::nullopt;
    case StepPass::forward: return PipelineRole::forward;
    case StepPass::backward: return PipelineRole::backward;
    case StepPass::backward_inputs: return PipelineRole::backward_inputs;
    case StepPass::backward_weights: return PipelineRole::backward_weights;
    case StepPass::optimiser: return PipelineRole::optimizer;
  }
  return std::nullopt;
}

/// Weights of a microbatch are gathered ahead, and its gradients reduced behind, while the core has another one, or none.
bool is_beside(const LabelPlace& place) { return place.operation.starts_with("gather weights") || place.operation.starts_with("reduce gradients"); }

/// The first device of each rank.
std::vector<DeviceId> first_of_ranks(const Mesh& mesh, std::size_t axis) {
  std::vector<DeviceId> devices;
  Coordinates place(mesh.axes().size(), 0);
  for (int rank = 0; rank < mesh.axes()[axis].size; ++rank) {
    place[axis] = rank;
    devices.push_back(mesh.device(place));
  }
  return devices;
}

std::vector<DrawnPipelineTask> tasks_of(const Run& run, DeviceId device) {
  std::vector<DrawnPipelineTask> tasks;
  const std::uint32_t p = run.model.deployment.places[run.model.node_of[device.index()]].program;
  if (p == no_device) return tasks;
  for (const TraceEvent& event : events_of(run.model, run.timeline, device).events) {
    if (event.kind != TraceEvent::Kind::work || event.end == event.begin || !event.on_core) continue;
    const LabelPlace place = place_of(run.model.schedule->programs[p].tasks[event.task.index()].label);
    const auto role = role_of(place.pass);
    if (!role || is_beside(place) || (!place.microbatch && *role != PipelineRole::optimizer)) continue;
    const DrawnPipelineTask task{*role, place.microbatch ? place.microbatch->stage : 0, place.microbatch ? place.microbatch->number : 0, event.begin.count(), event.end.count()};
    if (!tasks.empty() && tasks.back().role == task.role && tasks.back().stage == task.stage && tasks.back().microbatch == task.microbatch)
      tasks.back().end = task.end;
    else
      tasks.push_back(task);
  }
  return tasks;
}

}  // namespace

std::optional<DrawnPipeline> pipeline_of(const Run& run) {
  const auto& axes = run.lowered->mesh.axes();
  const auto axis = std::ranges::find(axes, "stage", &MeshAxis::name);
  if (run.row.problem.training == nullptr || axis == axes.end() || axis->size < 2) return std::nullopt;
  const TrainingStep& step = run.row.problem.training->given;
  DrawnPipeline pipeline{{}, {}, 0, true};
  for (const DeviceId device : first_of_ranks(run.lowered->mesh, static_cast<std::size_t>(axis - axes.begin()))) {
    pipeline.rows.push_back({fmt::format("stage {}", pipeline.rows.size()), tasks_of(run, device)});
    for (const DrawnPipelineTask& task : pipeline.rows.back().tasks) pipeline.end = std::max(pipeline.end, task.end);
  }
  pipeline.title = fmt::format("{}: {} on {}, {}; bubble {}", step.pipeline, counted(step.mesh.stage * step.virtual_stages, "stage"), counted(step.mesh.stage, "rank"), counted(step.microbatches, "microbatch"),
                               percent(pipeline.bubble_fraction()));
  return pipeline;
}

}  // namespace podsim
