// Happens-before on an ActivityGraph. It follows from edges and transfers only, not from core order.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/schedule/unroll.hpp"
#include "sim/schedule/vector_clocks.hpp"

namespace podsim {

/// A topological order of the activities that respects all waits and is close to program order. With `core_order`, a device's core work also waits
/// for the core work before it. If there is a cycle, `cycle` holds one, each member waiting for the next, and `order` the activities before it.
struct TopologicalOrder {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> cycle;
};
TopologicalOrder topological_order(const ActivityGraph& graph, const Schedule& lowered, bool core_order);

/// Whether the core runs an activity: a Matmul, or a Local on the core.
bool on_core(const Schedule& lowered, const Activity& activity);

/// Is `first` over before `then` starts? For a transfer, `received` asks about its target, otherwise about its source. For work `received` is false.
struct OrderQuestion {
  std::uint32_t first = 0;
  bool received = false;
  std::uint32_t then = 0;
};

/// Answers questions about order: a single one by a backward search, which is short where edges are direct; many of them in one forward pass.
class HappensBefore {
 public:
  /// `order` is a complete topological order of the graph; both must outlive this object. Vector clocks larger than `most_clock_bytes` are not used.
  HappensBefore(const ActivityGraph& graph, const std::vector<std::uint32_t>& order, std::size_t most_clock_bytes = std::size_t{256} << 20);
  bool operator()(const OrderQuestion& question);
  /// Looks at no more than `most` waits; nullopt: undecided within them.
  std::optional<bool> within(std::size_t most, const OrderQuestion& question);

  /// One answer per question, however long the paths between. In the order, each `then` comes after its `first`; successive calls must move forward
  /// in the order. Forward passes answer until they have cost as much as vector clocks from the start would, then vector clocks take over: at most
  /// twice the cost of the better method. If cancelled, the remaining questions are answered "yes".
  std::vector<bool> together(std::span<const OrderQuestion> questions, Cancellation stop = {});
  /// Forward passes through the graph, 256 questions at a time. Cost per pass: the waits of all activities between the earliest `first` and the
  /// latest `then`.
  std::vector<bool> by_passes(std::span<const OrderQuestion> questions, Cancellation stop = {});
  /// One walk through the graph with vector clocks; the next call continues it. nullopt: they would need too much memory, or are already past a
  /// `then`.
  std::optional<std::vector<bool>> by_clocks(std::span<const OrderQuestion> questions, Cancellation stop = {});

  /// The cost of all answers so far, in waits looked at; the work of clocks is converted to waits of a pass that take as long.
  [[nodiscard]] std::uint64_t waits_looked_at() const;

 private:
  static constexpr std::size_t words = 4;
  static constexpr std::size_t at_once = 64 * words;
  static constexpr std::uint64_t entries_per_wait = 48;  // clock entries that cost as much as one wait of a pass; measured
  using Set = std::array<std::uint64_t, words>;          // of questions of a pass

  void pass(std::span<const OrderQuestion> questions);
  VectorClocks& clocks();
  bool clocks_pay();

  const ActivityGraph& graph_;
  const std::vector<std::uint32_t>& order_;
  std::size_t most_clock_bytes_;
  std::vector<std::uint32_t> position_;  // of each activity in the order
  std::vector<std::uint32_t> seen_;      // the query that last visited an activity
  std::vector<std::uint32_t> stack_;
  std::uint32_t query_ = 0;
  std::uint64_t waits_searched_ = 0, waits_passed_ = 0;
  std::vector<Set> over_;                // per activity: the questions whose `first` is over before it starts
  std::vector<std::uint32_t> asked_of_;  // per activity: 1 + the first question of the pass about it; 0: none
  std::optional<VectorClocks> clocks_;
};

}  // namespace podsim
