#include <fmt/format.h>

#include <algorithm>

#include "sim/base/units.hpp"
#include "sim/config/files.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/engine/table/engines.hpp"
#include "sim/schedule/text.hpp"
#include "tools/command/command.hpp"
#include "tools/command/file_options.hpp"
#include "tools/command/manner.hpp"
#include "tools/command/print.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/show_machine.hpp"
#include "tools/command/show_mesh.hpp"
#include "tools/command/show_topology.hpp"
#include "tools/command/tune_print.hpp"
#include "tools/command/workload.hpp"

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

Expected<std::string> show_schedule(const Options& options, Format, const Manner& manner) {
  auto pod = pod_of(options, "ideal");
  if (!pod) return pod.error();
  const auto problem = problem_of(options, *pod, DType::bf16, manner);
  if (!problem) return problem.error();
  Schedule schedule = problem->schedule;
  if (options.flag("lowered")) {
    manner.tell("lowering " + problem->schedule.name);
    auto lowered = lower(problem->schedule, problem->chooser);
    if (!lowered) return lowered.error();
    schedule = std::move(*lowered);
  }
  const std::string path = options.has("output") ? options.text("output") : "";
  manner.tell("writing the schedule");
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

Expected<std::string> show_plan(const Options& options, Format format, const Manner& manner) {
  if (!options.has("plan")) return Diagnostic{{}, "--plan is missing: a file as podsim tune -o writes it"};
  const auto pod = pod_of(options, "");
  if (!pod) return pod.error();
  const auto planned = planned_workload(options, *pod, manner);
  if (!planned) return planned.error();
  const auto des = timing_engine("des");
  if (!des) return des.error();
  const auto plan = evaluate_plan(*pod, planned->workload, planned->plan, planned->pass, **des, manner.threads, manner.control.stop);
  if (!plan) return plan.error();
  TuningRequest request;
  request.workload = planned->workload;
  request.pods = {*pod};
  request.pass = planned->pass;
  return format == Format::json ? plan_json(request, *plan) : plan_table(request, *plan);
}

struct Thing {
  std::string_view name, usage;
  bool what_ifs, problem;
  std::span<const Format> formats;
  Expected<std::string> (*show)(const Options&, Format, const Manner&);
};
constexpr std::array<Thing, 5> things{{
    {"machine", machine_usage, false, false, table_json_csv, &show_machine},
    {"topology", topology_usage, true, false, table_json, &show_topology},
    {"mesh", mesh_usage, true, false, table_json, &show_mesh},
    {"schedule", schedule_usage, false, true, table_only, &show_schedule},
    {"plan", plan_usage, true, false, table_json, &show_plan},
}};

constexpr std::string_view show_usage = R"(usage: podsim show machine|topology|mesh|schedule|plan [OPTION...]

`podsim show machine --help` and so on list the options of each.
)";

}  // namespace

int show_verb(const std::vector<std::string>& arguments, Console& console) {
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    console.out << show_usage;
    return exit_done;
  }
  std::vector<std::string> names;
  for (const Thing& thing : things) {
    names.emplace_back(thing.name);
    if (arguments.empty() || arguments.front() != thing.name) continue;
    po::options_description described;
    described.add(pod_options(false));
    if (thing.what_ifs) described.add(what_if_options(false));
    if (thing.show == &show_topology)
      described.add_options()("devices", po::bool_switch(), "the devices as jax.devices() lists them: id, process, coords, core_on_chip");
    if (thing.show == &show_plan) {
      described.add_options()("plan", input_file("FILE"), "a plan of a workload, as podsim tune -o writes it");
      described.add_options()("pass", po::value<std::string>()->value_name("forward|backward|both"), "left out: as the plan says");
    }
    if (thing.problem) {
      described.add(problem_options(false)).add(workload_options());
      described.add_options()("lowered", po::bool_switch(), "with its collectives replaced by the tasks of their algorithms");
    }
    described.add(output_options(thing.formats));
    const Parsed parsed = parse({arguments.begin() + 1, arguments.end()}, described, thing.usage, console);
    if (parsed.status) return *parsed.status;
    Manner manner = manner_of(console);
    ProgressLine line{console, parsed.options->flag("quiet")};
    show_on(line, manner);
    manner.tell("looking at the pod");
    const auto text = thing.show(*parsed.options, format_of(*parsed.options), manner);
    if (!text) return report(text.error(), console);
    line.end();
    if (auto ok = write_output(*parsed.options, *text, console); !ok) return report(ok.error(), console);
    return exit_done;
  }
  return report({{},
                 arguments.empty() ? "show what? machine, topology, mesh, schedule or plan"
                                   : "cannot show " + quoted(arguments.front()) + did_you_mean(arguments.front(), names) +
                                         "; expected machine, topology, mesh, schedule or plan"},
                console);
}

}  // namespace podsim
