#include "sim/engine/des/simulator.hpp"

#include <algorithm>

#include "sim/engine/reductions.hpp"

namespace podsim::des {

namespace {

constexpr Picoseconds not_yet{-1};
constexpr std::int64_t work_between_reports = 1 << 18;  // events, and flows that were given a rate: of thousands on the same links one event solves them all

}  // namespace

Simulator::Simulator(const Model& model, ProgramTables tables, bool record)
    : model_{model}, tables_{std::move(tables)}, sharing_{model}, record_{record} {
  activities_ = model.deployment.activities();
  for (const auto& [program, local] : model.deployment.places)
    places_.push_back({program == no_device ? nullptr : &tables_.programs[program], local});
  core_next_.assign(places_.size(), 0);
  if (record_) start_.assign(static_cast<std::size_t>(activities_), not_yet), sent_.assign(static_cast<std::size_t>(activities_), not_yet);
}

void Simulator::run(const RunControl& control) {
  if (control.limit < end_of_clock) count_rest(control.limit);
  begin();
  std::int64_t next_report = 0;
  for (;;) {
    while (queue_.due()) happen(queue_.take());
    if (!beginnings_.empty()) start_flows();
    sharing_.settle(now_, [&](std::uint32_t flow, std::int64_t end) { at(end, What::flow_over, 0, flow); });
    if (queue_.due()) continue;
    const std::int64_t work = events_ + sharing_.solved();
    if (work > control.most_work && !complete()) {
      interrupted_ = is_long_ = true;
      return;
    }
    if (work >= next_report) {
      next_report = work + work_between_reports;
      if (control.progress) control.progress(RunProgress{Picoseconds{now_}, finished_, activities_});
      if (control.stop.requested()) {
        interrupted_ = !complete();
        return;
      }
    }
    if (queue_.empty()) return;
    queue_.advance();
    now_ = queue_.now();
    if ((now_ > limit_ && !complete()) || beyond_limit_) {
      interrupted_ = true;
      return;
    }
  }
}

/// What the core of any node has yet to do from each of its tasks on: those that are present everywhere, at the speed of the fastest node.
void Simulator::count_rest(Picoseconds limit) {
  limit_ = limit.count();
  const double fastest = model_.speed.empty() ? 1 : *std::max_element(model_.speed.begin(), model_.speed.end());
  for (std::size_t p = 0; p < tables_.programs.size(); ++p) {
    const ProgramTable& program = tables_.programs[p];
    auto& rest = rest_.emplace_back(program.core.size() + 1, 0);
    for (std::size_t i = program.core.size(); i-- > 0;) {
      const TaskRow& row = program.tasks[program.core[i]];
      const bool counts = model_.deployment.who(static_cast<std::uint32_t>(p), program.core[i]).doers == program.nodes;
      const std::int64_t work = counts ? (model_.speed.empty() ? row.work : ceil_to_clock(row.work_seconds / fastest).count()) : 0;
      rest[i] = later(Picoseconds{rest[i + 1]}, Picoseconds{work}).count();
    }
  }
}

/// What waits for nothing starts at time zero; of a transfer, receive gates that wait for nothing are open from the beginning.
void Simulator::begin() {
  for (std::uint32_t node = 0; node < places_.size(); ++node) {
    const Place& place = places_[node];
    core_next_[node] = no_device;
    if (place.program != nullptr) work_off(node, place, place.program->shares_first);
  }
  for (std::size_t p = 0; p < tables_.programs.size(); ++p) {
    const ProgramTable& program = tables_.programs[p];
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
      const TaskRow& row = program.tasks[t];
      if (row.to == nullptr || row.on_core) continue;  // the core has come to its first task already
      for (std::uint32_t l = 0; l < program.nodes; ++l)
        if (tables_.own[row.counters + l] == 0) {
          const std::uint32_t node = model_.deployment.programs[p].devices[l];
          own_gate_opens(node, places_[node], t);
        }
    }
  }
}

inline void Simulator::at(std::int64_t time, What what, std::uint32_t task, std::uint32_t node) { queue_.push(time, Event{what, task, node}); }

inline void Simulator::happen(const Event& event) {
  ++events_;
  switch (event.what) {
    case What::done: done(event.node, event.task); break;
    case What::core_free:
      last_ = now_;
      reach_next(event.node, places_[event.node]);
      break;
    case What::delay_over: delay_over(event.node, event.task); break;
    case What::flow_over:
      if (sharing_.ends(event.node, now_)) {
        const LinkSharing::User user = sharing_.finish(event.node);
        flow_over(user.node, user.task);
      } else {
        --events_;  // announced for a rate that has changed since
      }
      break;
    case What::sent: sent(event.node, event.task); break;
    case What::received: received(event.node, event.task); break;
  }
}

inline void Simulator::done(std::uint32_t node, std::uint32_t task) {
  const Place& place = places_[node];
  ++finished_;
  last_ = now_;
  pass(node, place, task, 0);
  if (const TaskRow& row = place.program->tasks[task]; row.on_core) work_off(node, place, row.shares_behind);
}

inline void Simulator::flow_over(std::uint32_t node, std::uint32_t task) {
  const Place& place = places_[node];
  const TaskRow& row = place.program->tasks[task];
  if (row.kind != TaskCost::Kind::work) return sent(node, task);
  const Phases phases = phases_of(row, node);
  const Picoseconds end = later(Picoseconds{now_}, Picoseconds{phases.rest});
  if (record_) sent_[activity(place, task)] = end;
  if (phases.rest == 0)
    done(node, task);
  else
    at(end.count(), What::done, task, node);
}

/// The phases add up to the time that the work takes alone, rounded once.
inline Simulator::Phases Simulator::phases_of(const TaskRow& row, std::uint32_t node) const {
  if (model_.speed.empty() || !row.on_core) return {row.launch, row.work - row.launch - row.rest, row.rest};
  const auto on_clock = [&](Seconds time) { return ceil_to_clock(model_.at_speed(time, node)).count(); };
  const std::int64_t launch = on_clock(row.launch_seconds), rest = on_clock(row.rest_seconds);
  return {launch, on_clock(row.work_seconds) - launch - rest, rest};
}

/// The last of what the start of a work, or the send half of a transfer, waits for is there.
inline void Simulator::own_gate_opens(std::uint32_t node, const Place& place, std::uint32_t task) {
  const TaskRow& row = place.program->tasks[task];
  if (row.on_core && !rest_.empty()) {
    const auto program = static_cast<std::size_t>(place.program - tables_.programs.data());
    beyond_limit_ |= later(Picoseconds{now_}, Picoseconds{rest_[program][core_next_[node]]}).count() > limit_;
  }
  if (row.kind == TaskCost::Kind::transfer) {
    const std::uint32_t receiver = row.to[place.local];
    const Place& there = places_[receiver];
    const std::uint32_t receiver_task = row.to_task == nullptr ? task : row.to_task[place.local];
    if (tables_.receive[there.program->tasks[receiver_task].counters + there.local] != 0) return;
  }
  start(node, place, task);
}

inline void Simulator::receive_gate_opens(const Place& place, std::uint32_t task) {
  const TaskRow& row = place.program->tasks[task];
  const std::uint32_t sender = row.from[place.local];
  const Place& there = places_[sender];
  const std::uint32_t sender_task = row.from_task == nullptr ? task : row.from_task[place.local];
  if (tables_.own[there.program->tasks[sender_task].counters + there.local] == 0) start(sender, there, sender_task);
}

/// The core goes on to the next of its tasks that is present on the node.
inline void Simulator::reach_next(std::uint32_t node, const Place& place) {
  const auto& core = place.program->core;
  std::uint32_t& next = core_next_[node];
  for (++next; next < core.size(); ++next) {
    const std::uint32_t task = core[next];
    const TaskRow& row = place.program->tasks[task];
    if (row.to[place.local] == no_device) continue;
    if (--tables_.own[row.counters + place.local] == 0) own_gate_opens(node, place, task);
    return;
  }
}

/// The core works off the core shares that stand here, then goes on.
inline void Simulator::work_off(std::uint32_t node, const Place& place, const Seconds* shares) {
  if (shares == nullptr || shares[place.local] == Seconds{})
    reach_next(node, place);
  else
    at(later(Picoseconds{now_}, ceil_to_clock(shares[place.local])).count(), What::core_free, 0, node);
}

/// Both gates are open.
inline void Simulator::start(std::uint32_t node, const Place& place, std::uint32_t task) {
  const TaskRow& row = place.program->tasks[task];
  if (record_) start_[activity(place, task)] = Picoseconds{now_};
  if (row.kind == TaskCost::Kind::work) {
    if (row.flow_bytes > 0)
      if (const Phases phases = phases_of(row, node); phases.flow > 0) {
        if (phases.launch == 0)
          beginnings_.push_back({task, node});
        else
          at(later(Picoseconds{now_}, Picoseconds{phases.launch}).count(), What::delay_over, task, node);
        return;
      }
    const std::int64_t work = model_.speed.empty() || !row.on_core ? row.work : ceil_to_clock(model_.at_speed(row.work_seconds, node)).count();
    const std::int64_t end = later(Picoseconds{now_}, Picoseconds{work}).count();
    if (record_) sent_[activity(place, task)] = Picoseconds{end};
    at(end, What::done, task, node);
    return;
  }
  std::int64_t delay = row.delay;
  if (delay < 0) delay = ceil_to_clock(row.delay_without_latency + model_.paths[row.paths[place.local]].latency).count();
  if (delay == 0)
    delay_over(node, task);
  else
    at(later(Picoseconds{now_}, Picoseconds{delay}).count(), What::delay_over, task, node);
}

inline void Simulator::delay_over(std::uint32_t node, std::uint32_t task) {
  const Place& place = places_[node];
  const TaskRow& row = place.program->tasks[task];
  if (row.kind == TaskCost::Kind::work || (row.flow_bytes > 0 && sharing_.limited(row.paths[place.local])))
    beginnings_.push_back({task, node});
  else
    at(now_, What::sent, task, node);
}

void Simulator::start_flows() {
  for (const auto& [task, node] : beginnings_) {
    const Place& place = places_[node];
    const TaskRow& row = place.program->tasks[task];
    if (row.kind == TaskCost::Kind::work)
      sharing_.start_work(model_.memory_paths[node], row.flow_bytes, phases_of(row, node).flow, {task, node}, now_);
    else
      sharing_.start(row.paths[place.local], row.flow_bytes, {task, node}, now_);
  }
  beginnings_.clear();
}

inline void Simulator::sent(std::uint32_t node, std::uint32_t task) {
  const Place& place = places_[node];
  const TaskRow& row = place.program->tasks[task];
  if (record_) sent_[activity(place, task)] = Picoseconds{now_};
  pass(node, place, task, 0);
  const std::uint32_t receiver = row.to[place.local];
  const TaskRow& receiving = row.to_task == nullptr ? row : places_[receiver].program->tasks[row.to_task[place.local]];
  const std::int64_t reduction =
      model_.speed.empty() ? receiving.reduction : ceil_to_clock(model_.at_speed(receiving.reduction_seconds, receiver)).count();
  if (reduction == 0)
    received(node, task);
  else
    at(later(Picoseconds{now_}, Picoseconds{reduction}).count(), What::received, task, node);
}

inline void Simulator::received(std::uint32_t node, std::uint32_t task) {
  ++finished_;
  last_ = now_;
  const Place& place = places_[node];
  const TaskRow& row = place.program->tasks[task];
  const std::uint32_t receiver = row.to[place.local];
  pass(receiver, places_[receiver], row.to_task == nullptr ? task : row.to_task[place.local], 1);
}

/// Tells what follows: which = 0 the `sent` or end of a task, 1 its `received`.
inline void Simulator::pass(std::uint32_t node, const Place& place, std::uint32_t task, int which) {
  const ProgramTable& program = *place.program;
  const TaskRow& row = program.tasks[task];
  for (std::uint32_t i = row.followers[which]; i < row.followers[which + 1]; ++i) {
    const Follower follower = program.followers[i];
    const std::size_t counter = program.tasks[follower.task()].counters + place.local;
    if (follower.receive_gate()) {
      if (--tables_.receive[counter] == 0) receive_gate_opens(place, follower.task());
    } else if (--tables_.own[counter] == 0) {
      own_gate_opens(node, place, follower.task());
    }
  }
}

std::vector<bool> Simulator::finished() const {
  std::vector<bool> result;
  result.reserve(sent_.size());
  for (const Picoseconds sent : sent_) result.push_back(sent != not_yet);
  return result;
}

Timeline Simulator::take_timeline() {
  Timeline timeline{std::move(start_), std::move(sent_), reductions_of(model_)};
  timeline.makespan = Picoseconds{interrupted_ ? now_ : last_};
  timeline.events = events_;
  timeline.pass = "events";
  timeline.finished = finished_;
  timeline.interrupted = interrupted_;
  timeline.is_long = is_long_;
  return timeline;
}

}  // namespace podsim::des
