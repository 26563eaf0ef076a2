// podsim's prediction of an observed operation.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/model/model.hpp"
#include "topologies/system.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {

/// The algorithms of collectives: a name of collective_algorithms() per kind, or of a Lowering (collective_candidates.hpp). "" is the default of `podsim run`: ring on axes that wrap, line on open
/// ones, direct for permute. (Axes over switches wrap: a ring of transfers through the switch, like NCCL's ring.) An all-to-all inside one node of GPUs is
/// direct, as NCCL's: every GPU sends to every other at once. `unknown_matmul` is assumed for a
/// collective with a matmul whose source does not state its schedule.
struct PredictOptions {
  std::array<std::string, collective_kind_count> algorithm{};
  ObservedSchedule unknown_matmul = ObservedSchedule::plain;
};

/// The slice of an observation: the one it names; of fewer GPUs than the node that all rows are predicted on, those; else empty.
std::string slice_of(const Observation& observation, const System& system);
/// The machine's dimension whose links lie along a dimension of the slice: GPUs of one node are along y, however the slice is written.
int link_dimension(const System& system, std::size_t slice_dimension);

/// The system on which an observation is predicted: `system`, or its machine with the slice of the observation (slice_of()). Groups of GPUs that run at once on the
/// switch of one node share no link: they take the time of one group, on a slice of its size. On other machines the mesh gets an axis of groups and one
/// of their devices. The functions below take this system. Errors, at the observation: not a slice of the machine; groups that do not fill it.
Expected<System> system_of(const Observation& observation, const System& system);

/// The mesh axes of an observation, most significant first: those it names, "row" or "row+col"; else all axes of more than one device if their
/// product is its number of devices (on rails the GPUs of a node first, so that the least data crosses nodes); else the only axis of that size.
/// Errors, at the observation: no such axis, another number of devices, more devices than the slice has, no axis or several axes of that size.
Expected<std::vector<AxisView>> axes_of(const Observation& observation, const System& system);

/// system_of() of many observations, each system made once.
class Systems {
 public:
  explicit Systems(const System& system) : whole_{std::make_shared<const System>(system)} {}
  Expected<std::shared_ptr<const System>> of(const Observation& observation);

 private:
  std::shared_ptr<const System> whole_;
  std::map<std::tuple<std::string, int, int, std::vector<int>>, std::shared_ptr<const System>> made_;  // slice, groups, devices, mesh
};

/// The algorithm of a collective: that of the options, or "direct" for an all-to-all inside a node of GPUs; "": ring_or_line().
std::string algorithm_of(CollectiveKind kind, const System& system, const PredictOptions& options);

/// The same with the algorithm of every way in which the observed software may have run an observation: it takes the fastest. That is one, but for an
/// all-reduce in a node whose switch adds up: a ring for small ones, in-switch for large ones.
std::vector<PredictOptions> ways_to_run(const Observation& observation, const System& system, const PredictOptions& options);

/// The schedule of an observation before lowering.
///   collective, permute  collective_schedule(): all groups along the axes at once, dtype bf16 if not stated; `bytes` is rounded up to a multiple
///                        that divides (nccl-tests measures all-reduces of 8 bytes on 8 GPUs)
///   matmul               one product m x n x k on every device
///   hbm_copy             one copy of `bytes` on every device
///   fft, ifft            as XLA compiles it for GPUs (fft_schedule.hpp)
///   collective matmul    the GEMM algorithm of its schedule, along one axis: tp-ag-* if `bytes` is the size of [m/devices, k] (m, n, k per device
///                        after the gather), jax-ag-* if it is that of [k/devices, n], jax-rs-* if it is that of [m, n], which is scattered
/// Errors: those of axes_of(); a collective matmul whose bytes fit no operand, with several axes, or with another collective.
Expected<Schedule> schedule_of(const Observation& observation, const System& system, ObservedSchedule unknown_matmul = ObservedSchedule::plain);
/// The same after lowering.
Expected<Schedule> lowered_schedule_of(const Observation& observation, const System& system, const PredictOptions& options = {});

/// By the des engine, folded, on system_of(); the fastest of ways_to_run(). Errors: those of system_of(), schedule_of() and of the algorithm.
Expected<Seconds> predict(const Observation& observation, const System& system, const PredictOptions& options = {});
/// The simulated time of a schedule made by lowered_schedule_of().
Expected<Seconds> simulated_time(const Schedule& lowered, const System& system, Cancellation stop = {});
Expected<Seconds> simulated_time(const Model& model, Cancellation stop = {});

/// A system with a slice "2x4" and a mesh laid over it row-major; without sizes one axis per dimension, named row, col, depth, axis3. `snake`:
/// neighbours on the mesh are neighbours in the grid, so that one axis over 2x2 chips is a ring.
Expected<System> system_of_slice(const Machine& machine, const std::string& slice, MeshSizes sizes = {}, bool snake = false);

}  // namespace podsim
