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

constexpr std::int64_t most_trips = std::int64_t{1} << 53;
constexpr int most_branches = 1 << 20;

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

/// NAME and what stands behind the last "=" of an option's text.
Expected<std::pair<std::string, std::string>> named_value(const std::string& text, const std::string& name, const std::string& expected) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return Diagnostic{option(name), fmt::format("expected {}, got {}", expected, quoted(text))};
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

template <class Map, class Value>
Status insert_once(Map& map, const std::string& key, Value value, const std::string& name) {
  if (!map.emplace(key, value).second) return Diagnostic{option(name), fmt::format("expected {} at most once", quoted(key))};
  return success();
}

Expected<HloCustomCallCost> read_cost(const std::string& text) {
  const std::size_t comma = text.find(',');
  const auto flops = parse_flops(text.substr(0, comma), option("custom-call"));
  if (!flops) return flops.error();
  if (flops->count() > 0x1p62) return Diagnostic{option("custom-call"), fmt::format("expected at most 2^62 FLOPs, got {}", quoted(text))};
  HloCustomCallCost cost{static_cast<std::int64_t>(flops->count()), std::nullopt};
  if (comma == std::string::npos) return cost;
  const auto bytes = parse_bytes(text.substr(comma + 1), option("custom-call"));
  if (!bytes) return bytes.error();
  cost.bytes = *bytes;
  return cost;
}

Expected<HloCountOptions> read_counting(const Options& options) {
  HloCountOptions counting;
  counting.tolerant = options.flag("tolerant");
  for (const std::string& text : options.has("trip-count") ? options.texts("trip-count") : std::vector<std::string>{}) {
    const auto named = named_value(text, "trip-count", "NAME=N");
    if (!named) return named.error();
    const auto count = parse_integer(named->second, 0, most_trips, option("trip-count"));
    if (!count) return count.error();
    if (auto ok = insert_once(counting.trip_counts, named->first, *count, "trip-count"); !ok) return ok.error();
  }
  for (const std::string& text : options.has("branch") ? options.texts("branch") : std::vector<std::string>{}) {
    const auto named = named_value(text, "branch", "NAME=i");
    if (!named) return named.error();
    const auto branch = parse_integer(named->second, 0, most_branches, option("branch"));
    if (!branch) return branch.error();
    if (auto ok = insert_once(counting.branches, named->first, static_cast<int>(*branch), "branch"); !ok) return ok.error();
  }
  for (const std::string& text : options.has("custom-call") ? options.texts("custom-call") : std::vector<std::string>{}) {
    const auto named = named_value(text, "custom-call", "TARGET=FLOPS[,BYTES]");
    if (!named) return named.error();
    const auto cost = read_cost(named->second);
    if (!cost) return cost.error();
    if (auto ok = insert_once(counting.custom_calls, named->first, *cost, "custom-call"); !ok) return ok.error();
  }
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
  if (!module) return module.error();
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
