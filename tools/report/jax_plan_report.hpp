// A plan in JAX's words, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/jax_plan.hpp"

namespace podsim {

/// What JAX builds the mesh of: the ids of the devices in the order of the mesh.
using DeviceOrder = std::vector<int>;

/// The mesh as Python, the PartitionSpecs as a table, the collectives product by product, notes.
std::string jax_plan_text(const JaxPlan& plan, const DeviceOrder& devices);

/// A Python program that makes the mesh and a dictionary of the PartitionSpecs by layer and array: `specs["ff1"]["W"]`.
std::string jax_plan_code(const JaxPlan& plan, const DeviceOrder& devices);

/// `mesh` {axis: size}, `axis_names`, `plan_axes` {the plan's axis: [names]}, `device_order`, `layers: [{name, pass, tensor, role, transposed, shape,
/// spec, dtype, bytes_per_device}]`, `collectives: [{name, pass, computes, algorithm, dataflow, transposed, slice_count, jax, plan,
/// jax_received_bytes, plan_received_bytes}]` with lists of {kind, tensor, axes, times, received_bytes}, `notes`.
std::string jax_plan_json(const JaxPlan& plan, const DeviceOrder& devices);

}  // namespace podsim
