// A lowered schedule written out per device and activity: what validate(), the numeric engine and the engines that share no state between
// devices read. What exists where and which halves meet comes from deploy().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/schedule/deploy.hpp"

namespace podsim {

/// One instance of a Matmul or Local on one device, or one transfer between two devices. Activities are ordered by (program,
/// task of the sender or worker, device); a transfer is one activity, listed at its sender.
struct Activity {
  enum class Kind : std::uint8_t { work, transfer };
  Kind kind = Kind::work;
  DeviceId device;       // of the work; of the sender
  TaskId task;           // the work; the Shift or Send
  DeviceId receiver;     // transfer only
  TaskId receiver_task;  // transfer only: the same Shift, or the Recv
  std::uint32_t program = 0, receiver_program = 0;
};

/// A point that something can wait for. A work is done once; a transfer is `sent` at the sender before or when it is `received`.
struct Dependency {
  std::uint32_t activity = 0;
  bool received = false;  // of a transfer: wait for `received` (reduction included) rather than `sent`
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// Which part of an activity waits.
enum class Gate : std::uint8_t { start, send, receive };  // work: start; transfer: send (at the sender), receive (at the receiver)

struct ActivityGraph {
  std::vector<Activity> activities;
  /// What the start of a work, the send-ready or the receive-ready of a transfer waits for. A transfer starts when both are ready.
  [[nodiscard]] std::span<const Dependency> waits_for(std::size_t activity, Gate gate) const;
  /// Per device, its activities in program order: works, and transfers at their sender. Engines run core work strictly in this order.
  [[nodiscard]] std::span<const std::uint32_t> program_order(DeviceId device) const;

  // Storage: compressed rows. waits_for: 2 rows per activity (start or send; receive).
  std::vector<std::uint32_t> wait_rows;
  std::vector<Dependency> waits;
  std::vector<std::uint32_t> order_rows;
  std::vector<std::uint32_t> order;
};

ActivityGraph unroll(const Schedule& lowered, const Deployment& deployment);

/// Errors: those of deploy(). The graph holds what could be matched. Cost O(task instances + edges).
struct Unrolled {
  ActivityGraph graph;
  std::vector<Diagnostic> problems;
};
Unrolled unroll(const Schedule& lowered);

}  // namespace podsim
