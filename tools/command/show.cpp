#include <fmt/format.h>

#include <algorithm>

#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/schedule/text.hpp"
#include "tools/command/command.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/show_machine.hpp"
#include "tools/command/show_mesh.hpp"
#include "tools/command/show_topology.hpp"
#include "tools/report/tuning_report.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "tools/command/scenario_options.hpp"

namespace podsim {

namespace {

// ---- schedule -------------------------------------------------------------------------------------------------------------------------

constexpr std::string_view schedule_usage =
    R"(usage: podsim show schedule (--mesh row=R,col=C | --slice AxB) (--gemm ... | --collective ... | --schedule FILE) [--lowered] [OPTION...]

A schedule as text, one line per task; with -o FILE.textproto or FILE.pb it is saved and can be run with --schedule FILE.

examples:
  podsim show schedule --mesh row=4,col=2 --gemm m=512,n=1024,k=256 --algorithm meshslice --slice-count 2
  podsim show schedule --slice 4 --collective all-gather --axis row --bytes 1MiB --algorithm ring --lowered -o ring.textproto
)";

Expected<std::string> show_schedule(const Options& options, Format, const RunOptions& how) {
  const auto fields = system_fields(options, "ideal");
  if (!fields) return fields.error();
  const auto system = read_system(*fields);
  if (!system) return system.error();
  const auto problem = read_problem(*fields, *system, DType::bf16);
  if (!problem) return problem.error();
  auto posed = pose(*system, *problem, how);
  if (!posed) return posed.error();
  Schedule schedule = posed->problem.schedule;
  if (options.flag("lowered")) {
    auto lowered = lower_problem(posed->system, std::move(posed->problem), how);
    if (!lowered) return lowered.error();
    schedule = std::move(lowered->lowered);
  }
  const std::string path = options.has("output") ? options.text("output") : "";
  how.tell("writing the schedule");
  const bool is_text = path.ends_with(".textproto");
  if (!is_text && !path.ends_with(".pb")) return to_text(schedule);
  std::string saved = write_schedule(schedule, is_text ? Encoding::text : Encoding::binary);
  const Bytes size{static_cast<std::int64_t>(saved.size())}, most = is_text ? schedule_limit.text : schedule_limit.binary;
  if (size > most)
    return Diagnostic{option("output"), fmt::format("the schedule is {} in this form, and no more than {} would be read{}", to_text(size), to_text(most),
                                                    is_text ? "; a name that ends in .pb makes it several times smaller" : "")};
  return saved;
}

// ---- plan -----------------------------------------------------------------------------------------------------------------------------

constexpr std::string_view plan_usage = R"(usage: podsim show plan --plan FILE [OPTION...]

A plan of a workload: how each stage is computed, what it takes there, and the memory that a device needs. --machine, --slice, --mesh and --set say
otherwise where it runs.

examples:
  podsim tune --machine tpu_v4 --chips 64 --workload gpt3-block -o plan.textproto && podsim show plan --plan plan.textproto
)";

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

struct Target {
  std::string_view name, usage;
  bool what_ifs, problem;
  std::span<const Format> formats;
  Expected<std::string> (*show)(const Options&, Format, const RunOptions&);
};
constexpr std::array<Target, 5> targets{{
    {"machine", machine_usage, false, false, table_json_csv, &show_machine},
    {"topology", topology_usage, true, false, table_json, &show_topology},
    {"mesh", mesh_usage, true, false, table_json, &show_mesh},
    {"schedule", schedule_usage, false, true, table_only, &show_schedule},
    {"plan", plan_usage, true, false, table_json, &show_plan},
}};

constexpr std::string_view show_usage = R"(usage: podsim show machine|topology|mesh|schedule|plan [OPTION...]

`podsim show machine --help` and so on list the options of each.
)";

OptionGroup options_of(const Target& target) {
  OptionGroup described = system_options(false);
  if (target.what_ifs) described = joined({described, what_if_options(false)});
  if (target.show == &show_topology)
    described.push_back({"devices", flag(), "the devices as jax.devices() lists them: id, process, coords, core_on_chip"});
  if (target.show == &show_plan) {
    described.push_back({"plan", input_file("FILE"), "a plan of a workload, as podsim tune -o writes it"});
    described.push_back({"pass", word("forward|backward|both"), "left out: as the plan says"});
  }
  if (target.problem) {
    described = joined({described, problem_options(false), workload_options()});
    described.push_back({"lowered", flag(), "with its collectives replaced by the tasks of their algorithms"});
  }
  return joined({described, output_options(target.formats)});
}

int show(const Target& target, const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, options_of(target), target.usage, console);
  if (parsed.status) return *parsed.status;
  RunOptions how = run_options_of(console);
  ProgressLine line{console, parsed.options->flag("quiet")};
  show_on(line, how);
  how.tell("looking at the system");
  const auto text = target.show(*parsed.options, format_of(*parsed.options), how);
  if (!text) return report(text.error(), console);
  line.end();
  return print_output(*parsed.options, *text, console);
}

}  // namespace

int show_verb(const std::vector<std::string>& arguments, Console& console) {
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    console.out << show_usage;
    return exit_done;
  }
  std::vector<std::string> names;
  for (const Target& target : targets) {
    if (!arguments.empty() && arguments.front() == target.name) return show(target, {arguments.begin() + 1, arguments.end()}, console);
    names.emplace_back(target.name);
  }
  const std::string expected = "machine, topology, mesh, schedule or plan";
  if (arguments.empty()) return report({{}, "show what? " + expected}, console);
  return report({{}, "cannot show " + quoted(arguments.front()) + did_you_mean(arguments.front(), names) + "; expected " + expected}, console);
}

}  // namespace podsim
