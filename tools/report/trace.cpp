#include "tools/report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tools/report/device_events.hpp"
#include "tools/report/json.hpp"

namespace podsim {

namespace {

constexpr std::size_t buffered = 1U << 18;  // bytes between writes

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

class TraceWriter {
 public:
  TraceWriter(const Model& model, const Timeline& timeline, std::span<const DeviceId> devices, Sink& sink, bool tell_alike)
      : model_{model}, timeline_{timeline}, devices_{devices}, sink_{sink}, tell_alike_{tell_alike}, next_thread_{model.schedule->mesh.devices() + 1} {
    for (const Program& program : model.schedule->programs) {
      auto& texts = texts_.emplace_back();
      for (const Task& task : program.tasks) texts.push_back(text_of(model.schedule->mesh, program, task));
    }
  }

  Status run(const TraceMetadata& metadata) {
    out_ = R"({"displayTimeUnit":"ns","metadata":{"highres-ticks":true)";
    for (const auto& [key, value] : metadata) out_ += "," + json_text(key) + ":" + json_text(value);
    out_ += R"(},"traceEvents":[)";
    for (const DeviceId device : devices_) {
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
    if (tell_alike_)
      event(R"({{"ph":"M","pid":{},"name":"process_labels","args":{{"labels":"{} alike"}}}})", pid, model_.devices_in[model_.node_of[device.index()]]);
    const DeviceEvents all = events_of(model_, timeline_, device);
    for (std::size_t line = 0; line < all.lines.size(); ++line) {
      const std::int64_t tid = next_thread_ + static_cast<std::int64_t>(line);
      event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", pid, tid, json_text(all.lines[line]));
      event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", pid, tid, line + 1);
    }
    if (!all.events.empty()) {
      const std::uint32_t program = model_.deployment.places[model_.node_of[device.index()]].program;
      for (const TraceEvent& e : all.events) write(device, e, texts_[program][e.task.index()]);
    }
    next_thread_ += static_cast<std::int64_t>(all.lines.size());
  }

  void write(DeviceId device, const TraceEvent& e, const TaskText& text) {
    using Kind = TraceEvent::Kind;
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":)", device.value + 1, next_thread_ + e.line);
    put_microseconds(out_, e.begin);
    out_ += R"(,"dur":)";
    put_microseconds(out_, e.end - e.begin);
    out_ += R"(,"name":)";
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
    constexpr Picoseconds before_the_end{2000};
    const bool sends = e.kind == TraceEvent::Kind::send;
    const Picoseconds at = sends ? e.begin : e.end - std::min(before_the_end, (e.end - e.begin) / 2);
    event(R"({{"ph":"{}",{}"pid":{},"tid":{},"ts":)", sends ? 's' : 'f', sends ? "" : R"("bp":"e",)", device.value + 1, next_thread_ + e.line);
    put_microseconds(out_, at);
    fmt::format_to(std::back_inserter(out_), R"(,"id":{},"cat":"transfer","name":"transfer"}})", e.flow);
  }

  const Model& model_;
  const Timeline& timeline_;
  std::span<const DeviceId> devices_;
  Sink& sink_;
  bool tell_alike_;
  std::vector<std::vector<TaskText>> texts_;  // [program][task]
  std::int64_t next_thread_;                  // of the device's first line
  std::string out_;
  bool first_ = true;
};

}  // namespace

Status write_trace(const Model& model, const Timeline& timeline, std::span<const DeviceId> devices, const TraceMetadata& metadata, Sink& sink,
                   bool tell_alike) {
  return TraceWriter{model, timeline, devices, sink, tell_alike}.run(metadata);
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
