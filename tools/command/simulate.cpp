#include "tools/command/simulate.hpp"

#include <fmt/format.h>

#include <chrono>

#include "sim/engine/fold.hpp"

namespace podsim {

namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// How far the machine's values are to be trusted: a what-if machine or slice, or what the machine says of itself.
TrustLevel trust_level(const Pod& pod) {
  return pod.hypothetical || pod.machine.slices.any_shape ? TrustLevel::hypothetical : pod.machine.trust.level;
}

constexpr double instances_per_second = 4e6, bytes_per_instance = 20;  // of des, recorded: podsim_bench

Result result_of(const Pod& pod, const Problem& problem, const SimulatedRun& run) {
  const Metrics& metrics = run.metrics;
  Result result;
  result.machine = pod.machine.name;
  result.slice = to_text(pod.slice);
  result.schedule = problem.schedule.name;
  result.hypothetical = pod.hypothetical;
  for (const MeshAxis& axis : run.lowered->mesh.axes()) result.mesh.emplace_back(axis.name, axis.size);
  result.devices = run.lowered->mesh.devices();
  result.device_classes = static_cast<int>(run.model.nodes());
  result.makespan_s = to_seconds(metrics.makespan).count();
  result.compute_s = to_seconds(metrics.split.compute).count();
  result.exposed_communication_s = to_seconds(metrics.split.exposed_communication).count();
  result.waiting_s = to_seconds(metrics.split.waiting).count();
  result.flops = metrics.flops.count();
  result.mfu = metrics.mfu;
  result.link_bytes = metrics.link_bytes;
  result.peak_memory_bytes = metrics.peak_memory.count();
  result.tasks = metrics.tasks;
  result.events = run.timeline.events;
  result.trust_level = name_of(trust_level(pod));
  result.trust_dataset = pod.machine.trust.dataset;
  result.trust_error = pod.machine.trust.error;
  return result;
}

}  // namespace

Expected<Model> model_on(const Pod& pod, const Schedule& lowered, const Manner& manner) {
  const bool fold = manner.fold && manner.engine->folds;
  auto model =
      fold ? make_folded_model(lowered, pod.machine, *pod.topology, pod.placement) : make_model(lowered, pod.machine, *pod.topology, pod.placement);
  if (!model) return model.error();
  if (const auto instances = static_cast<double>(model->deployment.activities()); instances > manner.unasked && !manner.force)
    return Diagnostic{
        {},
        fmt::format("{} of {} devices are simulated one by one{}: {:.3g} million task instances, about {:.2g} s and {:.2g} GB; expected "
                    "less than {:.3g} million, or --force to run it",
                    model->nodes(), lowered.mesh.devices(), fold ? ", as they do not behave alike" : "", instances * 1e-6,
                    instances / instances_per_second, instances * bytes_per_instance * 1e-9, manner.unasked * 1e-6)};
  return model;
}

Expected<SimulatedRun> simulate(const Pod& pod, const Problem& problem, const Manner& manner) {
  const Stopwatch build;
  auto lowered = lower(problem.schedule, problem.chooser);
  if (!lowered) return lowered.error();
  const double build_seconds = build.seconds();
  auto run = simulate_lowered(pod, problem, *std::move(lowered), manner);
  if (run) run->row.result.build_s = build_seconds;
  return run;
}

Expected<SimulatedRun> simulate_lowered(const Pod& pod, const Problem& problem, Schedule lowered, const Manner& manner) {
  const Stopwatch wall;
  SimulatedRun run;
  run.pod = std::make_unique<const Pod>(pod);
  run.lowered = std::make_unique<const Schedule>(std::move(lowered));
  auto model = model_on(*run.pod, *run.lowered, manner);
  if (!model) return model.error();
  run.model = *std::move(model);
  auto timeline = manner.engine->run(run.model, manner.control);
  if (!timeline) return timeline.error();
  run.timeline = *std::move(timeline);
  run.row = {{}, problem.algorithm, problem.dataflow, problem.slice_count, problem.padding, false, {}, pod.what_if.topology, {}, problem.layers};
  if (run.timeline.interrupted) return run;
  run.metrics = measure(run.model, run.timeline);
  run.row.result = result_of(pod, problem, run);
  run.row.result.engine = manner.engine->name;
  run.row.over_hbm = run.metrics.peak_memory > pod.machine.chip.hbm;
  run.row.axes = run.metrics.axes;
  run.row.result.wall_s = wall.seconds();
  return run;
}

}  // namespace podsim
