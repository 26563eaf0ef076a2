// The least time of a collective by the cuts of its topology, whatever the algorithm.
#pragma once

#include <optional>
#include <string>

#include "sim/topology/cut_bound.hpp"
#include "topologies/system.hpp"
#include "workloads/scenario/bandwidth.hpp"

namespace podsim {

/// A lower bound on the time of a collective among groups along `axes`, all at once. V: bytes of a shard; n: an all-reduce's input.
///   all-gather       max over sets S of nodes of |S| V / (bandwidth out of S), for sinks at one position of every group
///   reduce-scatter   the same backwards
///   all-reduce       k parts of a group send 2 (k-1) n among each other (each of k must send its summand on, and k-1 must get the sum):
///                    max over partitions (single chips; coordinates along the first axes or dimensions; the set S of the all-gather and the rest) of
///                    2 (k-1) n / (bandwidth out of all parts)
/// Latencies, launches and the links of a device to its router do not count; the efficiency of the machine's collectives does.
struct CutBound {
  std::optional<Seconds> least{};
  std::string none{};  // why there is no bound
};
CutBound cut_bound(const System& system, const Collective& collective, Bytes input);

/// The part of the bound that a run reached, at most 1 but for rounding; nullopt: no bound, or no time.
std::optional<double> share_of_bound(const CollectiveSummary& collective, Seconds time);

}  // namespace podsim
