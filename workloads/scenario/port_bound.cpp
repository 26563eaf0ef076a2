#include "workloads/scenario/port_bound.hpp"

#include <algorithm>
#include <variant>
#include <vector>

namespace podsim {

namespace {

/// In both directions.
struct Ports {
  BytesPerSecond in, out;
};

std::vector<Ports> ports_of(const Topology& topology) {
  std::vector<Ports> ports(static_cast<std::size_t>(topology.nodes()));
  for (int node = 0; node < topology.nodes(); ++node)
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      const BytesPerSecond bandwidth = topology.link(out.link).bandwidth;
      ports[static_cast<std::size_t>(node)].out += bandwidth;
      ports[out.to.index()].in += bandwidth;
    }
  return ports;
}

struct Moved {
  double in = 0, out = 0;  // bytes
};

Moved moved_by(const Collective& collective, double input, double devices) {
  const double others = input * (devices - 1) / devices;
  switch (collective.kind) {
    case CollectiveKind::all_gather: return {input * (devices - 1), 0};
    case CollectiveKind::reduce_scatter: return {0, others};
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_to_all: return {others, others};
    default: return {};
  }
}

}  // namespace

Seconds least_port_time(const System& system, const Schedule& schedule) {
  if (system.slices > 1 || system.machine.chip.devices > 1 || schedule.mesh.devices() != system.mesh.devices()) return {};
  const std::vector<Ports> ports = ports_of(*system.topology);
  double most = 0;
  for (const Program& program : schedule.programs) {
    if (program.devices.intervals.empty()) continue;
    const DeviceId device{program.devices.intervals.front().first};
    const Coordinates at = schedule.mesh.coordinates(device);
    Moved moved;
    for (const Task& task : program.tasks) {
      const auto* collective = std::get_if<Collective>(&task.op);
      if (collective == nullptr || !holds(task.where, at)) continue;
      double devices = 1;
      for (const AxisView& axis : collective->axes) devices *= axis.size;
      const Moved own = moved_by(*collective, static_cast<double>(bytes_of(program, collective->input).count()), devices);
      moved.in += own.in, moved.out += own.out;
    }
    const Ports& own = ports[system.placement.chip_of[device.index()].index()];
    for (const auto& [bytes, rate] : {std::pair{moved.in, own.in}, {moved.out, own.out}})
      if (bytes > 0 && rate.count() > 0) most = std::max(most, bytes / rate.count());
  }
  return Seconds{most};
}

}  // namespace podsim
