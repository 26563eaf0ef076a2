#include <array>

#include "tools/command/command.hpp"
#include "tools/console/progress.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/show_targets.hpp"

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
  OptionGroup described = system_options(false);
  if (target.show == &show_mesh || target.problem) described = joined({described, mesh_devices_option()});
  if (target.what_ifs) described = joined({described, what_if_options(false)});
  if (target.show == &show_topology)
    described.push_back({"devices", no_field(flag()), "the devices as jax.devices() lists them: id, process, coords, core_on_chip"});
  if (target.show == &show_plan) {
    described.push_back({"plan", input_file("FILE"), "a plan of a workload, as podsim tune -o writes it"});
    described.push_back({"pass", word("forward|backward|both"), "left out: as the plan says"});
    described.push_back({"jax", flag(), "the mesh, the device order and the PartitionSpec of every array; the collectives that JAX inserts for them"});
    described.push_back({"axis-names", word("AXIS=NAME,..."), "with --jax: what JAX calls the axes of the mesh: row=data,col=model"});
  }
  if (target.problem) {
    described = joined({described, problem_options(false), workload_options(), training_options(false), module_options()});
    if (target.show == &show_schedule) {
      described.push_back({"lowered", flag(), "with its collectives replaced by the tasks of their algorithms"});
      described.push_back({"msccl-out", output_file("FILE.xml"), "also written as an algorithm of MSCCL: one collective of all devices that is\ntransfers, copies and additions. The text is then of the lowered schedule"});
    }
  }
  return joined({described, output_options(target.formats)});
}

int show(const Target& target, const std::vector<std::string>& arguments, Console& console) {
  const Parsed parsed = parse(arguments, options_of(target), usage_of("show_" + std::string{target.name}), console, target.show == &show_plan ? "plan" : nullptr);
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
    console.out << usage_of("show");
    return exit_done;
  }
  if (!arguments.empty() && arguments.front() == "sharding") return show_sharding({arguments.begin() + 1, arguments.end()}, console);
  if (!arguments.empty() && arguments.front() == "training") return show_training({arguments.begin() + 1, arguments.end()}, console);
  if (!arguments.empty() && arguments.front() == "pipeline") return show_pipeline({arguments.begin() + 1, arguments.end()}, console);
  if (!arguments.empty() && arguments.front() == "hlo") return show_hlo({arguments.begin() + 1, arguments.end()}, console);
  std::vector<std::string> names{"sharding", "pipeline", "training", "hlo"};
  for (const Target& target : targets) {
    if (!arguments.empty() && arguments.front() == target.name) return show(target, {arguments.begin() + 1, arguments.end()}, console);
    names.emplace_back(target.name);
  }
  const std::string expected = "machine, topology, mesh, sharding, schedule, pipeline, plan, program, training or hlo";
  if (arguments.empty()) return report({{}, "show what? " + expected}, console);
  return report({{}, "cannot show " + quoted(arguments.front()) + did_you_mean(arguments.front(), names) + "; expected " + expected}, console);
}

}  // namespace podsim
