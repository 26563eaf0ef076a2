#include "tools/command/simulate.hpp"

#include <fmt/format.h>

#include <chrono>

#include "sim/model/fold.hpp"
#include "validation/calibration/fit/coverage.hpp"
#include "validation/validate/trust.hpp"

namespace podsim {

namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

constexpr double instances_per_second = 4e6, bytes_per_instance = 20;  // of des, recorded: podsim_bench

Result result_of(const Pod& pod, const Problem& problem, const SimulatedRun& run) {
  const Metrics& metrics = run.metrics;
  Result result;
  result.machine = pod.machine.name;
  result.slice = to_text(pod.slice);
  result.schedule = problem.schedule.name;
  result.hypothetical = is_hypothetical(pod);
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
  result.trust = trust_of(pod, pod.machine.trust.covers.empty() ? std::vector<Coverage>{} : operations_in(problem.schedule, pod),
                          problem.lowering);
  return result;
}

}  // namespace

namespace {

Diagnostic too_many(const FoldedSize& size, int devices, bool exact, const Manner& manner) {
  const auto instances = static_cast<double>(size.instances);
  return {{},
          fmt::format("{}{} of {} devices are simulated one by one{}: {:.3g} million task instances, about {:.2g} s and {:.2g} GB; expected "
                      "less than {:.3g} million, or --force to run it",
                      exact ? "" : "at least ", size.classes, devices, manner.fold && manner.engine->folds ? ", as they do not behave alike" : "",
                      instances * 1e-6, instances / instances_per_second, instances * bytes_per_instance * 1e-9, manner.unasked * 1e-6)};
}

/// Refuses what is too large whatever its routes are, before any is found: of 65,536 devices that alone takes longer than most runs.
Done check_guarded_size(const Schedule& lowered, const Manner& manner) {
  if (manner.force) return done();
  const FoldedSize size = least_guarded_size(lowered, manner.fold && manner.engine->folds);
  if (static_cast<double>(size.instances) <= manner.unasked) return done();
  return too_many(size, lowered.mesh.devices(), static_cast<int>(size.classes) == lowered.mesh.devices(), manner);
}

Done check_size(const Deployment& deployment, const Placement& placement, const Manner& manner) {
  FoldedSize size{static_cast<std::uint32_t>(deployment.places.size()), deployment.activities()};
  if (manner.force || static_cast<double>(size.instances) <= manner.unasked) return done();
  if (manner.fold && manner.engine->folds) {
    const auto least = least_folded_size(deployment, placement.speed, manner.unasked, manner.control.stop);
    if (!least) return cancelled_work();
    size = *least;
  }
  if (static_cast<double>(size.instances) <= manner.unasked) return done();
  return too_many(size, static_cast<int>(deployment.places.size()), size.classes == deployment.places.size(), manner);
}

}  // namespace

Expected<Model> model_on(const Pod& pod, const Schedule& lowered, const Manner& manner) {
  const Cancellation stop = manner.control.stop;
  const bool folds = manner.fold && manner.engine->folds;
  if (folds) {
    auto torus = fold_torus(lowered, pod.machine, *pod.topology, pod.placement);
    if (!torus) return torus.error();
    if (*torus) return **std::move(torus);
  }
  if (auto ok = check_guarded_size(lowered, manner); !ok) return ok.error();
  Deployed deployed = deploy(lowered, stop);
  if (!deployed.problems.empty()) return deployed.problems.front();
  if (auto ok = check_size(deployed.deployment, pod.placement, manner); !ok) return ok.error();
  auto model = cost_deployment(lowered, pod.machine, *pod.topology, pod.placement, std::move(deployed.deployment), stop);
  if (!model) return model.error();
  if (folds) model = fold(*std::move(model), stop);
  if (stop.requested()) return cancelled_work();
  const FoldedSize size{static_cast<std::uint32_t>(model->nodes()), model->deployment.activities()};
  if (static_cast<double>(size.instances) > manner.unasked && !manner.force) return too_many(size, lowered.mesh.devices(), true, manner);
  return model;
}

Expected<SimulatedRun> simulate(const Pod& pod, const Problem& problem, const Manner& manner) {
  auto run = prepare(pod, problem, manner);
  if (!run) return run.error();
  if (auto ok = play(*run, problem, manner); !ok) return ok.error();
  return run;
}

Expected<SimulatedRun> simulate_lowered(const Pod& pod, const Problem& problem, Schedule lowered, const Manner& manner) {
  auto run = prepare_lowered(pod, problem, std::move(lowered), manner);
  if (!run) return run.error();
  if (auto ok = play(*run, problem, manner); !ok) return ok.error();
  return run;
}

Expected<SimulatedRun> prepare(const Pod& pod, const Problem& problem, const Manner& manner) {
  const Stopwatch build;
  manner.tell("lowering " + problem.schedule.name);
  auto lowered = lower(problem.schedule, problem.chooser);
  if (!lowered) return lowered.error();
  const double build_seconds = build.seconds();
  auto run = prepare_lowered(pod, problem, *std::move(lowered), manner);
  if (run) run->row.result.build_s = build_seconds;
  return run;
}

Expected<SimulatedRun> prepare_lowered(const Pod& pod, const Problem& problem, Schedule lowered, const Manner& manner) {
  const Stopwatch wall;
  manner.tell("finding routes and costs of " + problem.schedule.name);
  SimulatedRun run;
  run.pod = std::make_unique<const Pod>(pod);
  run.lowered = std::make_unique<const Schedule>(std::move(lowered));
  auto model = model_on(*run.pod, *run.lowered, manner);
  if (!model) return model.error();
  run.model = *std::move(model);
  run.row = {{}, problem.algorithm, problem.dataflow, problem.slice_count, problem.padding, false, {}, pod.what_if, slow_devices(pod), {}, problem.layers};
  run.row.blocks = problem.blocks;
  run.row.tokens = problem.tokens;
  run.row.collective = problem.collective;
  run.row.replicated = problem.replicated;
  run.row.result.wall_s = wall.seconds();
  return run;
}

Done play(SimulatedRun& run, const Problem& problem, const Manner& manner) {
  const Stopwatch wall;
  manner.tell("simulating " + problem.schedule.name);
  auto timeline = manner.engine->run(run.model, manner.control);
  if (!timeline) return timeline.error();
  run.timeline = *std::move(timeline);
  if (run.timeline.interrupted) return done();
  run.metrics = measure(run.model, run.timeline);
  const Result prepared = run.row.result;
  run.row.result = result_of(*run.pod, problem, run);
  run.row.result.engine = manner.engine->name;
  run.row.over_hbm = run.metrics.peak_memory > run.pod->machine.chip.hbm;
  run.row.axes = run.metrics.axes;
  run.row.result.build_s = prepared.build_s;
  run.row.result.wall_s = prepared.wall_s + wall.seconds();
  return done();
}

}  // namespace podsim
