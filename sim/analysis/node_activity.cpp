#include "sim/analysis/node_activity.hpp"

#include <algorithm>

namespace podsim {

std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> result;
  for (const Interval& interval : intervals) {
    if (!result.empty() && interval.begin <= result.back().end)
      result.back().end = std::max(result.back().end, interval.end);
    else
      result.push_back(interval);
  }
  return result;
}

Picoseconds covered(const std::vector<Interval>& intervals) {
  Picoseconds total;
  for (const Interval& interval : intervals) total += interval.end - interval.begin;
  return total;
}

Picoseconds covered_by_both(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Picoseconds total;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Picoseconds begin = std::max(a[i].begin, b[j].begin), end = std::min(a[i].end, b[j].end);
    if (begin < end) total += end - begin;
    (a[i].end < b[j].end ? i : j) += 1;
  }
  return total;
}

std::uint32_t NodeActivity::incoming(const Participants& who, std::size_t task) const {
  const auto& [program, local] = model_.deployment.places[who.from[local_]];
  return model_.deployment.activity(program, who.from_task.empty() ? task : who.from_task[local_], local);
}

/// When everything was there that the send gate of a task waits for.
Picoseconds NodeActivity::send_ready(std::size_t task) const {
  Picoseconds ready;
  for (const Wait& wait : waits_of(model_.schedule->programs[program_], TaskId{task}, false)) {
    const Participants& who = model_.deployment.who(program_, wait.task.index());
    if (wait.received && who.receives(local_))
      ready = std::max(ready, timeline_.at(incoming(who, wait.task.index())).received);
    else if (!wait.received && who.does(local_))
      ready = std::max(ready, timeline_.sent(model_.deployment.activity(program_, wait.task.index(), local_)));
  }
  return ready;
}

std::vector<Interval> NodeActivity::core() const {
  std::vector<Interval> busy;
  if (idle()) return busy;
  Picoseconds free;
  for (std::size_t t = 0; t < model_.costs[program_].size(); ++t) {
    const TaskCost& cost = model_.costs[program_][t];
    if (!cost.on_core || !model_.deployment.who(program_, t).does(local_)) continue;
    const std::uint32_t a = model_.deployment.activity(program_, t, local_);
    Interval interval{timeline_.start(a), timeline_.sent(a)};
    const bool work = cost.kind == TaskCost::Kind::work;
    if (!work) interval.begin = std::max(free, send_ready(t));  // the core comes to its send before the receiver is ready
    const Seconds core_time = model_.core_time(program_, cost, local_);
    if (!cost.by_core) interval.end = later(interval.begin, ceil_to_clock(core_time));
    interval.begin = std::max(interval.begin, free);  // an engine may round times to the nearest picosecond
    free = interval.end = std::max(interval.begin, interval.end);
    busy.push_back(interval);
  }
  return busy;
}

}  // namespace podsim
