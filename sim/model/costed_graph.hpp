// A model written out per activity, for engines that share nothing between devices.
#pragma once

#include <span>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// How a transfer starts at s = max(send-ready, receive-ready): from s to s + delay it uses no link; then a flow of `flow_bytes` holds every
/// link of its route at its max-min fair rate (zero bytes or no links: no flow); `sent` and, without a reduction, `received` are then;
/// with one, `received` comes `reduction` later.
struct TransferCost {
  Seconds delay;          // launch (ops that an algorithm wrote) + per_message + hop latencies
  double flow_bytes = 0;  // payload / efficiency
  Bytes payload;
  std::uint32_t route = 0;  // position in CostedGraph::routes
  Seconds reduction;
};

struct CostedGraph {
  ActivityGraph graph;
  std::vector<Seconds> work_time;       // per activity; a transfer: zero
  std::vector<TransferCost> transfers;  // per activity; a work: empty
  /// Per activity: whether the core runs it in program order, and for how long it holds the core. A Matmul or Local on the core: its
  /// work_time. A dma work or transfer with a core share: it starts when the core reaches it and its waits hold, and the core is then busy
  /// for `core_time` while it goes its own way; of a transfer this is the send gate. Otherwise not on the core.
  std::vector<bool> on_core;
  std::vector<Seconds> core_time;
  std::vector<std::vector<LinkId>> routes;  // distinct routes, links in order of travel
  std::vector<int> hops;                    // per route: links between chips, without injection and ejection
  std::vector<BytesPerSecond> links;        // by link id
};

/// The model has a node per device (an assert). Cost O(task instances + edges).
CostedGraph write_out(const Model& model);

/// The least bandwidth on a route; unlimited for an empty one.
BytesPerSecond bottleneck(const CostedGraph& graph, std::uint32_t route);

/// The duration of a transfer that shares no link.
Seconds uncontended(const CostedGraph& graph, const TransferCost& transfer);

}  // namespace podsim
