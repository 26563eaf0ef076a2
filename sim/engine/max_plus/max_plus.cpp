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
  Pass(const Model& model, const RunControl& control, Rows rows)
      : model_{model}, control_{control}, rows_{std::move(rows)}, rates_{model}, timings_{model, rates_}, links_{rates_} {
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) position_of_last_use(i);
    const auto activities = static_cast<std::size_t>(model.deployment.activities());
    if (control.record) start_.assign(activities, not_yet), sent_.assign(activities, not_yet);
  }

  std::optional<Timeline> run() {
    if (!play()) return std::nullopt;
    told_ = true;
    if (links_.has_suspects() && !interrupted_) {
      links_.begin_collecting(std::max<std::size_t>(std::size_t{1} << 20, static_cast<std::size_t>(finished_)));
      if (!play() || !links_.all_fit()) return std::nullopt;
    }
    Timeline timeline{std::move(start_), std::move(sent_), control_.record ? reductions_of(model_) : std::vector<Timeline::Reduction>{}};
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
    for (std::uint32_t i = 0; i < rows_.rows.size(); ++i) {
      if (finished_ >= next_report) {
        next_report = finished_ + instances_between_reports;
        if (control_.progress) control_.progress(RunProgress{Picoseconds{last_}, finished_, model_.deployment.activities()});
        interrupted_ = control_.stop.requested();
      }
      interrupted_ |= Picoseconds{last_} > control_.limit;  // flows that meet would end later still
      if (interrupted_) return true;
      if (!play_row(i)) return false;
      for (const std::uint32_t row : forgotten_after_[i]) {
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
    return transfer(i, row, cost, who);
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

  bool work(std::uint32_t i, const Row& row, const TaskCost& cost, const Participants& who) {
    const auto& of_program = model_.deployment.programs[row.program];
    const std::size_t nodes = of_program.devices.size();
    const Timings::OfWork* const times = timings_.of_work(cost);
    const std::uint32_t* const speeds = timings_.speed_classes();
    const std::vector<Seconds>* shares = nullptr;
    if (!model_.core_shares.empty() && !model_.core_shares[row.program].behind[row.task].empty()) shares = &model_.core_shares[row.program].behind[row.task];
    const bool slowed = memories_->may_slow() && cost.memory_bytes > 0 && look_beside(row, cost, who);
    Times& sent = known_[i].sent;
    take(sent, nodes);
    std::uint32_t activity = of_program.first_activity[row.task];
    row_start_.resize(nodes);
    for (std::size_t l = 0; l < nodes; ++l) {
      if (who.to[l] == no_device) {
        sent[l] = 0;
        continue;
      }
      const std::uint32_t node = of_program.devices[l];
      const Timings::OfWork& time = times[speeds == nullptr ? 0 : speeds[node]];
      const std::int64_t start = cost.on_core ? std::max(own_[l], core_free_[node]) : own_[l];
      std::int64_t end = sum(start, time.whole());
      if (slowed && works_[l].alone > 0) end = sum(memories_->end(works_[l], beside_[node]), time.rest);
      sent[l] = end;
      last_ = std::max(last_, end);
      if (cost.on_core) {
        core_free_[node] = end;
        if (shares != nullptr && (*shares)[l] != Seconds{}) {
          core_free_[node] = sum(end, ceil_to_clock((*shares)[l]).count());
          last_ = std::max(last_, core_free_[node]);
        }
      }
      row_start_[l] = Picoseconds{start};
      if (control_.record) start_[activity] = Picoseconds{start}, sent_[activity] = Picoseconds{end};
      ++activity;
    }
    finished_ += who.doers;
    tell(row, sent);
    return true;
  }

  /// The times of a row, to who reads them.
  void tell(const Row& row, const Times& sent) {
    if (control_.reader == nullptr || told_) return;
    row_sent_.resize(row_start_.size());
    for (std::size_t l = 0; l < row_sent_.size(); ++l) row_sent_[l] = Picoseconds{sent[l]};
    control_.reader->read(row.program, row.task, row_start_, row_sent_);
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

  bool transfer(std::uint32_t i, const Row& row, const TaskCost& cost, const Participants& who) {
    const auto& of_program = model_.deployment.programs[row.program];
    const std::size_t nodes = of_program.devices.size();
    const Timings::OfTransfer* const times = timings_.of_transfer(cost);
    const std::uint32_t* const path_classes = timings_.path_classes();
    const std::uint32_t* const speeds = timings_.speed_classes();
    const std::vector<std::uint32_t>& paths = model_.routings[cost.routing];
    const bool channel = !who.to_task.empty();
    const bool remembered = memories_->may_slow() && cost.flow_bytes > 0;
    if (remembered && channel) return false;  // whose flows nobody remembers
    std::int64_t first = end_of_clock.count(), last = 0;
    const std::int64_t* reductions = timings_.of_reduction(cost);
    Times& sent = known_[i].sent;
    take(sent, nodes);
    if (!channel) {
      take(known_[i].received, nodes);
      if (who.receivers < nodes) std::fill(known_[i].received.begin(), known_[i].received.end(), 0);
    }
    std::uint32_t activity = of_program.first_activity[row.task];
    row_start_.resize(nodes);
    for (std::size_t l = 0; l < nodes; ++l) {
      const std::uint32_t receiver = who.to[l];
      if (receiver == no_device) {
        sent[l] = 0;
        continue;
      }
      const Deployment::Place& there = model_.deployment.places[receiver];
      const Times* ready = &ready_;
      Times* received = &known_[i].received;
      if (channel) {
        Known& receiving = known_[row_of(there.program, who.to_task[l])];
        ready = &receiving.sent;
        received = &receiving.received;
        reductions = timings_.of_reduction(model_.costs[there.program][who.to_task[l]]);
      }
      const std::int64_t start = std::max(own_[l], (*ready)[there.local]);
      const std::uint32_t path = paths[l];
      const Timings::OfTransfer& time = times[path_classes[path]];
      const std::int64_t begin = sum(start, time.delay), end = sum(begin, time.flow);
      if (time.flow > 0) {
        if (!cross(path, begin, end)) return false;
        first = std::min(first, begin);
        last = std::max(last, end);
      }
      const std::int64_t reduced = sum(end, reductions[speeds == nullptr ? 0 : speeds[receiver]]);
      sent[l] = end;
      (*received)[there.local] = reduced;
      last_ = std::max(last_, reduced);
      row_start_[l] = Picoseconds{start};
      if (control_.record) start_[activity] = Picoseconds{start}, sent_[activity] = Picoseconds{end};
      ++activity;
    }
    finished_ += who.doers;
    tell(row, sent);
    if (remembered && last > 0) {
      on_memory_.push_back({i, first, last});
      known_[i].beside = true;
    }
    return true;
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
  std::vector<Picoseconds> row_start_, row_sent_;  // of the present row, per local node
  std::int64_t last_ = 0, finished_ = 0;
  bool interrupted_ = false, told_ = false;  // told_: the reader has all rows
  std::vector<Picoseconds> start_, sent_;
};

}  // namespace

}  // namespace max_plus

std::optional<Timeline> run_max_plus(const Model& model, const RunControl& control) {
  auto rows = max_plus::order_rows(model);
  if (!rows) return std::nullopt;
  return max_plus::Pass{model, control, *std::move(rows)}.run();
}

}  // namespace podsim
