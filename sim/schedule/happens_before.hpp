// Happens-before on an ActivityGraph: made of edges and transfers only, not of core order.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/schedule/unroll.hpp"
#include "sim/schedule/vector_clocks.hpp"

namespace podsim {

/// The activities in an order that respects all waits, nearest to program order; with `core_order`, a device's core work also waits for
/// the core work before it. Where there is a cycle, `cycle` holds one, each member waiting for the next, and `order` what comes before it.
struct TopologicalOrder {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> cycle;
};
TopologicalOrder topological_order(const ActivityGraph& graph, const Schedule& lowered, bool core_order);

/// Whether the core runs an activity: a Matmul, or a Local on the core.
bool on_core(const Schedule& lowered, const Activity& activity);

/// Is `first` over before `then` starts? Of a transfer, `received` asks for its target, else for its source; of a work, it is false.
struct OrderQuestion {
  std::uint32_t first = 0;
  bool received = false;
  std::uint32_t then = 0;
};

/// Answers questions of order: one by one, by searching backwards from the later one, which is short where edges are direct, or many together.
class HappensBefore {
 public:
  /// `order` is a complete topological order of the graph; both must outlive this. `most_clock_bytes`: more than that, and clocks are not used.
  HappensBefore(const ActivityGraph& graph, const std::vector<std::uint32_t>& order, std::size_t most_clock_bytes = std::size_t{256} << 20);
  bool operator()(const OrderQuestion& question);
  /// Looks at no more than `most` waits; none: they do not tell.
  std::optional<bool> within(std::size_t most, const OrderQuestion& question);

  /// One answer per question, however long the ways between. Each `then` is later in the order than its `first`; callers that ask several times go
  /// forwards through the order. Passes answer until they have cost as much as clocks would from the beginning, and clocks from there on: at most
  /// twice the cost of the better of the two. Told to end, it takes the rest for ordered.
  std::vector<bool> together(std::span<const OrderQuestion> questions, Cancellation stop = {});
  /// By passes forwards through the graph, 256 questions at a time. Cost per pass: the waits of all that stands between the earliest `first` and
  /// the latest `then`.
  std::vector<bool> by_passes(std::span<const OrderQuestion> questions, Cancellation stop = {});
  /// By one walk through the graph with vector clocks, which goes on where the last call ended. None: they would take too much memory, or have gone
  /// past a `then`.
  std::optional<std::vector<bool>> by_clocks(std::span<const OrderQuestion> questions, Cancellation stop = {});

  /// Of all answers so far; clocks count as the waits that a pass looks at in the same time.
  [[nodiscard]] std::uint64_t waits_looked_at() const;

 private:
  static constexpr std::size_t words = 4;
  static constexpr std::size_t at_once = 64 * words;
  static constexpr std::uint64_t entries_per_wait = 48;  // of clocks, that take as long as a wait of a pass; measured
  using Set = std::array<std::uint64_t, words>;          // of the questions of a pass

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
  std::vector<Set> over_;                // per activity: whose `first` is over before it starts
  std::vector<std::uint32_t> asked_of_;  // per activity: the first question of the pass about it, and 1; 0: none
  std::optional<VectorClocks> clocks_;
};

}  // namespace podsim
