#include "sim/engine/metrics.hpp"

#include <algorithm>
#include <limits>

namespace podsim {

namespace {

struct Interval {
  Picoseconds begin, end;
};

/// Sorted and merged, so that lengths add up to the time covered.
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

/// Reads one timeline of one schedule.
class Meter {
 public:
  Meter(const Schedule& schedule, const CostedGraph& costs, const Timeline& timeline)
      : schedule_{schedule}, costs_{costs}, graph_{costs.graph}, timeline_{timeline} {}

  /// When the core of a device was busy, in program order.
  std::vector<Interval> core(DeviceId device) const {
    std::vector<Interval> busy;
    Picoseconds free;
    for (const std::uint32_t a : graph_.program_order(device)) {
      if (!costs_.on_core[a]) continue;
      const ActivityTimes& times = timeline_.times[a];
      const bool work = graph_.activities[a].kind == Activity::Kind::work;
      Interval interval{times.start, times.sent};
      if (!work) {  // the core comes to its send before the receiver is ready
        interval.begin = free;
        for (const Dependency& dependency : graph_.waits_for(a, Gate::send)) {
          const ActivityTimes& before = timeline_.times[dependency.activity];
          interval.begin = std::max(interval.begin, dependency.received ? before.received : before.sent);
        }
      }
      if (!work || costs_.core_time[a] != costs_.work_time[a]) interval.end = later(interval.begin, ceil_to_clock(costs_.core_time[a]));
      interval.begin = std::max(interval.begin, free);  // an engine may round times to the nearest picosecond
      free = interval.end = std::max(interval.begin, interval.end);
      busy.push_back(interval);
    }
    return busy;
  }

  /// When a half of a transfer of this device, or another off-core part of a Collective, was in flight.
  std::vector<Interval> communication(DeviceId device) const {
    std::vector<Interval> flights;
    for (std::size_t a = 0; a < graph_.activities.size(); ++a) {
      const Activity& activity = graph_.activities[a];
      const ActivityTimes& times = timeline_.times[a];
      if (activity.kind == Activity::Kind::work) {
        if (activity.device == device && task(activity).origin) flights.push_back({times.start, times.sent});
      } else {
        if (activity.device == device) flights.push_back({times.start, times.sent});
        if (activity.receiver == device) flights.push_back({times.start, times.received});
      }
    }
    return flights;
  }

  Bytes peak_memory() const {
    // Per device and buffer: from the earliest write to the last use.
    std::vector<std::vector<Interval>> alive(static_cast<std::size_t>(schedule_.mesh.devices()));
    constexpr Interval never{Picoseconds{std::numeric_limits<std::int64_t>::max()}, Picoseconds{-1}};
    for (int d = 0; d < schedule_.mesh.devices(); ++d)
      if (const auto p = program_of(schedule_, DeviceId{d})) alive[static_cast<std::size_t>(d)].assign(schedule_.programs[*p].buffers.size(), never);
    const auto touch = [&](DeviceId device, const Region& region, bool write, Picoseconds begin, Picoseconds end) {
      Interval& interval = alive[device.index()][region.buffer.index()];
      if (write) interval.begin = std::min(interval.begin, begin);
      interval.end = std::max(interval.end, end);
    };
    for (std::size_t a = 0; a < graph_.activities.size(); ++a) {
      const Activity& activity = graph_.activities[a];
      const ActivityTimes& t = timeline_.times[a];
      const auto here = [&](const Region& region, bool write) { touch(activity.device, region, write, t.start, t.sent); };
      const auto there = [&](const Region& region) { touch(activity.receiver, region, true, t.start, t.received); };
      std::visit(Overloaded{
                     [&](const Matmul& m) { here(m.left, false), here(m.right, false), here(m.out, true); },
                     [&](const Local& l) {
                       for (const Region& region : l.reads) here(region, false);
                       for (const Region& region : l.writes) here(region, true);
                     },
                     [&](const Shift& s) { here(s.source, false), there(s.target); },
                     [&](const Send& s) {
                       here(s.source, false);
                       there(std::get<Recv>(schedule_.programs[activity.receiver_program].tasks[activity.receiver_task.index()].op).target);
                     },
                     [](const Recv&) {},
                     [](const Collective&) {},
                 },
                 task(activity).op);
    }
    Bytes peak;
    for (int d = 0; d < schedule_.mesh.devices(); ++d)
      if (const auto p = program_of(schedule_, DeviceId{d}))
        peak = std::max(peak, peak_of_device(schedule_.programs[*p], alive[static_cast<std::size_t>(d)]));
    return peak;
  }

 private:
  const Task& task(const Activity& activity) const { return schedule_.programs[activity.program].tasks[activity.task.index()]; }

  static Bytes peak_of_device(const Program& program, const std::vector<Interval>& alive) {
    Bytes now;
    std::vector<std::pair<Picoseconds, Bytes>> changes;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Bytes size = size_of(program.buffers[b]);
      if (program.buffers[b].role != Role::scratch)
        now += size;
      else if (alive[b].begin <= alive[b].end)
        changes.emplace_back(alive[b].begin, size), changes.emplace_back(alive[b].end, Bytes{} - size);
    }
    std::sort(changes.begin(), changes.end());  // at one time releases (negative) come first
    Bytes peak = now;
    for (const auto& [time, change] : changes) peak = std::max(peak, now += change);
    return peak;
  }

  const Schedule& schedule_;
  const CostedGraph& costs_;
  const ActivityGraph& graph_;
  const Timeline& timeline_;
};

}  // namespace

Metrics measure(const Schedule& lowered, const CostedGraph& costs, const Machine& machine, const Timeline& timeline) {
  const Meter meter{lowered, costs, timeline};
  Metrics metrics;
  metrics.makespan = timeline.makespan;
  metrics.tasks = static_cast<std::int64_t>(costs.graph.activities.size());
  metrics.compute = Picoseconds{-1};
  for (int d = 0; d < lowered.mesh.devices(); ++d)
    if (const Picoseconds busy = covered(meter.core(DeviceId{d})); busy > metrics.compute) metrics.compute = busy, metrics.busiest = DeviceId{d};

  const std::vector<Interval> core = merged(meter.core(metrics.busiest));
  std::vector<Interval> either = meter.communication(metrics.busiest);
  either.insert(either.end(), core.begin(), core.end());
  metrics.exposed_communication = covered(merged(std::move(either))) - metrics.compute;
  metrics.waiting = metrics.makespan - metrics.compute - metrics.exposed_communication;

  std::optional<DType> dtype;
  for (std::size_t a = 0; a < costs.graph.activities.size(); ++a) {
    const Activity& activity = costs.graph.activities[a];
    if (activity.kind == Activity::Kind::transfer) {
      const TransferCost& transfer = costs.transfers[a];
      metrics.link_bytes += static_cast<double>(transfer.payload.count()) * costs.hops[transfer.route];
      continue;
    }
    const Program& program = lowered.programs[activity.program];
    if (const auto* matmul = std::get_if<Matmul>(&program.tasks[activity.task.index()].op)) {
      const MatmulExtents e = extents_of(*matmul);
      metrics.flops += Flops{2.0 * static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k)};
      dtype = program.buffers[matmul->out.buffer.index()].dtype;
    }
  }
  if (dtype && metrics.makespan > Picoseconds{})
    metrics.mfu = metrics.flops.count() / (lowered.mesh.devices() * peak_of(machine, *dtype).count() * to_seconds(metrics.makespan).count());
  metrics.peak_memory = meter.peak_memory();
  return metrics;
}

}  // namespace podsim
