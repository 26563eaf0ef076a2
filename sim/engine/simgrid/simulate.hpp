// One run: the times of a CostedGraph's activities.
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
  std::vector<bool> finished;        // per activity, if the graph could not progress (`times` is then empty); else empty
  Picoseconds cores_end;             // when the last core has worked off its shares
  std::int64_t events = 0;           // ends of work, delays, flows, reductions and core turns
};

/// Runs in a child process; see run_in_child() about threads. Times are sums of doubles, rounded once to the nearest picosecond.
/// Errors: those of load_simgrid() and of run_in_child().
Expected<Simulation> simulate(const CostedGraph& graph, Cancellation stop = {});

}  // namespace podsim::simgrid_engine
