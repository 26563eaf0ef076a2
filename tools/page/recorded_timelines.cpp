#include "tools/page/recorded_timelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/analysis/node_activity.hpp"
#include "sim/analysis/step_split.hpp"
#include "tools/report/device_events.hpp"
#include "tools/report/name_numbers.hpp"
#include "tools/report/task_role.hpp"
#include "workloads/ledger/label_place.hpp"

namespace podsim {

namespace {

/// "fwd_0__3 layer 7 (forward, stage 0, microbatch 3)"
std::string name_of_call(const std::string& label) {
  const LabelPlace place = place_of(label);
  if (place.pass == StepPass::none) return label;
  const std::string microbatch = place.microbatch ? fmt::format(", stage {}, microbatch {}", place.microbatch->stage, place.microbatch->number) : "";
  return fmt::format("{} ({}{})", label, name_of(place.pass), microbatch);
}

class TimelineReader {
 public:
  TimelineReader(const Run& run, Record& record) : run_{run}, record_{record}, names_{record.tasks} {}

  void read(std::vector<DeviceMetrics> classes, const TimelineCounting& counting) {
    std::erase_if(classes, [&](const DeviceMetrics& metrics) { return program_of(metrics.device) == no_device; });
    std::ranges::stable_sort(classes, [](const auto& a, const auto& b) { return a.devices > b.devices; });
    if (classes.empty()) return;
    if (const std::size_t bars = bars_in_calls(classes.front().device); bars > most_bars) {
      within_calls_ = false;
      record_.missing.push_back(fmt::format(
          "what devices do within calls: {} stretches, and at most {} are drawn; the parts of each call's time are here", bars, most_bars));
    }
    std::size_t bars = 0;
    for (const DeviceMetrics& metrics : classes) {
      if (record_.timelines.size() == most_timelines) break;
      if (counting) counting(record_.timelines.size(), std::min(classes.size(), most_timelines));
      RecordedTimeline timeline = timeline_of(metrics);
      for (const RecordedLine& line : timeline.lines) bars += line.bars.size();
      if (bars > most_bars && !record_.timelines.empty()) break;
      record_.timelines.push_back(std::move(timeline));
    }
    if (counting) counting(0, 0);
    if (record_.timelines.size() < classes.size())
      record_.missing.push_back(
          fmt::format("the timelines of {} of {} classes of devices", classes.size() - record_.timelines.size(), classes.size()));
  }

 private:
  [[nodiscard]] std::uint32_t program_of(DeviceId device) const { return run_.model.deployment.places[run_.model.node_of[device.index()]].program; }

  [[nodiscard]] std::size_t bars_in_calls(DeviceId device) const {
    std::size_t bars = 0;
    const std::uint32_t program = program_of(device);
    for (std::size_t t = 0; run_.model.calls != nullptr && t < run_.model.costs[program].size(); ++t)
      if (const PlayedCall* const call = run_.model.call(program, t))
        bars += call->times.core.size() + call->times.dma.size() + call->times.flights.size();
    return bars;
  }

  [[nodiscard]] std::string axis_name(int axis) const {
    return axis < 0 ? "sends" : run_.model.schedule->mesh.axes()[static_cast<std::size_t>(axis)].name;
  }

  /// The number by which bars refer to a task.
  std::uint32_t number_of(const std::string& name, const Task& task) {
    const std::uint32_t number = names_.of(name);
    if (number == record_.task_roles.size()) record_.task_roles.emplace_back(role_of(task));
    return number;
  }

  /// The number by which bars refer to what a task calls.
  std::uint32_t number_of(const PlayedCall& call, const Call& op) {
    const auto [known, added] = numbers_.try_emplace(&call, 0);
    if (!added) return known->second;
    const StepSplit split = split_call(call);
    RecordedCall recorded{run_.model.schedule->functions[static_cast<std::size_t>(op.function)].name, {}};
    const auto add = [&](std::string name, Picoseconds time) {
      if (time > Picoseconds{}) recorded.parts.push_back({std::move(name), time});
    };
    add("compute", split.core.compute);
    add("recompute", split.core.recompute);
    add("optimizer", split.core.optimiser);
    add("copies", split.core.copies);
    add("launches", split.core.launch);
    for (const StepSplit::Axis& axis : split.exposed) add("exposed communication, " + axis_name(axis.axis), axis.exposed);
    add("waiting", split.waiting);
    const auto same = std::ranges::find(record_.calls, recorded);
    known->second = static_cast<std::uint32_t>(same - record_.calls.begin()) + 1;
    if (same == record_.calls.end()) record_.calls.push_back(std::move(recorded));
    return known->second;
  }

  /// The other devices of a class, in order.
  [[nodiscard]] std::vector<int> others_of(const DeviceMetrics& metrics) const {
    std::vector<int> others;
    if (metrics.devices == 1) return others;
    for (int d = 0; d < run_.model.schedule->mesh.devices(); ++d)
      if (d != metrics.device.value && run_.model.node_of[static_cast<std::size_t>(d)] == run_.model.node_of[metrics.device.index()]) others.push_back(d);
    return others;
  }

  RecordedTimeline timeline_of(const DeviceMetrics& metrics) {
    const std::uint32_t p = program_of(metrics.device);
    const Program& program = run_.model.schedule->programs[p];
    RecordedTimeline timeline{metrics.device.value, run_.model.schedule->mesh.name(metrics.device), static_cast<int>(metrics.devices), {}, {}, others_of(metrics)};
    const DeviceEvents events = events_of(run_.model, run_.timeline, metrics.device);
    RecordedLine calls{"calls", {}}, dma{"dma in calls", {}};
    std::map<int, RecordedLine> flights;  // by axis
    for (const std::string& line : events.lines) timeline.lines.push_back({line, {}});
    for (const TraceEvent& event : events.events) {
      const Task& task = program.tasks[event.task.index()];
      std::vector<RecordedBar>& line = timeline.lines[event.line].bars;
      const PlayedCall* const call = run_.model.call(p, event.task.index());
      if (call == nullptr) {
        line.push_back({event.begin, event.end, number_of(task.label, task)});
        continue;
      }
      const RecordedBar bar{event.begin, event.end, number_of(name_of_call(task.label), task), number_of(*call, std::get<Call>(task.op))};
      calls.bars.push_back(bar);
      if (!within_calls_) continue;
      add(line, call->times.core, bar);
      add(dma.bars, call->times.dma, bar);
      std::map<int, std::vector<Interval>> of_axis;
      for (const OperationFlight& flight : call->times.flights)  // as AxisMetrics counts them
        if (flight.kind != OperationFlight::Kind::launch)
          of_axis[flight.kind == OperationFlight::Kind::exchange ? -1 : flight.axis].push_back(flight.when);
      for (auto& [axis, intervals] : of_axis) {
        RecordedLine& flying = flights.try_emplace(axis, RecordedLine{axis_name(axis) + " in calls", {}}).first->second;
        add(flying.bars, merged(std::move(intervals)), bar);
      }
    }
    timeline.lines.insert(timeline.lines.begin(), std::move(calls));
    timeline.lines.push_back(std::move(dma));
    for (auto& [axis, line] : flights) timeline.lines.push_back(std::move(line));
    std::erase_if(timeline.lines, [](const RecordedLine& line) { return line.bars.empty(); });
    return timeline;
  }

  /// Stretches of a call, from its start.
  static void add(std::vector<RecordedBar>& bars, const std::vector<Interval>& stretches, const RecordedBar& call) {
    for (const Interval& stretch : stretches) bars.push_back({call.begin + stretch.begin, call.begin + stretch.end, call.task, call.call});
  }

  const Run& run_;
  Record& record_;
  NameNumbers names_;
  bool within_calls_ = true;
  std::map<const PlayedCall*, std::uint32_t> numbers_;
};

}  // namespace

void add_timelines(Record& record, const Run& run, std::vector<DeviceMetrics> classes, const TimelineCounting& counting) {
  TimelineReader{run, record}.read(std::move(classes), counting);
}

}  // namespace podsim
