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

/// How a work draws the memory that it shares: `launch` after its start a flow of `bytes` begins, which goes no faster than it would if the work were
/// alone; `rest` after its end the work is over.
struct MemoryCost {
  double bytes = 0;  // 0: none
  BytesPerSecond most;
  Seconds launch, rest;
  std::uint32_t route = 0;
};

struct CostedGraph {
  ActivityGraph graph;
  std::vector<Seconds> work_time;       // per activity, of a work that has the memory to itself; zero for a transfer
  std::vector<MemoryCost> memory;       // per activity; empty: no memory is short
  std::vector<TransferCost> transfers;  // per activity; empty for work
  std::vector<bool> on_core;            // per activity, whether it occupies the core, in program order
  std::vector<Seconds> shares_behind;   // per activity on the core: core shares that the core works off behind it
  std::vector<Seconds> shares_first;    // per device, before its first activity on the core
  /// Distinct routes, links in order of travel. A link that a route names n times gives n shares to each of its flows.
  std::vector<std::vector<LinkId>> routes;
  std::vector<int> hops;                    // per route: links between chips, without injection and ejection
  std::vector<BytesPerSecond> bottlenecks;  // per route: what a flow alone on it gets
  std::vector<BytesPerSecond> links;        // by link id; memories behind the topology's
};

/// The model must have one node per device (an assert). Cost O(task instances + edges).
CostedGraph write_out(const Model& model);

/// The uncontended duration of a transfer.
Seconds uncontended(const CostedGraph& graph, const TransferCost& transfer);

}  // namespace podsim
