#include "tools/report/trace_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
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

/// What is in flight over one link.
struct Crossing {
  Interval when;
  std::int64_t rate = 0;
};

/// Rates between moments.
struct Span {
  Interval when;
  double rate = 0;
};

/// Moves what is above `most` to the spans behind, as long as they touch; what is left over to those before.
void level(std::vector<Span>& spans, double most) {
  const auto length = [](const Span& span) { return static_cast<double>((span.when.end - span.when.begin).count()); };
  const auto settle = [&](Span& span, double& carried) {
    const double wanted = span.rate + carried / length(span);
    span.rate = std::min(wanted, most);
    carried = std::max((wanted - span.rate) * length(span), 0.0);
  };
  for (std::size_t first = 0, end = 0; first < spans.size(); first = end) {
    for (end = first + 1; end < spans.size() && spans[end].when.begin == spans[end - 1].when.end;) ++end;
    double carried = 0;
    for (std::size_t s = first; s < end; ++s) settle(spans[s], carried);
    for (std::size_t s = end; s > first && carried > 0; --s) settle(spans[s - 1], carried);
  }
}

/// The changes of the rate over a link, which is never above its bandwidth.
void add_link(const std::vector<Crossing>& crossings, double bandwidth, std::vector<Change>& changes) {
  std::vector<Change> rates;
  for (const Crossing& crossing : crossings) add(rates, crossing.when, crossing.rate, 1);
  std::ranges::sort(rates, {}, &Change::at);
  std::vector<Span> spans;
  Change now;
  for (std::size_t c = 0; c < rates.size(); ++c) {
    now = {rates[c].at, now.first + rates[c].first, now.second + rates[c].second};
    if (now.second > 0 && rates[c + 1].at > now.at) spans.push_back({{now.at, rates[c + 1].at}, static_cast<double>(now.first)});
  }
  level(spans, bandwidth);
  for (const Span& span : spans) add(changes, span.when, 0, whole(span.rate));
}

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
      double bandwidth = 0;
      for (const auto& [link, crossings] : links_[direction]) {
        const double own = model_.links[link].bandwidth.count();
        add_link(crossings, own, changes);
        bandwidth += own;
      }
      for (const Change& sum : summed(std::move(changes))) {
        const double used = bandwidth > 0 ? std::min(static_cast<double>(sum.second) / bandwidth, 1.0) : 0;
        counter.samples.push_back({sum.at, sum.first, sum.second, whole(1e6 * used)});
      }
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
    const Interval when{event.begin, event.end};
    const std::pair direction{line, event.sign < 0};
    const std::optional<std::uint32_t> slowest = slowest_link(model_.path(cost, local_));
    add(directions_[direction], when, cost.payload.count(), slowest ? 0 : whole(rate));
    if (slowest) links_[direction][*slowest].push_back({when, whole(rate)});
    add(axes_[axis < 0 ? channels : axis], {event.begin, event.end}, whole(rate * event.hops), 0);
  }

  /// The first of them on the way; nullopt: none has a limit.
  [[nodiscard]] std::optional<std::uint32_t> slowest_link(const Path& path) const {
    std::optional<std::uint32_t> slowest;
    BytesPerSecond least = unlimited<BytesPerSecond>;
    for (const PathLink& link : model_.links_of(path))
      if (const ModelLink& one = model_.links[link.link]; !one.is_memory && one.bandwidth < least) least = one.bandwidth, slowest = link.link;
    return slowest;
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
  std::map<std::pair<int, bool>, std::vector<Change>> directions_;  // by axis and whether it goes down: bytes, bytes per second
  std::map<std::pair<int, bool>, std::map<std::uint32_t, std::vector<Crossing>>> links_;  // likewise, by the slowest link of the path
  std::map<int, std::vector<Change>> axes_;                         // bytes per second
};

}  // namespace

TrafficCounters traffic_of(const Model& model, DeviceId device, const DeviceEvents& events) {
  if (events.events.empty()) return {};
  return TrafficReader{model, device, events}.run();
}

}  // namespace podsim
