#include "tools/report/system_report.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "sim/base/units.hpp"
#include "sim/topology/bisection.hpp"
#include "sim/topology/graph.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"
#include "topologies/drawing.hpp"
#include "topologies/nccl/nccl_system.hpp"

namespace podsim {

namespace {

constexpr std::string_view too_many_routes = "its chips are not equivalent, and there are more than 2^24 routes between them";

Json number_or_null(BytesPerSecond rate) { return is_unlimited(rate) ? Json() : Json(rate.count()); }

std::string topology_text(const System& system) {
  const SystemChanges changes = changes_of(system);
  std::string text = changes.topology.empty() ? "as built" : changes.topology;
  if (changes.slices > 1) text = fmt::format("{} slices, each {}", changes.slices, text);
  for (const std::string& cable : changes.broken) text += ", broken " + cable;
  for (const std::string& cable : changes.slowed) text += ", slow " + cable;
  return text;
}

}  // namespace

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

}  // namespace

std::string devices_text(const System& system, const std::vector<JaxDevice>& devices, Format format) {
  std::vector<std::vector<std::string>> rows{{"id", "process", "coords", "core_on_chip"}};
  Json json = Json::array();
  for (const JaxDevice& d : devices) {
    rows.push_back({std::to_string(d.id), std::to_string(d.process_index), fmt::format("({},{},{})", d.coords[0], d.coords[1], d.coords[2]),
                    std::to_string(d.core_on_chip)});
    json.push_back(Json{{"id", d.id}, {"process_index", d.process_index}, {"coords", std::vector<int>(d.coords.begin(), d.coords.end())}, {"core_on_chip", d.core_on_chip}});
  }
  if (format == Format::json) return Json{{"machine", system.machine.name}, {"slice", to_text(system.slice)}, {"devices", json}}.dump(2) + "\n";
  return table(rows, 0);
}

std::string mesh_to_dot(const System& system) {
  std::map<int, std::string> devices;  // by chip
  for (int d = 0; d < system.mesh.devices(); ++d)
    devices[system.placement.chip_of[static_cast<std::size_t>(d)].value] += fmt::format("\\n{}: {}", d, system.mesh.name(DeviceId{d}));
  return to_dot(*system.topology, [&](ChipId node) { return system.topology->chip_name(node) + devices[node.value]; });
}

Expected<std::string> mesh_report(const System& system, Format format) {
  const std::vector<int> ids = jax_device_ids(system);
  std::vector<int> shape;
  Json axes = Json::array();
  std::vector<std::vector<std::string>> rows{{"axis", "size", "wraps", "hops between neighbours"}};
  for (std::size_t a = 0; a < system.mesh.axes().size(); ++a) {
    const AxisView axis = system.mesh.whole(static_cast<int>(a));
    const auto hops = neighbour_hops(system, axis);
    if (!hops) return hops.error();
    const std::string& name = system.mesh.axes()[a].name;
    shape.push_back(axis.size);
    axes.push_back(Json{{"name", name},
                        {"size", axis.size},
                        {"wraps", system.mesh.wraps(axis)},
                        {"least_hops", hops->least},
                        {"most_hops", hops->most},
                        {"mean_hops", hops->mean}});
    rows.push_back(
        {name, std::to_string(axis.size), system.mesh.wraps(axis) ? "yes" : "no",
         hops->least == hops->most ? std::to_string(hops->most) : fmt::format("{} to {}, mean {:.3g}", hops->least, hops->most, hops->mean)});
  }
  if (format == Format::json)
    return Json{{"machine", system.machine.name}, {"slice", to_text(system.slice)}, {"shape", shape}, {"device_ids_row_major", ids}, {"axes", axes}}.dump(
               2) +
           "\n";
  std::string text = table(rows, 1) + "\n";
  constexpr int most_shown = 256;
  if (system.mesh.devices() > most_shown) return text + fmt::format("{} devices: --format json lists their ids\n", system.mesh.devices());
  rows.clear();
  const auto columns = static_cast<std::size_t>(shape.empty() ? 1 : shape.back());
  for (std::size_t d = 0; d < ids.size(); d += columns) {
    auto& row = rows.emplace_back();
    std::string first = system.mesh.name(DeviceId{static_cast<int>(d)});
    row.push_back(first.substr(0, first.rfind(',')) + (shape.size() > 1 ? ":" : ""));
    if (shape.size() <= 1) row.back() = "";
    for (std::size_t c = 0; c < columns; ++c) row.push_back(std::to_string(ids[d + c]));
  }
  return text + table(rows, 1);
}

Expected<std::string> topology_report(const System& system, Format format, const RunOptions& how) {
  const Topology& topology = *system.topology;
  how.tell("measuring all distances");
  const auto shape = shape_of(topology, how.control.stop);
  if (!shape) return shape.error();
  const BytesPerSecond bisection = bisection_bandwidth(topology);
  how.tell("counting the routes of an all-to-all");
  const auto all_to_all = all_to_all_bound(topology, how.control.stop);
  if (!all_to_all) return all_to_all.error();
  std::string wrap;
  Json wrap_json = Json::object();
  const std::vector<GridDimension> dimensions = topology.grid() == nullptr ? std::vector<GridDimension>{} : topology.grid()->dimensions();
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const bool wraps = dimensions[d].wraps;
    const bool shifted = wraps && !topology.closes(static_cast<int>(d));
    wrap += fmt::format("{}{} {}", d == 0 ? "" : ", ", dimension_name(static_cast<int>(d)), shifted ? "wraps shifted" : wraps ? "wraps" : "open");
    wrap_json.set(std::string(1, dimension_name(static_cast<int>(d))), wraps);
  }
  if (format == Format::json) {
    Json json{{"machine", system.machine.name}, {"slice", to_text(system.slice)},         {"hypothetical", is_hypothetical(system)},
              {"chips", topology.chips()},    {"devices", system.mesh.devices()},       {"switches", shape->switches},
              {"links", shape->links},        {"least_degree", shape->least_degree},  {"largest_degree", shape->largest_degree},
              {"diameter", shape->diameter},  {"mean_distance", shape->mean_distance}};
    if (const NcclSystem* node = system.joined_by.nccl.get()) json.set("node", to_text(*node)), json.set("notes", node->notes);
    json.set("wrap", wrap_json);
    json.set("bisection_bandwidth_bytes_per_s", number_or_null(bisection));
    json.set("all_to_all_bound_bytes_per_s", *all_to_all ? number_or_null(**all_to_all) : Json());
    if (!*all_to_all) json.set("all_to_all_bound_not_computed", too_many_routes);
    return json.dump(2) + "\n";
  }
  const auto rate = [](BytesPerSecond r) { return to_text(r); };
  std::string text = table(
      {{"machine", system.machine.name},
       {"slice", to_text(system.slice) + (is_hypothetical(system) ? " (hypothetical)" : "")},
       {"topology", topology_text(system)},
       {"wrap", wrap.empty() ? "-" : wrap},
       {"chips", std::to_string(topology.chips()) + (system.machine.chip.devices > 1 ? fmt::format(" of {} devices", system.machine.chip.devices) : "") +
                     (shape->switches > 0 ? fmt::format(", {} switches", shape->switches) : "")},
       {"links", fmt::format("{} (each direction counts)", shape->links)},
       {"degree", shape->least_degree == shape->largest_degree ? std::to_string(shape->largest_degree)
                                                               : fmt::format("{} to {}", shape->least_degree, shape->largest_degree)},
       {"diameter", fmt::format("{} hops", shape->diameter)},
       {"mean distance", fmt::format("{:.4g} hops", shape->mean_distance)},
       {"bisection bandwidth", rate(bisection) + " each way"},
       {"all-to-all bound", *all_to_all ? rate(**all_to_all) + " per chip" : fmt::format("not computed: {}", too_many_routes)}},
      2);
  if (const NcclSystem* node = system.joined_by.nccl.get())
    text += fmt::format("\na node: {}\n{}{}{}", to_text(*node), node->notes.empty() ? "" : "note: ", fmt::join(node->notes, "\nnote: "), node->notes.empty() ? "" : "\n");
  constexpr int most_drawn = 64;              // chips; more fill the screen without being read
  const Grid* grid = topology.plain_grid();  // broken and twisted cables are not drawn
  if (const auto drawing = grid != nullptr && grid->chips() <= most_drawn ? draw(*grid) : std::nullopt) text += "\n" + *drawing;
  return text;
}

}  // namespace podsim
