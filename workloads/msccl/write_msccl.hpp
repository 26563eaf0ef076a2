// Schedules as MSCCL algorithms, and these as XML.
#pragma once

#include <string>

#include "sim/schedule/schedule.hpp"
#include "workloads/msccl/msccl_algorithm.hpp"

namespace podsim {

/// A lowered schedule of one collective of all devices, as what each GPU sends, receives, copies and adds, out of place. msccl_schedule() makes a
/// schedule of it that gives the same bits and takes the same time, if copies other than from input to output take none (placing a shard is free in
/// podsim's schedules, a cpy is not), and if the schedule pays for its own block, which one that was read from an algorithm in place does not.
///
///   transfer      a step that sends and one that receives, r or rrc. Those of two GPUs share a channel where each waits for the one before it
///   copy, add     cpy, re
///   edges         the order of a thread block, depid and deps; a nop for each one more
///   buffers       input i, output o, all scratch s; chunks are as large as all offsets and sizes allow
///
///   errors   a claim other than one collective that MSCCL has a name for, of all devices in their order, on whole buffers of one dtype; a root
///            other than 0; a task that computes anything else or works in the switch, or whose region is not one run of its buffer; more chunks
///            than read_msccl() takes
Expected<MscclAlgorithm> to_msccl(const Schedule& lowered);

/// The text that read_msccl() reads. Written by pugixml.
std::string write_msccl(const MscclAlgorithm& algorithm);

}  // namespace podsim
