#include "tools/command/show_targets.hpp"

#include "tools/report/routes_report.hpp"
#include "tools/report/system_report.hpp"

namespace podsim {

Expected<std::string> show_topology(const Options& options, Format format, const RunOptions& how) {
  const auto system = system_of(options, "ideal");
  if (!system) return system.error();
  if (options.flag("devices") && options.has("routes")) return Diagnostic{option("routes"), "expected without --devices, which prints a list of its own"};
  if (options.flag("devices")) {
    const auto devices = jax_devices(device_list(system->machine, system->slice));
    if (!devices) return devices.error();
    return devices_text(*system, *devices, format);
  }
  if (options.has("routes")) return routes_report(*system, how);
  if (options.has("output") && options.text("output").ends_with(".dot"))
    return to_dot(*system->topology, [&](ChipId node) { return system->topology->chip_name(node); });
  return topology_report(*system, format, how);
}

}  // namespace podsim
