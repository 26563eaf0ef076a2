#include "tools/command/show_targets.hpp"

#include "tools/report/tuning_report.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

Expected<std::string> show_plan(const Options& options, Format format, const RunOptions& how) {
  if (!options.has("plan")) return Diagnostic{{}, "--plan is missing: a file as podsim tune -o writes it"};
  const auto fields = system_fields(options);
  if (!fields) return fields.error();
  const auto system = read_system(*fields);
  if (!system) return system.error();
  const auto problem = read_problem(*fields, *system, DType::bf16);
  if (!problem) return problem.error();
  const auto& planned = std::get<PlannedWorkload>(*problem);
  const auto plan = evaluate_plan(*system, planned.workload, planned.plan, planned.pass, des_engine(), how.threads, how.control.stop);
  if (!plan) return plan.error();
  TuningRequest request;
  request.workload = planned.workload;
  request.systems = {*system};
  request.pass = planned.pass;
  return format == Format::json ? plan_json(request, *plan) : plan_table(request, *plan);
}

}  // namespace podsim
