#include "sim/engine/max_plus/max_plus.hpp"

#include <algorithm>
#include <cassert>

#include "sim/engine/max_plus/link_certificate.hpp"
#include "sim/engine/max_plus/memory_use.hpp"
#include "sim/engine/max_plus/rows.hpp"
#include "sim/engine/max_plus/timings.hpp"
#include "sim/engine/reductions.hpp"

namespace podsim {

namespace max_plus {

namespace {

using Times = std::vector<std::int64_t>;
constexpr Picoseconds not_yet{-1};
constexpr std::int64_t instances_between_reports = 1 << 18;

std::int64_t sum(std::int64_t time, std::int64_t duration) { return later(Picoseconds{time}, Picoseconds{duration}).count(); }

class Pass {
 public:
  Pass(const Model& model, const RunControl& control, const RowGraph& graph)
      : model_{model}, control_{control}, graph_{graph}, rows_{graph.order()}, rates_{model}, timings_{model, rates_}, links_{rates_} {
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) position_of_last_use(i);
    const auto activities = static_cast<std::size_t>(model.deployment.activities());
    if (control.record) start_.assign(activities, not_yet), sent_.assign(activities, not_yet);
  }

  std::optional<Timeline> run() {
    if (!play()) return std::nullopt;
    if (links_.has_suspects() && !interrupted_) {
      links_.begin_collecting(std::max<std::size_t>(std::size_t{1} << 20, static_cast<std::size_t>(finished_)));
      if (!play() || !links_.all_fit()) return std::nullopt;
    }
    Timeline timeline{std::move(start_), std::move(sent_), reductions_of(model_)};
    timeline.makespan = Picoseconds{last_};
    timeline.pass = "max-plus";
    timeline.finished = finished_;
    timeline.interrupted = interrupted_;
    return timeline;
  }

 private:
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

  void position_of_last_use(std::size_t row) {
    const std::uint32_t last = rows_.rows[row].last_use;
    if (last >= forgotten_after_.size()) forgotten_after_.resize(last + 1);
    forgotten_after_[last].push_back(static_cast<std::uint32_t>(row));
  }

  bool play() {
    MemoryUse memories{model_, rates_};
    if (!memories.applies()) return false;
    memories_ = &memories;
    last_ = finished_ = 0;
    known_.assign(rows_.rows.size(), {});
    on_memory_.clear();
    core_free_.assign(model_.nodes(), 0);
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t l = 0; l < model_.deployment.programs[p].devices.size(); ++l) {
        std::int64_t& core = core_free_[model_.deployment.programs[p].devices[l]];
        core = ceil_to_clock(model_.shares_first(p, l)).count();
        last_ = std::max(last_, core);
      }
    std::int64_t next_report = 0;
    for (const Unit& unit : rows_.units) {
      if (finished_ >= next_report) {
        next_report = finished_ + instances_between_reports;
        if (control_.progress) control_.progress(RunProgress{Picoseconds{last_}, finished_, model_.deployment.activities()});
        interrupted_ = control_.stop.requested();
      }
      interrupted_ |= Picoseconds{last_} > control_.limit;  // flows that meet would end later still
      if (interrupted_) return true;
      if (!(unit.is_circle() ? play_circle(unit) : play_row(unit.first))) return false;
      for (const std::uint32_t row : forgotten_after_[unit.end - 1]) {
        known_[row].asked_for = false;
        recycle(known_[row]);
      }
    }
    interrupted_ = Picoseconds{last_} > control_.limit;
    return true;
  }

  bool play_row(std::uint32_t i) {
    const Row& row = rows_.rows[i];
    const TaskCost& cost = model_.costs[row.program][row.task];
    const Participants& who = model_.deployment.who(row.program, row.task);
    const std::size_t nodes = model_.deployment.programs[row.program].devices.size();
    if (who.doers == 0 && who.receivers == 0) return true;
    if (cost.kind == TaskCost::Kind::receive) {
      gate(rows_.receive(row), nodes, known_[i].sent);
      take(known_[i].received, nodes);
      std::fill(known_[i].received.begin(), known_[i].received.end(), 0);
      return true;
    }
    gate(rows_.own(row), nodes, own_);
    if (cost.kind == TaskCost::Kind::work) return work(i, row, cost, who);
    if (who.to_task.empty()) gate(rows_.receive(row), nodes, ready_);
    return transfer(i, who);
  }

  /// When everything that a gate waits for is there, per local node.
  void gate(std::span<const Source> sources, std::size_t nodes, Times& ready) {
    take(ready, nodes);
    bool first = true;
    for (const Source& source : sources) {
      const Known& known = known_[source.row];
      const Times& times = source.received ? known.received : known.sent;
      if (times.empty()) continue;  // absent everywhere
      if (first)
        std::copy(times.begin(), times.end(), ready.begin());
      else
        for (std::size_t l = 0; l < nodes; ++l) ready[l] = std::max(ready[l], times[l]);
      first = false;
    }
    if (first) std::fill(ready.begin(), ready.end(), 0);
  }

  /// A row of works at hand.
  struct Works {
    const TaskCost& cost;
    const Participants& who;
    const Deployment::OfProgram& of_program;
    const Timings::OfWork* times;
    const std::uint32_t* speeds;
    const std::vector<Seconds>* shares;
    std::uint32_t first_activity;
    bool slowed;
    Times& sent;
  };
  Works works_of(std::uint32_t i, bool slowed) {
    const Row& row = rows_.rows[i];
    const TaskCost& cost = model_.costs[row.program][row.task];
    const auto& of_program = model_.deployment.programs[row.program];
    const std::vector<Seconds>* shares = nullptr;
    if (!model_.core_shares.empty() && !model_.core_shares[row.program].behind[row.task].empty()) shares = &model_.core_shares[row.program].behind[row.task];
    take(known_[i].sent, of_program.devices.size());
    return {cost, model_.deployment.who(row.program, row.task), of_program, timings_.of_work(cost), timings_.speed_classes(), shares,
            of_program.first_activity[row.task], slowed, known_[i].sent};
  }

  bool work(std::uint32_t i, const Row& row, const TaskCost& cost, const Participants& who) {
    const Works works = works_of(i, memories_->may_slow() && cost.memory_bytes > 0 && look_beside(row, cost, who));
    std::uint32_t activity = works.first_activity;
    for (std::size_t l = 0; l < works.sent.size(); ++l)
      if (who.to[l] == no_device)
        works.sent[l] = 0;
      else
        work_at(works, l, own_[l], activity++);
    finished_ += who.doers;
    return true;
  }

  void work_at(const Works& works, std::size_t l, std::int64_t ready, std::uint32_t activity) {
    const std::uint32_t node = works.of_program.devices[l];
    const Timings::OfWork& time = works.times[works.speeds == nullptr ? 0 : works.speeds[node]];
    const std::int64_t start = works.cost.on_core ? std::max(ready, core_free_[node]) : ready;
    std::int64_t end = sum(start, time.whole());
    if (works.slowed && works_[l].alone > 0) end = sum(memories_->end(works_[l], beside_[node]), time.rest);
    works.sent[l] = end;
    last_ = std::max(last_, end);
    if (works.cost.on_core) {
      core_free_[node] = end;
      if (works.shares != nullptr && (*works.shares)[l] != Seconds{}) {
        core_free_[node] = sum(end, ceil_to_clock((*works.shares)[l]).count());
        last_ = std::max(last_, core_free_[node]);
      }
    }
    if (control_.record) start_[activity] = Picoseconds{start}, sent_[activity] = Picoseconds{end};
  }

  /// Finds the works of a row that transfers may slow, into works_ (the others have no `alone`), and the transfers beside them. Whether there are any.
  bool look_beside(const Row& row, const TaskCost& cost, const Participants& who) {
    const auto& of_program = model_.deployment.programs[row.program];
    const Timings::OfWork* const times = timings_.of_work(cost);
    const std::uint32_t* const speeds = timings_.speed_classes();
    std::int64_t first = end_of_clock.count(), last = 0;
    works_.assign(of_program.devices.size(), {});
    begin_.assign(model_.nodes(), end_of_clock.count());
    latest_.assign(model_.nodes(), 0);
    for (std::size_t l = 0; l < works_.size(); ++l) {
      if (who.to[l] == no_device) continue;
      const std::uint32_t node = of_program.devices[l];
      const Timings::OfWork& time = times[speeds == nullptr ? 0 : speeds[node]];
      if (time.flow <= 0) continue;
      const std::int64_t begin = sum(std::max(own_[l], core_free_[node]), time.launch);
      const MemoryUse::Work work{model_.memory_paths[node], cost.memory_bytes, time.flow, begin};
      const std::int64_t latest = memories_->latest_end(work);
      if (latest == sum(begin, time.flow)) continue;
      works_[l] = work;
      begin_[node] = begin;
      latest_[node] = latest;
      first = std::min(first, begin);
      last = std::max(last, latest);
    }
    if (last == 0) return false;
    forget_flows();
    beside_.resize(model_.nodes());
    for (auto& flows : beside_) flows.clear();
    for (const OnMemory& flows : on_memory_)
      if (flows.end > first && flows.begin < last) find_beside(flows.row);
    return true;
  }

  void find_beside(std::uint32_t i) {
    const Row& row = rows_.rows[i];
    const TaskCost& cost = model_.costs[row.program][row.task];
    const Participants& who = model_.deployment.who(row.program, row.task);
    const auto& of_program = model_.deployment.programs[row.program];
    const Timings::OfTransfer* const times = timings_.of_transfer(cost);
    const std::vector<std::uint32_t>& paths = model_.routings[cost.routing];
    const Known& known = known_[i];
    for (std::size_t l = 0; l < paths.size(); ++l) {
      const std::uint32_t to = who.to[l];
      if (to == no_device) continue;
      const std::uint32_t from = of_program.devices[l];
      const std::int64_t end = known.sent[l];
      if (end <= begin_[from] && end <= begin_[to]) continue;
      const std::int64_t begin = end - times[timings_.path_classes()[paths[l]]].flow;
      const auto add = [&](const PathLink& memory, std::uint32_t node) {
        if (model_.links[memory.link].is_memory && end > begin_[node] && begin < latest_[node])
          beside_[node].push_back({begin, end, rates_.path_rate[paths[l]] * memory.weight});
      };
      const auto links = rates_.links_of(paths[l]);
      if (links.empty()) continue;
      add(links.front(), from);
      if (links.size() > 1) add(links.back(), to);
    }
  }

  /// Flows that are over before any core's next work begins are beside none.
  void forget_flows() {
    const std::int64_t free = *std::min_element(core_free_.begin(), core_free_.end());
    std::erase_if(on_memory_, [&](const OnMemory& flows) {
      if (flows.end > free) return false;
      known_[flows.row].beside = false;
      recycle(known_[flows.row]);
      return true;
    });
  }

  /// A row of transfers at hand.
  struct Transfers {
    const TaskCost& cost;
    const Participants& who;
    const std::vector<std::uint32_t>& paths;
    const std::uint32_t* path_classes;
    const Timings::OfTransfer* times;
    const std::uint32_t* speeds;
    std::uint32_t first_activity;
    bool channel;  // Sends to Recvs
    Times& sent;
    std::uint32_t receiving = no_device;  // the row that receives
    Times* received = nullptr;            // of that row
    const std::int64_t* reductions = nullptr;
    std::int64_t first = end_of_clock.count(), last = 0;  // begin and end of flows
  };
  Transfers transfers_of(std::uint32_t i) {
    const Row& row = rows_.rows[i];
    const TaskCost& cost = model_.costs[row.program][row.task];
    const Participants& who = model_.deployment.who(row.program, row.task);
    const auto& of_program = model_.deployment.programs[row.program];
    const bool channel = !who.to_task.empty();
    take(known_[i].sent, of_program.devices.size());
    Transfers transfers{cost, who, model_.routings[cost.routing], timings_.path_classes(), timings_.of_transfer(cost), timings_.speed_classes(),
                        of_program.first_activity[row.task], channel, known_[i].sent};
    if (channel) return transfers;
    take(known_[i].received, of_program.devices.size());
    receive_at(transfers, i, row.program, row.task);
    return transfers;
  }

  /// From now on another row receives.
  void receive_at(Transfers& transfers, std::uint32_t row, std::uint32_t program, std::uint32_t task) {
    transfers.receiving = row;
    transfers.received = &known_[row].received;
    transfers.reductions = timings_.of_reduction(model_.costs[program][task]);
  }

  bool transfer(std::uint32_t i, const Participants& who) {
    Transfers transfers = transfers_of(i);
    if (!transfers.channel && who.receivers < transfers.sent.size()) std::fill(transfers.received->begin(), transfers.received->end(), 0);
    std::uint32_t activity = transfers.first_activity;
    for (std::size_t l = 0; l < transfers.sent.size(); ++l) {
      if (who.to[l] == no_device) {
        transfers.sent[l] = 0;
        continue;
      }
      const Deployment::Place& there = model_.deployment.places[who.to[l]];
      const std::int64_t receive_ready = transfers.channel ? receive_ready_at(transfers, l, there) : ready_[there.local];
      if (!transfer_at(transfers, l, there, own_[l], receive_ready, activity++))
        return false;
    }
    finished_ += who.doers;
    remember(i, transfers);
    return true;
  }

  /// When the Recv of a Send is ready.
  std::int64_t receive_ready_at(Transfers& transfers, std::size_t l, const Deployment::Place& there) {
    const std::uint32_t task = transfers.who.to_task[l];
    if (const std::uint32_t row = row_of(there.program, task); row != transfers.receiving) receive_at(transfers, row, there.program, task);
    return known_[transfers.receiving].sent[there.local];
  }

  bool transfer_at(Transfers& transfers, std::size_t l, const Deployment::Place& there, std::int64_t send_ready, std::int64_t receive_ready, std::uint32_t activity) {
    const std::uint32_t path = transfers.paths[l], receiver = transfers.who.to[l];
    const Timings::OfTransfer& time = transfers.times[transfers.path_classes[path]];
    const std::int64_t start = std::max(send_ready, receive_ready), begin = sum(start, time.delay), end = sum(begin, time.flow);
    if (time.flow > 0) {
      if (!cross(path, begin, end)) return false;
      transfers.first = std::min(transfers.first, begin);
      transfers.last = std::max(transfers.last, end);
    }
    const std::int64_t reduced = sum(end, transfers.reductions[transfers.speeds == nullptr ? 0 : transfers.speeds[receiver]]);
    transfers.sent[l] = end;
    (*transfers.received)[there.local] = reduced;
    last_ = std::max(last_, reduced);
    if (control_.record) start_[activity] = Picoseconds{start}, sent_[activity] = Picoseconds{end};
    return true;
  }

  /// The flows of a row may be beside works to come.
  void remember(std::uint32_t i, const Transfers& transfers) {
    if (!memories_->may_slow() || transfers.last == 0) return;
    on_memory_.push_back({i, transfers.first, transfers.last});
    known_[i].beside = true;
  }

  /// Rows that wait for each other, instance by instance.
  bool play_circle(const Unit& unit) {
    std::vector<std::optional<Works>> works(unit.end - unit.first);
    std::vector<std::optional<Transfers>> transfers(works.size());
    for (std::uint32_t i = unit.first; i < unit.end; ++i) {
      const Row& row = rows_.rows[i];
      const TaskCost& cost = model_.costs[row.program][row.task];
      const std::size_t nodes = model_.deployment.programs[row.program].devices.size();
      if (cost.kind == TaskCost::Kind::work) {
        if (memories_->may_slow() && cost.memory_bytes > 0) return false;  // looked for only beside whole rows
        works[i - unit.first].emplace(works_of(i, false));
      } else if (cost.kind == TaskCost::Kind::transfer) {
        transfers[i - unit.first].emplace(transfers_of(i));
      } else {
        take(known_[i].sent, nodes), take(known_[i].received, nodes);
      }
      for (Times* times : {&known_[i].sent, &known_[i].received}) std::fill(times->begin(), times->end(), 0);
    }
    for (const auto& [r, local] : graph_.circles()[unit.circle]) {
      const Row& row = rows_.rows[unit.first + r];
      if (works[r]) {
        work_at(*works[r], local, gate_at(rows_.own(row), local), works[r]->first_activity + works[r]->who.rank[local]);
      } else if (transfers[r]) {
        Transfers& at = *transfers[r];
        const Deployment::Place& there = model_.deployment.places[at.who.to[local]];
        const std::int64_t receive_ready = at.channel ? receive_ready_at(at, local, there) : gate_at(rows_.receive(row), there.local);
        if (!transfer_at(at, local, there, gate_at(rows_.own(row), local), receive_ready, at.first_activity + at.who.rank[local])) return false;
      } else {
        known_[unit.first + r].sent[local] = gate_at(rows_.receive(row), local);
      }
    }
    for (std::uint32_t i = unit.first; i < unit.end; ++i) {
      finished_ += model_.deployment.who(rows_.rows[i].program, rows_.rows[i].task).doers;
      if (transfers[i - unit.first]) remember(i, *transfers[i - unit.first]);
    }
    return true;
  }

  /// When everything that the gate of a local node waits for is there.
  [[nodiscard]] std::int64_t gate_at(std::span<const Source> sources, std::size_t l) const {
    std::int64_t ready = 0;
    for (const Source& source : sources) {
      const Times& times = source.received ? known_[source.row].received : known_[source.row].sent;
      if (!times.empty()) ready = std::max(ready, times[l]);
    }
    return ready;
  }

  bool cross(std::uint32_t path, std::int64_t begin, std::int64_t end) {
    const std::int64_t rate = rates_.path_rate[path];
    for (const PathLink& link : rates_.links_of(path))
      if (model_.links[link.link].is_memory) {
        if (memories_->may_slow() && !memories_->cross(link.link, begin, end)) return false;
      } else if (!links_.cross(link.link, rate * link.weight, begin, end)) {
        return false;
      }
    return true;
  }

  std::uint32_t row_of(std::uint32_t program, std::uint32_t task) {
    if (row_of_.empty()) {
      row_of_.resize(model_.costs.size());
      for (std::uint32_t p = 0; p < row_of_.size(); ++p) row_of_[p].resize(model_.costs[p].size());
      for (std::uint32_t r = 0; r < rows_.rows.size(); ++r) row_of_[rows_.rows[r].program][rows_.rows[r].task] = r;
    }
    return row_of_[program][task];
  }

  /// Makes room for the times of `nodes` nodes, from what earlier rows no longer need.
  void take(Times& times, std::size_t nodes) {
    if (times.size() == nodes) return;
    if (times.empty() && !spare_.empty()) {
      times = std::move(spare_.back());
      spare_.pop_back();
    }
    times.resize(nodes);
  }
  void recycle(Known& known) {
    if (known.asked_for || known.beside) return;
    for (Times* times : {&known.sent, &known.received})
      if (times->capacity() > 0) {
        spare_.push_back(std::move(*times));
        times->clear();
      }
  }

  const Model& model_;
  const RunControl& control_;
  const RowGraph& graph_;
  Rows rows_;
  LinkRates rates_;
  Timings timings_;
  LinkCertificate links_;
  MemoryUse* memories_ = nullptr;
  std::vector<Known> known_;                                    // per row
  std::vector<std::vector<std::uint32_t>> forgotten_after_;     // per row, the rows that nobody asks for after it
  std::vector<std::vector<std::uint32_t>> row_of_;              // [program][task]; made when a Send asks
  Times own_, ready_;                                           // of the present row
  std::vector<Times> spare_;
  std::vector<std::int64_t> core_free_;  // per node
  std::vector<OnMemory> on_memory_;
  std::vector<MemoryUse::Work> works_;         // of the present row, per local node
  std::vector<std::int64_t> begin_, latest_;   // of the flows of these works, per node
  std::vector<std::vector<Beside>> beside_;    // them, per node
  std::int64_t last_ = 0, finished_ = 0;
  bool interrupted_ = false;
  std::vector<Picoseconds> start_, sent_;
};

}  // namespace

}  // namespace max_plus

std::optional<Timeline> run_max_plus(const Model& model, const RunControl& control) {
  const max_plus::RowGraph graph{model};
  if (!graph.has_order()) return std::nullopt;
  return max_plus::Pass{model, control, graph}.run();
}

}  // namespace podsim
