#include "tools/report/trace_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/node_activity.hpp"

namespace podsim {

namespace {

using Kind = TraceEvent::Kind;

struct Change {
  Picoseconds at;
  std::int64_t first = 0, second = 0;
};

/// The sums of changes, where one of them is another than before.
std::vector<Change> summed(std::vector<Change> changes) {
  std::ranges::sort(changes, {}, &Change::at);
  std::vector<Change> sums;
  Change now;
  for (std::size_t c = 0; c < changes.size(); ++c) {
    now = {changes[c].at, now.first + changes[c].first, now.second + changes[c].second};
    if (c + 1 < changes.size() && changes[c + 1].at == now.at) continue;
    const Change before = sums.empty() ? Change{} : sums.back();
    if (before.first != now.first || before.second != now.second) sums.push_back(now);
  }
  return sums;
}

void add(std::vector<Change>& changes, const Interval& when, std::int64_t first, std::int64_t second) {
  changes.push_back({when.begin, first, second});
  changes.push_back({when.end, -first, -second});
}

/// Sums of many such fit 64 bits; nothing real is larger.
std::int64_t whole(double value) { return std::llround(std::min(value, 1e15)); }

class TrafficReader {
 public:
  TrafficReader(const Model& model, DeviceId device, const DeviceEvents& events)
      : model_{model},
        events_{events},
        program_{model.deployment.places[model.node_of[device.index()]].program},
        local_{model.deployment.places[model.node_of[device.index()]].local} {}

  TrafficCounters run() {
    for (const TraceEvent& event : events_.events) {
      if (event.kind == Kind::send && event.end > event.begin) add_send(event);
      if (event.kind != Kind::work) continue;
      if (const PlayedCall* call = model_.call(program_, event.task.index()); call != nullptr) add_call(*call, {event.begin, event.end});
    }
    TrafficCounters result;
    const auto& axes = model_.schedule->mesh.axes();
    const auto name_of = [&axes](int axis) { return axis == channels ? std::string{"channel"} : axes[static_cast<std::size_t>(axis)].name; };
    for (auto& [direction, changes] : directions_) {
      const auto& [axis, backwards] = direction;
      DirectionCounter counter{axis == channels ? "channel send" : fmt::format("{} {} send", name_of(axis), backwards ? '-' : '+'), {}};
      for (const Change& sum : summed(std::move(changes))) counter.samples.push_back({sum.at, sum.first, sum.second});
      result.directions.push_back(std::move(counter));
    }
    for (auto& [axis, changes] : axes_) {
      AxisCounter counter{name_of(axis), {}};
      for (const Change& sum : summed(std::move(changes))) counter.samples.push_back({sum.at, sum.first});
      result.axes.push_back(std::move(counter));
    }
    return result;
  }

 private:
  static constexpr int channels = std::numeric_limits<int>::max();  // behind all axes

  void add_send(const TraceEvent& event) {
    const TaskCost& cost = model_.costs[program_][event.task.index()];
    const Task& task = model_.task(program_, event.task.index());
    const auto* shift = std::get_if<Shift>(&task.op);
    const int line = shift == nullptr ? channels : shift->axis.axis, axis = moving_axis(task);
    const double bytes = static_cast<double>(cost.payload.count()), rate = bytes / to_seconds(event.end - event.begin).count();
    const BytesPerSecond bottleneck = model_.path(cost, local_).bottleneck;
    const double used = bottleneck < unlimited<BytesPerSecond> ? rate / bottleneck.count() : 0;
    add(directions_[{line, event.sign < 0}], {event.begin, event.end}, cost.payload.count(), whole(1e6 * used));
    add(axes_[axis < 0 ? channels : axis], {event.begin, event.end}, whole(rate * event.hops), 0);
  }

  /// On all its devices a Call does the same.
  void add_call(const PlayedCall& call, const Interval& when) {
    if (when.end == when.begin) return;
    const double seconds = to_seconds(when.end - when.begin).count() * static_cast<double>(size_of(model_.schedule->programs[program_].devices));
    for (const PlayedCall::Axis& moved : call.axes) add(axes_[moved.axis < 0 ? channels : moved.axis], when, whole(moved.link_bytes / seconds), 0);
  }

  const Model& model_;
  const DeviceEvents& events_;
  std::uint32_t program_, local_;
  std::map<std::pair<int, bool>, std::vector<Change>> directions_;  // by axis and whether it goes down: bytes, parts per million
  std::map<int, std::vector<Change>> axes_;                         // bytes per second
};

}  // namespace

TrafficCounters traffic_of(const Model& model, DeviceId device, const DeviceEvents& events) {
  if (events.events.empty()) return {};
  return TrafficReader{model, device, events}.run();
}

}  // namespace podsim
