// What one node of a model did when: its core, its communication.
#pragma once

#include <vector>

#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

struct Interval {
  Picoseconds begin, end;
};

/// Sorted and merged, so that lengths add up to the time covered.
std::vector<Interval> merged(std::vector<Interval> intervals);
Picoseconds covered(const std::vector<Interval>& intervals);
/// The part of the time covered by both; both merged.
Picoseconds covered_by_both(const std::vector<Interval>& a, const std::vector<Interval>& b);

/// Reads one node of a model's timeline.
class NodeActivity {
 public:
  NodeActivity(const Model& model, const Timeline& timeline, std::uint32_t node)
      : model_{model}, timeline_{timeline}, program_{model.deployment.places[node].program}, local_{model.deployment.places[node].local} {}

  [[nodiscard]] bool idle() const { return program_ == no_device; }

  /// When the core was busy, in program order; the intervals do not overlap.
  [[nodiscard]] std::vector<Interval> core() const;

  /// When a half of a transfer of this node, or the launch of a Collective, was in flight; visit(task, interval). Other work off the core, such as
  /// the sums of a line's two ends, is no communication in flight.
  template <class Visit>
  void each_flight(Visit visit) const {
    if (idle()) return;
    for (std::size_t t = 0; t < model_.costs[program_].size(); ++t) {
      const Participants& who = model_.deployment.who(program_, t);
      const Task& task = model_.task(program_, t);
      const bool flies = model_.costs[program_][t].kind != TaskCost::Kind::work || is_launch(task.op);
      if (who.does(local_) && flies) {
        const std::uint32_t a = model_.deployment.activity(program_, t, local_);
        visit(task, Interval{timeline_.start(a), timeline_.sent(a)});
      }
      if (who.receives(local_)) {
        const std::uint32_t a = incoming(who, t);
        visit(task, Interval{timeline_.start(a), timeline_.at(a).received});
      }
    }
  }

  /// The activity of the transfer that a task of this node receives.
  [[nodiscard]] std::uint32_t incoming(const Participants& who, std::size_t task) const;

 private:
  [[nodiscard]] Picoseconds send_ready(std::size_t task) const;

  const Model& model_;
  const Timeline& timeline_;
  std::uint32_t program_;
  std::size_t local_;
};

}  // namespace podsim
