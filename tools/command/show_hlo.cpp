#include <fmt/format.h>

#include "sim/base/blame.hpp"
#include "sim/base/units.hpp"
#include "tools/command/options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/report/hlo_report.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {
namespace {

OptionGroup hlo_options() {
  return joined({{{"hlo", no_field(input_file("FILE")), "optimised HLO: compiled.as_text(), *.after_optimizations.txt"},
                  {"mesh", no_field(word("x=4,y=2")), "axes of the devices, row-major over their ids; left out: those that\nreplica groups name"},
                  {"machine", no_field(input_file("NAME|FILE")), "whose core works between starts and dones; left out: ideal"},
                  {"tolerant", no_field(flag()), "take a file that is cut off; what it lacks is counted"},
                  {"trip-count", no_field(words("NAME=N")), "iterations of the loop NAME"},
                  {"branch", no_field(words("NAME=i")), "the branch of the conditional NAME; left out: the longest"},
                  {"custom-call", no_field(words("TARGET=FLOPS[,BYTES]")), "what a custom-call costs: tpu_custom_call=2GFLOP,8MiB"}},
                 output_options(table_json)});
}

Expected<HloCountOptions> read_counting(const Options& options) {
  Fields fields;
  for (const auto& [field, name] : {std::pair{"trip_count", "trip-count"}, {"branch", "branch"}, {"custom_call", "custom-call"}})
    if (options.has(name))
      for (const std::string& text : options.texts(name)) fields.add(field, text, option(name));
  auto counting = read_hlo_counts(fields);
  if (!counting) return counting;
  counting->tolerant = options.flag("tolerant");
  return counting;
}

Expected<Mesh> mesh_of_module(const Options& options, const HloModule& module) {
  const auto sizes = parse_mesh(options.text("mesh"), option("mesh"));
  if (!sizes) return sizes.error();
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : *sizes) axes.push_back({name, size});
  auto mesh = Mesh::make(std::move(axes));
  if (!mesh) return Diagnostic{option("mesh"), mesh.error().message};
  // Where the header does not tell the devices, groups tell the least.
  const std::int64_t devices = devices_of(module);
  if (module.num_partitions ? mesh->devices() != devices : mesh->devices() < devices || mesh->devices() % module.replica_count != 0)
    return Diagnostic{option("mesh"), fmt::format("expected the {}{} devices of {}, got the {} of {}", module.num_partitions ? "" : "at least ",
                                                  devices, module.name, mesh->devices(), to_text(*mesh))};
  return mesh;
}

Expected<int> print_hlo(const Options& options, Console& console) {
  if (!options.has("hlo")) return Diagnostic{{}, "which module? podsim show hlo FILE"};
  const auto counting = read_counting(options);
  if (!counting) return counting.error();
  ShownHlo shown;
  shown.machine = options.has("machine") ? options.text("machine") : "ideal";
  const auto machine = load_machine(shown.machine);
  if (!machine) return machine.error();
  auto module = read_hlo_file(options.text("hlo"), {.tolerant = counting->tolerant});
  if (!module) {
    Diagnostic why = module.error();
    if (!counting->tolerant && why.message.ends_with("got the end")) why.message += "; --tolerant shows what is there of a file that is cut off";
    return why;
  }
  shown.module = *std::move(module);
  if (options.has("mesh")) {
    auto mesh = mesh_of_module(options, shown.module);
    if (!mesh) return mesh.error();
    shown.mesh = *std::move(mesh);
  }
  auto summary = summary_of(shown.module, *machine, *counting);
  if (!summary) return summary.error();
  shown.summary = *std::move(summary);
  if (format_of(options) == Format::json) {
    const auto json = hlo_json(shown);
    if (!json) return json.error();
    return print_output(options, json->dump(2) + "\n", console);
  }
  const auto text = hlo_table(shown);
  if (!text) return text.error();
  return print_output(options, *text, console);
}

}  // namespace

int show_hlo(const std::vector<std::string>& arguments, Console& console) {
  return perform(arguments, hlo_options(), "show_hlo", console, &print_hlo, "hlo");
}

}  // namespace podsim
