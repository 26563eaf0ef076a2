// A pod: a slice of a machine, what joins its chips, and a mesh that is placed on it.
#pragma once

#include <memory>

#include "sim/machine/machine.hpp"
#include "sim/topology/grid.hpp"
#include "sim/topology/placement.hpp"
#include "topologies/interconnect.hpp"
#include "topologies/slice.hpp"

namespace podsim {

struct Pod {
  Machine machine;
  Slice slice;
  Wrap wrap;
  WhatIf what_if;
  bool hypothetical = false;
  std::shared_ptr<const Topology> topology;
  Grid layout;  // what the mesh is laid over: slices, the dimensions of a slice, the devices of a chip; it wraps where neighbours at the ends are
                // neighbours
  Mesh mesh;
  Placement placement;
};

/// Gives the pod the topology of the values that its machine has now.
Done rebuild(Pod& pod);

}  // namespace podsim
