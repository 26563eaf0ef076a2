#include "sim/model/costed_graph.hpp"

#include <algorithm>

#include "sim/base/invariant.hpp"

namespace podsim {

CostedGraph write_out(const Model& model) {
  PODSIM_ASSERT(!model.folded());
  CostedGraph result;
  result.graph = unroll(*model.schedule, model.deployment);
  const auto& activities = result.graph.activities;
  result.work_time.resize(activities.size());
  result.transfers.resize(activities.size());
  result.on_core.resize(activities.size());
  if (!model.memory_paths.empty()) result.memory.resize(activities.size());
  result.shares_behind.resize(activities.size());
  for (const auto& [program, local] : model.deployment.places)
    result.shares_first.push_back(program == no_device ? Seconds{} : model.shares_first(program, local));
  for (std::size_t a = 0; a < activities.size(); ++a) {
    const Activity& activity = activities[a];
    const TaskCost& cost = model.costs[activity.program][activity.task.index()];
    const std::size_t local = model.deployment.places[activity.device.index()].local;
    result.on_core[a] = cost.on_core;
    if (cost.on_core) result.shares_behind[a] = model.shares_behind(activity.program, activity.task.index(), local);
    if (activity.kind == Activity::Kind::work) {
      const Seconds work = model.work(activity.program, cost, local);
      result.work_time[a] = work;
      const auto node = static_cast<std::uint32_t>(activity.device.value);
      const std::uint32_t path = model.memory_path(cost, node);
      if (path == no_device) continue;
      const auto at_speed = [&](Seconds time) { return cost.on_core ? model.at_speed(time, node) : time; };
      const Seconds launch = at_speed(cost.launch), rest = at_speed(cost.rest);
      result.memory[a] = {cost.memory_bytes, BytesPerSecond{cost.memory_bytes / (work - launch - rest).count()}, launch, rest, path};
      continue;
    }
    result.transfers[a] = {cost.delay + model.path(cost, local).latency, cost.flow_bytes, cost.payload, model.routings[cost.routing][local],
                           model.reduction(activity.program, activity.task.index(), local)};
  }
  for (const Path& path : model.paths) {
    auto& links = result.routes.emplace_back();
    for (const PathLink& link : model.links_of(path)) links.insert(links.end(), link.weight, model.links[link.link].representative);
    result.hops.push_back(static_cast<int>(path.hops));
    result.bottlenecks.push_back(path.bottleneck);
  }
  for (const ModelLink& link : model.links) result.links.push_back(link.bandwidth);
  return result;
}

Seconds uncontended(const CostedGraph& graph, const TransferCost& transfer) {
  return transfer.delay + Seconds{transfer.flow_bytes / graph.bottlenecks[transfer.route].count()} + transfer.reduction;
}

}  // namespace podsim
