#include "tools/command/show_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/units.hpp"
#include "tools/command/scenario_options.hpp"
#include "tools/report/comparison_report.hpp"

namespace podsim {

std::string to_dot(const Topology& topology, const std::function<std::string(ChipId)>& label) {
  std::string text = "graph topology {\n";
  for (int node = 0; node < topology.nodes(); ++node)
    text += fmt::format("  n{} [label=\"{}\" shape={}];\n", node, label(ChipId{node}), node < topology.chips() ? "circle" : "box");
  for (int node = 0; node < topology.nodes(); ++node)
    for (const OutLink& out : topology.out_links(ChipId{node}))
      if (node < out.to.value) text += fmt::format("  n{} -- n{} [label=\"{}\"];\n", node, out.to.value, to_text(topology.link(out.link).bandwidth));
  return text + "}\n";
}

namespace {

using Json = nlohmann::ordered_json;

/// Hops between neighbours on an axis, around its end where it wraps.
struct NeighbourHops {
  int least = 0, most = 0;
  double mean = 0;
};
Expected<NeighbourHops> neighbour_hops(const System& system, const AxisView& axis) {
  NeighbourHops result;
  double total = 0, steps = 0;
  for (int d = 0; d < system.mesh.devices(); ++d) {
    const DeviceId device{d};
    if (system.mesh.coordinate(device, axis) + 1 == axis.size && !system.mesh.wraps(axis)) continue;
    std::vector<LinkId> links;
    if (auto ok =
            system.topology->route(system.placement.chip_of[device.index()], system.placement.chip_of[system.mesh.shifted(device, axis, 1).index()], {}, links);
        !ok)
      return ok.error();
    const auto hops = static_cast<int>(std::count_if(links.begin(), links.end(), [&](LinkId link) { return system.topology->is_hop(link); }));
    result.least = steps == 0 ? hops : std::min(result.least, hops);
    result.most = std::max(result.most, hops);
    total += hops;
    ++steps;
  }
  result.mean = steps > 0 ? total / steps : 0;
  return result;
}

/// JAX's id of every device of the mesh.
std::vector<int> vendor_ids(const System& system) {
  const DeviceList list = device_list(system.machine, system.slice);
  std::vector<int> ids;
  for (std::size_t d = 0; d < system.placement.chip_of.size(); ++d) {
    int id = system.placement.chip_of[d].value;
    if (const Grid* grid = system.topology->grid(); grid != nullptr && list.kind != DeviceKind::gpu) {
      std::vector<int> c = grid->coordinates(ChipId{id});
      c.resize(3, 0);
      id = list.cores * (c[0] + list.extents[0] * (c[1] + list.extents[1] * c[2])) + (system.placement.core_of.empty() ? 0 : system.placement.core_of[d]);
    }
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::string devices_text(const System& system, const std::vector<JaxDevice>& devices, Format format) {
  std::vector<std::vector<std::string>> rows{{"id", "process", "coords", "core_on_chip"}};
  Json json = Json::array();
  for (const JaxDevice& d : devices) {
    rows.push_back({std::to_string(d.id), std::to_string(d.process_index), fmt::format("({},{},{})", d.coords[0], d.coords[1], d.coords[2]),
                    std::to_string(d.core_on_chip)});
    json.push_back(Json{{"id", d.id}, {"process_index", d.process_index}, {"coords", d.coords}, {"core_on_chip", d.core_on_chip}});
  }
  if (format == Format::json) return Json{{"machine", system.machine.name}, {"slice", to_text(system.slice)}, {"devices", json}}.dump(2) + "\n";
  return table(rows, 0);
}

/// The topology in Graphviz with the mesh's devices on its chips.
std::string mesh_to_dot(const System& system) {
  std::map<int, std::string> devices;  // by chip
  for (int d = 0; d < system.mesh.devices(); ++d)
    devices[system.placement.chip_of[static_cast<std::size_t>(d)].value] += fmt::format("\\n{}: {}", d, system.mesh.name(DeviceId{d}));
  return to_dot(*system.topology, [&](ChipId node) { return system.topology->chip_name(node) + devices[node.value]; });
}

Expected<std::string> show_mesh(const Options& options, Format format, const RunOptions&) {
  const auto system = system_of(options, "ideal");
  if (!system) return system.error();
  if (options.has("output") && options.text("output").ends_with(".dot")) return mesh_to_dot(*system);
  const std::vector<int> ids = vendor_ids(*system);
  std::vector<int> shape;
  Json axes = Json::array();
  std::vector<std::vector<std::string>> rows{{"axis", "size", "wraps", "hops between neighbours"}};
  for (std::size_t a = 0; a < system->mesh.axes().size(); ++a) {
    const AxisView axis = system->mesh.whole(static_cast<int>(a));
    const auto hops = neighbour_hops(*system, axis);
    if (!hops) return hops.error();
    const std::string& name = system->mesh.axes()[a].name;
    shape.push_back(axis.size);
    axes.push_back(Json{{"name", name},
                        {"size", axis.size},
                        {"wraps", system->mesh.wraps(axis)},
                        {"least_hops", hops->least},
                        {"most_hops", hops->most},
                        {"mean_hops", hops->mean}});
    rows.push_back(
        {name, std::to_string(axis.size), system->mesh.wraps(axis) ? "yes" : "no",
         hops->least == hops->most ? std::to_string(hops->most) : fmt::format("{} to {}, mean {:.3g}", hops->least, hops->most, hops->mean)});
  }
  if (format == Format::json)
    return Json{{"machine", system->machine.name}, {"slice", to_text(system->slice)}, {"shape", shape}, {"device_ids_row_major", ids}, {"axes", axes}}.dump(
               2) +
           "\n";
  std::string text = table(rows, 1) + "\n";
  constexpr int most_shown = 256;
  if (system->mesh.devices() > most_shown) return text + fmt::format("{} devices: --format json lists their ids\n", system->mesh.devices());
  rows.clear();
  const auto columns = static_cast<std::size_t>(shape.empty() ? 1 : shape.back());
  for (std::size_t d = 0; d < ids.size(); d += columns) {
    auto& row = rows.emplace_back();
    std::string first = system->mesh.name(DeviceId{static_cast<int>(d)});
    row.push_back(first.substr(0, first.rfind(',')) + (shape.size() > 1 ? ":" : ""));
    if (shape.size() <= 1) row.back() = "";
    for (std::size_t c = 0; c < columns; ++c) row.push_back(std::to_string(ids[d + c]));
  }
  return text + table(rows, 1);
}

}  // namespace podsim
