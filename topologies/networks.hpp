// Networks of switches by their shape. Their routes are computed, so that 65,536 chips cost what their cables cost.
#pragma once

#include "sim/topology/network.hpp"

namespace podsim {

/// Every chip has one link to one switch. Errors: no chip.
Expected<Network> crossbar(int chips, const LinkParameters& link);

/// Two levels: leaves of `leaf` chips, the last one perhaps of fewer, each with one link to each of leaf / oversubscription spines; one leaf needs no
/// spine. Errors: an oversubscription below 1 or above `leaf`.
Expected<Network> fat_tree(int chips, int leaf, double oversubscription, const LinkParameters& link);

/// Nodes of GPUs: each GPU has a link to its node's switch, and one to the switch that joins the GPUs of its number in all nodes, its rail. Between GPUs of
/// different nodes and numbers a route passes over a third GPU: to an even chip over its own node first, to an odd one over its own rail first, as d-mod-k
/// has it.
Expected<Network> rail(int nodes, int gpus, const LinkParameters& to_rail, const LinkParameters& to_node);

}  // namespace podsim
