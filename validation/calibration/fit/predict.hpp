// podsim's prediction of an observed operation.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "topologies/system.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// The algorithms of collectives: a name of collective_algorithms() per kind. "" is the default of `podsim run`: ring on axes that wrap, line on open
/// ones, direct for permute. (Axes over switches wrap: a ring of transfers through the switch, like NCCL's ring.) `unknown_matmul` is assumed for a
/// collective with a matmul whose source does not state its schedule.
struct PredictOptions {
  std::array<std::string, collective_kind_count> algorithm{};
  ObservedSchedule unknown_matmul = ObservedSchedule::plain;
};

/// The mesh axes of an observation, most significant first: those it names, "row" or "row+col"; else all axes of more than one device if their
/// product is its number of devices (on rails the GPUs of a node first, so that the least data crosses nodes); else the only axis of that size.
/// Errors, at the observation: no such axis, another number of devices, more devices than the slice has, no axis or several axes of that size.
Expected<std::vector<AxisView>> axes_of(const Observation& observation, const System& system);

/// The schedule of an observation before lowering.
///   collective, permute  collective_schedule(): all groups along the axes at once, dtype bf16 if not stated; `bytes` is rounded up to a multiple
///                        that divides (nccl-tests measures all-reduces of 8 bytes on 8 GPUs)
///   matmul               one product m x n x k on every device
///   hbm_copy             one copy of `bytes` on every device
///   collective matmul    the GEMM algorithm of its schedule, along one axis: tp-ag-* if `bytes` is the size of [m/devices, k] (m, n, k per device
///                        after the gather), jax-ag-* if it is that of [k/devices, n], jax-rs-* if it is that of [m, n], which is scattered
/// Errors: those of axes_of(); a collective matmul whose bytes fit no operand, with several axes, or with another collective.
Expected<Schedule> schedule_of(const Observation& observation, const System& system, ObservedSchedule unknown_matmul = ObservedSchedule::plain);
/// The same after lowering.
Expected<Schedule> lowered_schedule_of(const Observation& observation, const System& system, const PredictOptions& options = {});

/// By the des engine, folded. Errors: those of schedule_of() and of the algorithm.
Expected<Seconds> predict(const Observation& observation, const System& system, const PredictOptions& options = {});
/// The simulated time of a schedule made by lowered_schedule_of().
Expected<Seconds> simulated_time(const Schedule& lowered, const System& system, Cancellation stop = {});

/// A system with a slice "2x4" and a mesh laid over it row-major; without sizes one axis per dimension, named row, col, depth, axis3. `snake`:
/// neighbours on the mesh are neighbours in the grid, so that one axis over 2x2 chips is a ring.
Expected<System> system_of_slice(const Machine& machine, const std::string& slice, MeshSizes sizes = {}, bool snake = false);

}  // namespace podsim
