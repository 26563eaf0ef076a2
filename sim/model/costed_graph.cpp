#include "sim/model/costed_graph.hpp"

#include <algorithm>
#include <cassert>

namespace podsim {

CostedGraph write_out(const Model& model) {
  assert(!model.folded());
  CostedGraph result;
  result.graph = unroll(*model.schedule, model.deployment);
  const auto& activities = result.graph.activities;
  result.work_time.resize(activities.size());
  result.transfers.resize(activities.size());
  result.on_core.resize(activities.size());
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
      result.work_time[a] = model.work(activity.program, cost, local);
      continue;
    }
    result.transfers[a] = {cost.delay + model.path(cost, local).latency, cost.flow_bytes, cost.payload, model.routings[cost.routing][local],
                           model.reduction(activity.program, activity.task.index(), local)};
  }
  for (const Path& path : model.paths) {
    auto& links = result.routes.emplace_back();
    for (const PathLink& link : model.links_of(path)) links.push_back(model.links[link.link].representative);
    result.hops.push_back(static_cast<int>(path.hops));
  }
  for (const ModelLink& link : model.links) result.links.push_back(link.bandwidth);
  return result;
}

BytesPerSecond bottleneck(const CostedGraph& graph, std::uint32_t route) {
  BytesPerSecond least = unlimited<BytesPerSecond>;
  for (const LinkId link : graph.routes[route]) least = std::min(least, graph.links[link.index()]);
  return least;
}

Seconds uncontended(const CostedGraph& graph, const TransferCost& transfer) {
  return transfer.delay + Seconds{transfer.flow_bytes / bottleneck(graph, transfer.route).count()} + transfer.reduction;
}

}  // namespace podsim
