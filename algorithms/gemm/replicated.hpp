// Operands of which several devices hold the same part. An algorithm that finds one so has been spared the collective that brought it there, and
// an algorithm that splits every operand over all devices has not: to compare the two, that collective is put before the first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

/// An input or output of which `copies` devices each hold the same part.
struct Replicated {
  std::string tensor;  // "X"
  Role role = Role::input;
  int copies = 1;
  bool gathered = false;  // by gather_inputs(): it begins split over all devices
  friend bool operator==(const Replicated&, const Replicated&) = default;
};

/// Of a schedule of one program, in the order of its buffers.
std::vector<Replicated> replicated_tensors(const Schedule& schedule);

/// The schedule with a collective "gather X" before it for each replicated input X that is not `given`.
///
///   before   each device holds 1/copies of what it used to, along the first dimension that divides
///   after    as without
///   cost     the all-gather of each such input along the mesh axes that its sharding does not name; tasks that read it wait for it
///   errors   no dimension of an input divides by the copies; part of a mesh axis replicates it
Expected<Schedule> gather_inputs(Schedule schedule, std::span<const std::string> given);

}  // namespace podsim
