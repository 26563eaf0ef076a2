// A lowered schedule unrolled into one activity per device and task, for validate(), the numeric engine and the engines that share nothing between
// devices. deploy() decides which activities exist and which halves meet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/schedule/deploy.hpp"

namespace podsim {

/// A Matmul or Local on one device, or one transfer between two devices. Activities are ordered by (program, task of the sender or worker, device). A
/// transfer is one activity, listed at its sender.
struct Activity {
  enum class Kind : std::uint8_t { work, transfer };
  Kind kind = Kind::work;
  DeviceId device;       // of the work; of the sender
  TaskId task;           // the work; the Shift or Send
  DeviceId receiver;     // transfers only
  TaskId receiver_task;  // transfers only: the same Shift, or the Recv
  std::uint32_t program = 0, receiver_program = 0;
};

/// An event to wait for: the end of work; or of a transfer `sent` (at the sender) or `received` (never before `sent`).
struct Dependency {
  std::uint32_t activity = 0;
  bool received = false;  // of a transfer: wait for `received` (reduction included), not `sent`
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// The part of an activity that waits.
enum class Gate : std::uint8_t { start, send, receive };  // work: start; transfer: send (at the sender), receive (at the receiver)

struct ActivityGraph {
  std::vector<Activity> activities;
  /// The events that a gate waits for. A transfer starts when its send gate and its receive gate are both ready.
  [[nodiscard]] std::span<const Dependency> waits_for(std::size_t activity, Gate gate) const;
  /// The activities of a device in program order: work, and transfers that it sends. Engines run core work strictly in this order.
  [[nodiscard]] std::span<const std::uint32_t> program_order(DeviceId device) const;

  // Storage: compressed rows. waits_for: 2 rows per activity (start or send; receive).
  std::vector<std::uint32_t> wait_rows;
  std::vector<Dependency> waits;
  std::vector<std::uint32_t> order_rows;
  std::vector<std::uint32_t> order;
};

ActivityGraph unroll(const Schedule& lowered, const Deployment& deployment);

/// Errors: those of deploy(). The graph holds everything that matched. Cost O(task instances + edges).
struct Unrolled {
  ActivityGraph graph;
  std::vector<Diagnostic> problems;
};
Unrolled unroll(const Schedule& lowered);

}  // namespace podsim
