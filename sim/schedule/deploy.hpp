// A lowered schedule laid over its devices: who runs which task, who meets whom. What devices and tasks have in common is kept once, so that a
// program of a thousand tasks on a pod of a thousand devices costs a few tables. The rules of guards, peers and matching are applied here and
// nowhere else; unroll() and the engines' model only read what stands here.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

inline constexpr std::uint32_t no_device = ~std::uint32_t{0};

/// Who does a task, and with whom: one entry per device of the program, in the order of the devices. Shared by all tasks with the same answer.
struct Participants {
  std::vector<std::uint32_t> to;           // of a work: the device itself; of a Shift or Send: who receives; nobody: absent here
  std::vector<std::uint32_t> from;         // of a Shift or Recv: who sends; nobody: no receive half here; of a work or Send: empty
  std::vector<std::uint32_t> to_task;      // of a Send: the receiver's task; empty: the same task
  std::vector<std::uint32_t> from_task;    // of a Recv: the sender's task; empty: the same task
  std::vector<std::uint32_t> rank;         // among those that do it (`to` is somebody), in device order
  std::uint32_t doers = 0, receivers = 0;  // how many do it, and have a receive half

  [[nodiscard]] bool does(std::size_t local) const { return !to.empty() && to[local] != no_device; }
  [[nodiscard]] bool receives(std::size_t local) const { return !from.empty() && from[local] != no_device; }
  friend bool operator==(const Participants&, const Participants&) = default;
};

/// A task waits for another one's `sent` (of a work: its end) or `received`, where that half is present.
struct Wait {
  TaskId task;
  bool received = false;
  friend bool operator==(const Wait&, const Wait&) = default;
};

struct Deployment {
  struct OfProgram {
    std::vector<std::uint32_t> devices;         // increasing
    std::vector<std::uint32_t> participants;    // per task: position in Deployment::participants
    std::vector<std::uint32_t> first_activity;  // per task: the number of its first doer's activity; one more at the end
  };
  struct Place {  // of a device: its program, and its position there
    std::uint32_t program = no_device, local = 0;
  };
  std::vector<OfProgram> programs;
  std::vector<Place> places;
  std::vector<Participants> participants;

  [[nodiscard]] const Participants& who(std::uint32_t program, std::size_t task) const { return participants[programs[program].participants[task]]; }
  /// Activities (a work on a device, or a transfer at its sender) are numbered by (program, task, device).
  [[nodiscard]] std::uint32_t activity(std::uint32_t program, std::size_t task, std::size_t local) const {
    return programs[program].first_activity[task] + who(program, task).rank[local];
  }
  [[nodiscard]] std::uint32_t activities() const;
};

/// What the own gate (the start of a work, send-ready) or the receive gate (receive-ready) of a task waits for, where both are present. A work
/// has only the own gate, a Recv only the receive gate.
std::vector<Wait> waits_of(const Program& program, TaskId task, bool receive_gate);

/// Errors, all of them: what check_shapes() finds (then nothing is deployed); a Collective that is not lowered; unmatched halves; guards that
/// disagree; a region out of its buffer's range on some device; a shift off the end of an open axis without a guard; a Send and its Recv with
/// different element counts; more than 2^32 - 2 activities. The deployment holds what could be matched.
/// Told to stop, its only problem is that.
/// Cost O(tasks + distinct participants * devices).
struct Deployed {
  Deployment deployment;
  std::vector<Diagnostic> problems;
};
Deployed deploy(const Schedule& lowered, Cancellation stop = {});

/// Whether an index may leave [0, extent of its dimension) on some device, judged by bounds alone. False is a proof; true has to be looked at.
bool may_leave(const Program& program, const Region& region);

}  // namespace podsim
