#include "tools/command/show_targets.hpp"

#include "tools/report/system_report.hpp"

namespace podsim {

Expected<std::string> show_mesh(const Options& options, Format format, const RunOptions&) {
  const auto system = system_of(options, "ideal");
  if (!system) return system.error();
  if (options.has("output") && options.text("output").ends_with(".dot")) return mesh_to_dot(*system);
  return mesh_report(*system, format);
}

}  // namespace podsim
