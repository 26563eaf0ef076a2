// Happens-before on an ActivityGraph: made of edges and transfers only, not of core order.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/unroll.hpp"

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

/// Answers "is this done before that starts?" by searching backwards from the later one; short where edges are direct.
class HappensBefore {
 public:
  /// `order` is a complete topological order of the graph; both must outlive this.
  HappensBefore(const ActivityGraph& graph, const std::vector<std::uint32_t>& order);
  /// Whether `first` is over before `then` starts. Of a transfer, `received` asks for its target, else for its source.
  bool operator()(std::uint32_t first, bool received, std::uint32_t then);

 private:
  const ActivityGraph& graph_;
  std::vector<std::uint32_t> position_;  // of each activity in the order
  std::vector<std::uint32_t> seen_;      // the query that last visited an activity
  std::vector<std::uint32_t> stack_;
  std::uint32_t query_ = 0;
};

}  // namespace podsim
