#include "validation/calibration/importers/trace_json.hpp"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/text.hpp"
#include "validation/calibration/importers/json_elements.hpp"
#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

namespace {

namespace json = simdjson::ondemand;

/// What an event has of the fields that matter. The texts are good until the next event is read.
struct TraceEvent {
  std::string_view phase, name, args_name, long_name, category, provenance;
  std::int64_t pid = 0, tid = 0;
  double begin_us = 0, duration_us = 0, flops = 0, device_duration_ps = 0;
};

/// Numbers in args are written as strings.
double number_in(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::isfinite(value) ? value : 0;
}

simdjson::error_code read_args(json::value args, TraceEvent& event) {
  json::object fields;
  if (const auto error = args.get_object().get(fields)) return error;
  for (auto field : fields) {
    std::string_view key, text;
    if (const auto error = field.unescaped_key().get(key)) return error;
    json::value value;
    if (const auto error = field.value().get(value)) return error;
    json::json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type != json::json_type::string) continue;
    if (const auto error = value.get_string().get(text)) return error;
    if (key == "name") event.args_name = text;
    if (key == "long_name") event.long_name = text;
    if (key == "hlo_category") event.category = text;
    if (key == "tf_op") event.provenance = text;
    if (key == "model_flops") event.flops = number_in(text);
    if (key == "device_duration_ps") event.device_duration_ps = number_in(text);
  }
  return simdjson::SUCCESS;
}

simdjson::error_code read_field(std::string_view key, json::value value, TraceEvent& event) {
  if (key == "ph") return value.get_string().get(event.phase);
  if (key == "name") return value.get_string().get(event.name);
  if (key == "pid") return value.get_int64().get(event.pid);
  if (key == "tid") return value.get_int64().get(event.tid);
  if (key == "ts") return value.get_double().get(event.begin_us);
  if (key == "dur") return value.get_double().get(event.duration_us);
  if (key == "args") return read_args(value, event);
  return simdjson::SUCCESS;
}

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
      text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
      if (Status event = read_event(text); !event) return event.error();
    }
    if (!elements_.found_array()) return Diagnostic{{file_}, "there is no array traceEvents"};
    return finish();
  }

 private:
  using Thread = std::pair<std::int64_t, std::int64_t>;  // process, thread

  [[nodiscard]] Diagnostic broken(std::string_view key, simdjson::error_code error) const {
    const std::string field = key.empty() ? std::string{} : "its field " + quoted(key) + ": ";
    return {elements_.where(), "this event cannot be read: " + field + simdjson::error_message(error)};
  }
  Status read_event(const std::string& text);
  void use(const TraceEvent& event);
  [[nodiscard]] ReadProfile finish() const;

  const std::string& file_;
  ProfileSink& sink_;
  JsonElements elements_;
  json::parser parser_;
  std::optional<double> origin_us_;  // the time of the first event, from which the others count: times since 1970 would not fit picoseconds
  std::map<std::int64_t, std::string> processes_;
  std::map<Thread, std::string> threads_;
  std::map<Thread, ProfileLine> lines_;
};

Status TraceReader::read_event(const std::string& text) {
  json::document document;
  if (const auto error = parser_.iterate(text.data(), text.size(), text.capacity()).get(document)) return broken({}, error);
  json::object fields;
  if (const auto error = document.get_object().get(fields)) return broken({}, error);
  TraceEvent event;
  for (auto field : fields) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return broken({}, error);
    json::value value;
    if (const auto error = field.value().get(value)) return broken(key, error);
    if (const auto error = read_field(key, value, event)) return broken(key, error);
  }
  use(event);
  return success();
}

void TraceReader::use(const TraceEvent& event) {
  const Thread thread{event.pid, event.tid};
  if (event.phase == "M" && event.name == "process_name") processes_[event.pid] = std::string{event.args_name};
  if (event.phase == "M" && event.name == "thread_name") threads_[thread] = std::string{event.args_name};
  if (event.phase != "X") return;
  // Lines whose names came before and are not asked for need not be kept; the others are sorted out at the end.
  if (const auto named = threads_.find(thread); named != threads_.end() && !sink_.takes(named->second)) return;
  if (!origin_us_) origin_us_ = event.begin_us;
  const double span_ps = event.duration_us * 1e6, begin_ps = (event.begin_us - *origin_us_) * 1e6;
  const double duration_ps = event.device_duration_ps > 0 ? event.device_duration_ps : span_ps;
  constexpr double most = 2e18;  // sums of a few fit 64 bits
  if (!(duration_ps > 0) || duration_ps > most || !(std::abs(begin_ps) < most) || !(std::abs(span_ps) < most)) return;
  const ProfileLine line = lines_.emplace(thread, lines_.size()).first->second;
  sink_.add(line, {event.name, event.long_name.empty() ? event.name : event.long_name, event.category, Flops{event.flops}, std::llround(begin_ps),
                   std::llround(duration_ps), std::llround(span_ps), std::nullopt, event.provenance});
}

ReadProfile TraceReader::finish() const {
  ReadProfile profile;
  std::map<std::int64_t, std::size_t> devices;  // by process
  std::size_t others = 0;
  for (const auto& [pid, name] : processes_) {
    others += name.starts_with("/device:GPU:") ? 1 : 0;
    if (!tpu_named(name)) continue;
    devices.emplace(pid, profile.devices.size());
    profile.devices.push_back({name, {}});
  }
  for (const auto& [thread, line] : lines_) {
    const auto device = devices.find(thread.first);
    const auto name = threads_.find(thread);
    if (device != devices.end() && name != threads_.end() && sink_.takes(name->second))
      profile.devices[device->second].lines.emplace(name->second, line);
  }
  std::erase_if(profile.devices, [](const ReadProfile::Device& device) { return device.lines.empty(); });
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
