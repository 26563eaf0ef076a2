#include "workloads/scenario/plan_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "workloads/scenario/collective_choice.hpp"
#include "workloads/scenario/one_axis.hpp"
#include "workloads/scenario/program_choice.hpp"

namespace podsim {

Expected<PlanOn> choose_plan(std::vector<System> systems, const WorkloadSpec& spec, const RunOptions& options) {
  const PlanChoices& choices = spec.choices;
  TuningRequest request;
  request.workload = spec.workload;
  request.systems = std::move(systems);
  request.pass = choices.pass;
  request.algorithms = choices.algorithms;
  request.options = choices.options;
  request.top = 1;
  request.engine = &des_engine();
  request.threads = options.threads;
  request.progress = [&](const TuningProgress& progress) {
    options.tell(fmt::format("choosing how to compute {}: {} parts simulated", spec.workload.name, progress.simulated));
  };
  request.stop = options.control.stop;
  for (const auto& [stage, count] : choices.slice_counts) request.largest_slice_count = std::max(request.largest_slice_count, count);
  request.allowed = [&choices](const std::string& stage, const ProductChoice& choice) {
    if (!choices.dataflows.empty() &&
        (choice.transposed || std::find(choices.dataflows.begin(), choices.dataflows.end(), choice.dataflow) == choices.dataflows.end()))
      return false;
    const auto own = choices.slice_counts.find(stage), all = choices.slice_counts.find("");
    const auto wanted = own != choices.slice_counts.end() ? own : all;
    return wanted == choices.slice_counts.end() || choice.slice_count == 0 || choice.slice_count == wanted->second;
  };
  auto tuning = tune(request);
  if (!tuning) return tuning.error();
  if (tuning->interrupted || tuning->plans.empty()) return cancelled_work();
  TunedPlan& best = tuning->plans.front();
  return PlanOn{best.system, {spec.workload, std::move(best.plan), choices.pass}};
}

Expected<PlannedWorkload> choose_plan(const System& system, const WorkloadSpec& spec, const RunOptions& options) {
  auto found = choose_plan(std::vector<System>{system}, spec, options);
  if (!found) return found.error();
  return std::move(found->planned);
}

namespace {

Diagnostic of_algorithm(const Diagnostic& why) { return is_of_input(why.cause) ? Diagnostic{of_field("algorithm"), why.message} : why; }

void set_chosen(Problem& problem, const std::string& name, const Lowering& lowering) {
  problem.collectives.algorithm = name;
  problem.collectives.chosen = lowering;
  problem.summary.algorithm = "auto: " + name;
}

/// Whether the axes are parts of the dimensions under them, or cables are broken: then the mesh does not fold, and the axis over all is the quicker one to choose for.
bool is_irregular(const System& system, const System& one) {
  std::size_t factors = 0;
  for (int axis = 0; axis < static_cast<int>(system.mesh.axes().size()); ++axis) factors += system.mesh.whole(axis).size > 1 ? system.mesh.factors(axis).size() : 0;
  return !system.faults.broken.empty() || factors != one.mesh.factors(0).size();
}

/// Of more devices a choice along one axis takes seconds: where it does not fold, or where the axes as they are go along the same dimensions.
int most_on_one_axis(const System& system, const System& one) {
  if (system.topology->plain_grid() == nullptr || !is_irregular(system, one)) return 128;
  return one.mesh.wraps(one.mesh.whole(0)) ? std::numeric_limits<int>::max() : 512;
}

/// Along one axis over all devices, if there is such an axis.
std::optional<PosedProblem> along_one_axis(const PosedProblem& as_it_is, const CollectiveSpec& spec) {
  const System& system = as_it_is.system;
  const auto axes = axes_over_all(system, spec);
  if (!axes) return std::nullopt;
  auto one = on_one_axis(system, *axes);
  if (!one || system.mesh.devices() > most_on_one_axis(system, *one)) return std::nullopt;
  CollectiveSpec along = spec;
  along.axes.clear();
  auto problem = make_problem(*one, along);
  if (!problem) return std::nullopt;
  problem->summary.on_mesh = system.mesh;
  problem->summary.collective->axes = as_it_is.problem.summary.collective->axes;
  return PosedProblem{*std::move(one), *std::move(problem)};
}

/// By the fastest algorithm along the axes as they are, or along one axis over all of them where that is faster: wires decide, not the names of axes.
Expected<std::optional<PosedWithin>> fastest_collective(PosedProblem as_it_is, const CollectiveSpec& spec, const RunOptions& options, Picoseconds limit) {
  auto on_one = along_one_axis(as_it_is, spec);
  const auto find = [&](const PosedProblem& posed, Picoseconds within) { return fastest_within(within, posed.system, posed.problem.schedule, posed.problem.collectives, options); };
  // Where that fails it is no candidate, if its problem is the input.
  const auto find_on_one = [&](Picoseconds within) {
    auto found = on_one ? find(*on_one, within) : Expected<std::optional<FastestLowering>>{std::nullopt};
    if (!found && is_of_input(found.error().cause)) found = std::optional<FastestLowering>{};
    return found;
  };
  const bool one_first = on_one && is_irregular(as_it_is.system, on_one->system);
  Expected<std::optional<FastestLowering>> one = std::optional<FastestLowering>{};
  if (one_first) {
    one = find_on_one(limit);
    if (!one) return one.error();
  }
  auto own = find(as_it_is, *one ? (*one)->time : limit);
  if (!own) return of_algorithm(own.error());
  if (!one_first) {
    one = find_on_one(*own ? (*own)->time - Picoseconds{1} : limit);
    if (!one) return one.error();
  }
  if (*own && (one_first || !*one)) {
    set_chosen(as_it_is.problem, (*own)->name, (*own)->lowering);
    return std::optional{PosedWithin{std::move(as_it_is), (*own)->time}};
  }
  if (!*one) return std::optional<PosedWithin>{};
  set_chosen(on_one->problem, (*one)->name, (*one)->lowering);
  on_one->problem.summary.algorithm += as_one_axis;
  return std::optional{PosedWithin{*std::move(on_one), (*one)->time}};
}

}  // namespace

Expected<PosedProblem> pose(const System& system, const ProblemSpec& spec, const RunOptions& options) {
  if (const auto* open = std::get_if<WorkloadSpec>(&spec)) {
    auto planned = choose_plan(system, *open, options);
    if (!planned) return planned.error();
    return pose(system, *std::move(planned), options);
  }
  if (const auto* open = std::get_if<ProgramSpec>(&spec)) {
    auto planned = choose_program_plan(system, *open, options);
    if (!planned) return planned.error();
    return pose(system, *std::move(planned), options);
  }
  if (const auto* open = std::get_if<TrainingSpec>(&spec)) {
    auto planned = choose_layers(system, *open, options);
    if (!planned) return planned.error();
    return pose(system, *std::move(planned), options);
  }
  auto used = system_for(spec, system);
  if (!used) return used.error();
  auto problem = make_problem(*used, spec);
  if (!problem) return problem.error();
  const auto* collective = std::get_if<CollectiveSpec>(&spec);
  if (collective != nullptr && collective->policy.is_auto()) {
    auto fastest = fastest_collective({*std::move(used), *std::move(problem)}, *collective, options, end_of_clock);
    if (!fastest) return fastest.error();
    return std::move((*fastest)->posed);
  }
  if (collective != nullptr && lowered_as_one_axis(collective->policy.algorithm)) problem->summary.on_mesh = system.mesh;
  if (problem->summary.collective && problem->collectives.is_auto()) {
    const auto choices = choose_collectives(*used, problem->schedule, problem->collectives, options);
    if (!choices) return of_algorithm(choices.error());
    set_chosen(*problem, choices->chosen.front().algorithm, choices->chosen.front().lowering);
  }
  return PosedProblem{*std::move(used), *std::move(problem)};
}

Expected<std::optional<PosedWithin>> pose_within(Picoseconds limit, const System& system, const CollectiveSpec& spec, const RunOptions& options) {
  auto used = system_for(spec, system);
  if (!used) return used.error();
  auto problem = make_problem(*used, spec);
  if (!problem) return problem.error();
  return fastest_collective({*std::move(used), *std::move(problem)}, spec, options, limit);
}

}  // namespace podsim
