#include "tools/report/xplane_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "tools/report/device_events.hpp"
#include "tools/report/hlo_names.hpp"
#include "tools/report/lines.hpp"
#include "tools/report/operation_lines.hpp"
#include "validation/calibration/importers/profile_ops.hpp"
#include "validation/calibration/importers/xplane_writer.hpp"

namespace podsim {

namespace {

using Part = OperationEvent::Part;
using Stats = XPlaneNames::Stats;

constexpr std::int64_t step_number = 1;
constexpr std::int64_t derived_lines = -559038737;  // 0xdeadbeef in 32 bits: XProf's lines that are derived from a GPU's streams
constexpr std::string_view in_flight_line = "Async XLA Ops";

/// Numbers of an event's own.
using Numbers = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct Event {
  std::int64_t metadata = 0;
  Picoseconds begin, end;
  std::uint32_t numbers = 0;  // position in Line::numbers; equal ones are there once
};

/// A line of a plane while it is put together.
struct Line {
  std::int64_t id = 0;
  std::string name;
  std::vector<Event> events{};
  std::vector<Numbers> numbers{};
};

XPlaneLine written(const Line& line, Picoseconds makespan) {
  return {line.id, line.name, makespan.count(), [&line](const std::function<void(const XPlaneEvent&)>& visit) {
            for (const Event& event : line.events)
              visit({event.metadata, event.begin.count(), (event.end - event.begin).count(),
                     line.numbers.empty() ? std::span<const std::pair<std::int64_t, std::int64_t>>{} : line.numbers[event.numbers]});
          }};
}

/// "TPU v4" of tpu_v4.
std::string device_type(const Machine& machine) {
  std::string name = machine.name;
  if (!name.starts_with("tpu")) return name;
  name.replace(0, 3, "TPU");
  std::ranges::replace(name, '_', ' ');
  return name;
}

/// Rates that are limited, in the units of XProf.
void add_rate(Stats& stats, std::string_view name, double rate, double unit) {
  if (std::isfinite(rate) && rate > 0 && rate < std::numeric_limits<double>::max()) stats.emplace_back(name, rate / unit);
}

Stats capabilities(const Machine& machine) {
  const Chip& chip = machine.chip;
  const bool is_memory_limited = chip.hbm < Bytes{std::numeric_limits<std::int64_t>::max()};
  Stats stats{{"device_type_string", device_type(machine)}};
  if (!is_gpu(machine)) {
    add_rate(stats, "peak_teraflops_per_second", peak_of(machine, DType::bf16).count(), 1e12);
    add_rate(stats, "peak_hbm_bw_gigabytes_per_second", chip.hbm_bandwidth.count(), 1e9);
    stats.emplace_back("has_megacore", std::int64_t{machine.slices.cores_per_chip > chip.devices});
    return stats;
  }
  if (chip.hbm_bandwidth < unlimited<BytesPerSecond>) stats.emplace_back("memory_bandwidth", static_cast<std::uint64_t>(chip.hbm_bandwidth.count()));
  if (is_memory_limited) stats.emplace_back("memory_size", static_cast<std::uint64_t>(chip.hbm.count()));
  if (chip.matmul_units > 1) stats.emplace_back("core_count", static_cast<std::uint64_t>(chip.matmul_units));
  for (const auto& [word, vendor] : {std::pair{"NVIDIA", "Nvidia"}, {"AMD", "AMD"}})
    if (machine.description.find(word) != std::string::npos) stats.emplace_back("device_vendor", std::string{vendor});
  add_rate(stats, "peak_teraflops_per_second", peak_of(machine, DType::bf16).count(), 1e12);
  return stats;
}

/// The planes of one device.
class DevicePlanes {
 public:
  DevicePlanes(const Model& model, const Timeline& timeline, DeviceId device)
      : model_{model},
        timeline_{timeline},
        device_{device},
        program_{model.deployment.places[model.node_of[device.index()]].program},
        gpu_{is_gpu(*model.machine)},
        operations_{operation_lines(model, timeline, device)},
        events_{events_of(model, timeline, device)} {}

  Status write(XSpaceWriter& out, bool busiest, bool tell_alike) {
    if (Status ok = write_device(out, busiest, tell_alike); !ok) return ok;
    return write_links(out);
  }

 private:
  [[nodiscard]] std::int64_t id_of(std::int64_t line) const { return gpu_ ? derived_lines + line : line; }

  Status write_device(XSpaceWriter& out, bool busiest, bool tell_alike) {
    XPlaneOut plane{device_.value, fmt::format("/device:{}:{}", gpu_ ? "GPU" : "TPU", device_.value), {}, {}, capabilities(*model_.machine)};
    if (busiest) plane.stats.emplace_back(busiest_stat, std::int64_t{1});
    if (tell_alike) plane.stats.emplace_back("devices_alike", std::int64_t{model_.devices_in[model_.node_of[device_.index()]]});
    XPlaneNames& names = plane.names;
    const std::int64_t group = names.stat("group_id");
    name_operations();
    Line steps{id_of(gpu_ ? 0 : 1), "Steps"}, modules{id_of(gpu_ ? 4 : 2), "XLA Modules"}, ops{id_of(gpu_ ? 5 : 3), "XLA Ops"};
    Line in_flight{id_of(gpu_ ? 6 : 4), std::string{in_flight_line}};
    const Numbers of_step{{group, step_number}};
    steps.numbers = modules.numbers = ops.numbers = {of_step};
    steps.events.push_back({names.add({std::to_string(step_number), "", {{"step_name", std::to_string(step_number)}}}), {}, timeline_.makespan});
    if (const Picoseconds end = last_end(); program_ != no_device)
      modules.events.push_back({names.add({module_name(), "", {{"program_id", program_id()}, {"run_id", step_number}}}), {}, end});
    add_operations(names, ops, of_step);
    add_in_flight(names, in_flight, of_step);
    std::vector<Line> lines;
    if (gpu_) lines = streams(names, of_step);
    for (Line* line : {&steps, &modules, &ops, &in_flight})
      if (!line->events.empty()) lines.push_back(std::move(*line));
    for (const Line& line : lines) plane.lines.push_back(written(line, timeline_.makespan));
    return out.plane(std::move(plane));
  }

  [[nodiscard]] std::string module_name() const { return fmt::format("jit_{}({})", model_.schedule->name, program_ + 1); }
  [[nodiscard]] std::uint64_t program_id() const { return program_ + 1; }
  [[nodiscard]] Picoseconds last_end() const {
    Picoseconds last;
    for (const TraceEvent& event : events_.events) last = std::max(last, event.end);
    return last;
  }

  // ---- operations -----------------------------------------------------------------------------------------------------------------------

  /// The kinds of events of an operation; a Call's are those of its task.
  struct Known {
    HloName name;
    std::size_t number = 0;
    std::map<Part, std::int64_t> kinds{};
    std::int64_t kernel = 0;
  };

  /// Of a Call each one, as if the loop over microbatches were written out.
  [[nodiscard]] std::pair<std::uint32_t, std::size_t> key_of(const OperationOccurrence& occurrence) const {
    const bool call = model_.call(program_, occurrence.first.index()) != nullptr;
    return {occurrence.operation, call ? occurrence.first.index() + 1 : 0};
  }

  void name_operations() {
    const OperationTimeline& all = operations_.timeline;
    for (const OperationOccurrence& occurrence : all.occurrences) {
      const auto [known, added] = known_.try_emplace(key_of(occurrence));
      if (!added) continue;
      known->second.name = hlo_name(model_, program_, all.operations[occurrence.operation], occurrence.first, all.views[occurrence.operation]);
      known->second.number = known_.size();
    }
  }

  std::int64_t kind_of(const OperationEvent& event, XPlaneNames& names) {
    const OperationOccurrence& occurrence = operations_.timeline.occurrences[event.occurrence];
    Known& known = known_.at(key_of(occurrence));
    std::int64_t& kind = known.kinds[event.part];
    if (kind == 0) {
      const OperationMetrics& operation = operations_.timeline.operations[occurrence.operation];
      Stats stats{{"program_id", program_id()},
                  {"symbol_id", ++symbols_},
                  {"hlo_category", known.name.category_of(event.part)},
                  {"tf_op", known.name.provenance},
                  {"shape_with_layout", known.name.result}};
      if (event.part == Part::whole || event.part == Part::start) {
        if (operation.flops.count() > 0)
          for (const char* name : {"flops", "model_flops"}) stats.emplace_back(name, static_cast<std::int64_t>(operation.flops.count()));
        const auto bytes = std::llround(operation.memory_bytes / static_cast<double>(operation.count));
        if (bytes > 0)
          for (const char* name : {"bytes_accessed", "raw_bytes_accessed"}) stats.emplace_back(name, std::int64_t{bytes});
      }
      kind = names.add({known.name.text(event.part, known.number), known.name.name(event.part, known.number), std::move(stats)});
    }
    return kind;
  }

  /// What was in flight says how long the core was busy meanwhile: lines tell neither when it rests between its transfers nor whether the core works or waits.
  void add_operations(XPlaneNames& names, Line& line, const Numbers& of_step) {
    const std::int64_t overlapped = names.stat(overlapped_stat);
    for (const OperationEvent& event : operations_.core) {
      const OperationOccurrence& occurrence = operations_.timeline.occurrences[event.occurrence];
      const bool says = occurrence.flies && (event.part == Part::whole || event.part == Part::start);
      if (says) line.numbers.push_back({of_step.front(), {overlapped, occurrence.overlapped.count()}});
      line.events.push_back({kind_of(event, names), event.begin, event.end, says ? static_cast<std::uint32_t>(line.numbers.size() - 1) : 0});
    }
  }

  /// Asynchronous operations, numbered as they begin, and what the dma unit does.
  void add_in_flight(XPlaneNames& names, Line& line, const Numbers& of_step) {
    const std::int64_t flow = names.stat("flow");
    std::map<std::uint32_t, std::int64_t> kinds;  // by operation
    std::int64_t number = 0;
    line.numbers.push_back(of_step);
    for (const OperationEvent& event : operations_.in_flight) {
      const OperationOccurrence& occurrence = operations_.timeline.occurrences[event.occurrence];
      const Known& known = known_.at(key_of(occurrence));
      std::int64_t& kind = kinds[occurrence.operation];
      if (kind == 0)
        kind = names.add({known.name.text(Part::start, known.number),
                          known.name.name(Part::whole, known.number),
                          {{"hlo_op", known.name.name(Part::done, known.number)}, {"_a", std::int64_t{1}}, {"hlo_category", known.name.category}, {"tf_op", known.name.provenance}}});
      constexpr std::int64_t both_ways = 3;  // XProf: two bits of direction, then the number
      line.numbers.push_back({of_step.front(), {flow, ++number << 2 | both_ways}});
      line.events.push_back({kind, event.begin, event.end, static_cast<std::uint32_t>(line.numbers.size() - 1)});
    }
    std::map<std::string, std::int64_t> works;  // by label without slice
    for (const TraceEvent& event : events_.events) {
      if (!is_dma(event) || event.end == event.begin) continue;
      const Task& task = model_.task(program_, event.task.index());
      if (is_launch(task.op)) continue;  // a part of its Collective
      std::int64_t& kind = works[without_slice(task.label)];
      if (kind == 0)
        kind = names.add({without_slice(task.label), "", {{"_a", std::int64_t{1}}, {"hlo_category", std::string{"copy-start/done"}}, {"tf_op", fmt::format("jit({})/{}:", model_.schedule->name, without_slice(task.label))}}});
      line.events.push_back({kind, event.begin, event.end, 0});
    }
    std::ranges::stable_sort(line.events, [](const Event& a, const Event& b) { return std::pair{a.begin, a.end} < std::pair{b.begin, b.end}; });
  }

  [[nodiscard]] bool is_dma(const TraceEvent& event) const { return event.kind == TraceEvent::Kind::work && !event.on_core; }
  [[nodiscard]] static bool is_half(const TraceEvent& event) {
    return event.kind == TraceEvent::Kind::send || event.kind == TraceEvent::Kind::receive;
  }

  // ---- streams of a GPU -----------------------------------------------------------------------------------------------------------------

  /// Works of the core on the first stream, each collective in flight on one that is free.
  std::vector<Line> streams(XPlaneNames& names, const Numbers& of_step) {
    struct Kernel {
      Interval when;
      std::int64_t kind;
    };
    const std::int64_t correlation = names.stat("correlation_id");
    std::vector<Kernel> works, flights;
    for (const OperationEvent& event : operations_.core) {
      const OperationOccurrence& occurrence = operations_.timeline.occurrences[event.occurrence];
      if (!occurrence.flies && event.part == Part::whole && event.end > event.begin) works.push_back({{event.begin, event.end}, kernel_of(occurrence, names)});
    }
    for (const OperationOccurrence& occurrence : operations_.timeline.occurrences)
      if (occurrence.flies && occurrence.flight.end > occurrence.flight.begin && key_of(occurrence).second == 0)
        flights.push_back({occurrence.flight, kernel_of(occurrence, names)});
    const auto by_time = [](const Kernel& a, const Kernel& b) {
      return std::tuple{a.when.begin, a.when.end, a.kind} < std::tuple{b.when.begin, b.when.end, b.kind};
    };
    std::vector<Line> lines;
    std::int64_t number = 0;
    for (std::vector<Kernel>* kernels : {&works, &flights}) {
      std::ranges::sort(*kernels, by_time);
      std::vector<Interval> intervals;
      for (const Kernel& kernel : *kernels) intervals.push_back(kernel.when);
      const std::vector<std::uint32_t> allotted = allot_lines(intervals);
      const std::size_t before = lines.size();
      for (std::size_t i = 0; i < kernels->size(); ++i) {
        while (lines.size() <= before + allotted[i]) {
          const auto id = static_cast<std::int64_t>(lines.size()) + 1;
          lines.push_back({id, fmt::format("Stream #{}(Compute)", id)});
        }
        Line& line = lines[before + allotted[i]];
        line.numbers.push_back({of_step.front(), {correlation, ++number}});
        line.events.push_back({(*kernels)[i].kind, (*kernels)[i].when.begin, (*kernels)[i].when.end, static_cast<std::uint32_t>(line.numbers.size() - 1)});
      }
    }
    return lines;
  }

  std::int64_t kernel_of(const OperationOccurrence& occurrence, XPlaneNames& names) {
    Known& known = known_.at(key_of(occurrence));
    if (known.kernel != 0) return known.kernel;
    const bool own = !known.name.kernel.starts_with("nccl") && !known.name.kernel.starts_with("Memcpy");  // compiled, so that it has a number
    const std::string name = own ? fmt::format("{}_{}", known.name.kernel.empty() ? known.name.base : known.name.kernel, known.number) : known.name.kernel;
    const bool asynchronous = operations_.asynchronous[occurrence.operation];
    Stats stats{{"hlo_op", known.name.name(asynchronous ? Part::start : Part::whole, known.number)},
                {"hlo_module", "jit_" + model_.schedule->name},
                {"program_id", program_id()},
                {"tf_op", known.name.provenance}};
    return known.kernel = names.add({name, "", std::move(stats)});
  }

  // ---- links ----------------------------------------------------------------------------------------------------------------------------

  Status write_links(XSpaceWriter& out) {
    XPlaneOut plane{device_.value, fmt::format("/device:CUSTOM:ici:{}", device_.value), {}, {}, {}};
    XPlaneNames& names = plane.names;
    const std::int64_t peer = names.stat("peer"), hops = names.stat("hops"), flow = names.stat("flow");
    std::map<std::pair<TaskId, int>, std::int64_t> kinds;  // by task and direction
    std::map<std::tuple<int, std::uint32_t, std::int64_t>, std::uint32_t> known;
    std::vector<Line> lines;
    std::uint32_t line = std::numeric_limits<std::uint32_t>::max();
    for (const TraceEvent& event : events_.events) {
      if (!is_half(event)) continue;
      if (event.line != line) {
        line = event.line;
        lines.push_back({static_cast<std::int64_t>(lines.size()) + 1, events_.lines[line]});
      }
      std::int64_t& kind = kinds[{event.task, event.sign}];
      if (kind == 0) kind = names.add(named_transfer(event));
      lines.back().numbers.push_back({{peer, event.peer.value}, {hops, event.hops}, {flow, transfer(event)}});
      lines.back().events.push_back({kind, event.begin, event.end, static_cast<std::uint32_t>(lines.back().numbers.size() - 1)});
    }
    if (lines.empty()) return success();
    for (const Line& each : lines) plane.lines.push_back(written(each, timeline_.makespan));
    return out.plane(std::move(plane));
  }

  [[nodiscard]] static std::int64_t transfer(const TraceEvent& event) {
    constexpr std::int64_t in = 1, out = 2;
    return event.flow << 2 | (event.kind == TraceEvent::Kind::send ? out : in);
  }

  [[nodiscard]] XPlaneNames::Event named_transfer(const TraceEvent& event) const {
    const Program& program = model_.schedule->programs[program_];
    const Task& task = program.tasks[event.task.index()];
    XPlaneNames::Event named{task.label, "", {}};
    Bytes bytes;
    if (const auto* shift = std::get_if<Shift>(&task.op)) {
      bytes = bytes_of(program, shift->source);
      named.stats.emplace_back("axis", model_.schedule->mesh.name(shift->axis));
      named.stats.emplace_back("direction", std::string{event.sign < 0 ? "-" : "+"});
    } else if (const auto* send = std::get_if<Send>(&task.op)) {
      bytes = bytes_of(program, send->source);
    } else if (const auto* recv = std::get_if<Recv>(&task.op)) {
      bytes = bytes_of(program, recv->target);
    }
    named.stats.emplace_back("payload_size_bytes", bytes.count());
    if (task.origin) named.stats.emplace_back("hlo_category", std::string{name_of(task.origin->kind)});
    return named;
  }

  const Model& model_;
  const Timeline& timeline_;
  DeviceId device_;
  std::uint32_t program_;
  bool gpu_;
  OperationLines operations_;
  DeviceEvents events_;
  std::map<std::pair<std::uint32_t, std::size_t>, Known> known_;
  std::uint64_t symbols_ = 0;  // names of operations so far
};

}  // namespace

Status write_xplane(const Model& model, const Timeline& timeline, const ProfiledHost& host, Sink& sink) {
  XSpaceWriter out{[&sink](std::string_view bytes) { sink.write(bytes); }};
  if (Status ok = out.plane({0, "/host:CPU", {}, {}, {}}); !ok) return ok;
  for (const DeviceId device : host.devices) {
    if (sink.failed()) break;
    if (host.progress != nullptr) host.progress->begin(device);
    if (Status ok = DevicePlanes{model, timeline, device}.write(out, device == host.busiest, host.tell_alike); !ok) return ok;
  }
  out.hostname(host.name);
  return sink.finish();
}

}  // namespace podsim
