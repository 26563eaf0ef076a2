#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "sim/base/units.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/engine/machine_fields.hpp"
#include "sim/engines/engines.hpp"
#include "sim/mesh/bisection.hpp"
#include "sim/mesh/graph.hpp"
#include "sim/schedule/text.hpp"
#include "tools/command/command.hpp"
#include "tools/command/print.hpp"
#include "tools/command/show_mesh.hpp"
#include "tools/command/tune_print.hpp"
#include "tools/command/workload.hpp"
#include "topologies/drawing.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(BytesPerSecond rate) { return is_unlimited(rate) ? Json() : Json(rate.count()); }

// ---- machine --------------------------------------------------------------------------------------------------------------------------

constexpr std::string_view machine_usage = R"(usage: podsim show machine [--machine NAME|FILE] [--set PATH=VALUE]... [--format table|json|csv]

Every value of a machine with its unit and its source; without --machine, the shipped machines.

examples:
  podsim show machine
  podsim show machine --machine tpu_v4
  podsim show machine --machine tpu_v4 --set link.bandwidth=90GB/s --format json
)";

struct MachineValue {
  std::string path, value, source;
};

std::vector<MachineValue> values_of(const Machine& machine) {
  std::vector<MachineValue> values;
  for (const MachineField& field : machine_fields()) {
    const auto names = index_names(field.index);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string path = path_of(field, names[i]);
      const auto source = machine.sources.find(path);
      if (source != machine.sources.end()) values.push_back({path, value_text(field, machine, static_cast<int>(i)), source->second});
    }
  }
  return values;
}

Expected<std::string> list_machines(Format format) {
  std::vector<std::vector<std::string>> rows{{"machine", "description"}};
  for (const std::string& name : shipped_machines()) {
    const auto machine = find_machine(name);
    if (!machine) return machine.error();
    rows.push_back({name, machine->description});
  }
  if (format == Format::table) return table(rows, 2);
  std::string text;
  Json json = Json::array();
  for (const auto& row : rows) {
    text += csv(row);
    if (&row != &rows.front()) json.push_back({{"name", row[0]}, {"description", row[1]}});
  }
  return format == Format::csv ? text : Json{{"machines", json}}.dump(2) + "\n";
}

Expected<std::string> show_machine(const Options& options, Format format) {
  if (!options.has("machine")) return list_machines(format);
  const auto machine = machine_of(options.text("machine"), options.texts("set"));
  if (!machine) return machine.error();
  const auto values = values_of(*machine);
  std::vector<std::vector<std::string>> rows{{"path", "value", "source"}};
  for (const MachineValue& value : values) rows.push_back({value.path, value.value, value.source});
  if (format == Format::table) return fmt::format("{}: {}\n\n{}", machine->name, machine->description, table(rows, 3));
  if (format == Format::csv) {
    std::string text;
    for (const auto& row : rows) text += csv(row);
    return text;
  }
  Json json{{"name", machine->name}, {"description", machine->description}, {"values", Json::array()}};
  for (const MachineValue& value : values) json["values"].push_back({{"path", value.path}, {"value", value.value}, {"source", value.source}});
  return json.dump(2) + "\n";
}

// ---- topology -------------------------------------------------------------------------------------------------------------------------

constexpr std::string_view topology_usage =
    R"(usage: podsim show topology --machine M --slice AxB[xC] [--wrap auto|all|none|x,y] [--set PATH=VALUE]... [--format table|json]

What a slice's interconnect is: links, distances, bisection bandwidth, a drawing where it is small.

examples:
  podsim show topology --machine tpu_v4 --slice 4x4x8
  podsim show topology --machine ideal --slice 8x8 --wrap none --format json
  podsim show topology --machine tpu_v4 --slice 4x4x8 --topology twisted
  podsim show topology --machine dgx_h100 --slice 4x8 -o h100.dot
  podsim show topology --machine tpu_v4 --slice 4x4x1 --devices
)";

std::string topology_text(const Pod& pod) {
  std::string text = pod.what_if.topology.empty() ? std::string{"as built"} : pod.what_if.topology;
  if (pod.what_if.pods > 1) text = fmt::format("{} slices, each {}", pod.what_if.pods, text);
  for (const std::string& cable : pod.what_if.fail) text += ", broken " + cable;
  for (const std::string& cable : pod.what_if.degrade) text += ", slow " + cable;
  return text;
}

Expected<std::string> show_topology(const Options& options, Format format) {
  if (format == Format::csv) return Diagnostic{option("format"), "show topology prints table or json"};
  const auto pod = pod_of(options, "ideal");
  if (!pod) return pod.error();
  if (options.flag("devices")) {
    const auto devices = jax_devices(device_list(pod->machine, pod->slice));
    if (!devices) return devices.error();
    return devices_text(*pod, *devices, format);
  }
  if (options.has("output") && options.text("output").ends_with(".dot"))
    return to_dot(*pod->topology, [&](ChipId node) { return pod->topology->chip_name(node); });
  const Topology& topology = *pod->topology;
  const Shape shape = shape_of(topology);
  const BytesPerSecond bisection = bisection_bandwidth(topology);
  const auto all_to_all = all_to_all_bound(topology);
  if (!all_to_all) return all_to_all.error();
  std::string wrap;
  Json wrap_json = Json::object();
  const std::vector<GridDimension> dimensions = topology.grid() == nullptr ? std::vector<GridDimension>{} : topology.grid()->dimensions();
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const bool wraps = dimensions[d].wraps;
    const bool shifted = pod->what_if.topology == "twisted" && !pod->layout.dimensions()[pod->what_if.pods > 1 ? d + 1 : d].wraps;
    wrap += fmt::format("{}{} {}", d == 0 ? "" : ", ", dimension_name(static_cast<int>(d)), shifted ? "wraps shifted" : wraps ? "wraps" : "open");
    wrap_json[std::string(1, dimension_name(static_cast<int>(d)))] = wraps;
  }
  if (format == Format::json) {
    Json json{{"machine", pod->machine.name}, {"slice", to_text(pod->slice)},        {"hypothetical", pod->hypothetical},
              {"chips", topology.chips()},    {"devices", pod->mesh.devices()},      {"switches", shape.switches},
              {"links", shape.links},         {"least_degree", shape.least_degree},  {"largest_degree", shape.largest_degree},
              {"diameter", shape.diameter},   {"mean_distance", shape.mean_distance}};
    json["wrap"] = wrap_json;
    json["bisection_bandwidth_bytes_per_s"] = number_or_null(bisection);
    json["all_to_all_bound_bytes_per_s"] = number_or_null(*all_to_all);
    return json.dump(2) + "\n";
  }
  const auto rate = [](BytesPerSecond r) { return to_text(r); };
  std::string text = table(
      {{"machine", pod->machine.name},
       {"slice", to_text(pod->slice) + (pod->hypothetical ? " (hypothetical)" : "")},
       {"topology", topology_text(*pod)},
       {"wrap", wrap.empty() ? "-" : wrap},
       {"chips", std::to_string(topology.chips()) + (pod->machine.chip.devices > 1 ? fmt::format(" of {} devices", pod->machine.chip.devices) : "") +
                     (shape.switches > 0 ? fmt::format(", {} switches", shape.switches) : "")},
       {"links", fmt::format("{} (each direction counts)", shape.links)},
       {"degree", shape.least_degree == shape.largest_degree ? std::to_string(shape.largest_degree)
                                                             : fmt::format("{} to {}", shape.least_degree, shape.largest_degree)},
       {"diameter", fmt::format("{} hops", shape.diameter)},
       {"mean distance", fmt::format("{:.4g} hops", shape.mean_distance)},
       {"bisection bandwidth", rate(bisection) + " each way"},
       {"all-to-all bound", rate(*all_to_all) + " per chip"}},
      2);
  constexpr int most_drawn = 64;                            // chips; more fill the screen without being read
  const auto* grid = dynamic_cast<const Grid*>(&topology);  // broken and twisted cables are not drawn
  if (const auto drawing = grid != nullptr && grid->chips() <= most_drawn ? draw(*grid) : std::nullopt) text += "\n" + *drawing;
  return text;
}

// ---- schedule -------------------------------------------------------------------------------------------------------------------------

constexpr std::string_view schedule_usage =
    R"(usage: podsim show schedule (--mesh row=R,col=C | --slice AxB) (--gemm ... | --collective ... | --schedule FILE) [--lowered] [OPTION...]

A schedule as text, one line per task; with -o FILE.textproto or FILE.pb it is saved and can be run with --schedule FILE.

examples:
  podsim show schedule --mesh row=4,col=2 --gemm m=512,n=1024,k=256 --algorithm meshslice --slice-count 2
  podsim show schedule --slice 4 --collective all-gather --axis row --bytes 1MiB --algorithm ring --lowered -o ring.textproto
)";

Expected<std::string> show_schedule(const Options& options, Format format) {
  if (format != Format::table) return Diagnostic{option("format"), "show schedule prints text; -o FILE.textproto saves the schedule"};
  auto pod = pod_of(options, "ideal");
  if (!pod) return pod.error();
  const auto problem = problem_of(options, *pod, DType::bf16);
  if (!problem) return problem.error();
  Schedule schedule = problem->schedule;
  if (options.flag("lowered")) {
    auto lowered = lower(problem->schedule, problem->chooser);
    if (!lowered) return lowered.error();
    schedule = std::move(*lowered);
  }
  const std::string path = options.has("output") ? options.text("output") : "";
  if (path.ends_with(".textproto")) return write_schedule(schedule, Encoding::text);
  if (path.ends_with(".pb")) return write_schedule(schedule, Encoding::binary);
  return to_text(schedule);
}

// ---- plan -----------------------------------------------------------------------------------------------------------------------------

constexpr std::string_view plan_usage = R"(usage: podsim show plan --plan FILE [OPTION...]

A plan of a workload: how each stage is computed, what it takes there, and the memory that a device needs. --machine, --slice, --mesh and --set say
otherwise where it runs.

examples:
  podsim tune --machine tpu_v4 --chips 64 --workload gpt3-block -o plan.textproto && podsim show plan --plan plan.textproto
)";

Expected<std::string> show_plan(const Options& options, Format format) {
  if (format == Format::csv) return Diagnostic{option("format"), "show plan prints table or json"};
  if (!options.has("plan")) return Diagnostic{{}, "--plan is missing: a file as podsim tune -o writes it"};
  const auto pod = pod_of(options, "");
  if (!pod) return pod.error();
  const auto planned = planned_workload(options, *pod);
  if (!planned) return planned.error();
  const auto des = timing_engine("des");
  if (!des) return des.error();
  const auto plan = evaluate_plan(*pod, planned->workload, planned->plan, planned->pass, **des, 0);
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
  Expected<std::string> (*show)(const Options&, Format);
};
constexpr std::array<Thing, 5> things{{
    {"machine", machine_usage, false, false, &show_machine},
    {"topology", topology_usage, true, false, &show_topology},
    {"mesh", mesh_usage, true, false, &show_mesh},
    {"schedule", schedule_usage, false, true, &show_schedule},
    {"plan", plan_usage, true, false, &show_plan},
}};

constexpr std::string_view usage = R"(usage: podsim show machine|topology|mesh|schedule|plan [OPTION...]

`podsim show machine --help` and so on list the options of each.
)";

}  // namespace

int show_verb(const std::vector<std::string>& arguments, Console& console) {
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    console.out << usage;
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
      described.add_options()("plan", po::value<std::string>()->value_name("FILE"), "a plan of a workload, as podsim tune -o writes it");
      described.add_options()("pass", po::value<std::string>()->value_name("forward|backward|both"), "left out: as the plan says");
    }
    if (thing.problem) {
      described.add(problem_options(false)).add(workload_options());
      described.add_options()("lowered", po::bool_switch(), "with its collectives replaced by the tasks of their algorithms");
    }
    described.add(output_options());
    const Parsed parsed = parse({arguments.begin() + 1, arguments.end()}, described, thing.usage, console);
    if (parsed.status) return *parsed.status;
    const auto format = format_of(*parsed.options);
    if (!format) return report(format.error(), console);
    const auto text = thing.show(*parsed.options, *format);
    if (!text) return report(text.error(), console);
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
