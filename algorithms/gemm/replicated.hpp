// Replicated operands: several devices hold the same part. An algorithm with replicated inputs skips the collective that would replicate them. To
// compare it with an algorithm that shards every operand over all devices, gather_inputs() puts that collective in front.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// An input or output of which each part is held by `copies` devices.
struct Replicated {
  std::string tensor;  // "X"
  Role role = Role::input;
  int copies = 1;
  bool gathered = false;  // gather_inputs() gathers it: at the start it is sharded over all devices
  friend bool operator==(const Replicated&, const Replicated&) = default;
};

/// The replicated tensors of a schedule with one program, in the order of its buffers.
std::vector<Replicated> replicated_tensors(const Schedule& schedule);

/// Puts a collective "gather X" in front for each replicated input X that is not in `given`.
///
///   before   each device holds 1/copies of its part, along the first dimension that divides
///   after    as in the schedule without the collective
///   cost     the all-gather of each such input along the mesh axes that its sharding does not name; tasks that read the input wait for it
///   errors   no dimension of an input is a multiple of the copies; part of a mesh axis replicates it
Expected<Schedule> gather_inputs(Schedule schedule, std::span<const std::string> given);

}  // namespace podsim
