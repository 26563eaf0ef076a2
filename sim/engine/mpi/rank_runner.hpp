// Executes one rank's part of a schedule on real memory over MPI.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/numeric/memory.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/task_kernels.hpp"
#include "sim/engine/mpi/rank_graph.hpp"
#include "sim/engine/mpi/team.hpp"
#include "sim/engine/mpi/wire_type.hpp"

namespace podsim {

/// Start and end of one RankTask. For a transfer: when MPI_Isend or MPI_Irecv was called, and when the rank saw its completion.
struct Times {
  Moment start, end;
};

/// How a rank keeps time beside what its host takes.
struct Pacing {
  /// How long a rank that waits sleeps between two looks at its messages. 0: it looks all the time, which is soonest where each rank has a core of its own;
  /// where ranks share cores, those that look keep from them whatever moves the messages.
  Seconds between_looks{};
  /// Per task of tasks(): work lasts at least so long, while messages make progress and, of dma Locals, other work does. Empty: as long as its arithmetic.
  std::vector<Seconds> least{};
  /// Work does no arithmetic, which would take the core from other ranks: it only lasts. Results are then undefined.
  bool only_lasts = false;
};

/// Runs the tasks of the device with this rank's number, in one thread. Core tasks run in program order, one at a time. Between them, transfers are
/// posted and dma Locals run as soon as their waits are over. Transfers are MPI_Isend and MPI_Irecv directly from and into the buffers; a transfer
/// that adds or rounds on arrival lands in a side buffer first. The MPI tag is the sender's task number, used once per run.
class RankRunner {
 public:
  /// Errors: as Executor::make(); problems that validate() finds, including deadlocks of core program order; more tasks than MPI has tags. `limit` is
  /// for the buffers of all ranks together. The schedule must outlive the runner and have as many devices as there are ranks (an assert).
  static Expected<std::unique_ptr<RankRunner>> make(const Schedule& lowered, const Team& team, Bytes limit);

  /// Fills the inputs; everything else becomes NaN. `filling` also decides the type in which buffers travel.
  void fill(std::uint64_t seed, Filling filling);
  /// Of the runs to come.
  void set_pacing(Pacing pacing);
  [[nodiscard]] Seconds between_looks() const { return pacing_.between_looks; }
  /// Runs the schedule once, starting now. Collective: all ranks must call it.
  void run();
  /// Of the last run: the first of this rank's tasks, by number, that could not work on its data.
  struct Failure {
    int task = 0;
    Diagnostic why;
  };
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }

  [[nodiscard]] const ActivityGraph& graph() const { return graph_; }
  [[nodiscard]] std::span<const RankTask> tasks() const { return tasks_; }
  /// Times of the last run, one entry per task.
  [[nodiscard]] std::span<const Times> times() const { return times_; }
  /// The contents of a buffer of this rank's device after a run, row-major.
  [[nodiscard]] std::span<const float> values(BufferId buffer) const;
  /// The buffers of this rank's device; empty if it idles.
  [[nodiscard]] std::span<const Buffer> buffers() const;

 private:
  /// The memory that a task accesses, and the MPI type of its data.
  struct Prepared {
    std::size_t first = 0, count = 0;  // in accesses_ and views_
    std::optional<WireType> wire{};    // of a transfer
    bool beside = false;               // of a receive: lands in a side buffer
    Combine combine = Combine::replace;
    int peer = 0, tag = 0;
  };

  RankRunner(const Schedule& lowered, const Team& team, ActivityGraph graph, Storage storage);
  void prepare(const RankTask& task);
  [[nodiscard]] View own_view(const Access& access) const;
  void start(std::uint32_t task);
  void finish(std::uint32_t task);
  void post(std::uint32_t task);
  void arrived(std::uint32_t task);
  void work(std::uint32_t task);
  void take_finished(bool wait);
  void finish_lasting();
  [[nodiscard]] Seconds left(std::uint32_t task) const;
  void wait_for_any();
  int test_or_wait(bool wait);
  void rest(Seconds at_most) const;

  const Schedule& schedule_;
  const Team& team_;
  DeviceId device_;
  ActivityGraph graph_;
  Storage storage_;
  std::int64_t base_ = 0;  // offset of this device in the storage of all devices
  std::vector<RankTask> tasks_;
  std::vector<Prepared> prepared_;
  std::vector<Access> accesses_;
  std::vector<View> views_;  // one per access
  std::vector<std::vector<float>> beside_;  // per task: side buffers of receives that need one
  FloatMemory memory_;
  PackedOperands workspace_;
  Pacing pacing_;

  // State of the current run.
  std::vector<std::uint32_t> missing_, core_, dma_;  // waits left per task; core tasks in order; dma Locals that are ready
  std::size_t next_core_ = 0, finished_ = 0;
  std::vector<std::uint32_t> lasting_;  // work whose arithmetic is done and whose least time is not over
  bool core_lasts_ = false;             // whether a core task is among it
  std::vector<Times> times_;
  std::optional<Failure> failure_;
  std::vector<MPI_Request> requests_;
  std::vector<std::uint32_t> requested_;  // the task of each request
  std::vector<int> completed_;
};

}  // namespace podsim
