// One rank's part of a schedule, on real memory, over MPI.
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

/// When one RankTask began and ended. Of a transfer: the call that posted it, and the moment at which the rank saw that it was over.
struct Times {
  Moment start, end;
};

/// Plays the tasks of the device whose number is the rank. One thread: core tasks run in program order, one at a time; transfers are posted and dma
/// Locals run as soon as what they wait for is over, between core tasks. Transfers are MPI_Isend and MPI_Irecv straight from and into the buffers;
/// what is added or rounded on arrival lands beside them first. The tag is the sender's task: each is used once a run.
class RankRunner {
 public:
  /// Errors: as Executor::make(); what validate() finds, deadlocks of cores in program order too; more tasks than MPI has
  /// tags. `limit` is for the buffers of all ranks. The schedule must outlive the runner, and have as many devices as there are ranks (an assert).
  static Expected<std::unique_ptr<RankRunner>> make(const Schedule& lowered, const Team& team, Bytes limit);

  /// Inputs filled, everything else NaN. The filling also says what the buffers are carried in.
  void fill(std::uint64_t seed, Filling filling);
  /// Once, from now on. All ranks call it.
  void run();

  [[nodiscard]] const ActivityGraph& graph() const { return graph_; }
  [[nodiscard]] std::span<const RankTask> tasks() const { return tasks_; }
  /// Of the last run, one per task.
  [[nodiscard]] std::span<const Times> times() const { return times_; }
  /// After a run: what the buffer of this rank's device holds, row-major.
  [[nodiscard]] std::span<const float> values(BufferId buffer) const;
  /// The buffers of this rank's device; none if it idles.
  [[nodiscard]] std::span<const Buffer> buffers() const;

 private:
  /// What a task touches, and how its data travels.
  struct Prepared {
    std::size_t first = 0, count = 0;  // of accesses_, views_
    std::optional<WireType> wire{};    // of a transfer
    bool beside = false;               // of a receive: lands beside its target
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

  const Schedule& schedule_;
  const Team& team_;
  DeviceId device_;
  ActivityGraph graph_;
  Storage storage_;
  std::int64_t base_ = 0;  // of this device in the storage of all
  std::vector<RankTask> tasks_;
  std::vector<Prepared> prepared_;
  std::vector<Access> accesses_;
  std::vector<View> views_;  // one per access
  std::vector<std::vector<float>> beside_;  // per task, of receives that need it
  FloatMemory memory_;
  PackedOperands workspace_;

  // The run in work.
  std::vector<std::uint32_t> missing_, core_, dma_;  // waits left, per task; core tasks in their order; dma Locals that are ready
  std::size_t next_core_ = 0, finished_ = 0;
  std::vector<Times> times_;
  std::vector<MPI_Request> requests_;
  std::vector<std::uint32_t> requested_;  // the task of each request
  std::vector<int> completed_;
};

}  // namespace podsim
