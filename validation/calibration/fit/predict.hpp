// What podsim says that an observed operation takes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "topologies/system.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// How collectives are carried out: a name of collective_algorithms() per kind. "": what `podsim run` does without --algorithm, ring on axes that
/// wrap (those of switches do: a ring of transfers over the switch, which is also what NCCL's ring does) and line on open ones; a permute direct.
/// What the source does not tell of a collective with a matmul is taken to be `unknown_matmul`.
struct PredictOptions {
  std::array<std::string, collective_kind_count> algorithm{};
  ObservedSchedule unknown_matmul = ObservedSchedule::plain;
};

/// The mesh axes that an observation is about, most significant first: those it names, "row" or "row+col"; else all of more than one device if their
/// product is its number of devices (on rails the GPUs of a node first, so that least data crosses nodes); else the only one of that size.
/// Errors: at the observation: no such axis, another number of devices, more of them than the slice has, none or several axes of that size.
Expected<std::vector<AxisView>> axes_of(const Observation& observation, const System& system);

/// The schedule of an observation, not lowered.
///   collective, permute  collective_schedule(): all groups along the axes at once, dtype bf16 where none is told; `bytes` is rounded up to what
///                        divides (nccl-tests measures all-reduces of 8 bytes on 8 GPUs)
///   matmul               one product m x n x k on every device
///   hbm_copy             one copy of `bytes` on every device
///   collective matmul    the GEMM algorithm of its schedule, along one axis: tp-ag-* where `bytes` are [m/devices, k] (m, n, k on each device
///                        after the gathering), jax-ag-* where they are [k/devices, n], jax-rs-* where they are [m, n] and are scattered
/// Errors: those of axes_of(); bytes of a collective matmul that are no operand of it, several axes, another collective.
Expected<Schedule> schedule_of(const Observation& observation, const System& system, ObservedSchedule unknown_matmul = ObservedSchedule::plain);
/// The same, lowered.
Expected<Schedule> lowered_schedule_of(const Observation& observation, const System& system, const PredictOptions& options = {});

/// By the des engine, devices folded. Errors: those of schedule_of(), the algorithm's.
Expected<Seconds> predict(const Observation& observation, const System& system, const PredictOptions& options = {});
/// Of a schedule that lowered_schedule_of() made.
Expected<Seconds> simulated_time(const Schedule& lowered, const System& system);

/// A pod of a slice "2x4", with a mesh laid over it row-major; without sizes an axis per dimension, named row, col, depth, axis3. `snake`: neighbours
/// on the mesh are neighbours in the grid, so that one axis over 2x2 chips is a ring.
Expected<System> pod_of(const Machine& machine, const std::string& slice, MeshSizes sizes = {}, bool snake = false);

}  // namespace podsim
