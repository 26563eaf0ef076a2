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

CoveredBefore::CoveredBefore(const std::vector<Interval>& intervals) : intervals_{intervals} {
  Picoseconds sum;
  for (const Interval& interval : intervals) before_.push_back(sum), sum += interval.end - interval.begin;
}

Picoseconds CoveredBefore::operator()(Picoseconds at) const {
  const auto next = std::ranges::upper_bound(intervals_, at, {}, &Interval::begin);
  if (next == intervals_.begin()) return {};
  const auto last = static_cast<std::size_t>(next - intervals_.begin()) - 1;
  return before_[last] + std::min(at, intervals_[last].end) - intervals_[last].begin;
}

std::uint32_t NodeActivity::incoming(const Participants& who, std::size_t task) const {
  const auto& [program, local] = model_.deployment.places[who.from[local_]];
  return model_.deployment.activity(program, who.from_task.empty() ? task : who.from_task[local_], local);
}

std::vector<NodeActivity::CoreTime> NodeActivity::core_times() const {
  std::vector<CoreTime> busy;
  if (idle()) return busy;
  const CoreShares* shares = model_.core_shares.empty() ? nullptr : &model_.core_shares[program_];
  Picoseconds free;
  Picoseconds since;  // the core works off shares from here on, so far for `sum`
  Seconds sum;
  std::size_t next = 0;
  const auto work_off = [&](std::size_t place) {
    if (shares == nullptr) return;
    for (; next < shares->pieces.size() && shares->pieces[next].place <= place; ++next) {
      const CoreShares::Piece& piece = shares->pieces[next];
      if (piece.time[local_] == Seconds{}) continue;
      sum += piece.time[local_];
      // Engines round the sum of the pieces that stand together; one that rounds to the nearest picosecond may also have ended before.
      const Picoseconds end = std::min(later(since, ceil_to_clock(sum)), timeline_.makespan);
      busy.push_back({{free, end}, piece.of, true});
      free = end;
    }
  };
  for (std::size_t t = 0; t < model_.costs[program_].size(); ++t) {
    work_off(t);
    if (!model_.costs[program_][t].on_core || !model_.deployment.who(program_, t).does(local_)) continue;
    const std::uint32_t a = model_.deployment.activity(program_, t, local_);
    const Picoseconds begin = std::max(timeline_.start(a), free);  // an engine may round times to the nearest picosecond
    free = since = std::max(begin, timeline_.sent(a));
    sum = {};
    busy.push_back({{begin, free}, TaskId{t}});
  }
  work_off(model_.costs[program_].size());
  return busy;
}

}  // namespace podsim
