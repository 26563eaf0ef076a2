#include "validation/validate/run_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/blame.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

Expected<Seconds> predict_run(const Observation& row, const Study& study, const Machine& machine, Cancellation stop) {
  const auto run = std::ranges::find(study.runs, row.run, &StudyRun::name);
  if (run == study.runs.end()) return Diagnostic{row.where, "the study has no run " + quoted(row.run)};
  const auto blamed = [&](const Diagnostic& problem) { return problem.where.file.empty() ? blamed_on(run->where, problem) : problem; };
  const auto system = read_system(run->fields, machine);
  if (!system) return blamed(system.error());
  if (system->mesh.devices() != row.devices)
    return Diagnostic{row.where, fmt::format("expected {} devices, those of the run, found {}", system->mesh.devices(), row.devices)};
  const auto problem = read_problem(run->fields, *system, DType::bf16);
  if (!problem) return blamed(problem.error());
  auto options = read_run_options(run->fields);
  if (!options) return blamed(options.error());
  options->threads = 1;
  options->control.stop = stop;
  const auto posed = pose(*system, *problem, *options);
  if (!posed) return blamed(posed.error());
  const auto time = simulated_time(posed->system, posed->problem, *options);
  if (!time && !options->stopped()) return blamed(time.error());
  return time;
}

}  // namespace podsim
