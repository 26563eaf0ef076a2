#include "workloads/scenario/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <span>

#include "sim/base/blame.hpp"
#include "sim/engine/busiest_link.hpp"
#include "sim/model/fold.hpp"
#include "sim/model/recost.hpp"
#include "sim/schedule/calls.hpp"
#include "workloads/scenario/coverage.hpp"
#include "workloads/scenario/trust.hpp"

namespace podsim {

namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

constexpr double instances_per_second = 4e6, bytes_per_instance = 20;  // of des, recorded: podsim_bench

/// The memory of a module, in the order of its text, as `show hlo` tells it.
const HloPeakMemory* module_memory(const Run& run) {
  const auto& hlo = run.row.problem.hlo;
  return hlo != nullptr && hlo->memory ? &*hlo->memory : nullptr;
}

/// Of a module: what `show hlo` counts, on all devices. Its schedule has some of that work, as Fourier transforms, on the vector unit, where no metric looks for products.
void set_module_flops(const HloFlops& flops, const Machine& machine, Result& result) {
  if (!(flops.all() > 0)) return;
  result.flops = flops.all() * result.devices;
  double peaks = 0;  // seconds at the peaks of each type
  for (std::size_t d = 0; d < flops.of.size(); ++d)
    if (flops.of[d] > 0) peaks += flops.of[d] / peak_of(machine, static_cast<DType>(d)).count();
  if (result.makespan_s > 0) result.mfu = peaks / result.makespan_s;
}

Result result_of(const Run& run) {
  const System& system = *run.system;
  const Metrics& metrics = run.metrics;
  Result result;
  result.machine = system.machine.name;
  result.slice = to_text(system.slice);
  result.schedule = run.lowered->name;
  result.hypothetical = is_hypothetical(system);
  const Mesh& mesh = run.row.problem.on_mesh ? *run.row.problem.on_mesh : run.lowered->mesh;
  for (const MeshAxis& axis : mesh.axes()) result.mesh.emplace_back(axis.name, axis.size);
  result.devices = run.lowered->mesh.devices();
  result.device_classes = static_cast<int>(run.model.nodes());
  result.makespan_s = to_seconds(metrics.makespan).count();
  result.compute_s = to_seconds(metrics.split.compute).count();
  result.exposed_communication_s = to_seconds(metrics.split.exposed_communication).count();
  result.waiting_s = to_seconds(metrics.split.waiting).count();
  result.flops = metrics.flops.count();
  result.mfu = metrics.mfu;
  if (run.row.problem.hlo != nullptr) set_module_flops(run.row.problem.hlo->trust.flops, system.machine, result);
  result.link_bytes = metrics.link_bytes;
  const HloPeakMemory* const module = module_memory(run);
  result.peak_memory_bytes = (module != nullptr ? module->hbm : metrics.peak_memory).count();
  result.tasks = metrics.tasks;
  result.events = run.timeline.events;
  result.pass = run.timeline.pass;
  result.trust = run.row.result.trust;
  return result;
}

Diagnostic too_many(const FoldedSize& size, int devices, bool exact, const RunOptions& options) {
  const auto instances = static_cast<double>(size.instances);
  return {{},
          fmt::format("{}{} of {} devices are simulated one by one{}: {:.3g} million task instances, about {:.2g} s and {:.2g} GB; expected "
                      "less than {:.3g} million, or `force` to run it",
                      exact ? "" : "at least ", size.classes, devices, options.folds() ? ", as they do not behave alike" : "",
                      instances * 1e-6, instances / instances_per_second, instances * bytes_per_instance * 1e-9, options.most_instances * 1e-6),
          Cause::too_large};
}

constexpr double bytes_per_task = 1600;  // 1.32 GB for 883 thousand tasks, recorded: a step of Nemotron-4 340B on 128 chips, 16 microbatches

/// What memory should be spent on.
double most_tasks_in_memory(const RunOptions& options) {
  constexpr double instances_per_task = 16;  // 10 GB
  return options.force ? std::numeric_limits<double>::infinity() : options.most_instances / instances_per_task;
}

/// Errors: `tasks`, which the result has, are more.
Status check_written_out(const Schedule& schedule, double tasks, const RunOptions& options) {
  const double most = most_tasks_in_memory(options);
  if (tasks <= most) return success();
  return Diagnostic{{},
                    fmt::format("the calls of {} written out are {:.3g} million tasks, about {:.2g} GB; expected less than {:.3g} million, or `force` to run it. Played as one task each, which `calls` "
                                "auto on des does where it is exact, they need no more than the functions; explaining a run writes them out",
                                schedule.name, tasks * 1e-6, tasks * bytes_per_task * 1e-9, most * 1e-6)};
}

/// The schedule without calls. Errors: those of check_written_out().
Expected<Schedule> write_out_calls(Schedule schedule, const RunOptions& options) {
  if (auto ok = check_written_out(schedule, tasks_written_out(schedule), options); !ok) return ok.error();
  return inline_calls(std::move(schedule));
}

/// As if every device did every task.
double most_instances_of(const Schedule& lowered) {
  double instances = 0;
  for (const Program& program : lowered.programs) instances += static_cast<double>(program.tasks.size()) * size_of(program.devices);
  return instances;
}

/// Refuses what is too large whatever its routes are, before any is found: of 65,536 devices that alone takes longer than most runs.
Status check_guarded_size(const Schedule& lowered, const RunOptions& options) {
  if (options.force || most_instances_of(lowered) <= options.most_instances) return success();
  const FoldedSize size = least_guarded_size(lowered, options.folds());
  if (static_cast<double>(size.instances) <= options.most_instances) return success();
  return too_many(size, lowered.mesh.devices(), static_cast<int>(size.classes) == lowered.mesh.devices(), options);
}

Status check_size(const Deployment& deployment, const Placement& placement, const RunOptions& options) {
  FoldedSize size{static_cast<std::uint32_t>(deployment.places.size()), deployment.activities()};
  if (options.force || static_cast<double>(size.instances) <= options.most_instances) return success();
  if (options.folds()) {
    const auto least = least_folded_size(deployment, placement.speed, options.most_instances, options.control.stop);
    if (!least) return cancelled_work();
    size = *least;
  }
  if (static_cast<double>(size.instances) <= options.most_instances) return success();
  return too_many(size, static_cast<int>(deployment.places.size()), size.classes == deployment.places.size(), options);
}

}  // namespace

Expected<CostedModel> costed_model_on(const System& system, const Schedule& lowered, const RunOptions& options, std::shared_ptr<const PlayedCalls> calls) {
  const Cancellation stop = options.control.stop;
  if (calls == nullptr && has_calls(lowered)) {
    auto playable = play_calls(system, lowered, options);
    if (!playable) return playable.error();
    if (playable->calls == nullptr) return Diagnostic{{}, "calls cannot be played: " + playable->why_not};
    calls = std::move(playable->calls);
  }
  if (options.folds()) {
    const double most = options.force ? std::numeric_limits<double>::infinity() : options.most_instances;
    auto folded = fold_by_translations(lowered, system.machine, *system.topology, system.placement, stop, calls, most);
    if (!folded) return folded.error();
    if (*folded) return CostedModel{**std::move(folded), true};
  }
  if (auto ok = check_guarded_size(lowered, options); !ok) return ok.error();
  Deployed deployed = deploy(lowered, stop);
  if (!deployed.problems.empty()) return deployed.problems.front();
  if (auto ok = check_size(deployed.deployment, system.placement, options); !ok) return ok.error();
  auto model = cost_deployment(lowered, system.machine, *system.topology, system.placement, std::move(deployed.deployment), stop, calls);
  if (!model) return model.error();
  if (stop.requested()) return cancelled_work();
  return CostedModel{*std::move(model), !options.folds()};
}

Expected<Model> folded_model(CostedModel costed, const RunOptions& options) {
  if (costed.is_folded) return std::move(costed.model);
  Model model = fold(std::move(costed.model), options.control.stop);
  if (options.control.stop.requested()) return cancelled_work();
  const FoldedSize size{static_cast<std::uint32_t>(model.nodes()), model.deployment.activities()};
  if (static_cast<double>(size.instances) > options.most_instances && !options.force) return too_many(size, model.schedule->mesh.devices(), true, options);
  return model;
}

Expected<Model> model_on(const System& system, const Schedule& lowered, const RunOptions& options, std::shared_ptr<const PlayedCalls> calls) {
  auto costed = costed_model_on(system, lowered, options, std::move(calls));
  if (!costed) return costed.error();
  // With calls no limit holds, as they may be written out.
  const bool is_limited = options.control.limit < end_of_clock && costed->model.calls == nullptr;
  costed->is_folded |= is_limited && time_of_busiest_link(costed->model) > options.control.limit;
  return folded_model(*std::move(costed), options);
}

Expected<LoweredProblem> lower_problem(const System& system, Problem problem, const RunOptions& options) {
  const Stopwatch build;
  if (options.write_out_calls && has_calls(problem.schedule)) problem.schedule = inline_calls(std::move(problem.schedule));
  auto choices = choose_collectives(system, problem.schedule, problem.collectives, options);
  if (!choices) return choices.error();
  options.tell("lowering " + problem.schedule.name);
  auto lowered = lower_with_calls(problem.schedule, choices->chooser);
  if (!lowered) return lowered.error();
  if (!options.plays_calls() && has_calls(*lowered)) {
    lowered = write_out_calls(*std::move(lowered), options);
    if (!lowered) return lowered.error();
  }
  return LoweredProblem{std::move(problem), std::move(choices->chosen), *std::move(lowered), build.seconds()};
}

Expected<Run> simulate(const System& system, const Problem& problem, const RunOptions& options) {
  auto lowered = lower_problem(system, problem, options);
  if (!lowered) return lowered.error();
  return simulate(system, *std::move(lowered), options);
}

Expected<Run> simulate(const System& system, LoweredProblem lowered, const RunOptions& options) {
  auto run = prepare(system, std::move(lowered), options);
  if (!run) return run.error();
  if (auto ok = play(*run, options); !ok) return ok.error();
  return run;
}

Expected<Run> simulate(const System& system, const Schedule& schedule, const RunOptions& options, const CollectivePolicy& policy) {
  const auto problem = make_problem(system, ScheduleSpec{schedule, policy});
  if (!problem) return problem.error();
  return simulate(system, *problem, options);
}

namespace {

/// Whether the phases of a collective go along the GPUs of a node before they go between nodes, as those that calibrate fits do.
bool inside_nodes_first(const Collective& collective, const System& system, const Mesh& mesh) {
  if (!has_nodes(system)) return true;
  const auto node_of = [&](DeviceId device) {
    return system.placement.chip_of[device.index()].index() / static_cast<std::size_t>(system.slice.extents.back());
  };
  bool between = false;
  for (const AxisView& axis : collective.axes) {
    if (axis.size == 1) continue;
    if (between) return false;
    bool inside = false;
    for (int by = 1; by < axis.size; ++by) (node_of(mesh.shifted(DeviceId{0}, axis, by)) == node_of(DeviceId{0}) ? inside : between) = true;
    if (inside && between) return false;
  }
  return true;
}

/// Whether it is one collective by an algorithm that is none of podsim's.
bool brings_its_own_tasks(const Problem& problem) {
  const auto is_open = [](const Task& task) { return std::holds_alternative<Collective>(task.op); };
  return problem.summary.collective && std::none_of(problem.schedule.programs.front().tasks.begin(), problem.schedule.programs.front().tasks.end(), is_open);
}

/// What is asked of the system, not how it is done.
std::vector<Coverage> operations_of(const Problem& problem, const System& system) {
  if (!brings_its_own_tasks(problem)) return operations_in(problem.schedule, system);
  const Program& program = problem.schedule.programs.front();
  const Task task{"", std::get<Collective>(problem.schedule.computes), {}, {}, {}};
  return operations_in({problem.schedule.name, problem.schedule.mesh, {{program.devices, program.buffers, {task}}}, {}}, system);
}

/// nullopt: ring, or line on open axes, as in fits, and what a plan says.
std::optional<OtherLowering> other_lowering(const System& system, const Problem& problem) {
  const CollectivePolicy& policy = problem.collectives;
  if (is_rule(policy.algorithm)) return std::nullopt;
  if (brings_its_own_tasks(problem)) return OtherLowering{problem.summary.algorithm};
  if (policy.algorithm.empty()) return std::nullopt;
  const auto lowering = policy.chosen ? Expected<Lowering>{*policy.chosen} : lowering_named(policy.algorithm);  // none: auto
  const CollectiveAlgorithmEntry* const algorithm = lowering ? lowering->algorithm : nullptr;
  OtherLowering other{policy.algorithm, algorithm != nullptr && algorithm == collective_algorithm_named("in-switch")};
  const bool as_named = algorithm != nullptr && *lowering == Lowering{algorithm};
  const bool fitted = as_named && (algorithm == collective_algorithm_named("ring") || algorithm == collective_algorithm_named("line"));
  const auto* collective = std::get_if<Collective>(&problem.schedule.computes);
  if (collective == nullptr) return fitted ? std::nullopt : std::optional{other};
  const Mesh& mesh = problem.schedule.mesh;
  const bool usual = as_named && std::all_of(collective->axes.begin(), collective->axes.end(), [&](const AxisView& axis) {
    return axis.size == 1 || &usual_algorithm(collective->kind, mesh.wraps(axis)) == algorithm;
  });
  if ((usual || fitted) && !inside_nodes_first(*collective, system, mesh)) return OtherLowering{other.name + ", between nodes first", other.in_switch};
  return fitted || (usual && policy.chosen) ? std::nullopt : std::optional{other};
}

}  // namespace

namespace {

std::int64_t calls_in(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const Program& program : schedule.programs)
    count += std::count_if(program.tasks.begin(), program.tasks.end(), [](const Task& task) { return std::holds_alternative<Call>(task.op); });
  return count;
}

/// All of them, without a model that plays any.
Status inline_all_calls(Run& run, std::string why, const RunOptions& options) {
  const std::int64_t count = calls_in(*run.lowered);
  auto inlined = write_out_calls(std::move(*run.lowered), options);
  if (!inlined) return in_context("calls cannot be played: " + why, inlined.error());
  CallSummary& calls = run.row.calls;
  calls.inlined += count;
  if (calls.why_inlined.empty()) calls.why_inlined = std::move(why);
  *run.lowered = *std::move(inlined);
  return success();
}

/// By how much the run is longer, at most, with what those calls wait for memory.
Expected<Seconds> waits_for_memory(const Run& run, std::span<const InexactPlay::Waiting> calls, const RunOptions& options) {
  Model longer = run.model;
  for (const auto& call : calls) {
    TaskCost& cost = longer.costs[call.program][call.task];
    cost.work = cost.work + call.at_most;
  }
  RunControl control = options.control;
  control.record = false;
  const auto timeline = options.engine->run(longer, control);
  if (!timeline) return timeline.error();
  if (timeline->interrupted) return cancelled_work();
  return std::max(Seconds{}, to_seconds(timeline->makespan) - to_seconds(run.timeline.makespan));
}

/// Those in use by others, with the first `count` of those that wait for memory.
InexactCalls with_first_waiting(const InexactPlay& inexact, std::size_t count) {
  InexactCalls calls = inexact.by_links;
  for (const auto& call : std::span{inexact.waiting}.first(count)) calls.chosen[call.program][call.task] = true;
  calls.count += static_cast<std::int64_t>(count);
  if (calls.why.empty()) calls.why = inexact.by_memory.why;
  return calls;
}

/// Those whose play was not exact, of what `inexact` found. Those that only share memory: all where they become few tasks; else, as far as memory allows it, those that may wait longest, until what
/// the others may wait is little of the time. `run` says how long those that are left wait at most.
Expected<InexactCalls> calls_to_write_out(Run& run, const InexactPlay& inexact, const RunOptions& options) {
  CallSummary& calls = run.row.calls;
  calls.beside = 0, calls.beside_at_most_s.reset(), calls.why_beside.clear();
  const std::span<const InexactPlay::Waiting> waiting = inexact.waiting;
  const auto tasks_with_first = [&](std::size_t count) { return tasks_written_out(*run.lowered, with_first_waiting(inexact, count).chosen); };
  if (waiting.empty() || tasks_with_first(waiting.size()) <= options.most_written_out) return with_first_waiting(inexact, waiting.size());
  std::optional<Seconds> waits;
  if (!inexact.transfers_wait) {
    auto all = waits_for_memory(run, waiting, options);
    if (!all) return all.error();
    waits = *all;
  }
  const Seconds most_left_out = options.most_left_out * to_seconds(run.timeline.makespan);
  if (!waits || *waits > most_left_out) {
    std::size_t too_few = 0, enough = waiting.size();
    while (!inexact.transfers_wait && enough - too_few > 1) {
      const std::size_t count = std::midpoint(too_few, enough);
      const auto left = waits_for_memory(run, waiting.subspan(count), options);
      if (!left) return left.error();
      (*left <= most_left_out ? enough : too_few) = count;
    }
    if (tasks_with_first(enough) <= most_tasks_in_memory(options)) return with_first_waiting(inexact, enough);
  }
  calls.beside = static_cast<std::int64_t>(waiting.size());
  calls.beside_at_most_s = waits ? std::optional{waits->count()} : std::nullopt;
  calls.why_beside = inexact.by_memory.why;
  return inexact.by_links;
}

/// Those whose play was not exact.
Status inline_some_calls(Run& run, const InexactCalls& inexact, const RunOptions& options) {
  if (auto ok = check_written_out(*run.lowered, tasks_written_out(*run.lowered, inexact.chosen), options); !ok) return in_context("calls cannot be played: " + inexact.why, ok.error());
  CallSummary& calls = run.row.calls;
  calls.inlined += inexact.count;
  if (calls.why_inlined.empty()) calls.why_inlined = inexact.why;
  run.model = {}, run.timeline = {};  // of the schedule with those calls, which changes
  *run.lowered = inline_calls(std::move(*run.lowered), inexact.chosen);
  return success();
}

/// The model of another run, recosted. False: it is not made like this one.
Expected<bool> add_model_like(const Run& like, Run& run, const RunOptions& options) {
  if (*like.lowered != *run.lowered || !differ_in_machine_only(*like.system, *run.system)) return false;
  auto model = recost(like.model, run.system->machine, *run.system->topology, run.system->placement, options.control.stop);
  if (!model) return model.error();
  if (!*model) return false;
  run.model = **std::move(model);
  return true;
}

/// With calls played, by `calls` or by what play_calls() finds, where that may be exact.
Status add_model(Run& run, const RunOptions& options, std::shared_ptr<const PlayedCalls> calls = {}) {
  if (!has_calls(*run.lowered)) calls = nullptr;
  if (calls == nullptr && has_calls(*run.lowered)) {
    auto playable = play_calls(*run.system, *run.lowered, options);
    if (!playable) return playable.error();
    calls = std::move(playable->calls);
    if (calls == nullptr)
      if (auto ok = inline_all_calls(run, playable->why_not, options); !ok) return ok;
  }
  auto model = model_on(*run.system, *run.lowered, options, std::move(calls));
  if (!model) return model.error();
  run.model = *std::move(model);
  return success();
}

/// The timeline of one node, with what the engine said of all.
Timeline with_counts(Timeline of_node, const Timeline& all) {
  of_node.events = all.events;
  of_node.pass = all.pass;
  of_node.finished = all.finished;
  return of_node;
}

/// Runs the engine. Where the timeline is not to be kept, the metrics too, if the engine tells times task by task: the timeline is then that of the busiest
/// device. nullopt: the timeline has everything.
Expected<std::optional<Metrics>> run_and_measure(Run& run, const RunOptions& options) {
  RunControl control = options.control;
  if (run.model.calls != nullptr) control.limit = end_of_clock;  // written out they may take less, where devices begin one at different times
  control.record |= run.model.calls != nullptr || run.row.problem.training != nullptr;  // they look at every device
  std::optional<MetricsReader> reader;
  for (;;) {
    if (!control.record) {
      if (reader)
        reader.emplace(run.model, *reader->still_to_read());
      else
        reader.emplace(run.model);
      control.reader = &*reader;
    }
    auto timeline = options.engine->run(run.model, control);
    if (!timeline) return timeline.error();
    run.timeline = *std::move(timeline);
    if (control.record || run.timeline.interrupted || run.timeline.size() > 0) return std::optional<Metrics>{};
    if (!reader->still_to_read()) break;
  }
  MetricsReader::Measured measured = reader->measured(run.timeline.makespan);
  run.timeline = with_counts(std::move(measured.timeline), run.timeline);
  return std::optional<Metrics>{std::move(measured.metrics)};
}

}  // namespace

Expected<Run> prepare(const System& system, LoweredProblem lowered, const RunOptions& options, const Run* like) {
  const Stopwatch wall;
  const Problem& problem = lowered.problem;
  options.tell("finding routes and costs of " + problem.schedule.name);
  Run run;
  run.system = std::make_unique<const System>(system);
  run.lowered = std::make_unique<Schedule>(std::move(lowered.lowered));
  run.choices = std::move(lowered.choices);
  const auto alike = like != nullptr ? add_model_like(*like, run, options) : false;
  if (!alike) return alike.error();
  if (!*alike)
    if (auto ok = add_model(run, options); !ok) return ok.error();
  run.row.problem = problem.summary;
  run.row.changes = changes_of(system);
  run.row.mesh_order = to_text(system.order);
  run.row.result.trust = trust_of(system, system.machine.trust.covers.empty() ? std::vector<Coverage>{} : operations_of(problem, system),
                                  other_lowering(system, problem));
  if (const auto& training = problem.summary.training; training != nullptr)
    run.row.result.trust = of_training_step(std::move(run.row.result.trust), system, training->given.model.experts > 0);
  run.row.result.build_s = lowered.build_s;
  run.problem = std::make_shared<const Problem>(std::move(lowered.problem));
  run.row.result.wall_s = wall.seconds();
  return run;
}

namespace {

/// The figures of a run that was played; without `metrics` they are measured by the timeline.
void conclude(Run& run, std::optional<Metrics> metrics, const Stopwatch& wall, const RunOptions& options) {
  run.metrics = metrics ? *std::move(metrics) : measure(run.model, run.timeline);
  const Result prepared = std::move(run.row.result);
  run.row.result.trust = prepared.trust;
  run.row.result = result_of(run);
  run.row.result.engine = options.engine->name;
  if (options.engine->name == "analytic") {  // as if no transfers shared a link
    run.row.result.hypothetical = true;
    run.row.result.trust = as_what_if(std::move(run.row.result.trust));
  }
  if (const Bytes hbm = run.system->machine.chip.hbm; hbm < Bytes{std::numeric_limits<std::int64_t>::max()}) run.row.hbm = hbm;
  const HloPeakMemory* const module = module_memory(run);
  run.row.over_hbm = (module != nullptr ? module->required : run.metrics.peak_memory) > run.system->machine.chip.hbm;
  run.row.axes = run.metrics.axes;
  if (run.row.problem.training != nullptr) run.row.training = std::make_shared<const TrainingResult>(training_result(run));
  run.row.result.build_s = prepared.build_s;
  run.row.result.wall_s = prepared.wall_s + wall.seconds();
}

/// run_and_measure(), with calls written out where playing them was not exact. Past options.control.limit that is not done where it could only make the run longer.
Expected<std::optional<Metrics>> run_exactly(Run& run, const RunOptions& options) {
  options.tell("simulating " + run.lowered->name);
  auto measured = run_and_measure(run, options);
  if (!measured || run.timeline.interrupted) return measured;
  if (run.model.calls != nullptr) {
    const auto conflicts = call_conflicts(*run.system, *run.lowered);
    if (!conflicts) return conflicts.error();
    const InexactPlay inexact = inexact_calls(run.model, run.timeline, *conflicts);
    if (run.timeline.makespan > options.control.limit && inexact.by_links.count == 0) {
      run.timeline.interrupted = true;
      return measured;
    }
    const auto written = calls_to_write_out(run, inexact, options);
    if (!written) return written.error();
    if (written->count > 0) {
      // Without those calls other ones may begin at other times, so it looks again.
      std::shared_ptr<const PlayedCalls> calls = run.model.calls;
      if (auto ok = inline_some_calls(run, *written, options); !ok) return ok.error();
      if (auto ok = add_model(run, options, std::move(calls)); !ok) return ok.error();
      return run_exactly(run, options);
    }
    run.row.calls.played = calls_in(*run.lowered);
  }
  return measured;
}

}  // namespace

Status play(Run& run, const RunOptions& options) {
  const Stopwatch wall;
  auto measured = run_exactly(run, options);
  if (!measured) return measured.error();
  if (!run.timeline.interrupted) conclude(run, *std::move(measured), wall, options);
  return success();
}

Expected<Seconds> simulated_time(const System& system, const Problem& problem, const RunOptions& options) {
  auto lowered = lower_problem(system, problem, options);
  if (!lowered) return lowered.error();
  auto run = prepare(system, *std::move(lowered), options);
  if (!run) return run.error();
  if (auto measured = run_exactly(*run, options); !measured) return measured.error();
  if (run->timeline.interrupted) return cancelled_work();
  return to_seconds(run->timeline.makespan);
}

namespace {

/// Plays those of these runs that can be played at once, and whose metrics one play can tell. Which of them were.
std::vector<bool> play_at_once(const std::vector<Run*>& runs, const RunOptions& options) {
  std::vector<bool> played(runs.size(), false);
  if (options.engine->run_together == nullptr || runs.size() < 2) return played;
  const Stopwatch wall;
  std::vector<const Model*> models;
  std::vector<MetricsReader> metrics;
  std::vector<TimesReader*> readers;
  metrics.reserve(runs.size());
  for (const Run* run : runs) {
    if (run->model.folded() || run->model.calls != nullptr || run->row.problem.training != nullptr) return played;  // they look at every device
    models.push_back(&run->model);
    readers.push_back(&metrics.emplace_back(run->model));
  }
  RunControl control = options.control;
  control.record = false;
  const auto timelines = options.engine->run_together(models, control, readers, 1);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (!timelines[r] || timelines[r]->interrupted || metrics[r].still_to_read()) continue;
    MetricsReader::Measured measured = metrics[r].measured(timelines[r]->makespan);
    runs[r]->timeline = with_counts(std::move(measured.timeline), *timelines[r]);
    conclude(*runs[r], std::move(measured.metrics), wall, options);
    played[r] = true;
  }
  return played;
}

}  // namespace

std::vector<Expected<Row>> simulate_together(const std::vector<const PosedProblem*>& problems, const RunOptions& options) {
  std::vector<Expected<Run>> runs;
  runs.reserve(problems.size());  // runs point to the first
  const Run* like = nullptr;
  for (const PosedProblem* posed : problems) {
    auto lowered = lower_problem(posed->system, posed->problem, options);
    if (!lowered)
      runs.push_back(lowered.error());
    else
      runs.push_back(prepare(posed->system, *std::move(lowered), options, like));
    if (like == nullptr && runs.back()) like = &*runs.back();
  }
  std::vector<Run*> prepared;
  for (auto& run : runs)
    if (run) prepared.push_back(&*run);
  const std::vector<bool> played = play_at_once(prepared, options);
  std::vector<Expected<Row>> rows;
  std::size_t next = 0;
  for (auto& run : runs) {
    if (!run) {
      rows.push_back(run.error());
      continue;
    }
    if (!played[next++])
      if (auto ok = play(*run, options); !ok) {
        rows.push_back(ok.error());
        continue;
      }
    if (run->timeline.interrupted)
      rows.push_back(cancelled_work());
    else
      rows.push_back(run->row);
  }
  return rows;
}

}  // namespace podsim
