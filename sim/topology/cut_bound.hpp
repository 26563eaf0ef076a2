// What the cuts of a topology leave to collectives: bounds that hold for every algorithm, from max-flows.
#pragma once

#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/topology/topology.hpp"

namespace podsim {

/// The most that every source can send to the sinks at the same time, each equally much: the least over all sets S of nodes without a sink of
/// (bandwidth out of S) / (sources in S, with their weights).
struct CommonRate {
  BytesPerSecond rate = unlimited<BytesPerSecond>;  // per unit of weight
  std::vector<bool> sources_side;                   // per node: the set S that bounds it; empty: nothing does
};

/// `weight` per node (chips; switches send nothing), `sink` per node; a sink's own weight does not count. `backwards`: from the sinks to the sources.
/// Max-flows (push-relabel) with sources of growing limits, until all can send what they may (Newton's method on the cuts, a handful of flows).
/// Unlimited: no source, or unlimited links all the way. Zero: a source that reaches no sink. Errors: cancelled work.
Expected<CommonRate> common_rate(const Topology& topology, const std::vector<double>& weight, const std::vector<bool>& sink, bool backwards,
                                 Cancellation stop = {});

/// The links out of all parts of the chips together.
struct PartsCut {
  BytesPerSecond bandwidth;
  bool adds = false;  // some lead to a switch that adds up
};
/// `part` per chip, numbered from 0. A switch belongs to a part if all its neighbours do, else to none; so each part has one cut, which may be larger
/// than its least one. Cost O(links).
PartsCut links_out_of(const Topology& topology, const std::vector<int>& part);

}  // namespace podsim
