// What every activity of a lowered schedule costs on a machine: the one place where its rules are applied;
// timing engines only add up, share links and keep the core busy.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/machine.hpp"
#include "sim/mesh/placement.hpp"
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
  std::vector<LinkParameters> links;        // by link id
};

/// Errors: the schedule does not unroll (first problem), it and the placement disagree, chips that are not connected, a duration that does
/// not fit the clock.
/// Cost O(task instances + edges); routes are found once per distinct (from, to, options).
Expected<CostedGraph> cost(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement);

/// The least bandwidth on a route; unlimited for an empty one.
BytesPerSecond bottleneck(const CostedGraph& graph, std::uint32_t route);

/// The duration of a transfer that shares no link.
Seconds uncontended(const CostedGraph& graph, const TransferCost& transfer);

}  // namespace podsim
