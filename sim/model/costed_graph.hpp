// A model written out per activity, for engines that share nothing between devices.
#pragma once

#include <span>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// The phases of a transfer that starts at s = max(send-ready, receive-ready). Until s + delay it uses no link. Then a flow of `flow_bytes` holds
/// every link of its route at its max-min fair rate (no flow if there are no bytes or no links). At the end of the flow it is `sent`, and `reduction`
/// later `received`.
struct TransferCost {
  Seconds delay;          // launch (operations that an algorithm wrote) + per_message + hop latencies
  double flow_bytes = 0;  // payload / efficiency
  Bytes payload;
  std::uint32_t route = 0;  // position in CostedGraph::routes
  Seconds reduction;
};

struct CostedGraph {
  ActivityGraph graph;
  std::vector<Seconds> work_time;       // per activity; zero for a transfer
  std::vector<TransferCost> transfers;  // per activity; empty for work
  std::vector<bool> on_core;           // per activity, whether it occupies the core, in program order
  std::vector<Seconds> shares_behind;  // per activity on the core: core shares that the core works off behind it
  std::vector<Seconds> shares_first;   // per device, before its first activity on the core
  std::vector<std::vector<LinkId>> routes;  // distinct routes, links in order of travel
  std::vector<int> hops;                    // per route: links between chips, without injection and ejection
  std::vector<BytesPerSecond> links;        // by link id
};

/// The model must have one node per device (an assert). Cost O(task instances + edges).
CostedGraph write_out(const Model& model);

/// The least bandwidth on a route; unlimited for an empty route.
BytesPerSecond bottleneck(const CostedGraph& graph, std::uint32_t route);

/// The uncontended duration of a transfer.
Seconds uncontended(const CostedGraph& graph, const TransferCost& transfer);

}  // namespace podsim
