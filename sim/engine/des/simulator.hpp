// One simulation run: counts down the waits of every gate, runs the cores in program order, and lets flows share links.
#pragma once

#include "sim/engine/des/event_queue.hpp"
#include "sim/engine/link_sharing.hpp"
#include "sim/engine/des/program_table.hpp"
#include "sim/engine/engine.hpp"

namespace podsim::des {

/// The order within one picosecond: first all ends and their immediate consequences, then new flows start, then rates are assigned. The result
/// therefore does not depend on the order in which the queue returns events of equal time.
class Simulator {
 public:
  Simulator(const Model& model, ProgramTables tables, bool record);

  /// Runs until all tasks are finished, `control.stop` is requested, or the end is certain to exceed `control.limit`.
  void run(const RunControl& control);

  [[nodiscard]] bool complete() const { return finished_ == activities_; }
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] std::vector<bool> finished() const;  // per activity; recorded runs only
  /// Moves the timeline out.
  Timeline take_timeline();

 private:
  enum class What : std::uint32_t { done, core_free, delay_over, sent, flow_over, received };
  /// An event of the queue. done, core_free: of the work or core of `node`; flow_over: of a flow; the others: of the transfer that `node` sends, or
  /// of a work that draws memory. core_free: core shares are worked off.
  struct Event {
    What what : 3;
    std::uint32_t task : 29;
    std::uint32_t node;  // for flow_over: the flow
    Event(What w, std::uint32_t t, std::uint32_t n) : what{w}, task{t & 0x1fffffff}, node{n} {}
  };
  static_assert(sizeof(Event) == 8);
  struct Place {
    const ProgramTable* program;
    std::uint32_t local;
  };
  struct Beginning {  // a flow that starts later in this picosecond
    std::uint32_t task, node;
  };

  void begin();
  void count_rest(Picoseconds limit);
  void happen(const Event& event);
  void start_flows();
  void at(std::int64_t time, What what, std::uint32_t task, std::uint32_t node);
  void own_gate_opens(std::uint32_t node, const Place& place, std::uint32_t task);
  void receive_gate_opens(const Place& place, std::uint32_t task);
  void reach_next(std::uint32_t node, const Place& place);
  void work_off(std::uint32_t node, const Place& place, const Seconds* shares);
  void start(std::uint32_t node, const Place& place, std::uint32_t task);
  struct Phases {  // of a work that draws memory, in picoseconds
    std::int64_t launch, flow, rest;
  };
  [[nodiscard]] Phases phases_of(const TaskRow& row, std::uint32_t node) const;
  void done(std::uint32_t node, std::uint32_t task);
  void flow_over(std::uint32_t node, std::uint32_t task);
  void delay_over(std::uint32_t node, std::uint32_t task);
  void sent(std::uint32_t node, std::uint32_t task);
  void received(std::uint32_t node, std::uint32_t task);
  void pass(std::uint32_t node, const Place& place, std::uint32_t task, int which);
  [[nodiscard]] std::uint32_t activity(const Place& place, std::uint32_t task) const {
    const TaskRow& row = place.program->tasks[task];
    return row.first_activity + row.rank[place.local];
  }

  const Model& model_;
  ProgramTables tables_;
  LinkSharing sharing_;
  EventQueue<Event> queue_;
  std::vector<Place> places_;             // per node
  std::vector<std::uint32_t> core_next_;  // per node: position in its program's `core`
  std::vector<Beginning> beginnings_;
  std::int64_t now_ = 0, last_ = 0;  // last_: the latest end so far
  std::int64_t events_ = 0, finished_ = 0, activities_ = 0;
  std::int64_t limit_ = end_of_clock.count();
  std::vector<std::vector<std::int64_t>> rest_;  // if there is a limit, per program and position in its `core`: the work from there on
  bool beyond_limit_ = false;                    // a core has more work left than time
  bool interrupted_ = false, is_long_ = false;
  bool record_;
  std::vector<Picoseconds> start_, sent_;
};

}  // namespace podsim::des
