// One walk over all tasks of a model, each on all devices at once.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/engine/max_plus/hot_flows.hpp"
#include "sim/engine/max_plus/link_certificate.hpp"
#include "sim/engine/max_plus/max_plus.hpp"
#include "sim/engine/max_plus/memory_use.hpp"
#include "sim/engine/max_plus/rows.hpp"
#include "sim/engine/max_plus/timings.hpp"

namespace podsim::max_plus {

/// The pass. The first play takes each flow at its own rate and notes the links on which flows do not fit. If there are none, that was it. Otherwise
/// these links are hot, and further plays follow, in an order close to that of time, as the play before saw it. They take hot flows from HotFlows. The end
/// of a hot flow is unknown, and so is all that waits for it, until the play has come to rows whose hot flows begin later; then what waited is evaluated
/// instance by instance, in the recorded timeline and in what later rows ask for. Where a flow that is found later nevertheless changes an end that was
/// told, or a work that memory slows, what follows from that is evaluated again. So at the end of a play all times are consistent, and as causes come before
/// effects, there is only one such timeline: des's. A last look proves that all other links fit; a link that does not becomes hot, and the play is repeated.
class Pass {
 public:
  Pass(const Model& model, const RunControl& control, const MeetingLimits& limits, const RowGraph& graph);

  std::optional<Timeline> run();
  /// Without a look at who meets: always a timeline.
  Timeline run_alone();

 private:
  using Times = std::vector<std::int64_t>;
  /// What later rows ask of a row. Zero where a half is absent: it delays nobody.
  struct Known {
    Times sent;      // per local node; of a Recv: when it is ready
    Times received;  // per local node of the receiver's program
    bool asked_for = true, beside = false;  // by later rows; by works that its flows may slow
  };
  /// A row of transfers that may be beside works to come.
  struct OnMemory {
    std::uint32_t row = 0;
    std::int64_t begin = 0, end = 0;  // of the first and the last flow
  };
  /// A row of works at hand.
  struct Works {
    const TaskCost& cost;
    const Participants& who;
    const Deployment::OfProgram& of_program;
    const Timings::OfWork* times;
    const std::uint32_t* speeds;
    const std::vector<Seconds>* shares;
    std::uint32_t row, first_activity;
    bool slowed;
    Times& sent;
    Picoseconds* start;  // null: nobody reads it
  };
  /// A row of transfers at hand.
  struct Transfers {
    const TaskCost& cost;
    const Participants& who;
    const Deployment::OfProgram& of_program;
    const std::vector<std::uint32_t>& paths;
    const std::uint32_t* path_classes;
    const Timings::OfTransfer* times;
    const std::uint32_t* speeds;
    std::uint32_t row, first_activity;
    bool channel;  // Sends to Recvs
    Times& sent;
    Picoseconds* start;                   // null: nobody reads it
    std::uint32_t receiving = no_device;  // the row that receives
    Times* received = nullptr;            // of that row
    const std::int64_t* reductions = nullptr;
    std::int64_t first = end_of_clock.count(), last = 0;  // begin and end of flows
  };

  [[nodiscard]] bool may_slow() const { return !alone_ && memories_.may_slow(); }

  // pass.cpp: the play
  void record();
  void use(Rows rows);
  bool play();
  bool play_row(std::uint32_t i);
  bool play_circle(const Unit& unit);
  void gate(std::span<const Source> sources, std::size_t nodes, Times& ready);
  [[nodiscard]] std::int64_t gate_at(std::span<const Source> sources, std::size_t l) const;
  Works works_of(std::uint32_t i, bool slowed, std::vector<Picoseconds>& start);
  void work(std::uint32_t i);
  void work_at(const Works& works, std::size_t l, std::int64_t ready, std::uint32_t activity);
  bool look_beside(std::uint32_t i);
  void find_beside(std::uint32_t i);
  [[nodiscard]] std::int64_t flow_end(std::uint32_t activity, std::uint32_t path) const;
  void add_hot_beside(std::uint32_t activity, std::int64_t weight, std::uint32_t node);
  void forget_flows();
  Transfers transfers_of(std::uint32_t i, std::vector<Picoseconds>& start);
  void receive_at(Transfers& transfers, std::uint32_t row, std::uint32_t program, std::uint32_t task);
  bool transfer(std::uint32_t i);
  std::int64_t receive_ready_at(Transfers& transfers, std::size_t l, const Deployment::Place& there);
  bool transfer_at(Transfers& transfers, std::size_t l, const Deployment::Place& there, std::int64_t start, std::uint32_t activity);
  void remember(const Transfers& transfers);
  [[nodiscard]] bool is_read() const { return control_.reader != nullptr && !control_.record && !told_all_; }
  void tell_reader(std::uint32_t i, const std::vector<Picoseconds>& start, const Times& sent);
  bool cross(std::uint32_t path, std::int64_t begin, std::int64_t end);
  bool heat(std::uint32_t link);
  void take(Times& times, std::size_t nodes);
  void recycle(Known& known);
  [[nodiscard]] const TaskCost& cost_of(std::uint32_t row) const { return model_.costs[rows_.rows[row].program][rows_.rows[row].task]; }
  [[nodiscard]] const Participants& who_of(std::uint32_t row) const { return model_.deployment.who(rows_.rows[row].program, rows_.rows[row].task); }
  [[nodiscard]] std::uint32_t row_of(std::uint32_t program, std::uint32_t task) const { return row_of_[graph_.number(program, task)]; }
  [[nodiscard]] std::uint32_t speed_class(std::uint32_t node) const { return timings_.speed_classes() == nullptr ? 0 : timings_.speed_classes()[node]; }
  [[nodiscard]] Timeline timeline(std::string_view pass);

  // corrections.cpp: what follows from flows that meet
  struct Place {  // an instance; a transfer's is at its sender
    std::uint32_t row = 0, local = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct WaitingGate {
    std::uint32_t row = 0;
    bool receive = false;
  };
  void begin_correcting();
  void begin_hot(const Place& at, std::int64_t begin, std::int64_t seen);
  [[nodiscard]] std::int64_t shift() const;
  bool correct(std::int64_t safe);
  void settle();
  bool end_next(std::int64_t safe);
  void evaluate_work(const Place& at);
  void evaluate_transfer(const Place& at);
  void set(const Place& at, std::int64_t start, std::int64_t end);
  void tell(std::uint32_t source, bool received, std::uint32_t local);
  void tell_core(const Place& at, std::int64_t end);
  void want_works_beside(const Place& at, std::int64_t begin, std::int64_t end);
  void want_works(std::uint32_t node, std::int64_t begin, std::int64_t end);
  void find_beside_node(std::uint32_t node, std::int64_t begin, std::int64_t end);
  void add_beside(const Place& at, const PathLink& memory, std::uint32_t node, std::int64_t begin, std::int64_t end);
  [[nodiscard]] std::int64_t gate_then(std::span<const Source> sources, std::uint32_t program, std::uint32_t local);
  [[nodiscard]] std::int64_t received_then(std::uint32_t program, std::uint32_t task, std::uint32_t local);
  [[nodiscard]] std::int64_t core_free_then(std::uint32_t program, std::uint32_t task, std::uint32_t local) const;
  [[nodiscard]] std::int64_t sent_then(std::uint32_t program, std::uint32_t task, std::uint32_t local) const {
    return sent_[model_.deployment.activity(program, task, local)].count();
  }

  // meetings.cpp: the plays and their proof
  bool play_first();
  bool play_meetings();
  void keep_known();
  bool spread_heat();
  bool prove();
  bool cross_all();
  bool cross_row(std::uint32_t i);
  [[nodiscard]] std::vector<std::int64_t> wanted();
  [[nodiscard]] std::size_t most_collected() const;

  const Model& model_;
  const RunControl& control_;
  const MeetingLimits& limits_;
  const RowGraph& graph_;
  Rows rows_;
  LinkRates rates_;
  Timings timings_;
  /// What a path takes of a link that is no memory.
  struct Crossing {
    std::uint32_t link;
    std::int64_t draw;
  };
  std::vector<Crossing> crossings_;           // of all paths, one after the other
  std::vector<std::uint32_t> crossing_rows_;  // per path its first entry there; one more at the end
  LinkCertificate links_;
  MemoryUse memories_;
  std::vector<Known> known_;                                 // per row
  std::vector<std::vector<std::uint32_t>> forgotten_after_;  // per row, the rows that nobody asks for after it
  std::vector<std::uint32_t> row_of_;                        // by RowGraph::number()
  Times own_, ready_;                                        // of the present row
  std::vector<Picoseconds> row_start_, row_sent_;            // the same, for the reader
  bool told_all_ = false;                                    // to the reader
  std::vector<Times> spare_;
  std::vector<std::int64_t> core_free_;  // per node
  std::vector<OnMemory> on_memory_;
  std::vector<MemoryUse::Work> works_;        // of the present row, per local node
  std::vector<std::int64_t> begin_, latest_;  // of the flows of these works, per node
  std::vector<std::vector<Beside>> beside_;   // them, per node
  std::int64_t last_ = 0, finished_ = 0;
  bool interrupted_ = false;
  bool alone_ = false;  // nothing shares anything
  std::vector<Picoseconds> start_, sent_;

  // Flows that meet.
  std::vector<bool> is_hot_;  // per link
  std::size_t hot_links_ = 0, most_hot_links_ = 0;
  bool met_ = false;             // flows, or works whose end was told too early
  std::optional<HotFlows> hot_;  // set: this is a play that corrects
  std::uint32_t played_ = 0;     // the rows before this one are played
  std::int64_t corrected_ = 0;
  std::vector<std::int64_t> hot_begin_;  // per row, as the last play saw it: when the first hot flow begins
  std::vector<std::int64_t> safe_;       // per row: before this time, no hot flow of it or a later row begins, if that is right
  std::unordered_map<std::uint32_t, std::int64_t> seen_begin_;  // of hot flows that wait, by activity: as the last play saw it
  std::deque<std::int64_t> shifts_;                             // of the last hot flows found, against the last play
  std::vector<bool> has_ended_;          // per hot flow: its end is told
  using Ending = std::pair<std::int64_t, std::uint32_t>;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ending_;  // ends and hot flows to come, and what they once were
  std::priority_queue<Place, std::vector<Place>, std::greater<>> wanted_;  // to be evaluated again
  std::vector<std::vector<WaitingGate>> followers_;                        // per row and half: 2 row + received
  std::vector<std::uint32_t> on_memory_of_;                                // per row, in on_memory_
  std::vector<std::vector<std::uint32_t>> core_;                           // per program, its tasks on the core
  std::vector<std::uint32_t> core_position_;                               // by RowGraph::number(), in core_
  std::vector<std::uint32_t> last_on_core_;                                // per node, in core_: the last that is played
  std::vector<std::int64_t> told_until_;                                   // per node, the end of the last slowed work
};

}  // namespace podsim::max_plus
