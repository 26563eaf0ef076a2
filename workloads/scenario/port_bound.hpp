// The least time of a schedule by what its collectives must move in and out of a chip.
#pragma once

#include "sim/schedule/schedule.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// No run of the schedule, which is not lowered, takes less: of each program's first device, what must come in, or go out, over all links of its chip at once. n: a collective's input, P: its devices.
///   all-gather          in (P-1) n
///   reduce-scatter      out n (P-1) / P
///   all-reduce, all-to-all   in and out n (P-1) / P
/// Other tasks count nothing. Zero of several slices and of chips of several devices, where other links than the topology's are used. Cost O(links + tasks).
Seconds least_port_time(const System& system, const Schedule& schedule);

}  // namespace podsim
