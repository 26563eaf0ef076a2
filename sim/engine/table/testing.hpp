// What tests of several folders share: a machine without costs but its links, pods, and a run in one call. Not for production code.
#pragma once

#include <utility>
#include <vector>

#include "sim/base/invariant.hpp"
#include "sim/model/costed_graph.hpp"
#include "sim/engine/table/engines.hpp"
#include "sim/topology/placement.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim::testing {

/// 100 TFLOP/s for every dtype; 100 GB/s links without latency; nothing else costs anything (the `ideal` machine, without its file).
inline Machine ideal_machine(double bytes_per_second = 100e9, double hop_latency = 0) {
  Machine machine;
  machine.name = "ideal";
  machine.chip.peak.fill(FlopsPerSecond{100e12});
  machine.link.fill({BytesPerSecond{bytes_per_second}, Seconds{hop_latency}});
  machine.slices.any_shape = true;
  return machine;
}

/// Memory at 8 GB/s and links at 4 GB/s: copying n float32 elements, or moving them over one hop, takes n ns.
inline Machine plain_machine() {
  Machine machine = ideal_machine(4e9);
  machine.chip.hbm_bandwidth = BytesPerSecond{8e9};
  machine.chip.memory_shared = false;  // each test has its own rule in view
  return machine;
}

/// A machine, a grid of its links and a mesh placed row-major on it.
struct SmallSystem {
  Machine machine;
  Grid grid;
  Mesh mesh;
  Placement placement;
};

inline SmallSystem small_system(const Machine& machine, const std::vector<int>& extents, bool wraps = true,
                    const std::vector<std::pair<std::string, int>>& mesh_sizes = {}) {
  std::vector<GridDimension> dimensions;
  for (std::size_t d = 0; d < extents.size(); ++d) dimensions.push_back({extents[d], wraps && extents[d] > 2, machine.link[d]});
  auto grid = Grid::make(dimensions, machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth);
  PODSIM_ASSERT(grid);
  auto mesh = mesh_sizes.empty() ? default_mesh(*grid) : mesh_over(*grid, mesh_sizes);
  PODSIM_ASSERT(mesh);
  auto placement = place_row_major(*mesh, *grid);
  PODSIM_ASSERT(placement);
  return {machine, std::move(*grid), std::move(*mesh), std::move(*placement)};
}

inline Expected<Model> model_of(const SmallSystem& pod, const Schedule& lowered) { return make_model(lowered, pod.machine, pod.grid, pod.placement); }

/// The same per activity.
inline Expected<CostedGraph> cost(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement) {
  const auto model = make_model(lowered, machine, topology, placement);
  if (!model) return model.error();
  return write_out(*model);
}

inline std::vector<ActivityTimes> times_of(const Timeline& timeline) {
  std::vector<ActivityTimes> times;
  for (std::size_t a = 0; a < timeline.size(); ++a) times.push_back(timeline.at(a));
  return times;
}

/// A node per device.
inline Expected<Timeline> run(const SmallSystem& pod, const Schedule& lowered, std::string_view engine) {
  const auto model = model_of(pod, lowered);
  if (!model) return model.error();
  return (*timing_engine(engine))->run(*model, {});
}

}  // namespace podsim::testing
