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
  /// Per activity, whether it occupies the core in program order, and for how long. A Matmul or Local on the core: for its work_time. A dma task or
  /// transfer with a core share starts when the core reaches it and its waits hold (for a transfer: those of the send gate); the core is then busy
  /// for `core_time` while the activity itself continues off the core. Everything else does not use the core.
  std::vector<bool> on_core;
  std::vector<Seconds> core_time;
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
