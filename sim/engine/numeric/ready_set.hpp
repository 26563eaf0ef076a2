// The ready activities of an execution, and the choice of those that run next.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {

/// Activities whose waits are over. They are taken in rounds; within a round the graph imposes no order.
///
/// Program order: a round takes, from each program, the ready activities of the lowest task number, on all its devices. (Task numbers of different
/// programs are not comparable, and the stages of a pipeline should run in parallel.)
///
/// Random order: the priority of an activity is a random mixture of one number for itself, one for its device and one for its task, with weights that
/// depend on the seed; a round is a random part of the ready set by priority. Some seeds shuffle evenly, in others whole devices or tasks run far
/// ahead or behind, which uncovers missing edges. Core order is ignored: it is not part of happens-before.
class ReadySet {
 public:
  ReadySet(const ActivityGraph& graph, const Order& order);

  void add(std::uint32_t activity);
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Moves the next round out, in its order. The set must not be empty.
  void take(std::vector<std::uint32_t>& round);

 private:
  struct Entry {
    std::uint64_t priority = 0;  // lowest first; ties by activity, that is by (task, device)
    std::uint32_t activity = 0;
  };
  using Heap = std::vector<Entry>;
  static bool later(const Entry& a, const Entry& b);
  std::uint32_t pop(Heap& heap);

  const ActivityGraph& graph_;
  Order order_;
  std::uint64_t own_weight_ = 0, device_weight_ = 0, task_weight_ = 0;
  std::uint64_t rounds_ = 0;
  std::vector<Heap> heaps_;  // one per program in program order, a single one in random order
  std::size_t size_ = 0;     // of all together
};

/// Counts the waits that every activity still has.
class GraphProgress {
 public:
  explicit GraphProgress(const ActivityGraph& graph);
  /// Calls ready(activity) for each activity without waits.
  template <class Ready>
  void start(Ready ready) {
    for (std::uint32_t a = 0; a < missing_.size(); ++a)
      if (missing_[a] == 0) ready(a);
  }
  /// Calls ready(activity) for each activity whose last wait was `finished`.
  template <class Ready>
  void finish(std::uint32_t finished, Ready ready) {
    ++finished_;
    for (std::uint32_t i = rows_[finished]; i < rows_[finished + 1]; ++i)
      if (--missing_[followers_[i]] == 0) ready(followers_[i]);
  }
  [[nodiscard]] std::size_t unfinished() const { return missing_.size() - finished_; }

 private:
  std::vector<std::uint32_t> missing_;           // per activity
  std::vector<std::uint32_t> rows_, followers_;  // compressed rows, once per wait
  std::size_t finished_ = 0;
};

}  // namespace podsim
