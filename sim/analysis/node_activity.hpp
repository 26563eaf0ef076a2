// The intervals in which one node of a model computes and communicates.
#pragma once

#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

/// Sorts intervals and merges those that overlap, so that lengths sum to the time covered.
std::vector<Interval> merged(std::vector<Interval> intervals);
Picoseconds covered(const std::vector<Interval>& intervals);
/// The time covered by both lists; both must be merged.
Picoseconds covered_by_both(const std::vector<Interval>& a, const std::vector<Interval>& b);

/// The time before a moment that merged intervals cover, in O(log n). They must outlive it.
class CoveredBefore {
 public:
  explicit CoveredBefore(const std::vector<Interval>& intervals);
  [[nodiscard]] Picoseconds operator()(Picoseconds at) const;

 private:
  const std::vector<Interval>& intervals_;
  std::vector<Picoseconds> before_;
};

/// Reads the timeline of one node.
class NodeActivity {
 public:
  NodeActivity(const Model& model, const Timeline& timeline, std::uint32_t node)
      : model_{model}, timeline_{timeline}, program_{model.deployment.places[node].program}, local_{model.deployment.places[node].local} {}

  [[nodiscard]] bool idle() const { return program_ == no_device; }

  /// What the core does, in program order, without overlaps; a Call as one task.
  struct CoreTime {
    Interval interval;
    TaskId task;  // on the core, or the operation whose core share this is
    bool share = false;
  };
  [[nodiscard]] std::vector<CoreTime> core_times() const;

  /// Whether a task is in flight: a transfer, or the launch of a Collective.
  [[nodiscard]] bool flies(std::size_t t) const { return model_.costs[program_][t].kind != TaskCost::Kind::work || is_launch(model_.task(program_, t).op); }

  /// Calls visit(task, interval) for each half of a transfer of this node and each launch of a Collective while in flight; those in Calls are not seen.
  /// Other work off the core, such as the addition where the two streams of a line meet, is not communication.
  template <class Visit>
  void each_flight(Visit visit) const {
    if (idle()) return;
    for (std::size_t t = 0; t < model_.costs[program_].size(); ++t) each_flight_of(t, visit);
  }
  /// The same for one task of the node's program.
  template <class Visit>
  void each_flight_of(std::size_t t, Visit&& visit) const {
    const Participants& who = model_.deployment.who(program_, t);
    const Task& task = model_.task(program_, t);
    if (who.does(local_) && flies(t)) {
      const std::uint32_t a = model_.deployment.activity(program_, t, local_);
      visit(task, Interval{timeline_.start(a), timeline_.sent(a)});
    }
    if (who.receives(local_)) {
      const std::uint32_t a = incoming(who, t);
      visit(task, Interval{timeline_.start(a), timeline_.at(a).received});
    }
  }

  /// The activity of the transfer that arrives at a task of this node.
  [[nodiscard]] std::uint32_t incoming(const Participants& who, std::size_t task) const;

 private:
  const Model& model_;
  const Timeline& timeline_;
  std::uint32_t program_;
  std::size_t local_;
};

}  // namespace podsim
