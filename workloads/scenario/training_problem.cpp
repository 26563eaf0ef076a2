#include "workloads/scenario/training_problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/schedule/program_builder.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

namespace {

constexpr std::array<std::int64_t, 4> counts_to_try{2, 4, 8, 16};

Plan with_products(Plan plan, const std::string& algorithm, std::int64_t slice_count) {
  for (StagePlan& stage : plan.stages)
    if (stage.product) stage.product->algorithm = algorithm, stage.product->slice_count = slice_count;
  return plan;
}

struct Candidate {
  std::string algorithm;
  std::int64_t slice_count = 0;
};

std::vector<Candidate> candidates_of(const LayerChoices& choices, bool divided) {
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& algorithm) {
    if (algorithm != "meshslice") {
      candidates.push_back({algorithm, 0});
      return;
    }
    for (const std::int64_t count : counts_to_try)
      if (choices.slice_count == 0) candidates.push_back({algorithm, count});
    if (choices.slice_count > 0) candidates.push_back({algorithm, choices.slice_count});
  };
  if (!choices.algorithm.empty()) add(choices.algorithm);
  else if (!divided) add("collective");
  else
    for (const char* algorithm : {"collective", "wang", "meshslice"}) add(algorithm);
  return candidates;
}

/// Problems with an extent of the model name it, not an option.
Diagnostic of_step(Diagnostic problem) {
  constexpr std::array<std::string_view, 9> of_options{"mesh", "batch", "batch_per_device", "microbatches", "pipeline", "virtual_stages", "remat", "fuse_steady_state", "steps"};
  if (!problem.where.is_field || std::find(of_options.begin(), of_options.end(), problem.where.file) != of_options.end()) return problem;
  return {{}, fmt::format("the model's {}: {}", problem.where.file, problem.message)};
}

/// One layer, forward and backward, on all devices.
Schedule layer_alone(const StepParts& parts) {
  ProgramBuilder program{parts.mesh, every_device(parts.mesh)};
  std::map<std::string, BufferId> buffers;
  Schedule schedule{"layer", parts.mesh, {}, {}};
  Edges after;
  for (const TensorFunction* of : {&parts.functions.forward, &parts.functions.backward}) {
    Call call{static_cast<int>(schedule.functions.size()), {}};
    schedule.functions.push_back(of->function);
    for (const Buffer& parameter : of->parameters) {
      const auto [known, added] = buffers.try_emplace(parameter.tensor);
      if (added) known->second = program.add_buffer({parameter.name, parameter.extents, parameter.dtype, Role::scratch, {}, {}});
      call.arguments.push_back(known->second);
    }
    after = program.step(of->function.name, std::move(call), std::move(after));
  }
  schedule.programs.push_back(std::move(program).finish());
  return schedule;
}

}  // namespace

std::string usual_step_collectives(const System& system) {
  return std::string{system.machine.interconnect == Interconnect::rail ? nccl_name : direct_between_slices_name};
}

Expected<PlannedTraining> choose_layers(const System& system, const TrainingSpec& spec, const RunOptions& options) {
  TrainingStep step = spec.step;
  const auto axes = step_axes(system.mesh);
  if (!axes) return axes.error();
  step.mesh = sizes_of(*axes);
  auto whole = divided(step);
  if (!whole) return of_step(whole.error());
  PlannedTraining planned{step, *std::move(whole), spec.options, {}, spec.collectives};
  const auto layer = workload_of(layer_of(planned.divided.step.model, 1), 1);
  if (!layer) return layer.error();
  const Plan usual = default_layer_plan(*layer);
  const std::vector<Candidate> candidates = candidates_of(spec.layers, step.mesh.row * step.mesh.col > 1);
  RunOptions quiet = options;
  quiet.engine = &des_engine();
  quiet.control.progress = {};
  std::optional<Picoseconds> best;
  Diagnostic none;
  for (const Candidate& candidate : candidates) {
    const Plan plan = with_products(usual, candidate.algorithm, candidate.slice_count);
    const auto parts = step_parts(planned.divided.step, system.mesh, plan, spec.options.optimiser);
    if (!parts) {
      none = of_step(parts.error());
      continue;
    }
    if (candidates.size() == 1) {
      planned.plan = plan;
      return planned;
    }
    options.tell(fmt::format("choosing how to compute layers: {} {}", candidate.algorithm, candidate.slice_count));
    const auto run = simulate(system, layer_alone(*parts), quiet, {spec.collectives, {}});
    if (!run) return run.error();
    if (run->timeline.interrupted) return cancelled_work();
    if (best && *best <= run->metrics.makespan) continue;
    best = run->metrics.makespan;
    planned.plan = plan;
  }
  if (!best) return none;
  return planned;
}

}  // namespace podsim
