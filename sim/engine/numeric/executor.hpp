// Executes one schedule repeatedly, in any order, with its own memory and threads.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "sim/base/thread_pool.hpp"
#include "sim/engine/numeric/memory.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/ready_set.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/engine/numeric/task_kernels.hpp"

namespace podsim {

/// The memory limit of an execution and the bytes that the caller uses besides the buffers.
struct Budget {
  Bytes besides;
  Bytes limit;
};

/// Cancellation, progress and given inputs of a run. Progress is called from the thread that called run().
struct RunHooks {
  Cancellation stop{};
  std::function<void(std::size_t finished, std::size_t activities)> progress{};  // after every round
  const GivenTensors* inputs = nullptr;                                            // instead of a filling; every input of the schedule
};

/// Executes a schedule repeatedly in the same memory. Before each order, outputs and scratch are filled with NaN, so that a read of unwritten data
/// shows; inputs are made again if the filling changed or the schedule writes them.
///
/// Activities of a round run in parallel. Two that touch the same elements, one of them writing, never share a round: the later one returns to the
/// ready set. This happens only in racy schedules, and makes their result depend on the order alone, not on threads.
///
///   memory   4 bytes per word of a buffer and device, nothing per order
///   cost     O(task instances + edges) per order, plus the arithmetic and the copies
class Executor {
 public:
  /// Errors: the schedule does not unroll, a buffer has more than 8 dimensions, the budget is too small. The schedule must outlive the executor.
  static Expected<std::unique_ptr<Executor>> make(const Schedule& lowered, int threads, const Budget& budget, RunHooks hooks = {});

  /// Errors: some activities can never run (the message names a cycle of waits); the data is wrong for a task (Cause::data: the earliest one in the order
  /// of the run, whatever the number of threads; the message names it and its device); cancelled_work().
  Status run(std::uint64_t seed, Filling filling, const Order& order);

  /// The contents of a buffer after run(), row-major.
  [[nodiscard]] std::span<const float> values(DeviceId device, BufferId buffer) const;

  [[nodiscard]] const Storage& storage() const { return storage_; }

 private:
  struct Step {  // an activity of the round and its accesses
    std::uint32_t activity = 0;
    std::size_t first = 0, count = 0;
  };

  Executor(const Schedule& lowered, ActivityGraph graph, Storage storage, int threads, RunHooks hooks);
  void reset(std::uint64_t seed, Filling filling);
  void plan(const std::vector<std::uint32_t>& round, ReadySet& ready);
  [[nodiscard]] bool conflicts(std::size_t first, std::size_t last) const;
  [[nodiscard]] Status execute(const Step& step, PackedOperands& workspace);
  [[nodiscard]] View view(const Access& access) const;
  [[nodiscard]] Diagnostic deadlock() const;

  const Schedule& schedule_;
  RunHooks hooks_;
  ActivityGraph graph_;
  Storage storage_;
  ThreadPool pool_;
  FloatMemory memory_;
  std::vector<PackedOperands> packed_operands_;  // per thread
  std::vector<std::vector<bool>> writes_input_;  // [program][buffer]
  struct Filled {
    std::uint64_t seed = 0;
    Filling filling = Filling::integers;
  };
  std::optional<Filled> filled_;

  // State of the present round.
  std::vector<Step> steps_;
  std::vector<Status> outcomes_;  // per step
  std::vector<Access> accesses_;
  std::vector<std::uint32_t> last_access_, next_access_;  // per slot, the list of its accesses in this round
  std::int64_t work_ = 0;
};

}  // namespace podsim
