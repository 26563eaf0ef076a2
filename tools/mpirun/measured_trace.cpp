#include "tools/mpirun/measured_trace.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "sim/analysis/metrics.hpp"
#include "sim/base/text.hpp"
#include "sim/model/model.hpp"
#include "tools/command/options.hpp"
#include "tools/report/trace.hpp"
#include "tools/report/xplane_trace.hpp"
#include "topologies/system.hpp"

namespace podsim {

namespace {

constexpr std::string_view profile_end = ".xplane.pb";

/// Chips in a grid of the mesh's sizes, or in a line if it has more axes than a grid has dimensions.
Expected<System> system_of(const Mesh& mesh, const Machine& machine) {
  SystemSpec spec;
  spec.machine = machine;
  spec.machine.chip.devices = 1;
  spec.machine.interconnect = Interconnect::grid;
  spec.machine.software.core_share = {};  // a measured task has what it lost in its own time
  Slice slice;
  for (const MeshAxis& axis : mesh.axes()) {
    spec.mesh.emplace_back(axis.name, axis.size);
    if (axis.size > 1) slice.extents.push_back(axis.size);
  }
  if (slice.extents.empty() || slice.extents.size() > max_dimensions) slice.extents = {mesh.devices()};
  spec.slice = std::move(slice);
  return make_system(spec);
}

}  // namespace

Status check_trace_name(const std::string& path) {
  for (const std::string_view end : {std::string_view{".json"}, std::string_view{".json.gz"}, profile_end})
    if (path.ends_with(end)) return success();
  return Diagnostic{option("trace"), "expected a name that ends in .json, .json.gz or .xplane.pb, found " + quoted(path)};
}

Status write_measured_trace(const std::string& path, const Schedule& lowered, const Machine& machine, const Timeline& timeline) {
  const auto system = system_of(lowered.mesh, machine);
  if (!system) return Diagnostic{option("trace"), system.error().message};
  const auto model = make_model(lowered, system->machine, *system->topology, system->placement);
  if (!model) return model.error();
  std::vector<DeviceId> devices;
  for (int d = 0; d < lowered.mesh.devices(); ++d) devices.emplace_back(d);
  auto sink = open_sink(path);
  if (!sink) return sink.error();
  if (path.ends_with(profile_end)) {
    std::string host = std::filesystem::path{path}.filename().string();
    host.resize(host.size() - profile_end.size());
    if (auto ok = write_xplane(*model, timeline, {host, devices, measure(*model, timeline).busiest}, **sink); !ok) return ok;
    return (*sink)->close();
  }
  const TraceMetadata metadata{{"measured", "podsim_mpirun"}, {"machine", machine.name}, {"mesh", to_text(lowered.mesh)}, {"schedule", lowered.name}, {"makespan_us", microseconds(timeline.makespan)}};
  return write_trace(*model, timeline, devices, metadata, **sink);
}

}  // namespace podsim
