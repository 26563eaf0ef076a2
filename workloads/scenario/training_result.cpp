#include "workloads/scenario/training_result.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/analysis/peak_memory.hpp"
#include "sim/analysis/step_split.hpp"
#include "sim/base/units.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

namespace {

double seconds(Picoseconds time, int steps) { return to_seconds(time).count() / steps; }

TrainingSplit split_of(const StepSplit& split, const Mesh& mesh, int steps) {
  TrainingSplit result;
  result.compute = seconds(split.core.compute, steps);
  result.recompute = seconds(split.core.recompute, steps);
  result.optimizer = seconds(split.core.optimiser, steps);
  result.copies = seconds(split.core.copies, steps);
  result.launch = seconds(split.core.launch, steps);
  result.bubble = seconds(split.bubble, steps);
  result.waiting = seconds(split.waiting, steps);
  for (const StepSplit::Axis& axis : split.exposed)
    result.exposed.emplace_back(axis.axis < 0 ? "sends" : mesh.axes()[static_cast<std::size_t>(axis.axis)].name, seconds(axis.exposed, steps));
  return result;
}

Bytes& part_of(TrainingMemory& memory, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::weights: return memory.weights;
    case MemoryKind::gradients: return memory.gradients;
    case MemoryKind::optimizer: return memory.optimizer;
    case MemoryKind::activations: return memory.activations;
    case MemoryKind::working: break;
  }
  return memory.working;
}

TrainingMemory memory_of_device(const Run& run, DeviceId device) {
  const std::vector<MemoryKind>& kinds = run.row.problem.training->memory[*program_of(*run.lowered, device)];
  TrainingMemory memory;
  for (const LiveBuffer& live : live_at_peak(run.model, run.timeline, device)) {
    const bool known = live.buffer && live.buffer->index() < kinds.size();  // inlined calls have buffers behind those
    part_of(memory, known ? kinds[live.buffer->index()] : MemoryKind::working) += live.size;
  }
  return memory;
}

}  // namespace

TrainingResult training_result(const Run& run) {
  const TrainingSummary& summary = *run.row.problem.training;
  const TrainingStep& step = summary.given;
  const Machine& machine = run.system->machine;
  const int steps = summary.steps;
  TrainingResult result;
  result.step_s = seconds(run.metrics.makespan, steps);
  const TrainingCounts counts = counts_of(step);
  const auto devices = static_cast<double>(step.mesh.devices());
  result.tokens_per_s = static_cast<double>(step.tokens()) / result.step_s;
  const double of_devices = counts.model_flops().count() / result.step_s / devices;
  result.tflops_per_chip = of_devices * machine.chip.devices * 1e-12;
  const double peak = peak_of(machine, step.model.activations).count();
  result.mfu = of_devices / peak;
  result.hfu = counts_of(step, AttentionFlops::causal).hardware_flops().count() / result.step_s / devices / peak;
  result.split = split_of(split_step(run.model, run.timeline, run.metrics.busiest), run.lowered->mesh, steps);
  result.hbm = machine.chip.hbm;
  const std::vector<ProgramMetrics> programs = measure_programs(run.model, run.timeline);
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const ProgramMetrics& program = programs[rank];
    RankFigures figures;
    figures.stages = stages_of_rank(summary.pipeline.lists.spec, static_cast<int>(rank));
    figures.layers = static_cast<std::int64_t>(figures.stages.size()) * (summary.pipeline.layers / summary.pipeline.lists.spec.stages);
    figures.peak_memory = program.peak_memory;
    figures.busy_s = seconds(total(program.split.core), steps);
    figures.bubble_s = seconds(program.split.bubble, steps);
    result.stages.push_back(std::move(figures));
  }
  const auto most = std::max_element(programs.begin(), programs.end(), [](const ProgramMetrics& a, const ProgramMetrics& b) { return a.peak_memory < b.peak_memory; });
  result.memory = memory_of_device(run, most->busiest);
  return result;
}

std::string why_too_large(const TrainingResult& result, const TrainingStep& step) {
  if (result.memory.total() <= result.hbm) return {};
  std::vector<std::string> helps;
  if (step.remat.kind == Remat::Kind::none || step.remat.kind == Remat::Kind::selected) helps.emplace_back("remat full");
  const double of_state = static_cast<double>((result.memory.weights + result.memory.gradients + result.memory.optimizer).count());
  if (of_state > 0.5 * static_cast<double>(result.hbm.count())) helps.emplace_back("more devices along fsdp, stage, row or col");
  if (step.mesh.data > 1 && !step.shard_optimizer_over_data && result.memory.optimizer > Bytes{}) helps.emplace_back("the optimizer's state divided over data (--shard-optimizer-over-data on)");
  if (result.memory.activations > result.memory.working && step.microbatches == 1) helps.emplace_back("more microbatches");
  if (result.memory.activations > result.memory.working && step.pipeline == "gpipe") helps.emplace_back("the pipeline 1f1b");
  if (result.memory.working > result.memory.activations && step.model.vocabulary > 0 && step.loss_chunks == 1) helps.emplace_back("more microbatches, or the vocabulary divided by col");
  if (helps.empty()) helps.emplace_back("a smaller batch, or more devices");
  return fmt::format("the step needs {} of a device's {}: weights {}, gradients {}, optimizer {}, activations {}, working memory {}; what would help: {}",
                     to_text(result.memory.total()), to_text(result.hbm), to_text(result.memory.weights), to_text(result.memory.gradients),
                     to_text(result.memory.optimizer), to_text(result.memory.activations), to_text(result.memory.working), fmt::join(helps, "; "));
}

}  // namespace podsim
