#include "tools/command/simulate.hpp"

#include <chrono>

#include "sim/engine/metrics.hpp"

namespace podsim {

namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// How far the machine's values are to be trusted: a what-if machine or slice, or values from specifications and published fits.
std::string trust_level(const Pod& pod) { return pod.hypothetical || pod.machine.slices.any_shape ? "hypothetical" : "spec"; }

}  // namespace

Expected<Row> simulate(const Pod& pod, const Problem& problem, const EngineEntry& engine) {
  const Stopwatch build;
  const auto lowered = lower(problem.schedule, problem.chooser);
  if (!lowered) return lowered.error();
  Row row{{}, problem.algorithm, problem.dataflow, problem.slice_count, problem.padding};
  Result& result = row.result;
  result.build_s = build.seconds();

  const Stopwatch wall;
  const auto timeline = engine.make(pod.machine, pod.grid, pod.placement)->run(*lowered);
  if (!timeline) return timeline.error();
  const auto costs = cost(*lowered, pod.machine, pod.grid, pod.placement);
  if (!costs) return costs.error();
  const Metrics metrics = measure(*lowered, *costs, pod.machine, *timeline);

  result.engine = engine.name;
  result.machine = pod.machine.name;
  result.slice = to_text(pod.slice);
  result.schedule = problem.schedule.name;
  result.hypothetical = pod.hypothetical;
  for (const MeshAxis& axis : lowered->mesh.axes()) result.mesh.emplace_back(axis.name, axis.size);
  result.devices = result.device_classes = lowered->mesh.devices();
  result.makespan_s = to_seconds(metrics.makespan).count();
  result.compute_s = to_seconds(metrics.compute).count();
  result.exposed_communication_s = to_seconds(metrics.exposed_communication).count();
  result.waiting_s = to_seconds(metrics.waiting).count();
  result.flops = metrics.flops.count();
  result.mfu = metrics.mfu;
  result.link_bytes = metrics.link_bytes;
  result.peak_memory_bytes = metrics.peak_memory.count();
  result.tasks = metrics.tasks;
  result.events = timeline->events;
  result.trust_level = trust_level(pod);
  row.over_hbm = metrics.peak_memory > pod.machine.chip.hbm;
  result.wall_s = wall.seconds();
  return row;
}

}  // namespace podsim
