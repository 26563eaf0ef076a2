#include "workloads/training/step_schedule.hpp"

#include <fmt/format.h>

#include <optional>

#include "workloads/training/rank_program.hpp"

namespace podsim {

namespace {

using Value = PipelineValue::Kind;

std::optional<Buffer> describe(const StepParts& parts, const PipelineValue& value) {
  const std::string name = name_of(value);
  const bool tokens = parts.step.model.vocabulary > 0;
  switch (value.kind) {
    case Value::inputs:
    case Value::targets: {
      Buffer given{name, parts.activation(), parts.step.model.activations, Role::input, name, {parts.axes.tokens(), without_one_device({parts.axes.col})}};
      if (tokens) given.extents.pop_back(), given.sharding.pop_back(), given.dtype = DType::s32;
      return given;
    }
    case Value::activation:
    case Value::activation_gradient: return Buffer{name, parts.activation(), parts.step.model.activations, Role::scratch, {}, {}};
    default: return std::nullopt;
  }
}

}  // namespace

Plan default_layer_plan(const Workload& layer) {
  Plan plan;
  for (const Stage& stage : layer.stages) {
    StagePlan of{stage.name, ActivationLayout::tokens_by_row};
    const bool reads_width = reads_model_width(stage.name);
    if (stage.kind == Stage::Kind::product) of.product = ProductChoice{"collective", reads_width ? Dataflow::os : Dataflow::ls, false, 0};
    plan.stages.push_back(std::move(of));
  }
  return plan;
}

Expected<PipelineStep> pipeline_of(const TrainingStep& step, bool fuse_steady_state) {
  const auto ranks = static_cast<int>(step.mesh.stage), microbatches = static_cast<int>(step.microbatches);
  auto schedule = PipelineSchedule::one_f_one_b;
  if (ranks > 1) {
    const auto named = pipeline_schedule_named(step.pipeline, of_field("pipeline"));
    if (!named) return named.error();
    schedule = *named;
  }
  const PipelineSpec spec{schedule, ranks * static_cast<int>(step.virtual_stages), ranks, microbatches, fuse_steady_state};
  const auto lists = executed_lists(spec);
  if (!lists) {
    Diagnostic why = lists.error();
    if (why.where.is_field && (why.where.file == "stages" || why.where.file == "ranks"))
      why = {of_field("virtual_stages"), fmt::format("{}; stages are the {} of the mesh times virtual stages ({})", why.message, ranks, step.virtual_stages)};
    return why;
  }
  return pipeline_step(*lists, static_cast<int>(step.model.layers));
}

Expected<TrainingSchedule> training_schedule(const TrainingStep& step, const Mesh& mesh, const Plan& plan, const TrainingScheduleOptions& options) {
  if (step.microbatches > most_layer_passes / step.model.layers / options.steps) {
    const bool once = step.microbatches == 1, one_step = options.steps == 1;
    return Diagnostic{of_field(!once ? "microbatches" : one_step ? "layers" : "steps"),
                      fmt::format("expected at most {} passes of layers in all, found {} layers for {} microbatch{}{}", most_layer_passes, step.model.layers, step.microbatches,
                                  once ? "" : "es", one_step ? "" : fmt::format(" in {} steps", options.steps))};
  }
  auto pipeline = pipeline_of(step, options.fuse_steady_state);
  if (!pipeline) return pipeline.error();
  auto parts = step_parts(step, mesh, plan, options.optimiser);
  if (!parts) return parts.error();
  StepFunctions functions{*parts};
  TrainingSchedule result{{}, *std::move(pipeline), std::vector<std::vector<MemoryKind>>(static_cast<std::size_t>(step.mesh.stage))};
  std::vector<RankWriter> ranks;
  for (int rank = 0; rank < static_cast<int>(step.mesh.stage); ++rank)
    ranks.push_back(rank_writer(*parts, functions, result.pipeline, options, rank, result.memory[static_cast<std::size_t>(rank)]));
  const PipelineWork work{[&](const PipelineValue& value) { return describe(*parts, value); },
                          [&](PipelineProgram& program, const PipelineCommand& command, const Edges& after) {
                            return ranks[static_cast<std::size_t>(program.rank())](program, command, after);
                          }};
  auto schedule = write_pipeline(mesh, parts->axes.stage, result.pipeline, work, options.steps);
  if (!schedule) return schedule.error();
  result.schedule = *std::move(schedule);
  result.schedule.name = step.model.name;
  result.schedule.functions = std::move(functions).take();
  if (options.claims) {
    TrainingReference reference = training_reference(*parts, options.steps);
    result.schedule.computes = std::move(reference.program);
    result.outputs = std::move(reference.outputs);
  }
  for (std::size_t p = 0; p < result.memory.size(); ++p) result.memory[p].resize(result.schedule.programs[p].buffers.size(), MemoryKind::activations);
  return result;
}

}  // namespace podsim
