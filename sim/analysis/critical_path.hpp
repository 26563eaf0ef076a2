// The critical path of a run: a chain of task instances in which each one starts as soon as the one before it permits.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

/// The time of a step of the path, split by cause. The parts sum to the duration of the step.
struct TimeParts {
  Picoseconds compute{};     // arithmetic and memory traffic of work that has the memory to itself
  Picoseconds host{};        // copies to and from the host
  Picoseconds memory{};      // the additional time of work because others use the memory
  Picoseconds core_share{};  // the core occupied by a Collective or transfer with a core share
  Picoseconds launch{};      // software launches of work, Collectives and transfers
  Picoseconds own_block{};   // of an out-of-place Collective: copying the block that the device keeps
  Picoseconds per_message{};
  Picoseconds latency{};    // hops
  Picoseconds bandwidth{};  // bytes at the uncontended rate of the path
  Picoseconds sharing{};    // the additional time because of other flows on the path, memories included
  Picoseconds reduction{};  // the addition at the receiver
  Picoseconds waiting{};    // between the step before and this one; nonzero only through rounding in engines without an integer clock
  friend bool operator==(const TimeParts&, const TimeParts&) = default;
};
TimeParts operator+(const TimeParts& a, const TimeParts& b);
Picoseconds total(const TimeParts& parts);

struct PathStep {
  std::uint32_t program = 0;
  TaskId task;             // for a transfer, the sender's
  DeviceId device;         // that works or sends; a device of the mesh, also in a folded model
  DeviceId receiver;       // for a transfer
  int axis = -1;           // for a transfer: the mesh axis that it moves along
  Picoseconds start, end;  // end: when it permits the next step to start, or the end of the run
  TimeParts parts;         // `waiting` lies before `start`
};

/// The path from the start of the run to its end. Its last step is the first of the instances that end last; each earlier step is the one that the
/// next step waited for longest (ties: lowest program and task, sender's side first). Steps of zero duration are left out. The parts of all steps sum
/// to the makespan. The timeline must be recorded and complete. Cost O(steps * (edges of a task + tasks on a core)).
std::vector<PathStep> critical_path(const Model& model, const Timeline& timeline);

}  // namespace podsim
