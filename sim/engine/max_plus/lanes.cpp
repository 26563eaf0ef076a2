#include "sim/engine/max_plus/lanes.hpp"

#include <algorithm>
#include <array>

#include "sim/base/invariant.hpp"
#include "sim/base/thread_pool.hpp"
#include "sim/engine/max_plus/lane_certificate.hpp"
#include "sim/engine/max_plus/lane_memory.hpp"
#include "sim/engine/max_plus/lane_timings.hpp"
#include "sim/engine/max_plus/rows.hpp"
#include "sim/engine/reductions.hpp"
#include "sim/model/recost.hpp"

namespace podsim {

namespace max_plus {

namespace {

using LaneArray = std::vector<Lanes>;
constexpr Picoseconds not_played{-1};

/// Up to lane_count models side by side. A set of lanes is a word of bits.
class LanePass {
 public:
  /// `spare`: arrays of times that earlier passes left, and where this one leaves its own.
  LanePass(std::span<const Model* const> models, const RunControl& control, std::span<TimesReader* const> readers, const Rows& rows, std::vector<LaneArray>& spare)
      : models_{models}, model_{*models.front()}, control_{control}, readers_{readers}, rows_{rows}, timings_{models}, placed_{model_, rates(), rows}, spare_{spare} {
    for (std::size_t i = 0; i < rows_.rows.size(); ++i) {
      const std::uint32_t last = rows_.rows[i].last_use;
      if (last >= forgotten_after_.size()) forgotten_after_.resize(last + 1);
      forgotten_after_[last].push_back(static_cast<std::uint32_t>(i));
    }
    if (!control.record) return;
    const auto activities = static_cast<std::size_t>(model_.deployment.activities());
    for (std::size_t k = 0; k < models.size(); ++k) start_[k].assign(activities, not_played), sent_[k].assign(activities, not_played);
  }

  std::vector<std::optional<Timeline>> run() {
    std::vector<const LinkRates*> rates;
    for (const LinkRates& each : timings_.rates()) rates.push_back(&each);
    LaneCertificate links{rates, placed_.links};
    links_ = &links;
    const std::uint32_t all = (1U << models_.size()) - 1;
    for (std::size_t k = 1; k < models_.size(); ++k)
      if (rates[k]->path_rows != rates[0]->path_rows) met_ |= 1U << k;  // other links are limited
    play(all);
    if ((links.with_suspects() & ~met_) != 0 && !stopped_) {
      readers_ = {};
      links.begin_collecting(std::max<std::size_t>(std::size_t{1} << 20, static_cast<std::size_t>(finished_)) / models_.size());
      play(all);
      for (std::size_t k = 0; k < models_.size(); ++k)
        if (((links.with_suspects() & ~met_) >> k & 1U) != 0 && !links.all_fit(k)) met_ |= 1U << k;
    }
    for (Known& known : known_) keep(known);
    std::vector<std::optional<Timeline>> results(models_.size());
    for (std::size_t k = 0; k < models_.size(); ++k)
      if ((met_ >> k & 1U) == 0) results[k] = timeline_of(k);
    return results;
  }

 private:
  /// What later rows ask of a row, as in the pass of one model.
  struct Known {
    LaneArray sent, received;
    bool asked_for = true, beside = false;
  };
  /// A row of transfers that may be beside works to come.
  struct OnMemory {
    std::uint32_t row = 0;
    Lanes begin, end;  // of the first and the last flow
  };
  /// What is asked of such a row when ends of works are found.
  struct RowBeside {
    std::uint32_t program;
    const Participants* who;
    const std::uint32_t* paths;
    const Lanes* sent;
    std::vector<LaneTimings::OfTransfer> times;  // by class of the path
  };

  Timeline timeline_of(std::size_t k) {
    Timeline timeline;
    if (control_.record) timeline = Timeline{std::move(start_[k]), std::move(sent_[k]), reductions_of(*models_[k])};
    timeline.makespan = Picoseconds{last_.whole(k)};
    timeline.pass = "max-plus";
    timeline.finished = finished_;
    timeline.interrupted = stopped_ || timeline.makespan > control_.limit;
    return timeline;
  }

  /// From the start, until all lanes of `all` have met_.
  void play(std::uint32_t all) {
    LaneMemory memory{models_, timings_.rates()};
    memory_ = &memory;
    met_ |= memory.left_out();
    finished_ = 0;
    last_ = {};
    for (Known& known : known_) keep(known);
    known_.assign(rows_.rows.size(), {});
    on_memory_.clear();
    core_free_.assign(model_.nodes(), {});
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t l = 0; l < model_.deployment.programs[p].devices.size(); ++l) {
        Lanes& core = core_free_[model_.deployment.programs[p].devices[l]];
        for (std::size_t k = 0; k < models_.size(); ++k) core.set(k, on_clock(models_[k]->shares_first(p, l)));
        last_ = max_of(last_, core);
      }
    for (std::uint32_t i = 0; i < rows_.rows.size() && (all & ~met_) != 0 && !stopped_; ++i) {
      play_row(i);
      tell_readers(i);
      for (const std::uint32_t row : forgotten_after_[i]) {
        known_[row].asked_for = false;
        recycle(known_[row]);
      }
      for (std::size_t k = 0; k < models_.size(); ++k)
        if (last_[k] >= exact_below) met_ |= 1U << k;
      stopped_ = control_.stop.requested();
    }
  }

  void play_row(std::uint32_t i) {
    const Row& row = rows_.rows[i];
    if (!readers_.empty()) row_start_.resize(model_.deployment.programs[row.program].devices.size());
    const TaskCost& cost = model_.costs[row.program][row.task];
    const Participants& who = model_.deployment.who(row.program, row.task);
    const std::size_t nodes = model_.deployment.programs[row.program].devices.size();
    if (who.doers == 0 && who.receivers == 0) return;
    if (cost.kind == TaskCost::Kind::receive) {
      gate(rows_.receive(row), nodes, known_[i].sent);
      take(known_[i].received, nodes);
      std::fill(known_[i].received.begin(), known_[i].received.end(), Lanes{});
      return;
    }
    gate(rows_.own(row), nodes, own_);
    if (cost.kind == TaskCost::Kind::work) return work(i, row, cost, who);
    if (!who.to_task.empty()) return send(i, row, cost, who);
    const bool one_gate = same_sources(rows_.own(row), rows_.receive(row));
    if (!one_gate) gate(rows_.receive(row), nodes, ready_);
    transfer(i, row, cost, who, one_gate ? own_ : ready_);
  }

  static bool same_sources(std::span<const Source> one, std::span<const Source> other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const Source& a, const Source& b) { return a.row == b.row && a.received == b.received; });
  }

  /// When everything that a gate waits for is there, per local node.
  void gate(std::span<const Source> sources, std::size_t nodes, LaneArray& ready) {
    take(ready, nodes);
    asked_.clear();
    for (const Source& source : sources) {
      const Known& known = known_[source.row];
      const LaneArray& times = source.received ? known.received : known.sent;
      if (!times.empty()) asked_.push_back(times.data());  // else absent everywhere
    }
    if (asked_.empty()) std::fill(ready.begin(), ready.end(), Lanes{});
    if (asked_.size() == 1) std::copy(asked_[0], asked_[0] + nodes, ready.begin());
    // Two at a time: what is written is read again only where there are more.
    for (std::size_t s = 1; s < asked_.size(); ++s) {
      const Lanes *const one = s == 1 ? asked_[0] : ready.data(), *const other = asked_[s];
      for (std::size_t l = 0; l < nodes; ++l) ready[l] = max_of(one[l], other[l]);
    }
  }

  void work(std::uint32_t i, const Row& row, const TaskCost& cost, const Participants& who) {
    const auto& of_program = model_.deployment.programs[row.program];
    const std::size_t nodes = of_program.devices.size();
    const LaneArray durations = timings_.work(row.program, row.task);
    std::array<const std::vector<Seconds>*, lane_count> shares{};
    bool any_shares = false;
    for (std::size_t k = 0; k < models_.size(); ++k) {
      if (models_[k]->core_shares.empty() || models_[k]->core_shares[row.program].behind[row.task].empty()) continue;
      shares[k] = &models_[k]->core_shares[row.program].behind[row.task];
      any_shares = true;
    }
    const bool slowed = (memory_->may_slow() & ~met_) != 0 && look_beside(row, who);
    LaneArray& sent = known_[i].sent;
    take(sent, nodes);
    std::uint32_t activity = of_program.first_activity[row.task];
    for (std::size_t l = 0; l < nodes; ++l) {
      if (who.to[l] == no_device) {
        sent[l] = {};
        continue;
      }
      const std::uint32_t node = of_program.devices[l];
      const Lanes start = cost.on_core ? max_of(own_[l], core_free_[node]) : own_[l];
      Lanes end = start + durations[timings_.node_class(node)];
      if (slowed) end_slowed(node, end);
      sent[l] = end;
      last_ = max_of(last_, end);
      if (cost.on_core) {
        if (any_shares)
          for (std::size_t k = 0; k < models_.size(); ++k)
            if (shares[k] != nullptr) end.set(k, end[k] + on_clock((*shares[k])[l]));
        core_free_[node] = end;
        last_ = max_of(last_, end);
      }
      record(l, activity++, start, sent[l]);
    }
    finished_ += who.doers;
  }

  /// Finds the works of a row that transfers may slow, and the rows of transfers that may be beside them. Whether there are any.
  bool look_beside(const Row& row, const Participants& who) {
    const auto& of_program = model_.deployment.programs[row.program];
    memory_->begin_row();
    for (std::size_t k = 0; k < models_.size(); ++k) {
      const bool draws = ((memory_->may_slow() & ~met_) >> k & 1U) != 0 && models_[k]->costs[row.program][row.task].memory_bytes > 0;
      works_[k] = draws ? timings_.phases(k, row.program, row.task) : nullptr;
    }
    if (std::all_of(works_.begin(), works_.end(), [](const auto* times) { return times == nullptr; })) return false;
    for (std::size_t l = 0; l < of_program.devices.size(); ++l) {
      if (who.to[l] == no_device) continue;
      const std::uint32_t node = of_program.devices[l];
      const Lanes start = max_of(own_[l], core_free_[node]);
      for (std::size_t k = 0; k < models_.size(); ++k) {
        if (works_[k] == nullptr) continue;
        const Timings::OfWork& time = works_[k][timings_.class_in(k, node)];
        if (time.flow > 0) memory_->add(node, k, {model_.memory_paths[node], models_[k]->costs[row.program][row.task].memory_bytes, time.flow, start.whole(k) + time.launch});
      }
    }
    if (!memory_->any()) return false;
    forget_flows();
    beside_.clear();
    for (const OnMemory& flows : on_memory_) {
      if (!any_overlap(flows.begin, flows.end, memory_->first(), memory_->last())) continue;
      const Row& other = rows_.rows[flows.row];
      beside_.push_back({other.program, &model_.deployment.who(other.program, other.task), model_.routings[model_.costs[other.program][other.task].routing].data(),
                         known_[flows.row].sent.data(), timings_.transfer(other.program, other.task)});
    }
    return true;
  }

  /// The flows of rows that may be beside works, with one of their ends at a node. Shifts stay within their program.
  void see_flows(std::uint32_t node) {
    const Deployment::Place& place = model_.deployment.places[node];
    for (const RowBeside& row : beside_) {
      if (row.program != place.program) continue;
      const auto see = [&](std::uint32_t sender, bool leaves) {
        const std::uint32_t path = row.paths[sender];
        const auto links = rates().links_of(path);
        if (links.empty() || (!leaves && links.size() == 1)) return;
        const PathLink& link = leaves ? links.front() : links.back();
        if (!memory_->is_memory(link.link)) return;
        const Lanes& end = row.sent[sender];
        memory_->see(node, path, link.weight, end - row.times[timings_.path_class(path)].flow, end);
      };
      if (row.who->does(place.local)) see(place.local, true);
      if (row.who->receives(place.local)) see(model_.deployment.places[row.who->from[place.local]].local, false);
    }
  }

  void end_slowed(std::uint32_t node, Lanes& end) {
    if (!memory_->any_at(node)) return;
    see_flows(node);
    for (std::size_t k = 0; k < models_.size(); ++k) {
      if (works_[k] == nullptr) continue;
      if (const std::int64_t drawn = memory_->end(node, k); drawn > 0)
        end.set(k, static_cast<double>(later(Picoseconds{drawn}, Picoseconds{works_[k][timings_.class_in(k, node)].rest}).count()));
    }
  }

  /// Flows that are over before any core's next work begins, in every lane, are beside none.
  void forget_flows() {
    Lanes free = core_free_.front();
    for (const Lanes& core : core_free_) free = min_of(free, core);
    std::erase_if(on_memory_, [&](const OnMemory& flows) {
      if (any_less(free, flows.end)) return false;
      known_[flows.row].beside = false;
      recycle(known_[flows.row]);
      return true;
    });
  }

  void transfer(std::uint32_t i, const Row& row, const TaskCost& cost, const Participants& who, const LaneArray& ready) {
    const auto& of_program = model_.deployment.programs[row.program];
    const std::size_t nodes = of_program.devices.size();
    const bool flows = cost.flow_bytes > 0, remembered = flows && (memory_->may_slow() & ~met_) != 0;
    const auto times = timings_.transfer(row.program, row.task);
    const LaneArray reductions = timings_.reduction(row.program, row.task);
    Known& known = known_[i];
    take(known.sent, nodes);
    take(known.received, nodes);
    if (who.receivers < nodes) std::fill(known.received.begin(), known.received.end(), Lanes{});
    const std::uint32_t *const to = who.to.data(), *const paths = model_.routings[cost.routing].data();
    const Deployment::Place* const places = model_.deployment.places.data();
    Lanes *const sent = known.sent.data(), *const received = known.received.data();
    Lanes first = all_lanes(exact_below), last, latest = last_;
    std::uint32_t activity = of_program.first_activity[row.task];
    for (std::size_t l = 0; l < nodes; ++l) {
      const std::uint32_t receiver = to[l];
      if (receiver == no_device) {
        sent[l] = {};
        continue;
      }
      const std::uint32_t there = places[receiver].local;
      const Lanes start = max_of(own_[l], ready[there]);
      const LaneTimings::OfTransfer& time = times[timings_.path_class(paths[l])];
      const Lanes begin = start + time.delay, end = begin + time.flow;
      if (flows && time.flow[0] > 0) {
        cross(paths[l], begin, end);
        if (remembered) first = min_of(first, begin), last = max_of(last, end);
      }
      sent[l] = end;
      const Lanes reduced = end + reductions[timings_.node_class(receiver)];
      received[there] = reduced;
      latest = max_of(latest, reduced);
      record(l, activity++, start, end);
    }
    last_ = latest;
    finished_ += who.doers;
    if (!(last[0] > 0)) return;
    on_memory_.push_back({i, first, last});
    known.beside = true;
  }

  /// Each receiver has a task of its own.
  void send(std::uint32_t i, const Row& row, const TaskCost& cost, const Participants& who) {
    const auto& of_program = model_.deployment.programs[row.program];
    const std::size_t nodes = of_program.devices.size();
    const std::vector<std::uint32_t>& paths = model_.routings[cost.routing];
    if (cost.flow_bytes > 0) met_ |= memory_->may_slow();  // nobody remembers its flows
    const auto times = timings_.transfer(row.program, row.task);
    LaneArray reductions;
    std::uint32_t receiving_row = no_device;
    LaneArray& sent = known_[i].sent;
    take(sent, nodes);
    std::uint32_t activity = of_program.first_activity[row.task];
    for (std::size_t l = 0; l < nodes; ++l) {
      const std::uint32_t receiver = who.to[l];
      if (receiver == no_device) {
        sent[l] = {};
        continue;
      }
      const Deployment::Place& there = model_.deployment.places[receiver];
      if (const std::uint32_t other = row_of(there.program, who.to_task[l]); other != receiving_row) {
        receiving_row = other;
        reductions = timings_.reduction(there.program, who.to_task[l]);
      }
      Known& receiving = known_[receiving_row];
      const Lanes start = max_of(own_[l], receiving.sent[there.local]);
      const LaneTimings::OfTransfer& time = times[timings_.path_class(paths[l])];
      const Lanes begin = start + time.delay, end = begin + time.flow;
      if (time.flow[0] > 0) cross(paths[l], begin, end);
      sent[l] = end;
      receiving.received[there.local] = end + reductions[timings_.node_class(receiver)];
      last_ = max_of(last_, receiving.received[there.local]);
      record(l, activity++, start, end);
    }
    finished_ += who.doers;
  }

  /// The flows of a path. Nearly all of them find their links free and no work that they could have slowed: that takes one branch for all lanes and links.
  [[gnu::always_inline]] void cross(std::uint32_t path, const Lanes& begin, const Lanes& end) {
    const auto [first, last] = placed_.between_memories[path];
    TwoFlags early = memory_->early(begin);
    for (std::uint32_t i = first; i < last; ++i) early |= links_->early(placed_.on_path[i].link, begin);
    if (any(early) || links_->collecting()) cross_early(path, begin, end);
    for (std::uint32_t i = first; i < last; ++i) links_->take(placed_.on_path[i].link, end);
  }

  void cross_early(std::uint32_t path, Lanes begin, Lanes end) {
    const std::vector<std::uint32_t>& rows = rates().path_rows;
    const auto [first, last] = placed_.between_memories[path];
    for (std::uint32_t i = rows[path]; i < rows[path + 1]; ++i)
      if (i < first || i >= last)
        memory_->cross_early(placed_.on_path[i].link, begin, end, met_);
      else if (links_->collecting() || any(links_->early(placed_.on_path[i].link, begin)))
        links_->cross_early(path, placed_.on_path[i], begin, end, met_);
  }

  void record(std::size_t local, std::uint32_t activity, const Lanes& start, const Lanes& sent) {
    if (!readers_.empty()) row_start_[local] = start;
    if (!control_.record) return;
    for (std::size_t k = 0; k < models_.size(); ++k) {
      start_[k][activity] = Picoseconds{start.whole(k)};
      sent_[k][activity] = Picoseconds{sent.whole(k)};
    }
  }

  void tell_readers(std::uint32_t i) {
    const Row& row = rows_.rows[i];
    if (readers_.empty() || model_.deployment.who(row.program, row.task).doers == 0) return;
    const LaneArray& sent = known_[i].sent;
    starts_.resize(sent.size()), ends_.resize(sent.size());
    for (std::size_t k = 0; k < models_.size(); ++k) {
      if ((met_ >> k & 1U) != 0) continue;
      for (std::size_t l = 0; l < sent.size(); ++l) starts_[l] = Picoseconds{row_start_[l].whole(k)}, ends_[l] = Picoseconds{sent[l].whole(k)};
      readers_[k]->read(row.program, row.task, starts_, ends_);
    }
  }

  /// Which links are limited, and what lies on which path, is the same in all lanes.
  [[nodiscard]] const LinkRates& rates() const { return timings_.rates().front(); }
  static double on_clock(Seconds time) { return static_cast<double>(ceil_to_clock(time).count()); }

  std::uint32_t row_of(std::uint32_t program, std::uint32_t task) {
    if (row_of_.empty()) {
      row_of_.resize(model_.costs.size());
      for (std::uint32_t p = 0; p < row_of_.size(); ++p) row_of_[p].resize(model_.costs[p].size());
      for (std::uint32_t r = 0; r < rows_.rows.size(); ++r) row_of_[rows_.rows[r].program][rows_.rows[r].task] = r;
    }
    return row_of_[program][task];
  }

  /// Makes room for the times of `nodes` nodes, from what earlier rows no longer need.
  void take(LaneArray& times, std::size_t nodes) {
    if (times.size() == nodes) return;
    if (times.empty() && !spare_.empty()) {
      times = std::move(spare_.back());
      spare_.pop_back();
    }
    times.resize(nodes);
  }
  void recycle(Known& known) {
    if (!known.asked_for && !known.beside) keep(known);
  }
  void keep(Known& known) {
    for (LaneArray* times : {&known.sent, &known.received})
      if (times->capacity() > 0) {
        spare_.push_back(std::move(*times));
        times->clear();
      }
  }

  std::span<const Model* const> models_;
  const Model& model_;  // the first: what they share is read from it
  const RunControl& control_;
  std::span<TimesReader* const> readers_;  // of each lane; empty: none, or all was told
  const Rows& rows_;
  LaneTimings timings_;
  PlacedLinks placed_;
  LaneCertificate* links_ = nullptr;
  LaneMemory* memory_ = nullptr;
  std::uint32_t met_ = 0;  // lanes that are left to be played alone
  std::vector<Known> known_;                                 // per row
  std::vector<std::vector<std::uint32_t>> forgotten_after_;  // per row, the rows that nobody asks for after it
  std::vector<std::vector<std::uint32_t>> row_of_;           // [program][task]; made when a Send asks
  LaneArray own_, ready_;                                        // of the present row
  std::vector<const Lanes*> asked_;
  std::array<const Timings::OfWork*, lane_count> works_{};  // of the present row, in lanes whose works transfers may slow
  std::vector<LaneArray>& spare_;
  LaneArray core_free_;  // per node
  std::vector<OnMemory> on_memory_;
  std::vector<RowBeside> beside_;  // the present row of works
  Lanes last_;
  std::int64_t finished_ = 0;
  bool stopped_ = false;
  std::array<std::vector<Picoseconds>, lane_count> start_, sent_;
  LaneArray row_start_;                    // of the present row, for readers
  std::vector<Picoseconds> starts_, ends_;  // of one lane
};

}  // namespace

}  // namespace max_plus

std::vector<std::optional<Timeline>> run_max_plus_lanes(std::span<const Model* const> models, const RunControl& control, std::span<TimesReader* const> readers,
                                                        int threads) {
  std::vector<std::optional<Timeline>> results(models.size());
  if (models.empty()) return results;
  for (const Model* model : models) PODSIM_ASSERT(!model->folded() && differ_in_costs_only(*model, *models.front()));
  const max_plus::RowGraph graph{*models.front()};
  if (!graph.has_order()) return results;
  const max_plus::Rows rows = graph.order();
  if (std::any_of(rows.units.begin(), rows.units.end(), [](const max_plus::Unit& unit) { return unit.is_circle(); })) return results;
  const std::size_t blocks = (models.size() + max_plus::lane_count - 1) / max_plus::lane_count;
  ThreadPool pool{threads};
  std::vector<std::vector<max_plus::LaneArray>> spare(pool.threads());
  pool.for_each(blocks, [&](std::size_t block, std::size_t thread) {
    const std::size_t first = block * max_plus::lane_count, count = std::min(max_plus::lane_count, models.size() - first);
    const auto reading = readers.empty() ? readers : readers.subspan(first, count);
    auto found = max_plus::LanePass{models.subspan(first, count), control, reading, rows, spare[thread]}.run();
    std::move(found.begin(), found.end(), results.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return results;
}

}  // namespace podsim
