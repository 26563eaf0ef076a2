#include "sim/model/recost.hpp"

#include <algorithm>

#include "sim/model/core_share.hpp"
#include "sim/model/shared_memory.hpp"
#include "sim/model/task_cost.hpp"

namespace podsim {

namespace {

/// Whether two machines build the same topology but for the values of links: an unlimited injection, say, is no link at all.
bool same_links(const Machine& one, const Machine& other) {
  const auto alike = [](BytesPerSecond a, BytesPerSecond b) { return is_unlimited(a) == is_unlimited(b); };
  for (std::size_t d = 0; d < one.link.size(); ++d)
    if (!alike(one.link[d].bandwidth, other.link[d].bandwidth)) return false;
  return one.interconnect == other.interconnect && one.slices == other.slices && one.chip.devices == other.chip.devices &&
         alike(one.chip.injection_bandwidth, other.chip.injection_bandwidth) && alike(one.chip.ejection_bandwidth, other.chip.ejection_bandwidth) &&
         alike(one.chip.inner.bandwidth, other.chip.inner.bandwidth) && alike(one.dcn.nic_bandwidth, other.dcn.nic_bandwidth) &&
         alike(one.dcn.host_bandwidth, other.dcn.host_bandwidth);
}

bool uses_switches(const Model& model) {
  return std::ranges::any_of(model.schedule->programs, [](const Program& program) {
    return std::ranges::any_of(program.tasks, [](const Task& task) {
      const auto* shift = std::get_if<Shift>(&task.op);
      return shift != nullptr && shift->in_switch != InSwitch::none;
    });
  });
}

void cost_tasks(Model& model) {
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const std::uint32_t routing = model.costs[p][t].routing;
      model.costs[p][t] = cost_of(*model.machine, model.schedule->programs[p], model.task(p, t));
      model.costs[p][t].routing = routing;
    }
}

void cost_links(const Topology& topology, Model& model) {
  const Chip& chip = model.machine->chip;
  for (ModelLink& link : model.links)
    link.bandwidth = link.is_memory ? static_cast<double>(memory_unit(chip)) * chip.hbm_bandwidth : topology.link(link.representative).bandwidth;
}

/// Of a transfer the first `leaving` shares of memory are the sender's, the others the receiver's; works have paths of their own, behind all others.
void cost_paths(const Topology& topology, Model& model) {
  const Chip& chip = model.machine->chip;
  const auto unit = static_cast<std::uint32_t>(memory_unit(chip)), leaving = static_cast<std::uint32_t>(chip.transfer_memory_passes * unit);
  for (Path& path : model.paths) {
    path.latency = {};
    path.bottleneck = unlimited<BytesPerSecond>;
    std::uint32_t drawn = 0;
    for (const PathLink& link : model.links_of(path)) {
      const ModelLink& of = model.links[link.link];
      if (of.is_memory) {
        drawn += link.weight;
        continue;
      }
      path.latency += topology.link(of.representative).latency;
      path.bottleneck = std::min(path.bottleneck, of.bandwidth);
    }
    if (drawn > 0) path.bottleneck = std::min(path.bottleneck, static_cast<double>(unit) / std::max(leaving, drawn - leaving) * chip.hbm_bandwidth);
  }
  for (const std::uint32_t path : model.memory_paths) model.paths[path].bottleneck = chip.hbm_bandwidth;
}

}  // namespace

Expected<std::optional<Model>> recost(const Model& model, const Machine& machine, const Topology& topology, const Placement& placement, Cancellation stop) {
  const std::optional<Model> impossible;
  if (model.folded() || model.calls != nullptr || model.first_memory != topology.link_slots() || !same_links(*model.machine, machine)) return impossible;
  const bool has_memories = !model.memory_paths.empty();
  if (has_memories && model.machine->chip.transfer_memory_passes != machine.chip.transfer_memory_passes) return impossible;
  if (uses_switches(model)) return impossible;
  Model result = model;
  result.machine = &machine;
  result.speed = placement.speed;
  cost_tasks(result);
  cost_links(topology, result);
  cost_paths(topology, result);
  if (memory_may_be_short(result) != has_memories) return impossible;
  result.core_shares = core_shares_of(result);
  if (auto ok = check_durations(result, stop); !ok) return ok.error();
  return std::optional<Model>{std::move(result)};
}

bool differ_in_costs_only(const Model& one, const Model& other) {
  return one.schedule == other.schedule && one.deployment.programs.shares(other.deployment.programs) && one.deployment.places.shares(other.deployment.places) &&
         one.deployment.participants.shares(other.deployment.participants) && one.routings.shares(other.routings) && one.path_links.shares(other.path_links) &&
         one.node_of.shares(other.node_of);
}

}  // namespace podsim
