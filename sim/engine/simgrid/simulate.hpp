// One run: a CostedGraph in, the times of its activities out.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/model/costed_graph.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim::simgrid_engine {

struct Simulation {
  std::vector<ActivityTimes> times;  // one per activity
  std::vector<bool> finished;        // one per activity if the graph could not progress, and then there are no times; else empty
  std::int64_t events = 0;           // ends of works, delays, flows, reductions and turns of a core
};

/// In a child process of its own; see run_in_child() about threads. Times are sums of doubles, rounded once, to the nearest picosecond.
/// Errors: those of run_in_child().
Expected<Simulation> simulate(const CostedGraph& graph, Cancellation stop = {});

}  // namespace podsim::simgrid_engine
