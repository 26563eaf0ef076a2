#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/base/file_names.hpp"
#include "tools/command/command.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/console/progress.hpp"
#include "topologies/machines.hpp"

namespace podsim {

namespace {

struct Target {
  std::string_view name;
  bool what_ifs, problem;
  std::span<const Format> formats;
  Expected<std::string> (*show)(const Options&, Format, const RunOptions&);
};
constexpr std::array<Target, 6> targets{{
    {"machine", false, false, table_json_csv, &show_machine},
    {"topology", true, false, table_json, &show_topology},
    {"mesh", true, false, table_json, &show_mesh},
    {"schedule", false, true, table_only, &show_schedule},
    {"plan", true, false, table_json, &show_plan},
    {"program", false, true, table_json, &show_program},
}};

OptionGroup options_of(const Target& target) {
  using enum FieldKind::Group;
  OptionGroup described = field_options({system});
  if (target.show == &show_mesh || target.problem) described = joined({described, field_options({devices})});
  if (target.what_ifs) described = joined({described, field_options({what_if})});
  if (target.show == &show_topology) {
    described.push_back({"devices", no_field(flag()), "the devices as jax.devices() lists them: id, process, coords, core_on_chip"});
    described.push_back({"routes", {.kind = OptionValue::Kind::one, .name = "json", .choices = {"json"}}, "chips, switches and cables, and the next hop of each for each chip, by the routes that transfers take; up to 1024 chips"});
  }
  if (target.show == &show_plan) {
    described.push_back(field_option("plan"));
    described.push_back({"pass", word("forward|backward|both"), "left out: as the plan says"});
    described.push_back({"jax", flag(), "the mesh, the device order and the PartitionSpec of every array; the collectives that JAX inserts for them"});
    described.push_back({"axis-names", written_as(Form::pairs, word("AXIS=NAME,...")), "with --jax: what JAX calls the axes of the mesh: row=model,col=data"});
  }
  if (target.problem) {
    described = joined({described, field_options({problem}), scenario_option(), field_options({workload, model, training, hlo})});
    if (target.show == &show_schedule) {
      described.push_back({"lowered", flag(), "with its collectives replaced by the tasks of their algorithms"});
      described.push_back({"msccl-out", output_file("FILE.xml"), "also written as an algorithm of MSCCL: one collective of all devices that is transfers, copies and additions. The text is then of the lowered schedule"});
    }
  }
  return joined({described, output_options(target.formats)});
}

/// The option that a bare word is the value of: `show machine h100`, `show topology v5p-128`, `show topology nccl_topo.xml`.
const char* positional_of(const Target& target, const std::vector<std::string>& arguments) {
  if (target.show == &show_plan) return "plan";
  if (target.show == &show_machine || target.show == &show_mesh) return "machine";
  if (target.show != &show_topology) return nullptr;
  const bool is_machine = !arguments.empty() && !file_exists(arguments.front()) && (machine_and_slice(arguments.front()).has_value() || find_machine(arguments.front()));
  return is_machine ? "machine" : "topology";
}

int show(const Target& target, const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, options_of(target), usage_of("show_" + std::string{target.name}), console, positional_of(target, arguments));
  if (parsed.status) return *parsed.status;
  RunOptions how = run_options_of(console);
  ProgressLine line{console, parsed.options->flag("quiet")};
  show_on(line, how);
  how.tell("looking at the system");
  if (const Fields fields = fields_of(*parsed.options); fields.has("machine"))
    if (const auto machine = read_machine(fields)) warn(doubts_about(*machine), console);
  const auto text = target.show(*parsed.options, format_of(*parsed.options), how);
  if (!text) return report(text.error(), console);
  line.end();
  return print_output(*parsed.options, *text, console);
}

template <std::size_t index>
int show_target(const std::vector<std::string>& arguments, Console& console) {
  return show(targets[index], arguments, console);
}

}  // namespace

std::span<const Verb> show_targets() {
  static constexpr std::array<Verb, 11> table{{
      {targets[0].name, "the fields of a machine, each with its source; without a machine the shipped ones", &show_target<0>},
      {targets[1].name, "what a slice's interconnect is: links, distances, bisection bandwidth", &show_target<1>},
      {targets[2].name, "which chip each device of a mesh is", &show_target<2>},
      {"sharding", "which device holds which block of an array", &show_sharding},
      {targets[3].name, "a schedule as text, or saved", &show_target<3>},
      {"pipeline", "which rank does which part of which microbatch, in which order", &show_pipeline},
      {targets[4].name, "a plan of a workload, or what JAX needs for it", &show_target<4>},
      {targets[5].name, "the collectives that a sharded program needs", &show_target<5>},
      {"training", "a training step by formulas: parameters, FLOPs, memory", &show_training},
      {"hlo", "what a module that XLA compiled does", &show_hlo},
      {"timeline", "what a device of a recorded run does when", &show_timeline},
  }};
  return table;
}

int show_verb(const std::vector<std::string>& arguments, Console& console) {
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    console.out << usage_of("show");
    return exit_done;
  }
  std::vector<std::string> names;
  for (const Verb& target : show_targets()) {
    if (!arguments.empty() && (arguments.front() == target.name || (target.name == targets[0].name && arguments.front() == "machines"))) return target.run({arguments.begin() + 1, arguments.end()}, console);
    names.emplace_back(target.name);
  }
  if (arguments.size() == 1 && file_exists(arguments.front())) return run_command(arguments, console);  // podsim FILE
  const std::string expected = fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
  if (arguments.empty()) return report({{}, "show what? " + expected}, console);
  const std::string hint = find_machine(arguments.front()) ? fmt::format(", did you mean `show machine {}`?", arguments.front()) : did_you_mean(arguments.front(), names);
  return report({{}, "cannot show " + quoted(arguments.front()) + hint + "; expected " + expected}, console);
}

}  // namespace podsim
