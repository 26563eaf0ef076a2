#include "sim/engine/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/base/invariant.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {

ActivityTimes Timeline::at(std::size_t activity) const {
  const auto after = std::upper_bound(reductions_.begin(), reductions_.end(), activity,
                                      [](std::size_t a, const Reduction& reduction) { return a < reduction.first; });
  const std::size_t i = position(activity);
  return {start_[i], sent_[i], after == reductions_.begin() ? sent_[i] : later(sent_[i], (after - 1)->duration)};
}

std::size_t Timeline::position_among_some(std::size_t activity) const {
  const auto found = std::lower_bound(activities_.begin(), activities_.end(), activity);
  PODSIM_ASSERT(found != activities_.end() && *found == activity);
  return static_cast<std::size_t>(found - activities_.begin());
}

Diagnostic beyond_the_clock() { return {{}, "the run takes more than 106 days, which is as far as the clock goes"}; }

Expected<Timeline> make_timeline(const std::vector<ActivityTimes>& times, Picoseconds cores_end, std::int64_t events) {
  std::vector<Picoseconds> start, sent;
  std::vector<Timeline::Reduction> reductions;
  Picoseconds makespan = cores_end;
  for (const ActivityTimes& activity : times) {
    const Picoseconds duration = activity.received - activity.sent;
    if (reductions.empty() || reductions.back().duration != duration) reductions.push_back({static_cast<std::uint32_t>(start.size()), duration});
    start.push_back(activity.start);
    sent.push_back(activity.sent);
    makespan = std::max({makespan, activity.sent, activity.received});
  }
  if (makespan == end_of_clock) return beyond_the_clock();
  Timeline timeline{std::move(start), std::move(sent), std::move(reductions)};
  timeline.makespan = makespan;
  timeline.events = events;
  timeline.finished = static_cast<std::int64_t>(times.size());
  return timeline;
}

std::vector<Span> spans_of(const ActivityGraph& graph, const Timeline& timeline) {
  PODSIM_ASSERT(timeline.size() == graph.activities.size());
  std::vector<Span> spans;
  spans.reserve(2 * timeline.size());
  for (std::size_t a = 0; a < timeline.size(); ++a) {
    const Activity& activity = graph.activities[a];
    const ActivityTimes times = timeline.at(a);
    if (activity.kind == Activity::Kind::work) {
      spans.push_back({times.start, times.sent, activity.device, activity.task, activity.device, Span::Part::work});
    } else {
      spans.push_back({times.start, times.sent, activity.device, activity.task, activity.receiver, Span::Part::send});
      spans.push_back({times.start, times.received, activity.receiver, activity.receiver_task, activity.device, Span::Part::receive});
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return std::tuple{a.start, a.device, a.task, a.part} < std::tuple{b.start, b.device, b.task, b.part};
  });
  return spans;
}

std::string to_text(const Timeline& timeline, const Schedule& lowered) {
  std::string text = fmt::format("makespan {} ps\n", timeline.makespan.count());
  for (const Span& span : spans_of(unroll(lowered).graph, timeline)) {
    const std::size_t program = *program_of(lowered, span.device);
    const std::string part = span.part == Span::Part::work   ? ""
                             : span.part == Span::Part::send ? fmt::format(" send to {}", span.peer.value)
                                                             : fmt::format(" receive from {}", span.peer.value);
    text += fmt::format("{:>12} {:>12} device {} task {}{}\n", span.start.count(), span.end.count(), span.device.value,
                        task_name(lowered.programs[program], span.task), part);
  }
  return text;
}

}  // namespace podsim
