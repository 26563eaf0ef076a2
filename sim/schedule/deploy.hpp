// A lowered schedule deployed on its devices: which device runs which task, and with which partner. Devices and tasks with equal answers share a
// table, so a program of a thousand tasks on a pod of a thousand devices costs a few tables. Only this code applies the rules of guards, peers and
// matching; unroll() and the engines' model read its result.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/shared_vector.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

inline constexpr std::uint32_t no_device = ~std::uint32_t{0};

/// The devices that run a task and their partners: one entry per device of the program, in device order. Tasks with equal entries share it.
struct Participants {
  std::vector<std::uint32_t> to;           // work: the device itself; Shift or Send: the receiver; no_device: the task is absent here
  std::vector<std::uint32_t> from;         // Shift or Recv: the sender; no_device: no receive half here; empty for work and Send
  std::vector<std::uint32_t> to_task;      // of a Send: the receiver's task; empty: the same task
  std::vector<std::uint32_t> from_task;    // of a Recv: the sender's task; empty: the same task
  std::vector<std::uint32_t> rank;         // position among the devices that run the task (`to` is not no_device), in device order
  std::uint32_t doers = 0, receivers = 0;  // devices that run it; devices with a receive half

  [[nodiscard]] bool does(std::size_t local) const { return !to.empty() && to[local] != no_device; }
  [[nodiscard]] bool receives(std::size_t local) const { return !from.empty() && from[local] != no_device; }
  friend bool operator==(const Participants&, const Participants&) = default;
};

/// A task waits for another task's `sent` (for work: its end) or `received`, on devices where that half is present.
struct Wait {
  TaskId task;
  bool received = false;
  friend bool operator==(const Wait&, const Wait&) = default;
};

/// Copies share the tables.
struct Deployment {
  struct OfProgram {
    std::vector<std::uint32_t> devices;         // increasing
    std::vector<std::uint32_t> participants;    // per task: position in Deployment::participants
    std::vector<std::uint32_t> first_activity;  // per task, the activity number of its first doer; one more entry at the end
  };
  struct Place {  // a device's program, and its position there
    std::uint32_t program = no_device, local = 0;
  };
  SharedVector<OfProgram> programs;
  SharedVector<Place> places;
  SharedVector<Participants> participants;

  [[nodiscard]] const Participants& who(std::uint32_t program, std::size_t task) const { return participants[programs[program].participants[task]]; }
  /// The number of an activity (work on a device, or a transfer at its sender). Activities are numbered by (program, task, device).
  [[nodiscard]] std::uint32_t activity(std::uint32_t program, std::size_t task, std::size_t local) const {
    return programs[program].first_activity[task] + who(program, task).rank[local];
  }
  [[nodiscard]] std::uint32_t activities() const;
};

/// The halves that a gate of a task waits for: its own gate (start of work, send-ready) or its receive gate (receive-ready). Work has only the own
/// gate, a Recv only the receive gate.
std::vector<Wait> waits_of(const Program& program, TaskId task, bool receive_gate);

/// Errors, all of them: the problems of check_shapes() (then nothing is deployed); a Collective that is not lowered; unmatched halves; guards that
/// disagree; a region out of its buffer's range on some device; a shift off the end of an open axis without a guard; a Send and its Recv with
/// different element counts; more than 2^32 - 2 activities. The deployment holds everything that matched. Cancelled: cancelled_work() is the only
/// problem. Cost O(tasks + distinct participants * devices).
struct Deployed {
  Deployment deployment;
  std::vector<Diagnostic> problems;
};
Deployed deploy(const Schedule& lowered, Cancellation stop = {});

/// Whether an index may leave [0, extent of its dimension) on some device, judged by its bounds. False is proven; true needs a check on each device.
bool may_leave(const Program& program, const Region& region);

}  // namespace podsim
