// Regular networks of switches. Their routes are computed, not stored, so 65,536 chips cost no more than their cables.
#pragma once

#include "sim/topology/network.hpp"

namespace podsim {

/// One switch; every chip has one link to it. Errors: no chip.
Expected<Network> crossbar(int chips, const LinkParameters& link);

/// A two-level fat tree: leaves of `leaf` chips (the last one may have fewer), each with one link to each of leaf / oversubscription spines. A single
/// leaf needs no spine. Errors: an oversubscription below 1 or above `leaf`.
Expected<Network> fat_tree(int chips, int leaf, double oversubscription, const LinkParameters& link);

/// Nodes of GPUs. Each GPU has a link to its node's switch and one to its rail: the switch that joins the GPUs of equal number in all nodes. A route
/// between GPUs of different nodes and numbers goes over the sender's rail, then through the receiver's node (dimension order), so that every GPU sends
/// over its own network interface.
Expected<Network> rail(int nodes, int gpus, const LinkParameters& to_rail, const LinkParameters& to_node);

}  // namespace podsim
