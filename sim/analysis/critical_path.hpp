// Why a run takes as long as it does: the chain of task instances in which each starts when the one before it lets it.
#pragma once

#include <optional>
#include <vector>

#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

/// What a step of the path spends its time on. The parts of a step sum to its duration.
struct TimeParts {
  Picoseconds compute{};     // arithmetic and memory traffic of works
  Picoseconds core_share{};  // the core kept by a Collective or transfer that goes its own way
  Picoseconds launch{};      // software start of works, Collectives and transfers
  Picoseconds per_message{};
  Picoseconds latency{};    // hops
  Picoseconds bandwidth{};  // bytes at the uncontended rate of the path
  Picoseconds sharing{};    // what other flows on the path add to that
  Picoseconds reduction{};  // adding up at the receiver
  Picoseconds waiting{};    // before the step: nothing accounts for it but rounding of engines that do not count in picoseconds
  friend bool operator==(const TimeParts&, const TimeParts&) = default;
};
TimeParts operator+(const TimeParts& a, const TimeParts& b);
Picoseconds total(const TimeParts& parts);

struct PathStep {
  std::uint32_t program = 0;
  TaskId task;             // of a transfer, the sender's
  DeviceId device;         // that works or sends; of the mesh, also in a folded model
  DeviceId receiver;       // of a transfer
  int axis = -1;           // of a transfer: the mesh axis that it moves on
  Picoseconds start, end;  // end: when it lets the next step start, or the run end
  TimeParts parts;         // `waiting` lies before the start
};

/// From the start of the run to its end: the first of the instances that end last, then always what its start waited for longest (ties: lowest
/// program and task, sender's side first). Steps that take no time are left out. The parts of all steps sum to the makespan. The timeline is recorded
/// and complete. Cost O(steps * (edges of a task + tasks on a core)).
std::vector<PathStep> critical_path(const Model& model, const Timeline& timeline);

}  // namespace podsim
