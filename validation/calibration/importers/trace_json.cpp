#include "validation/calibration/importers/trace_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/text.hpp"
#include "validation/calibration/importers/json_elements.hpp"
#include "validation/calibration/importers/kineto_kernels.hpp"
#include "validation/calibration/importers/profile_ops.hpp"
#include "validation/calibration/importers/trace_event.hpp"

namespace podsim {

namespace {

class TraceReader {
 public:
  TraceReader(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink)
      : file_{file}, sink_{sink}, elements_{std::move(bytes), file, "traceEvents"} {}

  Expected<ReadProfile> read() {
    std::string text;
    while (true) {
      const auto more = elements_.next(text);
      if (!more) return more.error();
      if (!*more) break;
      const auto event = parser_.parse(text, elements_.where());
      if (!event) return event.error();
      if (Status used = KinetoKernels::takes(event->kind) ? kineto_.add(*event, elements_.where()) : use(*event); !used) return used.error();
    }
    if (!elements_.found_array()) return Diagnostic{{file_}, "there is no array traceEvents"};
    return finish();
  }

 private:
  using Thread = std::pair<std::int64_t, std::int64_t>;  // process, thread

  Status use(const ChromeTraceEvent& event);
  [[nodiscard]] ReadProfile finish() const;

  const std::string& file_;
  ProfileSink& sink_;
  JsonElements elements_;
  TraceEventParser parser_;
  KinetoKernels kineto_;
  std::optional<double> origin_us_;  // the time of the first event, from which the others count: times since 1970 would not fit picoseconds
  std::map<std::int64_t, std::string> processes_;
  std::map<Thread, std::string> threads_;
  std::map<Thread, ProfileLine> lines_;
};

Status TraceReader::use(const ChromeTraceEvent& event) {
  const Thread thread{event.pid, event.tid};
  if (event.phase == "M" && event.name == "process_name") processes_[event.pid] = std::string{event.args_name};
  if (event.phase == "M" && event.name == "thread_name") threads_[thread] = std::string{event.args_name};
  if (event.phase != "X") return success();
  // Lines whose names came before and are not asked for need not be kept; the others are sorted out at the end.
  const auto named = threads_.find(thread);
  if (named != threads_.end() && !sink_.takes(named->second)) return success();
  const double begin_us = event.begin_us.value_or(0), duration_us = event.duration_us.value_or(0);
  if (!origin_us_) origin_us_ = begin_us;
  const double span_ps = duration_us * 1e6, begin_ps = (begin_us - *origin_us_) * 1e6;
  const double duration_ps = event.device_duration_ps > 0 ? event.device_duration_ps : span_ps;
  const bool is_kernel = event.long_name.empty() && (event.has_correlation || !event.hlo_op.empty() || (named != threads_.end() && is_stream(named->second)));
  if (is_kernel && duration_us < 0) return Diagnostic{elements_.where(), fmt::format("expected a duration of 0 or more of the kernel {}, found {} us", quoted(event.name), duration_us)};
  constexpr double most = 2e18;  // sums of a few fit 64 bits
  if (!(duration_ps > 0) || duration_ps > most || !(std::abs(begin_ps) < most) || !(std::abs(span_ps) < most)) return success();
  const ProfileLine line = lines_.emplace(thread, lines_.size()).first->second;
  ProfileEvent told{event.name, event.long_name.empty() ? event.name : event.long_name, event.hlo_category, Flops{event.flops}, std::llround(begin_ps),
                    std::llround(duration_ps), std::llround(span_ps), std::nullopt, event.provenance};
  if (is_kernel) {
    told.kernel = event.name, told.node = node_of_graph(event.graph_node), told.provenance = provenance_of_kernel(event.provenance);
    tell_operation(told, event.hlo_op);
  }
  sink_.add(line, told);
  return success();
}

ReadProfile TraceReader::finish() const {
  ReadProfile profile;
  std::map<std::int64_t, std::size_t> devices;  // by process
  for (const auto& [pid, name] : processes_) {
    if (!tpu_named(name) && !gpu_named(name)) continue;
    devices.emplace(pid, profile.devices.size());
    profile.devices.push_back({name, {}});
  }
  for (const auto& [thread, line] : lines_) {
    const auto device = devices.find(thread.first);
    const auto name = threads_.find(thread);
    if (device != devices.end() && name != threads_.end() && sink_.takes(name->second))
      profile.devices[device->second].lines.emplace(name->second, line);
  }
  const auto without = [](const ReadProfile::Device& device) { return device.lines.empty(); };
  const auto others = std::ranges::count_if(profile.devices, [&](const ReadProfile::Device& device) { return without(device) && gpu_named(device.name); });
  std::erase_if(profile.devices, without);
  kineto_.finish(sink_, lines_.size(), elements_.rest(), profile);
  if (others > 0) profile.notes.push_back(counted(others, "GPU") + " skipped: kernels of collectives do not tell their sizes");
  return profile;
}

}  // namespace

Expected<ReadProfile> read_trace_json(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink) {
  return TraceReader{std::move(bytes), file, sink}.read();
}

Expected<Imported> import_trace_json(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options) {
  ProfileOps ops;
  const auto profile = read_trace_json(std::move(bytes), file, ops);
  if (!profile) return profile.error();
  return ops.finish(*profile, file, options);
}

}  // namespace podsim
