// Systems as tables, JSON and Graphviz: the interconnect of their chips, and the placement of a mesh.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/table.hpp"
#include "topologies/jax/device_mesh.hpp"
#include "topologies/system.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

/// Graphviz: chips as circles, switches as boxes, a cable as one edge with its bandwidth.
std::string to_dot(const Topology& topology, const std::function<std::string(ChipId)>& label);
/// The same, labelled with the mesh's devices.
std::string mesh_to_dot(const System& system);

/// The devices of a slice as JAX prints them.
std::string devices_text(const System& system, const std::vector<JaxDevice>& devices, Format format);

/// JAX's id of every mesh device, and the hops between neighbours along each axis. Errors: a chip that cannot be reached.
Expected<std::string> mesh_report(const System& system, Format format);
/// Sizes, distances, bisection bandwidth and the all-to-all bound. Errors: cancelled work.
Expected<std::string> topology_report(const System& system, Format format, const RunOptions& how);

}  // namespace podsim
