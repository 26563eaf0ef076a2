#include "tools/page/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/config/message_file.hpp"
#include "tools/page/record.pb.h"
#include "tools/report/device_events.hpp"

namespace podsim {

namespace {

constexpr FileFormat record_format{"a record", 'C', 1};

/// Numbers the names of tasks in the order in which they are asked for.
class TaskNames {
 public:
  explicit TaskNames(std::vector<std::string>& names) : names_{names} {}
  std::uint32_t of(const std::string& name) {
    const auto [entry, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return entry->second;
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

RecordedTimeline timeline_of(const Run& run, const DeviceMetrics& metrics, TaskNames& names) {
  const Program& program = run.model.schedule->programs[run.model.deployment.places[run.model.node_of[metrics.device.index()]].program];
  RecordedTimeline timeline{metrics.device.value, run.model.schedule->mesh.name(metrics.device), static_cast<int>(metrics.devices), {}};
  const DeviceEvents events = events_of(run.model, run.timeline, metrics.device);
  for (const std::string& line : events.lines) timeline.lines.push_back({line, {}});
  for (const TraceEvent& event : events.events)
    timeline.lines[event.line].bars.push_back({event.begin, event.end, names.of(program.tasks[event.task.index()].label)});
  return timeline;
}

std::size_t bars_of(const RecordedTimeline& timeline) {
  std::size_t bars = 0;
  for (const RecordedLine& line : timeline.lines) bars += line.bars.size();
  return bars;
}

void add_line(proto::Record::DeviceTimeline& message, const RecordedLine& line) {
  auto& written = *message.add_lines();
  written.set_name(line.name);
  Picoseconds before;
  for (const RecordedBar& bar : line.bars) {
    written.add_task(bar.task);
    written.add_gap_ps((bar.begin - before).count());
    written.add_length_ps((bar.end - bar.begin).count());
    before = bar.end;
  }
}

/// A line of the file, as bars. Problems: what no run has.
RecordedLine read_line(const proto::Record::Line& line, int tasks, const Place& place, MessageFile& file) {
  RecordedLine read{line.name(), {}};
  if (line.gap_ps_size() != line.task_size() || line.length_ps_size() != line.task_size()) {
    file.problem(place, fmt::format("expected a gap and a length for each of {} tasks, found {} and {}", line.task_size(), line.gap_ps_size(), line.length_ps_size()));
    return read;
  }
  Picoseconds end;
  for (int i = 0; i < line.task_size(); ++i) {
    const std::int64_t left = (end_of_clock - end).count();
    if (line.task(i) >= static_cast<std::uint32_t>(tasks))
      file.problem(place.at("task", i), fmt::format("expected a number below {}, found {}", tasks, line.task(i)));
    else if (line.gap_ps(i) < 0 || line.length_ps(i) < 0 || line.gap_ps(i) > left || line.length_ps(i) > left - line.gap_ps(i))
      file.problem(place.at("gap_ps", i), "expected times that are not negative and fit 64 bits");
    else
      read.bars.push_back({end + Picoseconds{line.gap_ps(i)}, end + Picoseconds{line.gap_ps(i) + line.length_ps(i)}, line.task(i)});
    if (!file.ok()) return read;
    end = read.bars.back().end;
  }
  return read;
}

}  // namespace

Record record_of(const Run& run, const Details& details, std::string command, std::string podsim_version) {
  Record record{std::move(podsim_version), std::move(command), result_json(run, details), sourced_values(run.system->machine), {}, {}, {}};
  std::vector<DeviceMetrics> classes = details.devices;
  std::stable_sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) { return a.devices > b.devices; });
  TaskNames names{record.tasks};
  std::size_t bars = 0;
  for (const DeviceMetrics& metrics : classes) {
    if (record.timelines.size() == most_timelines) break;
    if (run.model.deployment.places[run.model.node_of[metrics.device.index()]].program == no_device) continue;
    RecordedTimeline timeline = timeline_of(run, metrics, names);
    bars += bars_of(timeline);
    if (bars > most_bars && !record.timelines.empty()) break;
    record.timelines.push_back(std::move(timeline));
  }
  if (record.timelines.size() < classes.size())
    record.missing.push_back(fmt::format("the timelines of {} of {} classes of devices", classes.size() - record.timelines.size(), classes.size()));
  return record;
}

std::string write_record(const Record& record) {
  proto::Record message;
  message.set_format_version(record_format.version);
  message.set_podsim_version(record.podsim_version);
  message.set_command(as_utf8(record.command));
  message.set_result(record.result);
  for (const SourcedValue& value : record.machine) {
    auto& written = *message.add_machine();
    written.set_path(value.path);
    written.set_value(value.value);
    written.set_source(value.source);
  }
  for (const std::string& task : record.tasks) message.add_tasks(as_utf8(task));
  for (const RecordedTimeline& timeline : record.timelines) {
    auto& written = *message.add_timelines();
    written.set_device(timeline.device);
    written.set_name(timeline.name);
    written.set_alike(timeline.alike);
    for (const RecordedLine& line : timeline.lines) add_line(written, line);
  }
  for (const std::string& missing : record.missing) message.add_missing(missing);
  return to_binary(message, record_format);
}

Expected<Record> read_record(std::string_view bytes, const std::string& name) {
  proto::Record message;
  MessageFile file{record_format, name, message};
  if (!file.parse(bytes)) return file.error();
  Record record{message.podsim_version(), message.command(), message.result(), {}, {message.tasks().begin(), message.tasks().end()}, {},
                {message.missing().begin(), message.missing().end()}};
  for (const auto& value : message.machine()) record.machine.push_back({value.path(), value.value(), value.source()});
  const Place root;
  for (int t = 0; t < message.timelines_size() && file.ok(); ++t) {
    const auto& timeline = message.timelines(t);
    const Place place = root.at("timelines", t);
    if (timeline.device() < 0 || timeline.alike() < 1) file.problem(place, "expected a device from 0, and at least one device alike");
    RecordedTimeline read{timeline.device(), timeline.name(), timeline.alike(), {}};
    for (int l = 0; l < timeline.lines_size() && file.ok(); ++l)
      read.lines.push_back(read_line(timeline.lines(l), message.tasks_size(), place.at("lines", l), file));
    record.timelines.push_back(std::move(read));
  }
  if (!file.ok()) return file.error();
  return record;
}

}  // namespace podsim
