// The tasks of a model in the form that the simulation loop reads: durations in picoseconds, followers as compressed rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/model/model.hpp"

namespace podsim::des {

/// A gate of a later task of the same program that waits for this task.
class Follower {
 public:
  Follower(std::uint32_t task, bool receive_gate) : bits_{task << 1 | (receive_gate ? 1U : 0U)} {}
  [[nodiscard]] std::uint32_t task() const { return bits_ >> 1; }
  [[nodiscard]] bool receive_gate() const { return (bits_ & 1) != 0; }

 private:
  std::uint32_t bits_;
};

struct TaskRow {
  TaskCost::Kind kind = TaskCost::Kind::work;
  bool on_core = false;             // also: `work` scales with the node's speed
  std::uint32_t followers[3] = {};  // rows in ProgramTable::followers: of `sent` or the end; of `received`; one past the last
  std::uint32_t first_activity = 0;
  std::size_t counters = 0;           // position of the first node's gate counter
  const std::uint32_t* to = nullptr;  // Participants, per local node; null: none
  const std::uint32_t* from = nullptr;
  const std::uint32_t* to_task = nullptr;
  const std::uint32_t* from_task = nullptr;
  const std::uint32_t* rank = nullptr;
  const std::uint32_t* paths = nullptr;                                   // of a transfer
  const Seconds* shares_behind = nullptr;                                 // core shares behind a task on the core, per local node; null: none
  std::int64_t work = 0;                                                  // picoseconds
  std::int64_t launch = 0, rest = 0;                                      // of a work that draws memory: before and behind its flow
  std::int64_t delay = 0;                                                 // of a transfer, if all its paths have equal latency; otherwise negative
  std::int64_t reduction = 0;                                             // of a Shift or Recv
  Seconds work_seconds, launch_seconds, rest_seconds, reduction_seconds;  // used if nodes have individual speeds
  Seconds delay_without_latency;
  double flow_bytes = 0;  // of a work: through the memory
};

/// The table of one program.
struct ProgramTable {
  std::vector<TaskRow> tasks;
  std::vector<Follower> followers;
  std::vector<std::uint32_t> core;        // its tasks on the core, in program order
  const Seconds* shares_first = nullptr;  // core shares before the first of them, per local node; null: none
  std::uint32_t nodes = 0;
};

/// A gate's counter starts at the number of its waits on that node. `absent_gate`: the gate does not exist; the value is never reached by counting
/// down.
inline constexpr std::uint16_t absent_gate = 0xffff;
inline constexpr std::size_t most_waits = 0xfff0;

struct ProgramTables {
  std::vector<ProgramTable> programs;
  std::vector<std::uint16_t> own, receive;  // counters: [program][task][local node]
};

/// Errors: a task with more than 65520 edges.
Expected<ProgramTables> tabulate(const Model& model);

}  // namespace podsim::des
