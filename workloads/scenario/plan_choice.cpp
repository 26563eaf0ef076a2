#include "workloads/scenario/plan_choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/scenario/collective_choice.hpp"
#include "workloads/scenario/program_choice.hpp"

namespace podsim {

Expected<PlannedWorkload> choose_plan(const System& system, const WorkloadSpec& spec, const RunOptions& options) {
  const PlanChoices& choices = spec.choices;
  TuningRequest request;
  request.workload = spec.workload;
  request.systems = {system};
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
  return PlannedWorkload{spec.workload, std::move(tuning->plans.front().plan), choices.pass};
}

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
  if (problem->summary.collective && problem->collectives.is_auto()) {
    const auto choices = choose_collectives(*used, problem->schedule, problem->collectives, options);
    if (!choices) return is_of_input(choices.error().cause) ? Diagnostic{of_field("algorithm"), choices.error().message} : choices.error();
    problem->collectives.algorithm = choices->chosen.front().algorithm;
    problem->collectives.chosen = choices->chosen.front().lowering;
    problem->summary.algorithm = "auto: " + problem->collectives.algorithm;
  }
  return PosedProblem{*std::move(used), *std::move(problem)};
}

}  // namespace podsim
