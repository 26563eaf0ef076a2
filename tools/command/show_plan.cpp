#include "tools/command/show_targets.hpp"

#include "tools/report/jax_plan_report.hpp"
#include "tools/report/tuning_report.hpp"
#include "workloads/scenario/collective_choice.hpp"
#include "workloads/scenario/jax_plan.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

namespace {

Expected<std::string> as_jax(const Options& options, Format format, const System& system, const PlannedWorkload& planned) {
  if (const auto parts = parts_of(planned.workload, planned.plan, system.mesh, planned.pass); !parts) return parts.error();  // says where in the plan
  AxisNames names;
  if (options.has("axis-names")) {
    SourceLocation where = option("axis-names");
    where.line = where.column = 1;
    auto read = parse_axis_names(options.text("axis-names"), system.mesh, where);
    if (!read) return read.error();
    names = *std::move(read);
  }
  const auto plan = jax_plan(*workload_submesh(system.mesh), planned.workload, planned.plan, planned.pass, names);
  if (!plan) return plan.error();
  const DeviceOrder devices = jax_device_ids(system);
  return format == Format::json ? jax_plan_json(*plan, devices) : jax_plan_text(*plan, devices);
}

}  // namespace

Expected<std::string> show_plan(const Options& options, Format format, const RunOptions& how) {
  if (!options.has("plan")) return Diagnostic{{}, "--plan is missing: a file as podsim tune -o writes it"};
  if (options.has("axis-names") && !options.flag("jax")) return Diagnostic{option("axis-names"), "belongs to --jax"};
  const auto asked = problem_of(options, DType::bf16);
  if (!asked) return asked.error();
  const auto& planned = std::get<PlannedWorkload>(asked->problem);
  if (options.flag("jax")) return as_jax(options, format, asked->system, planned);
  const auto plan = evaluate_plan(asked->system, planned.workload, planned.plan, planned.pass, des_engine(), how.threads, how.control.stop, auto_chooser(how));
  if (!plan) return plan.error();
  TuningRequest request;
  request.workload = planned.workload;
  request.systems = {asked->system};
  request.pass = planned.pass;
  return format == Format::json ? plan_json(request, *plan) : plan_table(request, *plan);
}

}  // namespace podsim
