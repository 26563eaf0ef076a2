#include <algorithm>

#include "sim/engine/max_plus/pass.hpp"
#include "sim/engine/max_plus/sum.hpp"

namespace podsim::max_plus {

namespace {

constexpr std::size_t shifts_kept = 32;

}  // namespace

/// Before a play that corrects.
void Pass::begin_correcting() {
  corrected_ = 0;
  wanted_ = {};
  ending_ = {};
  has_ended_.clear();
  seen_begin_.clear();
  shifts_.clear();
  safe_.assign(rows_.rows.size() + 1, unknown);
  for (std::size_t i = rows_.rows.size(); i-- > 0;) safe_[i] = std::min(safe_[i + 1], hot_begin_[graph_.number(rows_.rows[i].program, rows_.rows[i].task)]);
  followers_.assign(2 * rows_.rows.size(), {});
  for (std::uint32_t i = 0; i < rows_.rows.size(); ++i)
    for (const auto& [sources, receive] : {std::pair{rows_.own(rows_.rows[i]), false}, std::pair{rows_.receive(rows_.rows[i]), true}})
      for (const Source& source : sources) followers_[2 * source.row + (source.received ? 1 : 0)].push_back({i, receive});
  on_memory_of_.assign(rows_.rows.size(), no_device);
  beside_.resize(model_.nodes());
  told_until_.assign(model_.nodes(), 0);
  last_on_core_.assign(model_.nodes(), no_device);
  core_.assign(model_.costs.size(), {});
  core_position_.assign(rows_.rows.size(), no_device);
  for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
    for (std::uint32_t t = 0; t < model_.costs[p].size(); ++t)
      if (model_.costs[p][t].on_core) {
        core_position_[graph_.number(p, t)] = static_cast<std::uint32_t>(core_[p].size());
        core_[p].push_back(t);
      }
}

void Pass::begin_hot(const Place& at, std::int64_t begin, std::int64_t seen) {
  const Row& row = rows_.rows[at.row];
  const TaskCost& cost = cost_of(at.row);
  hot_->add({model_.deployment.activity(row.program, row.task, at.local), at.row, at.local, model_.routings[cost.routing][at.local], cost.flow_bytes, begin, unknown});
  has_ended_.push_back(false);
  shifts_.push_back(begin - seen);
  if (shifts_.size() > shifts_kept) shifts_.pop_front();
}

/// By how much hot flows begin later now than the last play saw.
std::int64_t Pass::shift() const { return shifts_.empty() ? 0 : std::max<std::int64_t>(0, *std::min_element(shifts_.begin(), shifts_.end())); }

/// Evaluates what follows from hot flows that end by `safe`, and again what follows from times that changed. False: that is too much.
bool Pass::correct(std::int64_t safe) {
  const auto most = static_cast<std::int64_t>(limits_.corrections * static_cast<double>(model_.deployment.activities()));
  do {
    while (!wanted_.empty()) {
      const Place at = wanted_.top();
      while (!wanted_.empty() && wanted_.top() == at) wanted_.pop();
      if (cost_of(at.row).kind == TaskCost::Kind::work)
        evaluate_work(at);
      else
        evaluate_transfer(at);
      if (++corrected_ > most) return false;
    }
    settle();
  } while (!wanted_.empty() || end_next(safe));
  return true;
}

/// Hot flows at their rates.
void Pass::settle() {
  for (const HotFlows::Change& change : hot_->settle()) {
    const HotFlows::Flow& flow = hot_->flow(change.number);
    if (on_memory_of_[flow.row] != no_device) {
      OnMemory& range = on_memory_[on_memory_of_[flow.row]];
      range.begin = std::min(range.begin, change.begin);
      range.end = std::max(range.end, change.end);
    }
    want_works_beside({flow.row, flow.local}, change.begin, change.end);
    if (has_ended_[change.number])
      set({flow.row, flow.local}, start_[flow.activity].count(), flow.end);
    else
      ending_.emplace(flow.end, change.number);
  }
}

/// The hot flows that end next, in one picosecond. False: there are none by `safe`.
bool Pass::end_next(std::int64_t safe) {
  bool any = false;
  for (std::int64_t now = safe; !ending_.empty() && ending_.top().first <= now;) {
    const auto [end, number] = ending_.top();
    ending_.pop();
    const HotFlows::Flow& flow = hot_->flow(number);
    if (has_ended_[number] || flow.end != end) continue;
    has_ended_[number] = true;
    set({flow.row, flow.local}, start_[flow.activity].count(), end);
    any = true;
    now = end;
  }
  return any;
}

void Pass::evaluate_work(const Place& at) {
  const Row& row = rows_.rows[at.row];
  const TaskCost& cost = cost_of(at.row);
  const std::uint32_t node = model_.deployment.programs[row.program].devices[at.local];
  const Timings::OfWork& time = timings_.of_work(cost)[speed_class(node)];
  std::int64_t start = gate_then(rows_.own(row), row.program, at.local);
  if (cost.on_core) start = std::max(start, core_free_then(row.program, row.task, at.local));
  std::int64_t end = sum(start, time.whole());
  if (may_slow() && cost.memory_bytes > 0 && time.flow > 0 && end != unknown) {
    const std::int64_t begin = sum(start, time.launch);
    const MemoryUse::Work work{model_.memory_paths[node], cost.memory_bytes, time.flow, begin};
    if (const std::int64_t latest = memories_.latest_end(work); latest != sum(begin, time.flow)) {
      find_beside_node(node, begin, latest);
      const std::int64_t slowed = memories_.end(work, beside_[node]);
      told_until_[node] = std::max(told_until_[node], slowed);
      end = sum(slowed, time.rest);
    }
  }
  set(at, start, end);
}

void Pass::evaluate_transfer(const Place& at) {
  const Row& row = rows_.rows[at.row];
  const Participants& who = who_of(at.row);
  const Deployment::Place& there = model_.deployment.places[who.to[at.local]];
  const Row& receiving = who.to_task.empty() ? row : rows_.rows[row_of(there.program, who.to_task[at.local])];
  const std::int64_t start = std::max(gate_then(rows_.own(row), row.program, at.local), gate_then(rows_.receive(receiving), there.program, there.local));
  const std::uint32_t path = model_.routings[cost_of(at.row).routing][at.local];
  const Timings::OfTransfer& time = timings_.of_transfer(cost_of(at.row))[timings_.path_classes()[path]];
  const std::int64_t begin = sum(start, time.delay);
  if (time.flow == 0 || !hot_->on(path)) {
    set(at, start, sum(begin, time.flow));
    return;
  }
  const std::uint32_t activity = model_.deployment.activity(row.program, row.task, at.local);
  if (start_[activity].count() == start) return;
  start_[activity] = Picoseconds{start};
  if (const std::uint32_t number = hot_->of(activity); number != no_device)
    hot_->move(number, begin);
  else
    begin_hot(at, begin, seen_begin_.at(activity));
}

/// The times of an instance. What waits for its end is told if that changes.
void Pass::set(const Place& at, std::int64_t start, std::int64_t end) {
  const Row& row = rows_.rows[at.row];
  const std::uint32_t activity = model_.deployment.activity(row.program, row.task, at.local);
  const std::int64_t before = sent_[activity].count();
  start_[activity] = Picoseconds{start};
  if (end == before) return;
  sent_[activity] = Picoseconds{end};
  if (Times& sent = known_[at.row].sent; !sent.empty()) sent[at.local] = end;
  tell(at.row, false, at.local);
  if (cost_of(at.row).kind == TaskCost::Kind::work) {
    if (cost_of(at.row).on_core) tell_core(at, end);
    return;
  }
  const Participants& who = who_of(at.row);
  const Deployment::Place& there = model_.deployment.places[who.to[at.local]];
  const std::uint32_t task = who.to_task.empty() ? row.task : who.to_task[at.local], receiving = row_of(there.program, task);
  if (Times& received = known_[receiving].received; !received.empty()) received[there.local] = received_then(there.program, task, there.local);
  tell(receiving, true, there.local);
  if (!may_slow() || on_memory_of_[at.row] == no_device) return;
  const std::uint32_t path = model_.routings[cost_of(at.row).routing][at.local];
  const std::int64_t flow = timings_.of_transfer(cost_of(at.row))[timings_.path_classes()[path]].flow;
  if (flow == 0 || hot_->on(path)) return;
  OnMemory& range = on_memory_[on_memory_of_[at.row]];
  range.begin = std::min(range.begin, end - flow);
  range.end = std::max(range.end, end);
  for (const std::int64_t until : {before, end})
    if (until != unknown) want_works_beside(at, until - flow, until);
}

/// To all gates of played rows that wait for this half on its device.
void Pass::tell(std::uint32_t source, bool received, std::uint32_t local) {
  for (const auto& [i, receive] : followers_[2 * source + (received ? 1 : 0)]) {
    if (i >= played_) continue;
    const Participants& who = who_of(i);
    if (!receive) {
      if (who.does(local)) wanted_.push({i, local});
      continue;
    }
    if (!who.receives(local)) continue;
    const Row& row = rows_.rows[i];
    const Deployment::Place& sender = model_.deployment.places[who.from[local]];
    if (cost_of(i).kind == TaskCost::Kind::receive)
      if (Times& ready = known_[i].sent; !ready.empty()) ready[local] = gate_then(rows_.receive(row), row.program, local);
    const std::uint32_t sending = who.from_task.empty() ? i : row_of(sender.program, who.from_task[local]);
    if (sending < played_) wanted_.push({sending, sender.local});
  }
}

/// To the next task of its core.
void Pass::tell_core(const Place& at, std::int64_t end) {
  const Row& row = rows_.rows[at.row];
  const auto& core = core_[row.program];
  for (std::size_t next = core_position_[graph_.number(row.program, row.task)] + 1; next < core.size(); ++next) {
    if (!model_.deployment.who(row.program, core[next]).does(at.local)) continue;
    if (const std::uint32_t i = row_of(row.program, core[next]); i < played_) {
      wanted_.push({i, at.local});
      return;
    }
    break;
  }
  core_free_[model_.deployment.programs[row.program].devices[at.local]] = sum(end, ceil_to_clock(model_.shares_behind(row.program, row.task, at.local)).count());
}

void Pass::want_works_beside(const Place& at, std::int64_t begin, std::int64_t end) {
  if (!may_slow()) return;
  want_works(model_.deployment.programs[rows_.rows[at.row].program].devices[at.local], begin, end);
  want_works(who_of(at.row).to[at.local], begin, end);
}

/// Works whose ends were told, and that a transfer slows, or did.
void Pass::want_works(std::uint32_t node, std::int64_t begin, std::int64_t end) {
  if (begin >= told_until_[node] || last_on_core_[node] == no_device) return;
  const auto& [program, local] = model_.deployment.places[node];
  for (std::size_t next = last_on_core_[node] + std::size_t{1}; next-- > 0;) {
    const std::uint32_t task = core_[program][next];
    if (!model_.deployment.who(program, task).does(local)) continue;
    if (sent_then(program, task, local) <= begin) break;
    if (model_.costs[program][task].memory_bytes > 0 && start_[model_.deployment.activity(program, task, local)].count() < end)
      wanted_.push({row_of(program, task), local});
  }
}

// ---- Times as they are in the timeline ------------------------------------------------------------------------------------------------

std::int64_t Pass::gate_then(std::span<const Source> sources, std::uint32_t program, std::uint32_t local) {
  std::int64_t ready = 0;
  for (const Source& source : sources) {
    const std::uint32_t task = rows_.rows[source.row].task;
    if (source.received)
      ready = std::max(ready, received_then(program, task, local));
    else if (model_.deployment.who(program, task).does(local))
      ready = std::max(ready, sent_then(program, task, local));
  }
  return ready;
}

std::int64_t Pass::received_then(std::uint32_t program, std::uint32_t task, std::uint32_t local) {
  const Participants& who = model_.deployment.who(program, task);
  if (!who.receives(local)) return 0;
  const Deployment::Place& sender = model_.deployment.places[who.from[local]];
  const std::int64_t sent = sent_then(sender.program, who.from_task.empty() ? task : who.from_task[local], sender.local);
  return sum(sent, timings_.of_reduction(model_.costs[program][task])[speed_class(model_.deployment.programs[program].devices[local])]);
}

/// When the core comes to a task.
std::int64_t Pass::core_free_then(std::uint32_t program, std::uint32_t task, std::uint32_t local) const {
  for (std::size_t next = core_position_[graph_.number(program, task)]; next-- > 0;) {
    const std::uint32_t before = core_[program][next];
    if (model_.deployment.who(program, before).does(local))
      return sum(sent_then(program, before, local), ceil_to_clock(model_.shares_behind(program, before, local)).count());
  }
  return ceil_to_clock(model_.shares_first(program, local)).count();
}

/// As look_beside(), for one node.
void Pass::find_beside_node(std::uint32_t node, std::int64_t begin, std::int64_t end) {
  beside_[node].clear();
  const auto& [program, local] = model_.deployment.places[node];
  for (const OnMemory& flows : on_memory_) {
    if (flows.end <= begin || flows.begin >= end) continue;
    const Row& row = rows_.rows[flows.row];
    const Participants& who = who_of(flows.row);
    const std::vector<std::uint32_t>& paths = model_.routings[cost_of(flows.row).routing];
    if (row.program == program && who.does(local))
      if (const auto links = rates_.links_of(paths[local]); !links.empty()) add_beside({flows.row, local}, links.front(), node, begin, end);
    const auto add_received = [&](std::uint32_t sender) {
      if (const auto links = rates_.links_of(paths[sender]); links.size() > 1) add_beside({flows.row, sender}, links.back(), node, begin, end);
    };
    if (!who.to_task.empty()) {
      for (std::uint32_t l = 0; l < paths.size(); ++l)
        if (who.to[l] == node) add_received(l);
    } else if (row.program == program && who.receives(local)) {
      add_received(model_.deployment.places[who.from[local]].local);
    }
  }
}

void Pass::add_beside(const Place& at, const PathLink& memory, std::uint32_t node, std::int64_t begin, std::int64_t end) {
  if (!model_.links[memory.link].is_memory) return;
  const Row& row = rows_.rows[at.row];
  const std::uint32_t activity = model_.deployment.activity(row.program, row.task, at.local), path = model_.routings[cost_of(at.row).routing][at.local];
  const std::int64_t sent = flow_end(activity, path), since = sent - timings_.of_transfer(cost_of(at.row))[timings_.path_classes()[path]].flow;
  if (sent == unknown || sent <= begin) return;
  if (hot_->on(path))
    add_hot_beside(activity, memory.weight, node);
  else if (since < end)
    beside_[node].push_back({since, sent, rates_.path_rate[path] * memory.weight});
}

}  // namespace podsim::max_plus
