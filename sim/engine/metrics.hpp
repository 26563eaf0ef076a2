// What a timeline means: the figures of a run.
#pragma once

#include <optional>
#include <string>

#include "sim/engine/costed_graph.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

/// compute + exposed communication + waiting = makespan, to the picosecond.
struct Metrics {
  Picoseconds makespan;
  DeviceId busiest;                   // core busy longest; ties: lowest
  Picoseconds compute;                // core busy there, launches and core shares included
  Picoseconds exposed_communication;  // there: core idle while at least one of its transfer halves or collective launches is in flight
  Picoseconds waiting;                // there: the rest
  Flops flops;                        // sum over devices of 2mnk, unpadded
  std::optional<double> mfu;          // flops / (devices * peak * makespan); none without matmuls
  double link_bytes = 0;              // sum of payload * hops
  Bytes peak_memory;                  // largest over devices and time of live buffers
  std::int64_t tasks = 0;             // lowered instances, a transfer once
};

Metrics measure(const Schedule& lowered, const CostedGraph& costs, const Machine& machine, const Timeline& timeline);

}  // namespace podsim
