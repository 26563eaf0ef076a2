// Nodes that NCCL describes (nccl_system.hpp) as a network.
#pragma once

#include "sim/topology/network.hpp"
#include "topologies/nccl/nccl_system.hpp"

namespace podsim {

/// `nodes` such nodes. GPUs come first, node by node: "1.3" is GPU 3 of node 1. Switches are "nvswitch 1", "port 1.3" (a GPU's end of its PCIe link),
/// "pci 1.0", "cpu 1.0", "nic 1.3", "card 1.0" (whose ports are several interfaces), and, if there are several hosts, "rail 3", which joins the fourth network interface of each.
///   rates       the file's; where it leaves them to NCCL those of `to_rail` and `to_switch`, whose latencies hold throughout. PCIe has none
///   routes      the fewest hops, so NVLinks before C2C, C2C before PCIe. To a GPU of another rail data goes over NVLinks to the GPU of that rail first (NCCL's PXN)
///   interfaces  several of one PCIe switch for each of its GPUs are one, of their bandwidths' sum: a transfer of NCCL uses them all
/// Errors: several hosts without network interfaces; GPUs that cannot reach each other.
Expected<Network> nccl_network(const NcclSystem& system, int nodes, const LinkParameters& to_rail, const LinkParameters& to_switch);

}  // namespace podsim
