// Schedules as MSCCL algorithms, and these as XML.
#pragma once

#include <string>

#include "sim/schedule/schedule.hpp"
#include "workloads/msccl/msccl_algorithm.hpp"

namespace podsim {

/// A lowered schedule of one collective of all devices, as what each GPU sends, receives, copies and adds. msccl_schedule() makes a schedule of it
/// again that gives the same bits, and that takes the same time where copies other than from input to output take none.
///
///   transfer      a step that sends and one that receives, r or rrc. Those of one pair of GPUs share a channel where each waits for the one before
///   it copy, add     cpy, re edges         the order of a thread block, depid and deps; a nop for each one more buffers       input i, output o, all
///   scratch s; chunks are as large as all offsets and sizes allow
///
///   errors   a claim other than one collective that MSCCL has a name for, of all devices in their order, on whole buffers of one dtype; the root of
///   a broadcast or
///            reduce is not 0; a task that computes anything else or works in the switch, or whose region is not one run of its buffer; more chunks
///            than read_msccl() takes
Expected<MscclAlgorithm> to_msccl(const Schedule& lowered);

/// The text that read_msccl() reads. Written by pugixml.
std::string write_msccl(const MscclAlgorithm& algorithm);

}  // namespace podsim
