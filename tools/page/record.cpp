#include "tools/page/record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/config/message_file.hpp"
#include "tools/page/record.pb.h"
#include "tools/report/json.hpp"
#include "tools/report/name_numbers.hpp"

namespace podsim {

namespace {

constexpr FileFormat record_format{"a record", 'K', 2, true};
constexpr char unchecked_tag = 'C';  // of format_version 1

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
  if (std::ranges::any_of(line.bars, [](const RecordedBar& bar) { return bar.call != 0; }))
    for (const RecordedBar& bar : line.bars) written.add_call(bar.call);
}

void add_memory(proto::Record::DeviceTimeline& message, const std::vector<RecordedChange>& changes) {
  auto& written = *message.mutable_memory();
  Picoseconds before;
  for (const RecordedChange& change : changes) {
    written.add_gap_ps((change.at - before).count());
    written.add_kind(change.kind);
    written.add_by_bytes(change.by.count());
    before = change.at;
  }
}

void write_network(proto::Record::Network& written, const RecordedNetwork& network) {
  written.set_chips(network.chips);
  for (const int extent : network.extents) written.add_extents(extent);
  for (const std::string& node : network.nodes) written.add_nodes(as_utf8(node));
  for (const RecordedLink& link : network.links) {
    written.add_from(link.from);
    written.add_to(link.to);
    written.add_dimension(link.dimension);
    written.add_bytes(link.bytes);
    written.add_utilisation(link.utilisation);
  }
}

/// A line of the file, as bars. Problems: what no run has.
RecordedLine read_line(const proto::Record::Line& line, int tasks, int calls, const Place& place, MessageFile& file) {
  RecordedLine read{line.name(), {}};
  if (line.gap_ps_size() != line.task_size() || line.length_ps_size() != line.task_size()) {
    file.problem(place, fmt::format("expected a gap and a length for each of {} tasks, found {} and {}", line.task_size(), line.gap_ps_size(), line.length_ps_size()));
    return read;
  }
  if (line.call_size() != 0 && line.call_size() != line.task_size())
    file.problem(place, fmt::format("expected a call for each of {} tasks or none, found {}", line.task_size(), line.call_size()));
  Picoseconds end;
  for (int i = 0; i < line.task_size() && file.ok(); ++i) {
    const std::uint32_t call = line.call_size() == 0 ? 0 : line.call(i);
    const std::int64_t left = (end_of_clock - end).count();
    if (line.task(i) >= static_cast<std::uint32_t>(tasks))
      file.problem(place.at("task", i), fmt::format("expected a number below {}, found {}", tasks, line.task(i)));
    else if (call > static_cast<std::uint32_t>(calls))
      file.problem(place.at("call", i), fmt::format("expected 0 to {}, found {}", calls, call));
    else if (line.gap_ps(i) < 0 || line.length_ps(i) < 0 || line.gap_ps(i) > left || line.length_ps(i) > left - line.gap_ps(i))
      file.problem(place.at("gap_ps", i), "expected times that are not negative and fit 64 bits");
    else
      read.bars.push_back({end + Picoseconds{line.gap_ps(i)}, end + Picoseconds{line.gap_ps(i) + line.length_ps(i)}, line.task(i), call});
    if (file.ok()) end = read.bars.back().end;
  }
  return read;
}

/// Changes of memory that never make a sum negative or too large. Problems: others.
std::vector<RecordedChange> read_memory(const proto::Record::Memory& memory, int kinds, const Place& place, MessageFile& file) {
  std::vector<RecordedChange> read;
  if (memory.gap_ps_size() != memory.kind_size() || memory.by_bytes_size() != memory.kind_size()) {
    file.problem(place, fmt::format("expected a gap and a change for each of {} kinds, found {} and {}", memory.kind_size(), memory.gap_ps_size(), memory.by_bytes_size()));
    return read;
  }
  constexpr std::int64_t most = std::int64_t{1} << 60;
  std::vector<std::int64_t> live(static_cast<std::size_t>(kinds), 0);
  Picoseconds at;
  for (int i = 0; i < memory.kind_size() && file.ok(); ++i) {
    const std::uint32_t kind = memory.kind(i);
    const std::int64_t by = memory.by_bytes(i);
    if (kind >= live.size())
      file.problem(place.at("kind", i), fmt::format("expected a number below {}, found {}", kinds, kind));
    else if (memory.gap_ps(i) < 0 || memory.gap_ps(i) > (end_of_clock - at).count())
      file.problem(place.at("gap_ps", i), "expected times that are not negative and fit 64 bits");
    else if (by > most - live[kind] || by < -live[kind])
      file.problem(place.at("by_bytes", i), "expected changes that leave memory between 0 and 2^60 bytes");
    else
      at = at + Picoseconds{memory.gap_ps(i)}, live[kind] += by, read.push_back({at, kind, Bytes{by}});
  }
  return read;
}

/// Problems: chips that are not the extents', links of other lengths than one another or without ends.
RecordedNetwork read_network(const proto::Record::Network& network, const Place& place, MessageFile& file) {
  RecordedNetwork read{network.chips(), {network.extents().begin(), network.extents().end()}, {network.nodes().begin(), network.nodes().end()}, {}};
  const int nodes = network.nodes_size(), links = network.from_size();
  if (read.chips < 1 || read.chips > nodes) file.problem(place.at("chips"), fmt::format("expected 1 to {}, found {}", nodes, read.chips));
  std::int64_t product = 1;
  for (const int extent : read.extents) product = extent < 1 || product > read.chips ? 0 : product * extent;
  if (!read.extents.empty() && product != read.chips) file.problem(place.at("extents"), fmt::format("expected extents whose product is {}", read.chips));
  if (network.to_size() != links || network.dimension_size() != links || network.bytes_size() != links || network.utilisation_size() != links)
    file.problem(place, fmt::format("expected as many ends, dimensions and figures as links: {}", links));
  if (!file.ok()) return read;
  const int dimensions = read.extents.empty() ? 4 : static_cast<int>(read.extents.size());  // a machine has four at most
  for (int i = 0; i < links && file.ok(); ++i) {
    const RecordedLink link{network.from(i), network.to(i), network.dimension(i), network.bytes(i), network.utilisation(i)};
    if (link.from < 0 || link.from >= nodes || link.to < 0 || link.to >= nodes || link.from == link.to)
      file.problem(place.at("from", i), fmt::format("expected a link between two of {} nodes, found {} to {}", nodes, link.from, link.to));
    else if (link.dimension < -1 || link.dimension >= dimensions)
      file.problem(place.at("dimension", i), fmt::format("expected -1 to {}, found {}", dimensions - 1, link.dimension));
    else if (!(link.bytes >= 0) || !(link.utilisation >= 0))
      file.problem(place.at("bytes", i), "expected figures that are not negative");
    else
      read.links.push_back(link);
  }
  return read;
}

void write_pipeline(proto::Record::Pipeline& written, const DrawnPipeline& pipeline) {
  written.set_title(pipeline.title);
  for (const DrawnPipeline::Row& row : pipeline.rows) {
    auto& message = *written.add_rows();
    message.set_name(row.name);
    std::int64_t before = 0;
    for (const DrawnPipelineTask& task : row.tasks) {
      message.add_role(static_cast<std::uint32_t>(task.role));
      message.add_stage(static_cast<std::uint32_t>(task.stage));
      message.add_microbatch(static_cast<std::uint32_t>(task.microbatch));
      message.add_gap_ps(task.begin - before);
      message.add_length_ps(task.end - task.begin);
      before = task.end;
    }
  }
}

/// Problems: tasks that go back in time, and what no pipeline has.
DrawnPipeline read_pipeline(const proto::Record::Pipeline& pipeline, const Place& place, MessageFile& file) {
  constexpr std::uint32_t most = 1 << 20;
  DrawnPipeline read{pipeline.title(), {}, 0, true};
  for (int r = 0; r < pipeline.rows_size() && file.ok(); ++r) {
    const auto& row = pipeline.rows(r);
    const Place at = place.at("rows", r);
    const int tasks = row.role_size();
    read.rows.push_back({row.name()});
    if (row.stage_size() != tasks || row.microbatch_size() != tasks || row.gap_ps_size() != tasks || row.length_ps_size() != tasks)
      file.problem(at, fmt::format("expected a stage, a microbatch, a gap and a length for each of {} tasks", tasks));
    std::int64_t end = 0;
    for (int t = 0; t < tasks && file.ok(); ++t) {
      const std::int64_t left = end_of_clock.count() - end;
      if (row.role(t) >= pipeline_roles || row.stage(t) > most || row.microbatch(t) > most)
        file.problem(at.at("role", t), fmt::format("expected a role below {}, a stage and a microbatch up to {}", pipeline_roles, most));
      else if (row.gap_ps(t) < 0 || row.length_ps(t) < 0 || row.gap_ps(t) > left || row.length_ps(t) > left - row.gap_ps(t))
        file.problem(at.at("gap_ps", t), "expected times that are not negative and fit 64 bits");
      else
        read.rows.back().tasks.push_back({static_cast<PipelineRole>(row.role(t)), static_cast<int>(row.stage(t)), static_cast<int>(row.microbatch(t)), end + row.gap_ps(t), end + row.gap_ps(t) + row.length_ps(t)});
      if (file.ok()) end = read.rows.back().tasks.back().end;
    }
    read.end = std::max(read.end, end);
  }
  return read;
}

}  // namespace

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
  std::vector<std::string> roles;
  NameNumbers number_of_role{roles};
  for (const std::string& role : record.task_roles) message.add_task_role(number_of_role.of(role));
  for (const std::string& role : roles) message.add_roles(role);
  for (const RecordedTimeline& timeline : record.timelines) {
    auto& written = *message.add_timelines();
    written.set_device(timeline.device);
    written.set_name(timeline.name);
    written.set_alike(timeline.alike);
    written.mutable_others()->Add(timeline.others.begin(), timeline.others.end());
    for (const RecordedLine& line : timeline.lines) add_line(written, line);
    if (!timeline.memory.empty()) add_memory(written, timeline.memory);
  }
  for (const std::string& kind : record.memory_kinds) message.add_memory_kinds(kind);
  for (const RecordedCall& call : record.calls) {
    auto& written = *message.add_calls();
    written.set_name(as_utf8(call.name));
    for (const auto& [name, time] : call.parts) {
      auto& part = *written.add_parts();
      part.set_name(as_utf8(name));
      part.set_time_ps(time.count());
    }
  }
  if (record.pipeline) write_pipeline(*message.mutable_pipeline(), *record.pipeline);
  if (record.network) write_network(*message.mutable_network(), *record.network);
  for (const std::string& missing : record.missing) message.add_missing(missing);
  return to_binary(message, record_format);
}

Expected<Record> read_record(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(std::string{binary_magic} + unchecked_tag))
    return Diagnostic{{name, 0, 0}, fmt::format("expected a record of format_version {}, found version 1, which has no checksum: the command writes a new one", record_format.version)};
  proto::Record message;
  MessageFile file{record_format, name, message};
  if (!file.parse(bytes)) return file.error();
  Record record{message.podsim_version(), message.command(), message.result(), {}, {message.tasks().begin(), message.tasks().end()}, {},
                {message.missing().begin(), message.missing().end()}};
  const auto kind = kind_of_result(record.result, name + ": result");
  if (!kind) return kind.error();
  record.kind = *kind;
  for (const auto& value : message.machine()) record.machine.push_back({value.path(), value.value(), value.source()});
  const Place root;
  if (message.task_role_size() != 0 && message.task_role_size() != message.tasks_size())
    file.problem(root.at("task_role"), fmt::format("expected a role for each of {} tasks or none, found {}", message.tasks_size(), message.task_role_size()));
  for (int t = 0; t < message.task_role_size() && file.ok(); ++t) {
    if (message.task_role(t) < static_cast<std::uint32_t>(message.roles_size()))
      record.task_roles.push_back(message.roles(static_cast<int>(message.task_role(t))));
    else
      file.problem(root.at("task_role", t), fmt::format("expected a number below {}, found {}", message.roles_size(), message.task_role(t)));
  }
  for (int t = 0; t < message.timelines_size() && file.ok(); ++t) {
    const auto& timeline = message.timelines(t);
    const Place place = root.at("timelines", t);
    if (timeline.device() < 0 || timeline.alike() < 1) file.problem(place, "expected a device from 0, and at least one device alike");
    if (!std::is_sorted(timeline.others().begin(), timeline.others().end())) file.problem(place.at("others"), "expected numbers of devices in order");
    RecordedTimeline read{timeline.device(), timeline.name(), timeline.alike(), {}, {}, {timeline.others().begin(), timeline.others().end()}};
    for (int l = 0; l < timeline.lines_size() && file.ok(); ++l)
      read.lines.push_back(read_line(timeline.lines(l), message.tasks_size(), message.calls_size(), place.at("lines", l), file));
    if (timeline.has_memory()) read.memory = read_memory(timeline.memory(), message.memory_kinds_size(), place.at("memory"), file);
    record.timelines.push_back(std::move(read));
  }
  record.memory_kinds = {message.memory_kinds().begin(), message.memory_kinds().end()};
  for (int c = 0; c < message.calls_size() && file.ok(); ++c) {
    record.calls.push_back({message.calls(c).name(), {}});
    for (const auto& part : message.calls(c).parts()) {
      if (part.time_ps() < 0) file.problem(root.at("calls", c), fmt::format("expected times that are not negative, found {} ps", part.time_ps()));
      record.calls.back().parts.push_back({part.name(), Picoseconds{part.time_ps()}});
    }
  }
  if (message.has_pipeline()) record.pipeline = read_pipeline(message.pipeline(), root.at("pipeline"), file);
  if (message.has_network()) record.network = read_network(message.network(), root.at("network"), file);
  if (!file.ok()) return file.error();
  return record;
}

}  // namespace podsim
