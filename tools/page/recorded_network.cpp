#include "tools/page/recorded_network.hpp"

#include <map>
#include <vector>

#include "sim/schedule/calls.hpp"

namespace podsim {

namespace {

/// The extents of the grid that numbers the chips, of several slices the number of slices first; empty: none.
std::vector<int> extents_of(const Topology& topology) {
  const auto parts = topology.parts();
  const Grid* const grid = parts ? parts->slice.grid() : topology.grid();
  if (grid == nullptr) return {};
  std::vector<int> extents;
  if (parts) extents.push_back(parts->slices);
  for (const GridDimension& dimension : grid->dimensions()) extents.push_back(dimension.extent);
  return extents;
}

/// Bytes and utilisation by slot of the topology.
class LinkSums {
 public:
  LinkSums(const Run& run, Cancellation stop) : run_{run}, stop_{stop}, sums_(static_cast<std::size_t>(run.system->topology->link_slots())) {}

  Status read() {
    if (!run_.model.folded()) return add(run_.model, 1), read_calls();
    if (auto ok = add_unfolded(*run_.lowered, 1, run_.model.calls); !ok) return ok;
    return read_calls();
  }
  [[nodiscard]] const LinkMetrics& of(LinkId link) const { return sums_[link.index()]; }

 private:
  /// What the functions send, each as often as a program calls it.
  Status read_calls() {
    if (run_.model.calls == nullptr) return success();
    for (std::size_t p = 0; p < run_.lowered->programs.size(); ++p) {
      std::map<std::size_t, int> times;
      for (const Task& task : run_.lowered->programs[p].tasks)
        if (const auto* const call = std::get_if<Call>(&task.op)) ++times[static_cast<std::size_t>(call->function)];
      for (const auto& [function, count] : times)
        if (auto ok = add_unfolded(schedule_of_call(*run_.lowered, p, function), count, nullptr); !ok) return ok;
    }
    return success();
  }

  Status add_unfolded(const Schedule& lowered, int times, const std::shared_ptr<const PlayedCalls>& calls) {
    const System& system = *run_.system;
    const auto model = make_model(lowered, system.machine, *system.topology, system.placement, stop_, calls);
    if (!model) return model.error();
    add(*model, times);
    return success();
  }

  void add(const Model& model, int times) {
    for (const LinkMetrics& link : measure_links(model, run_.timeline)) {
      if (link.memory_of) continue;
      sums_[link.link.index()].bytes += times * link.bytes;
      sums_[link.link.index()].utilisation += times * link.utilisation;  // of the whole run, which the timeline is of
    }
  }

  const Run& run_;
  Cancellation stop_;
  std::vector<LinkMetrics> sums_;
};

}  // namespace

Expected<RecordedNetwork> network_of(const Run& run, Cancellation stop) {
  const Topology& topology = *run.system->topology;
  LinkSums sums{run, stop};
  if (auto ok = sums.read(); !ok) return ok.error();
  RecordedNetwork network{topology.chips(), extents_of(topology), {}, {}};
  const int before = !network.extents.empty() && topology.parts() ? 1 : 0;  // dimensions of `extents` before those of the grid
  for (int node = 0; node < topology.nodes(); ++node) {
    network.nodes.push_back(topology.chip_name(ChipId{node}));
    for (const OutLink& out : topology.out_links(ChipId{node})) {
      const LinkMetrics& sum = sums.of(out.link);
      const auto dimension = topology.dimension_of(out.link);
      network.links.push_back({node, out.to.value, dimension ? *dimension + before : -1, sum.bytes, sum.utilisation});
    }
  }
  return network;
}

}  // namespace podsim
