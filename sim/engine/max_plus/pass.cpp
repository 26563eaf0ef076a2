#include "sim/engine/max_plus/pass.hpp"

#include <algorithm>

#include "sim/engine/max_plus/sum.hpp"

namespace podsim::max_plus {

namespace {

constexpr std::int64_t instances_between_reports = 1 << 18;

}  // namespace

Pass::Pass(const Model& model, const RunControl& control, const MeetingLimits& limits, const RowGraph& graph)
    : model_{model}, control_{control}, limits_{limits}, graph_{graph}, rates_{model}, timings_{model, rates_}, links_{rates_}, memories_{model, rates_} {
  if (control.record) record();
  is_hot_.assign(model.links.size(), false);
  std::vector<bool> used(model.links.size(), false);
  for (const PathLink& on : rates_.path_links) used[on.link] = !model.links[on.link].is_memory;
  if (model.deployment.activities() >= limits.fewest_activities)
    most_hot_links_ = static_cast<std::size_t>(limits.links * static_cast<double>(std::count(used.begin(), used.end(), true)));
  crossing_rows_.push_back(0);
  for (std::uint32_t path = 0; path < model.paths.size(); ++path) {
    for (const PathLink& on : rates_.links_of(path))
      if (!model.links[on.link].is_memory) crossings_.push_back({on.link, rates_.path_rate[path] * on.weight});
    crossing_rows_.push_back(static_cast<std::uint32_t>(crossings_.size()));
  }
  use(graph.order());
}

void Pass::record() {
  const auto activities = static_cast<std::size_t>(model_.deployment.activities());
  start_.resize(activities, not_yet), sent_.resize(activities, not_yet);
}

/// From now on in this order.
void Pass::use(Rows rows) {
  rows_ = std::move(rows);
  forgotten_after_.assign(rows_.rows.size(), {});
  row_of_.assign(rows_.rows.size(), 0);
  for (std::uint32_t i = 0; i < rows_.rows.size(); ++i) {
    const Row& row = rows_.rows[i];
    forgotten_after_[row.last_use].push_back(i);
    row_of_[graph_.number(row.program, row.task)] = i;
  }
}

/// False: it gave up.
bool Pass::play() {
  last_ = finished_ = 0;
  played_ = 0;
  known_.assign(rows_.rows.size(), {});
  on_memory_.clear();
  memories_.forget();
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
      if (control_.progress) control_.progress(RunProgress{Picoseconds{hot_ ? safe_[unit.first] : last_}, finished_, model_.deployment.activities()});
      interrupted_ = control_.stop.requested();
    }
    interrupted_ |= !hot_ && Picoseconds{last_} > control_.limit;  // flows that meet would end later still
    if (interrupted_) return true;
    played_ = unit.end;
    if (!(unit.is_circle() ? play_circle(unit) : play_row(unit.first))) return false;
    if (hot_ && !correct(sum(safe_[unit.end], shift()))) return false;
    for (const std::uint32_t row : forgotten_after_[unit.end - 1]) {
      known_[row].asked_for = false;
      recycle(known_[row]);
    }
  }
  interrupted_ = !hot_ && Picoseconds{last_} > control_.limit;
  return true;
}

bool Pass::play_row(std::uint32_t i) {
  const Row& row = rows_.rows[i];
  const TaskCost& cost = cost_of(i);
  const Participants& who = who_of(i);
  const std::size_t nodes = model_.deployment.programs[row.program].devices.size();
  if (who.doers == 0 && who.receivers == 0) return true;
  if (cost.kind == TaskCost::Kind::receive) {
    gate(rows_.receive(row), nodes, known_[i].sent);
    take(known_[i].received, nodes);
    std::fill(known_[i].received.begin(), known_[i].received.end(), 0);
    return true;
  }
  gate(rows_.own(row), nodes, own_);
  if (cost.kind == TaskCost::Kind::work) {
    work(i);
    return true;
  }
  if (who.to_task.empty()) gate(rows_.receive(row), nodes, ready_);
  return transfer(i);
}

/// When everything that a gate waits for is there, per local node.
void Pass::gate(std::span<const Source> sources, std::size_t nodes, Times& ready) {
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

/// The same of one local node.
std::int64_t Pass::gate_at(std::span<const Source> sources, std::size_t l) const {
  std::int64_t ready = 0;
  for (const Source& source : sources) {
    const Times& times = source.received ? known_[source.row].received : known_[source.row].sent;
    if (!times.empty()) ready = std::max(ready, times[l]);
  }
  return ready;
}

/// `start`: room for the starts that the reader is told.
Pass::Works Pass::works_of(std::uint32_t i, bool slowed, std::vector<Picoseconds>& start) {
  const auto [program, task] = std::pair{rows_.rows[i].program, rows_.rows[i].task};
  const auto& of_program = model_.deployment.programs[program];
  const std::vector<Seconds>* shares = nullptr;
  if (!model_.core_shares.empty() && !model_.core_shares[program].behind[task].empty()) shares = &model_.core_shares[program].behind[task];
  take(known_[i].sent, of_program.devices.size());
  if (is_read()) start.resize(of_program.devices.size());
  return {cost_of(i), who_of(i), of_program, timings_.of_work(cost_of(i)), timings_.speed_classes(), shares, i, of_program.first_activity[task], slowed,
          known_[i].sent, is_read() ? start.data() : nullptr};
}

void Pass::work(std::uint32_t i) {
  const Works works = works_of(i, may_slow() && cost_of(i).memory_bytes > 0 && look_beside(i), row_start_);
  std::uint32_t activity = works.first_activity;
  for (std::size_t l = 0; l < works.sent.size(); ++l)
    if (works.who.to[l] == no_device)
      works.sent[l] = 0;
    else
      work_at(works, l, own_[l], activity++);
  finished_ += works.who.doers;
  tell_reader(i, row_start_, works.sent);
}

void Pass::work_at(const Works& works, std::size_t l, std::int64_t ready, std::uint32_t activity) {
  const std::uint32_t node = works.of_program.devices[l];
  const Timings::OfWork& time = works.times[works.speeds == nullptr ? 0 : works.speeds[node]];
  const std::int64_t start = works.cost.on_core ? std::max(ready, core_free_[node]) : ready;
  std::int64_t end = sum(start, time.whole());
  if (works.slowed && works_[l].alone > 0) {
    const std::int64_t slowed = memories_.end(works_[l], beside_[node]);
    if (hot_)
      told_until_[node] = std::max(told_until_[node], slowed);
    else
      memories_.tell(works_[l], slowed);
    end = sum(slowed, time.rest);
  }
  works.sent[l] = end;
  last_ = std::max(last_, end);
  if (works.cost.on_core) {
    core_free_[node] = end;
    if (hot_) last_on_core_[node] = core_position_[graph_.number(rows_.rows[works.row].program, rows_.rows[works.row].task)];
    if (works.shares != nullptr && (*works.shares)[l] != Seconds{}) {
      core_free_[node] = sum(end, ceil_to_clock((*works.shares)[l]).count());
      last_ = std::max(last_, core_free_[node]);
    }
  }
  if (!start_.empty()) start_[activity] = Picoseconds{start}, sent_[activity] = Picoseconds{end};
  if (works.start != nullptr) works.start[l] = Picoseconds{start};
}

/// The times of a row.
void Pass::tell_reader(std::uint32_t i, const std::vector<Picoseconds>& start, const Times& sent) {
  if (!is_read()) return;
  row_sent_.resize(sent.size());
  for (std::size_t l = 0; l < sent.size(); ++l) row_sent_[l] = Picoseconds{sent[l]};
  control_.reader->read(rows_.rows[i].program, rows_.rows[i].task, start, row_sent_);
}

/// Finds the works of a row that transfers may slow, into works_ (the others have no `alone`), and the transfers beside them. Whether there are any.
bool Pass::look_beside(std::uint32_t i) {
  const auto& of_program = model_.deployment.programs[rows_.rows[i].program];
  const TaskCost& cost = cost_of(i);
  const Participants& who = who_of(i);
  const Timings::OfWork* const times = timings_.of_work(cost);
  std::int64_t first = end_of_clock.count(), last = 0;
  works_.assign(of_program.devices.size(), {});
  begin_.assign(model_.nodes(), end_of_clock.count());
  latest_.assign(model_.nodes(), 0);
  for (std::size_t l = 0; l < works_.size(); ++l) {
    if (who.to[l] == no_device) continue;
    const std::uint32_t node = of_program.devices[l];
    const Timings::OfWork& time = times[speed_class(node)];
    if (time.flow <= 0) continue;
    const std::int64_t begin = sum(std::max(own_[l], core_free_[node]), time.launch);
    if (begin == unknown) continue;
    const MemoryUse::Work work{model_.memory_paths[node], cost.memory_bytes, time.flow, begin};
    const std::int64_t latest = memories_.latest_end(work);
    if (latest == sum(begin, time.flow)) continue;
    works_[l] = work;
    begin_[node] = begin;
    latest_[node] = latest;
    first = std::min(first, begin);
    last = std::max(last, latest);
  }
  if (last == 0) return false;
  if (!hot_) forget_flows();
  beside_.resize(model_.nodes());
  for (auto& flows : beside_) flows.clear();
  for (const OnMemory& flows : on_memory_)
    if (flows.end > first && flows.begin < last) find_beside(flows.row);
  return true;
}

void Pass::find_beside(std::uint32_t i) {
  const TaskCost& cost = cost_of(i);
  const Participants& who = who_of(i);
  const auto& of_program = model_.deployment.programs[rows_.rows[i].program];
  const Timings::OfTransfer* const times = timings_.of_transfer(cost);
  const std::vector<std::uint32_t>& paths = model_.routings[cost.routing];
  const std::uint32_t first_activity = of_program.first_activity[rows_.rows[i].task];
  for (std::size_t l = 0; l < paths.size(); ++l) {
    const std::uint32_t to = who.to[l];
    if (to == no_device) continue;
    const std::uint32_t from = of_program.devices[l], path = paths[l];
    const std::int64_t end = hot_ ? flow_end(first_activity + who.rank[l], path) : known_[i].sent[l];
    if (end == unknown || (end <= begin_[from] && end <= begin_[to])) continue;
    const std::int64_t begin = end - times[timings_.path_classes()[path]].flow;
    const bool hot = hot_ && hot_->on(path);  // at several rates
    if (!hot && begin >= latest_[from] && begin >= latest_[to]) continue;
    const auto links = rates_.links_of(path);
    if (links.empty()) continue;
    const auto add = [&](const PathLink& memory, std::uint32_t node) {
      if (!model_.links[memory.link].is_memory || end <= begin_[node]) return;
      if (hot)
        add_hot_beside(first_activity + who.rank[l], memory.weight, node);
      else if (begin < latest_[node])
        beside_[node].push_back({begin, end, rates_.path_rate[path] * memory.weight});
    };
    add(links.front(), from);
    if (links.size() > 1) add(links.back(), to);
  }
}

/// In a play that corrects: when the flow of a transfer ends, as far as is known.
std::int64_t Pass::flow_end(std::uint32_t activity, std::uint32_t path) const {
  if (!hot_->on(path)) return sent_[activity].count();
  const std::uint32_t number = hot_->of(activity);
  return number == no_device ? unknown : hot_->flow(number).end;
}

/// A hot flow takes more or less of a memory as its rate changes.
void Pass::add_hot_beside(std::uint32_t activity, std::int64_t weight, std::uint32_t node) {
  const std::uint32_t number = hot_->of(activity);
  const auto draws = hot_->draws(number);
  for (std::size_t d = 0; d < draws.size(); ++d)
    beside_[node].push_back({draws[d].since, d + 1 < draws.size() ? draws[d + 1].since : hot_->flow(number).end, draws[d].rate * weight});
}

/// Flows that are over before any core's next work begins are beside none.
void Pass::forget_flows() {
  const std::int64_t free = *std::min_element(core_free_.begin(), core_free_.end());
  std::erase_if(on_memory_, [&](const OnMemory& flows) {
    if (flows.end > free) return false;
    known_[flows.row].beside = false;
    recycle(known_[flows.row]);
    return true;
  });
}

/// `start`: room for the starts that the reader is told.
Pass::Transfers Pass::transfers_of(std::uint32_t i, std::vector<Picoseconds>& start) {
  const auto [program, task] = std::pair{rows_.rows[i].program, rows_.rows[i].task};
  const TaskCost& cost = cost_of(i);
  const auto& of_program = model_.deployment.programs[program];
  const bool channel = !who_of(i).to_task.empty();
  take(known_[i].sent, of_program.devices.size());
  if (is_read()) start.resize(of_program.devices.size());
  Transfers transfers{cost, who_of(i), of_program, model_.routings[cost.routing], timings_.path_classes(), timings_.of_transfer(cost), timings_.speed_classes(),
                      i, of_program.first_activity[task], channel, known_[i].sent, is_read() ? start.data() : nullptr};
  if (channel) return transfers;
  take(known_[i].received, of_program.devices.size());
  receive_at(transfers, i, program, task);
  return transfers;
}

/// From now on another row receives.
void Pass::receive_at(Transfers& transfers, std::uint32_t row, std::uint32_t program, std::uint32_t task) {
  transfers.receiving = row;
  transfers.received = &known_[row].received;
  transfers.reductions = timings_.of_reduction(model_.costs[program][task]);
}

bool Pass::transfer(std::uint32_t i) {
  Transfers transfers = transfers_of(i, row_start_);
  const Participants& who = transfers.who;
  if (!transfers.channel && who.receivers < transfers.sent.size()) std::fill(transfers.received->begin(), transfers.received->end(), 0);
  std::uint32_t activity = transfers.first_activity;
  for (std::size_t l = 0; l < transfers.sent.size(); ++l) {
    if (who.to[l] == no_device) {
      transfers.sent[l] = 0;
      continue;
    }
    const Deployment::Place& there = model_.deployment.places[who.to[l]];
    const std::int64_t receive_ready = transfers.channel ? receive_ready_at(transfers, l, there) : ready_[there.local];
    if (!transfer_at(transfers, l, there, std::max(own_[l], receive_ready), activity++)) return false;
  }
  finished_ += who.doers;
  tell_reader(i, row_start_, transfers.sent);
  remember(transfers);
  return true;
}

/// When the Recv of a Send is ready.
std::int64_t Pass::receive_ready_at(Transfers& transfers, std::size_t l, const Deployment::Place& there) {
  const std::uint32_t task = transfers.who.to_task[l];
  if (const std::uint32_t row = row_of(there.program, task); row != transfers.receiving) receive_at(transfers, row, there.program, task);
  return known_[transfers.receiving].sent[there.local];
}

bool Pass::transfer_at(Transfers& transfers, std::size_t l, const Deployment::Place& there, std::int64_t start, std::uint32_t activity) {
  const std::uint32_t path = transfers.paths[l], receiver = transfers.who.to[l];
  const Timings::OfTransfer& time = transfers.times[transfers.path_classes[path]];
  const std::int64_t begin = sum(start, time.delay);
  std::int64_t end = sum(begin, time.flow);
  if (time.flow > 0) {
    if (!hot_) {
      if (!cross(path, begin, end)) return false;
    } else if (hot_->on(path)) {
      const std::int64_t seen = sum(start_[activity].count(), time.delay);
      if (begin != unknown)
        begin_hot({transfers.row, static_cast<std::uint32_t>(l)}, begin, seen);
      else
        seen_begin_.emplace(activity, seen);
      end = unknown;  // until correct() comes to it
    } else if (may_slow() && begin != unknown) {
      for (const std::uint32_t node : {transfers.of_program.devices[l], receiver}) want_works(node, begin, end);
    }
    if (end != unknown) {
      transfers.first = std::min(transfers.first, begin);
      transfers.last = std::max(transfers.last, end);
    }
  }
  const std::int64_t reduced = sum(end, transfers.reductions[transfers.speeds == nullptr ? 0 : transfers.speeds[receiver]]);
  transfers.sent[l] = end;
  (*transfers.received)[there.local] = reduced;
  last_ = std::max(last_, reduced);
  if (!start_.empty()) start_[activity] = Picoseconds{start}, sent_[activity] = Picoseconds{end};
  if (transfers.start != nullptr) transfers.start[l] = Picoseconds{start};
  return true;
}

/// The flows of a row may be beside works to come.
void Pass::remember(const Transfers& transfers) {
  if (!may_slow() || (hot_ ? transfers.cost.flow_bytes == 0 : transfers.last == 0)) return;
  if (hot_) on_memory_of_[transfers.row] = static_cast<std::uint32_t>(on_memory_.size());
  on_memory_.push_back({transfers.row, transfers.first, transfers.last});
  known_[transfers.row].beside = !hot_;  // later plays look in the timeline
}

/// Rows that wait for each other, instance by instance.
bool Pass::play_circle(const Unit& unit) {
  std::vector<std::optional<Works>> works(unit.end - unit.first);
  std::vector<std::optional<Transfers>> transfers(works.size());
  std::vector<std::vector<Picoseconds>> starts(works.size());
  for (std::uint32_t i = unit.first; i < unit.end; ++i) {
    const TaskCost& cost = cost_of(i);
    const std::size_t nodes = model_.deployment.programs[rows_.rows[i].program].devices.size();
    if (cost.kind == TaskCost::Kind::work) {
      if (may_slow() && cost.memory_bytes > 0) return false;  // looked for only beside whole rows
      works[i - unit.first].emplace(works_of(i, false, starts[i - unit.first]));
    } else if (cost.kind == TaskCost::Kind::transfer) {
      transfers[i - unit.first].emplace(transfers_of(i, starts[i - unit.first]));
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
      if (!transfer_at(at, local, there, std::max(gate_at(rows_.own(row), local), receive_ready), at.first_activity + at.who.rank[local])) return false;
    } else {
      known_[unit.first + r].sent[local] = gate_at(rows_.receive(row), local);
    }
  }
  for (std::uint32_t i = unit.first; i < unit.end; ++i) {
    finished_ += who_of(i).doers;
    if (who_of(i).doers > 0) tell_reader(i, starts[i - unit.first], known_[i].sent);
    if (transfers[i - unit.first]) remember(*transfers[i - unit.first]);
  }
  return true;
}

/// A flow of the first play. False: too much meets, or something does and no timeline is kept.
bool Pass::cross(std::uint32_t path, std::int64_t begin, std::int64_t end) {
  if (alone_) return true;
  for (const Crossing* on = crossings_.data() + crossing_rows_[path]; on != crossings_.data() + crossing_rows_[path + 1]; ++on) {
    if (hot_links_ > 0 && is_hot_[on->link]) continue;
    if (!links_.cross(on->link, on->draw, begin, end) && (!heat(on->link) || start_.empty())) return false;
  }
  if (!may_slow()) return true;
  for (const PathLink& on : rates_.links_of(path))
    if (model_.links[on.link].is_memory && !memories_.cross(on.link, begin, end)) {
      met_ = true;
      if (most_hot_links_ == 0 || start_.empty()) return false;
    }
  return true;
}

/// Flows do not fit this link. False: these are too many.
bool Pass::heat(std::uint32_t link) {
  met_ = true;
  is_hot_[link] = true;
  return ++hot_links_ <= most_hot_links_;
}

/// Makes room for the times of `nodes` nodes, from what earlier rows no longer need.
void Pass::take(Times& times, std::size_t nodes) {
  if (times.size() == nodes) return;
  if (times.empty() && !spare_.empty()) {
    times = std::move(spare_.back());
    spare_.pop_back();
  }
  times.resize(nodes);
}

void Pass::recycle(Known& known) {
  if (known.asked_for || known.beside) return;
  for (Times* times : {&known.sent, &known.received})
    if (times->capacity() > 0) {
      spare_.push_back(std::move(*times));
      times->clear();
    }
}

}  // namespace podsim::max_plus
