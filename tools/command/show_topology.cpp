#include "tools/command/show_topology.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/units.hpp"
#include "sim/topology/bisection.hpp"
#include "sim/topology/graph.hpp"
#include "tools/command/show_mesh.hpp"
#include "topologies/drawing.hpp"

namespace podsim {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view too_many_routes = "its chips are not alike, and more than 2^24 routes between them would have to be looked at";

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

Expected<std::string> show_topology(const Options& options, Format format, const RunOptions& how) {
  const auto system = system_of(options, "ideal");
  if (!system) return system.error();
  if (options.flag("devices")) {
    const auto devices = jax_devices(device_list(system->machine, system->slice));
    if (!devices) return devices.error();
    return devices_text(*system, *devices, format);
  }
  if (options.has("output") && options.text("output").ends_with(".dot"))
    return to_dot(*system->topology, [&](ChipId node) { return system->topology->chip_name(node); });
  const Topology& topology = *system->topology;
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
    wrap_json[std::string(1, dimension_name(static_cast<int>(d)))] = wraps;
  }
  if (format == Format::json) {
    Json json{{"machine", system->machine.name}, {"slice", to_text(system->slice)},         {"hypothetical", system->hypothetical},
              {"chips", topology.chips()},    {"devices", system->mesh.devices()},       {"switches", shape->switches},
              {"links", shape->links},        {"least_degree", shape->least_degree},  {"largest_degree", shape->largest_degree},
              {"diameter", shape->diameter},  {"mean_distance", shape->mean_distance}};
    json["wrap"] = wrap_json;
    json["bisection_bandwidth_bytes_per_s"] = number_or_null(bisection);
    json["all_to_all_bound_bytes_per_s"] = *all_to_all ? number_or_null(**all_to_all) : Json();
    if (!*all_to_all) json["all_to_all_bound_not_computed"] = too_many_routes;
    return json.dump(2) + "\n";
  }
  const auto rate = [](BytesPerSecond r) { return to_text(r); };
  std::string text = table(
      {{"machine", system->machine.name},
       {"slice", to_text(system->slice) + (system->hypothetical ? " (hypothetical)" : "")},
       {"topology", topology_text(*system)},
       {"wrap", wrap.empty() ? "-" : wrap},
       {"chips", std::to_string(topology.chips()) + (system->machine.chip.devices > 1 ? fmt::format(" of {} devices", system->machine.chip.devices) : "") +
                     (shape->switches > 0 ? fmt::format(", {} switches", shape->switches) : "")},
       {"links", fmt::format("{} (each direction counts)", shape->links)},
       {"degree", shape->least_degree == shape->largest_degree ? std::to_string(shape->largest_degree)
                                                               : fmt::format("{} to {}", shape->least_degree, shape->largest_degree)},
       {"diameter", fmt::format("{} hops", shape->diameter)},
       {"mean distance", fmt::format("{:.4g} hops", shape->mean_distance)},
       {"bisection bandwidth", rate(bisection) + " each way"},
       {"all-to-all bound", *all_to_all ? rate(**all_to_all) + " per chip" : fmt::format("not computed: {}", too_many_routes)}},
      2);
  constexpr int most_drawn = 64;              // chips; more fill the screen without being read
  const Grid* grid = topology.plain_grid();  // broken and twisted cables are not drawn
  if (const auto drawing = grid != nullptr && grid->chips() <= most_drawn ? draw(*grid) : std::nullopt) text += "\n" + *drawing;
  return text;
}

}  // namespace podsim
