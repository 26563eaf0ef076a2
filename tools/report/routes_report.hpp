// The network of a system, node by node and cable by cable, with the routes between all chips: what is needed to build it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "topologies/system.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

/// The two directions of a cable: links[0] leaves ends[0], links[1] leaves ends[1].
struct CableLinks {
  std::array<ChipId, 2> ends;
  std::array<LinkId, 2> links;
};

/// An exception to the table of next hops: at node `at`, transfers from chip `from` to chip `to` leave over this cable.
struct PolicyRoute {
  ChipId at, from, to;
  int cable = 0;
  friend bool operator==(const PolicyRoute&, const PolicyRoute&) = default;
};

/// All routes as a table of next hops by destination, and its exceptions: detours of two chips around a broken cable may part behind a node that both
/// pass. Whoever follows both takes exactly the links of Topology::route().
struct NextHops {
  std::vector<CableLinks> cables;            // by lower end, then higher end
  std::vector<std::vector<int>> next_cable;  // per node and destination chip, a position in `cables`; -1: the chip itself, or no route passes
  std::vector<PolicyRoute> policy_routes;    // in order of `from`, `to`, and travel
};

/// From Topology::route() of every pair of chips, as a Send takes it (a Shift half-way round a dimension may go the other way).
///   cost    O(chips^2 * hops)
///   errors  chips that are not connected; more than 1024 chips, whose table would have over 2^20 entries; cancelled work
Expected<NextHops> next_hops(const Topology& topology, Cancellation stop = {});

/// The same as JSON, with names, coordinates, rates and latencies. Errors: those of next_hops().
Expected<std::string> routes_report(const System& system, const RunOptions& how);

}  // namespace podsim
