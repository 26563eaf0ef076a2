#include "tools/report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/analysis/operations.hpp"
#include "sim/analysis/peak_memory.hpp"
#include "sim/base/text.hpp"
#include "tools/report/device_events.hpp"
#include "tools/report/json.hpp"
#include "tools/report/side_by_side.hpp"
#include "tools/report/trace_counters.hpp"
#include "tools/report/trace_levels.hpp"
#include "validation/diff/match_coverage.hpp"

namespace podsim {

namespace {

constexpr std::size_t buffered = 1U << 18;  // bytes between writes
constexpr std::size_t longest_name = 256;   // of a profile's
constexpr std::string_view unmatched_colour = "grey";
constexpr Picoseconds within_the_bar{2000};  // where an arrow ends: Perfetto rounds bars to nanoseconds

void put_microseconds(std::string& out, Picoseconds time) {
  constexpr std::int64_t picoseconds_per_microsecond = 1'000'000;
  fmt::format_to(std::back_inserter(out), "{}.{:06}", time.count() / picoseconds_per_microsecond, time.count() % picoseconds_per_microsecond);
}

std::string_view name_of(const Op& op) {
  return std::visit(Overloaded{
                        [](const Matmul&) -> std::string_view { return "matmul"; }, [](const Local& local) { return traits_of(local.kind).name; },
                        [](const Shift&) -> std::string_view { return "shift"; }, [](const Send&) -> std::string_view { return "send"; },
                        [](const Recv&) -> std::string_view { return "receive"; },
                        [](const Collective&) -> std::string_view { return "collective"; },  // not in a lowered schedule
                        [](const Call&) -> std::string_view { return "call"; },
                    },
                    op);
}

std::optional<Bytes> bytes_in(const Program& program, const Op& op) {
  if (const auto* shift = std::get_if<Shift>(&op)) return bytes_of(program, shift->source);
  if (const auto* send = std::get_if<Send>(&op)) return bytes_of(program, send->source);
  if (const auto* recv = std::get_if<Recv>(&op)) return bytes_of(program, recv->target);
  if (const auto* local = std::get_if<Local>(&op); local != nullptr && !local->writes.empty()) return bytes_of(program, local->writes.front());
  return std::nullopt;
}

std::optional<int> channel_of(const Op& op) {
  if (const auto* send = std::get_if<Send>(&op)) return send->channel;
  if (const auto* recv = std::get_if<Recv>(&op)) return recv->channel;
  return std::nullopt;
}

/// `,"key":"value"`; the value needs no escapes.
template <class Value>
void put_arg(std::string& out, std::string_view key, const Value& value) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":"{}")", key, value);
}

/// What every event of a task has, as it stands in the file: args come in the order of their keys, those of the device in between.
struct TaskText {
  std::string name;
  std::string before_direction, collective, flops, op, slice;
};

TaskText text_of(const Mesh& mesh, const Program& program, const Task& task) {
  TaskText text;
  text.name = json_text(task.label);
  if (const auto* shift = std::get_if<Shift>(&task.op))
    text.before_direction = R"(,"axis":)" + json_text(mesh.name(shift->axis));
  else if (task.origin)
    text.before_direction = R"(,"axis":)" + json_text(mesh.name(task.origin->axis));
  if (const auto bytes = bytes_in(program, task.op)) put_arg(text.before_direction, "bytes", bytes->count());
  if (const auto channel = channel_of(task.op)) put_arg(text.before_direction, "channel", *channel);
  if (task.origin) {
    put_arg(text.collective, "collective", name_of(task.origin->kind));
    put_arg(text.collective, "collective_number", task.origin->collective);
  }
  text.before_direction += text.collective;
  if (const auto* matmul = std::get_if<Matmul>(&task.op)) {
    const MatmulExtents extents = extents_of(*matmul);
    const double flops = 2.0 * static_cast<double>(extents.m) * static_cast<double>(extents.n) * static_cast<double>(extents.k);
    put_arg(text.flops, "flops", fmt::format("{:.0f}", flops));
  }
  put_arg(text.op, "op", name_of(task.op));
  if (const auto slice = slice_in(task.label)) put_arg(text.slice, "slice", *slice);
  return text;
}

/// A level or operation above the tasks, as it stands in the file.
struct BarText {
  std::string name, args;
};

BarText text_of(const ProgramLevels::Level& level) {
  BarText text{json_text(level.name), ""};
  put_arg(text.args, "level", level.kind);
  if (level.microbatch >= 0) put_arg(text.args, "microbatch", level.microbatch), put_arg(text.args, "stage", level.stage);
  return text;
}

/// `row`: of the ledger; null: it has none.
BarText text_of(const ProgramLevels& levels, const ProgramLevels::Operation& operation, std::size_t number, CollectiveKind kind, const LedgerRow* row, Picoseconds makespan) {
  BarText text{json_text(operation.name), ""};
  put_arg(text.args, "collective", name_of(kind));
  put_arg(text.args, "collective_number", number);
  if (row != nullptr) put_arg(text.args, "exposed_ps", row->exposed.count());
  std::string layer;
  for (std::uint32_t at = operation.level; at != 0; at = levels.levels[at].parent)
    if (levels.levels[at].kind == "layer") layer = layer.empty() ? levels.levels[at].name : levels.levels[at].name + ": " + layer;
  if (!layer.empty()) text.args += R"(,"layer":)" + json_text(layer);
  put_arg(text.args, "level", "operation");
  if (row == nullptr) return text;
  if (!row->path.empty()) text.args += R"(,"path":)" + json_text(row->path);
  put_arg(text.args, "share", percent(static_cast<double>(row->exposed.count()) / static_cast<double>(std::max<std::int64_t>(makespan.count(), 1))));
  if (!row->source.empty()) text.args += R"(,"source":)" + json_text(row->source);
  return text;
}

/// What the events of a program's devices have in common.
struct ProgramText {
  ProgramText(const Mesh& mesh, const Program& program, const std::vector<LedgerRow>& ledger, Picoseconds makespan) : levels{levels_of(program)} {
    for (const Task& task : program.tasks) tasks.push_back(text_of(mesh, program, task));
    for (const ProgramLevels::Level& level : levels.levels) bars.push_back(text_of(level));
    operations.resize(levels.operations.size());
    for (const Task& task : program.tasks) {
      if (!task.origin) continue;
      const auto number = static_cast<std::size_t>(task.origin->collective);
      if (!operations[number].name.empty()) continue;
      const ProgramLevels::Operation& operation = levels.operations[number];
      const LedgerRow* const row = ledger_row_of(ledger, without_slice(operation.name), name_of(task.origin->kind), task.origin->input_bytes);
      operations[number] = text_of(levels, operation, number, task.origin->kind, row, makespan);
    }
  }

  ProgramLevels levels;
  std::vector<TaskText> tasks;
  std::vector<BarText> bars;        // by level
  std::vector<BarText> operations;  // by number of the Collective
};

class TraceWriter {
 public:
  TraceWriter(const Model& model, const Timeline& timeline, std::span<const DeviceId> devices, Sink& sink, const TraceExtras& extras)
      : model_{model}, timeline_{timeline}, devices_{devices}, sink_{sink}, extras_{extras}, lives_{model}, next_thread_{model.schedule->mesh.devices() + 1} {
    for (const Program& program : model.schedule->programs) programs_.emplace_back(model.schedule->mesh, program, extras.ledger != nullptr ? *extras.ledger : std::vector<LedgerRow>{}, timeline.makespan);
    if (!devices.empty()) read_times(model, timeline, lives_);
    std::int64_t tasks = 1;
    for (const Program& program : model.schedule->programs) tasks += static_cast<std::int64_t>(program.tasks.size());
    next_match_ = tasks * model.schedule->mesh.devices() + 1;  // behind the numbers of all transfers
  }

  Status run(const TraceMetadata& metadata) {
    out_ = R"({"displayTimeUnit":"ns","metadata":{"highres-ticks":true)";
    for (const auto& [key, value] : metadata) out_ += "," + json_text(key) + ":" + json_text(value);
    out_ += R"(},"traceEvents":[)";
    for (const DeviceId device : devices_) {
      if (extras_.progress != nullptr) extras_.progress->begin(device);
      write(device);
      if (sink_.failed()) break;
    }
    out_ += "\n]}\n";
    sink_.write(out_);
    return sink_.close();
  }

 private:
  void begin_event() {
    if (out_.size() >= buffered) sink_.write(out_), out_.clear();
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
  }
  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    begin_event();
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void write(DeviceId device) {
    const int pid = device.value + 1;
    event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", pid,
          json_text(fmt::format("device {} ({})", device.value, model_.schedule->mesh.name(device))));
    event(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", pid, pid);
    if (extras_.tell_alike)
      event(R"({{"ph":"M","pid":{},"name":"process_labels","args":{{"labels":"{} alike"}}}})", pid, model_.devices_in[model_.node_of[device.index()]]);
    const DeviceEvents all = events_of(model_, timeline_, device);
    const std::uint32_t program = model_.deployment.places[model_.node_of[device.index()]].program;
    if (program == no_device) return;
    const ProgramText& text = programs_[program];
    const DeviceLevels levels = levels_of(text.levels, model_.schedule->programs[program], all, timeline_.makespan);
    first_thread_ = next_thread_;
    write_measured(device);
    write_bars(pid, "step", levels.steps, text.bars);
    for (std::size_t line = 0; line < levels.operations.size(); ++line)
      write_bars(pid, line == 0 ? "operation" : fmt::format("operation {}", line + 1), levels.operations[line], text.operations);
    for (std::size_t line = 0; line < all.lines.size(); ++line) name_thread(pid, next_thread_ + static_cast<std::int64_t>(line), all.lines[line]);
    for (std::size_t e = 0; e < all.events.size(); ++e) {
      if (extras_.progress != nullptr) extras_.progress->wrote(e, all.events.size());
      write(device, all.events[e], text.tasks[all.events[e].task.index()]);
    }
    next_thread_ += static_cast<std::int64_t>(all.lines.size());
    write_counters(device, all);
  }

  void name_thread(int pid, std::int64_t tid, const std::string& name) {
    event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", pid, tid, json_text(name));
    event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", pid, tid, tid - first_thread_ + 1);
  }

  void begin_bar(int pid, std::int64_t tid, Picoseconds begin, Picoseconds end) {
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":)", pid, tid);
    put_microseconds(out_, begin);
    out_ += R"(,"dur":)";
    put_microseconds(out_, end - begin);
    out_ += R"(,"name":)";
  }

  /// A line of levels or operations.
  void write_bars(int pid, const std::string& line, const std::vector<LevelSpan>& spans, const std::vector<BarText>& texts) {
    name_thread(pid, next_thread_, line);
    for (const LevelSpan& span : spans) {
      begin_bar(pid, next_thread_, span.begin, span.end);
      if (span.number > 0)
        fmt::format_to(std::back_inserter(out_), R"("step {}")", span.number);
      else
        out_ += texts[span.of].name;
      out_ += R"(,"args":{)";
      out_ += std::string_view{texts[span.of].args}.substr(1);
      out_ += "}}";
    }
    ++next_thread_;
  }

  // ---- beside a measured step -------------------------------------------------------------------------------------------------------------

  void write_measured(DeviceId device) {
    if (extras_.measured == nullptr) return;
    const auto& all = extras_.measured->devices;
    const auto found = std::ranges::find_if(all, [&](const ProfiledDeviceStep& step) { return device_measured_as(step.device) == device; });
    if (found == all.end()) return;
    const SideBySide both = beside(model_, timeline_, device, *found, extras_.measured->names, extras_.layers);
    const int pid = device.value + 1;
    if (extras_.compared) extras_.compared(both.diff);
    const MatchCoverage coverage = coverage_of(both.diff);
    event(R"({{"ph":"M","pid":{},"name":"process_labels","args":{{"labels":"matched {} of {} predicted operations,{} of {} measured ones"}}}})", pid,
          coverage.predicted.matched, coverage.predicted.all, coverage.measured.matched, coverage.measured.all);
    std::vector<std::string> names;
    for (const std::string& name : both.names) names.push_back(json_text(std::string_view{name}.substr(0, longest_name)));
    name_thread(pid, next_thread_, "simulated operations");
    for (const ComparedEvent& e : both.simulated) write_compared(pid, next_thread_, e, names, e.matched ? "" : unmatched_colour);
    name_thread(pid, next_thread_ + 1, "measured operations");
    for (const ComparedEvent& e : both.measured) write_measured(pid, e, names);
    for (const auto& [simulated, measured] : both.pairs) write_match(pid, both.simulated[simulated], both.measured[measured]);
    next_thread_ += 2;
  }

  void write_compared(int pid, std::int64_t tid, const ComparedEvent& e, const std::vector<std::string>& names, std::string_view colour) {
    begin_bar(pid, tid, e.begin, e.end);
    out_ += names[e.name];
    if (!colour.empty()) fmt::format_to(std::back_inserter(out_), R"(,"cname":"{}")", colour);
    out_ += R"(,"args":{"category":)";
    out_ += names[e.category];
    if (e.late) put_arg(out_, "late_ps", e.late->count());
    if (tid == next_thread_) out_ += "}}";
  }

  void write_measured(int pid, const ComparedEvent& e, const std::vector<std::string>& names) {
    write_compared(pid, next_thread_ + 1, e, names, !e.matched ? unmatched_colour : e.pace == Pace::late ? "terrible" : e.pace == Pace::early ? "good" : "");
    put_arg(out_, "pace", e.matched ? name_of(e.pace) : "unmatched");
    out_ += "}}";
  }

  /// From the earlier one.
  void write_match(int pid, const ComparedEvent& simulated, const ComparedEvent& measured) {
    const bool forth = simulated.begin <= measured.begin;
    const ComparedEvent& to = forth ? measured : simulated;
    event(R"({{"ph":"s","pid":{},"tid":{},"ts":)", pid, next_thread_ + (forth ? 0 : 1));
    put_microseconds(out_, forth ? simulated.begin : measured.begin);
    fmt::format_to(std::back_inserter(out_), R"(,"id":{},"cat":"matched","name":"matched"}})", next_match_);
    event(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":)", pid, next_thread_ + (forth ? 1 : 0));
    put_microseconds(out_, to.begin + std::min(within_the_bar, (to.end - to.begin) / 2));
    fmt::format_to(std::back_inserter(out_), R"(,"id":{},"cat":"matched","name":"matched"}})", next_match_++);
  }

  // ---- counters --------------------------------------------------------------------------------------------------------------------------

  void begin_sample(int pid, Picoseconds at, const std::string& name) {
    event(R"({{"ph":"C","pid":{},"ts":)", pid);
    put_microseconds(out_, at);
    out_ += R"(,"name":)";
    out_ += name;
  }

  void write_counters(DeviceId device, const DeviceEvents& all) {
    constexpr std::int64_t parts = 1'000'000;
    const int pid = device.value + 1;
    const TrafficCounters traffic = traffic_of(model_, device, all);
    for (const auto& [name, samples] : traffic.directions) {
      const std::string text = json_text(name);
      for (const DirectionSample& sample : samples) {
        begin_sample(pid, sample.at, text);
        fmt::format_to(std::back_inserter(out_), R"(,"args":{{"bytes_in_flight":{},"bytes_per_second":{},"utilisation":{}.{:06}}}}})", sample.in_flight,
                       sample.rate, sample.used_ppm / parts, sample.used_ppm % parts);
      }
    }
    for (const auto& [name, samples] : traffic.axes) {
      const std::string text = json_text(name);
      for (const AxisSample& sample : samples) {
        begin_sample(pid, sample.at, text);
        fmt::format_to(std::back_inserter(out_), R"(,"args":{{"bytes_per_second":{}}}}})", sample.rate);
      }
    }
    for (const LiveMemory& live : lives_.over_time(device)) {
      begin_sample(pid, live.from, R"("memory")");
      fmt::format_to(std::back_inserter(out_), R"(,"args":{{"bytes":{}}}}})", live.size.count());
    }
  }

  // ---- tasks -----------------------------------------------------------------------------------------------------------------------------

  void write(DeviceId device, const TraceEvent& e, const TaskText& text) {
    using Kind = TraceEvent::Kind;
    begin_bar(device.value + 1, next_thread_ + e.line, e.begin, e.end);
    out_ += text.name;
    out_ += R"(,"args":)";
    const std::size_t args = out_.size();
    const bool half = e.kind == Kind::send || e.kind == Kind::receive;
    const bool share = e.kind == Kind::core_share;
    out_ += share ? text.collective : text.before_direction;
    if (e.sign != 0) put_arg(out_, "direction", e.sign < 0 ? '-' : '+');
    out_ += text.flops;
    if (half) put_arg(out_, "half", e.kind == Kind::send ? "send" : "receive"), put_arg(out_, "hops", e.hops);
    if (share)
      put_arg(out_, "op", "core-share");
    else
      out_ += text.op;
    if (half) put_arg(out_, "peer", e.peer.value);
    out_ += text.slice;
    out_[args] = '{';  // each arg begins with a comma
    out_ += "}}";
    if (half && std::binary_search(devices_.begin(), devices_.end(), e.peer)) write_arrow(device, e);
  }

  /// Perfetto orders events by time and wants the start of an arrow before its end, within bars that it has rounded to nanoseconds.
  void write_arrow(DeviceId device, const TraceEvent& e) {
    const bool sends = e.kind == TraceEvent::Kind::send;
    const Picoseconds at = sends ? e.begin : e.end - std::min(within_the_bar, (e.end - e.begin) / 2);
    event(R"({{"ph":"{}",{}"pid":{},"tid":{},"ts":)", sends ? 's' : 'f', sends ? "" : R"("bp":"e",)", device.value + 1, next_thread_ + e.line);
    put_microseconds(out_, at);
    fmt::format_to(std::back_inserter(out_), R"(,"id":{},"cat":"transfer","name":"transfer"}})", e.flow);
  }

  const Model& model_;
  const Timeline& timeline_;
  std::span<const DeviceId> devices_;
  Sink& sink_;
  const TraceExtras& extras_;
  std::vector<ProgramText> programs_;
  BufferLives lives_;
  std::int64_t next_thread_;       // of the lines that come next, of a device's tasks the first
  std::int64_t first_thread_ = 0;  // of the device
  std::int64_t next_match_ = 1;    // number of an arrow
  std::string out_;
  bool first_ = true;
};

}  // namespace

Status write_trace(const Model& model, const Timeline& timeline, std::span<const DeviceId> devices, const TraceMetadata& metadata, Sink& sink,
                   const TraceExtras& extras) {
  return TraceWriter{model, timeline, devices, sink, extras}.run(metadata);
}

std::optional<DeviceId> device_measured_as(std::string_view name) {
  const auto tpu = tpu_named(name), number = tpu ? tpu : gpu_named(name);
  if (!number) return std::nullopt;
  return DeviceId{*number};
}

std::string microseconds(Picoseconds time) {
  std::string text;
  put_microseconds(text, time);
  return text;
}

std::optional<std::string_view> slice_in(std::string_view label) {
  while (!label.empty()) {
    const std::string_view word = label.substr(0, label.find(' '));
    const std::string_view number = word.substr(std::min<std::size_t>(word.size(), 1));
    const bool digits = !number.empty() && std::all_of(number.begin(), number.end(), [](char c) { return '0' <= c && c <= '9'; });
    if (word.starts_with('s') && digits) return number;
    label.remove_prefix(std::min(label.size(), word.size() + 1));
  }
  return std::nullopt;
}

}  // namespace podsim
