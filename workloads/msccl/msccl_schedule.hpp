// MSCCL algorithms as schedules.
#pragma once

#include <optional>

#include "sim/schedule/schedule.hpp"
#include "workloads/msccl/msccl_algorithm.hpp"

namespace podsim {

/// The collective that a name stands for: allreduce, allgather, reduce_scatter, alltoall (all2all), broadcast, reduce, with - or _ between the words
/// or not. None: a collective of the author's own, as custom, of which nobody says what it computes.
std::optional<CollectiveKind> msccl_collective_named(std::string_view name);

/// The algorithm on all devices of a mesh, GPU number d is device d: one program whose tasks are guarded by device. `input`: on each device, in the
/// algorithm's chunks.
///
///   thread block   a queue: each step waits for the one before it. Receiving does not wait for the block's own sends, as nothing that a step
///                  receives depends on them, unless it writes what they send
///   connection     Sends and Recvs of one channel, in order
///   receiving      lands in the step's target, or is added there, when that is free; so a send may wait for the receiver. Where steps would then
///                  wait for each other in a circle, what arrives lands in a place of its own, as in the slots of NCCL's connections, and the step
///                  copies or adds it
///   nop            edges alone
///   claim          the collective of its name; broadcast and reduce from and to GPU 0. Of another name: nothing, so that only matching, races
///                  and deadlock can be checked
///
///   cost    launch[collective] once; messages as those of podsim's own algorithms: per_message, latency, the collective's efficiency,
///           reduce_bandwidth where they add. Out of place the launch takes the copy of the own block, too, and cpy from input to output is free;
///           any other cpy and every re takes its bytes over the memory's bandwidth. Thread blocks, channels and protocols take no time of their own
///   errors  another number of GPUs than devices; bytes that do not divide into its chunks; numbers of chunks that do not suit the collective
///   source  microsoft/msccl, src/collectives/device/msccl_interpreter.h: what a thread block does with a step
Expected<Schedule> msccl_schedule(const MscclAlgorithm& algorithm, const Mesh& mesh, Bytes input, DType dtype);

}  // namespace podsim
