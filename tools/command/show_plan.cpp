#include "tools/command/show_targets.hpp"

#include "tools/report/tuning_report.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

Expected<std::string> show_plan(const Options& options, Format format, const RunOptions& how) {
  if (!options.has("plan")) return Diagnostic{{}, "--plan is missing: a file as podsim tune -o writes it"};
  const auto asked = problem_of(options, DType::bf16);
  if (!asked) return asked.error();
  const auto& planned = std::get<PlannedWorkload>(asked->problem);
  const auto plan = evaluate_plan(asked->system, planned.workload, planned.plan, planned.pass, des_engine(), how.threads, how.control.stop);
  if (!plan) return plan.error();
  TuningRequest request;
  request.workload = planned.workload;
  request.systems = {asked->system};
  request.pass = planned.pass;
  return format == Format::json ? plan_json(request, *plan) : plan_table(request, *plan);
}

}  // namespace podsim
