#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "sim/base/blame.hpp"
#include "sim/base/units.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/command/show_targets.hpp"
#include "tools/report/hlo_report.hpp"
#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/known_objects.hpp"

namespace podsim {
namespace {

OptionGroup hlo_options() {
  return joined({{field_option("hlo"),
                  {"tolerant", no_field(flag()), "take a file that is cut off; what it lacks is counted"},
                  field_option("trip_count"),
                  field_option("branch"),
                  field_option("custom_call"),
                  {"pods", word("N", "1"), "slices that run the module, where it talks to others"}},
                 field_options({FieldKind::Group::system}), output_options(table_json)});
}

/// nullopt: nothing says the axes.
Expected<std::optional<Mesh>> mesh_of_module(const Fields& fields, const HloModule& module) {
  if (!fields.has("slice") && !fields.has("mesh")) return std::optional<Mesh>{};
  const auto system = fields.has("slice") ? read_system(fields) : Expected<System>{Diagnostic{}};
  if (fields.has("slice") && !system) return system.error();
  const auto mesh = fields.has("slice") ? Expected<Mesh>{system->mesh} : parse_axes(fields.text("mesh"), fields.where("mesh"));
  if (!mesh) return mesh.error();
  // Where the header does not tell the devices, groups tell the least.
  const auto pods = fields.integer("pods", 1, 1024);
  if (!pods) return pods.error();
  const std::int64_t devices = devices_of(module) * (spans_slices(module) ? *pods : 1);
  if (module.num_partitions ? mesh->devices() != devices : mesh->devices() < devices || mesh->devices() % module.replica_count != 0)
    return Diagnostic{fields.has("mesh") ? fields.where("mesh") : fields.where("slice"), fmt::format("expected the {}{} devices of {}, got the {} of {}", module.num_partitions ? "" : "at least ",
                                                  devices, module.name, mesh->devices(), to_text(*mesh))};
  return std::optional<Mesh>{*mesh};
}

Expected<int> print_hlo(const Options& options, Console& console) {
  if (!options.has("hlo")) return Diagnostic{{}, "which module? podsim show hlo FILE"};
  Fields fields = fields_of(options);
  auto counting = read_hlo_counts(fields);
  if (!counting) return counting.error();
  counting->tolerant = options.flag("tolerant");
  auto module = read_hlo_file(fields.text("hlo"), {.tolerant = counting->tolerant});
  if (!module) {
    Diagnostic why = module.error();
    if (!counting->tolerant && why.cause == Cause::cut_off) why.message += "; --tolerant shows what is there of a file that is cut off";
    return why;
  }
  Fields otherwise;
  otherwise.set("machine", "ideal", option("machine"));
  const auto whole = with_axes_of(std::make_shared<const HloModule>(*module), std::move(fields), otherwise);
  if (!whole) return whole.error();
  ShownHlo shown;
  shown.module = *std::move(module);
  shown.assumed = whole->known->modules.at(whole->text("hlo")).assumed;
  shown.machine = whole->text("machine");
  const auto machine = read_machine(*whole);
  if (!machine) return machine.error();
  if (machine->chip.hbm < Bytes{std::numeric_limits<std::int64_t>::max()}) shown.hbm = machine->chip.hbm;
  auto mesh = mesh_of_module(*whole, shown.module);
  if (!mesh) return mesh.error();
  shown.mesh = *std::move(mesh);
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
