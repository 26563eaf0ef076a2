#include "tools/command/trace_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "tools/report/trace.hpp"

namespace podsim {

namespace {

constexpr int shown_unasked = 16;  // devices that a screen takes

std::vector<DeviceId> first_devices(int count) {
  std::vector<DeviceId> devices;
  for (int d = 0; d < count; ++d) devices.emplace_back(d);
  return devices;
}

/// nullopt: no whole number that fits.
std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || rest != text.data() + text.size() || !('0' <= text.front() && text.front() <= '9')) return std::nullopt;
  return number;
}

}  // namespace

OptionGroup trace_options() {
  return {{"trace", output_file("FILE"),
       "write when everything happened, for ui.perfetto.dev or\nchrome://tracing: FILE.json or FILE.json.gz"},
          {"trace-devices", word("N[-M][,...]|all"),
       "which devices are in the trace, as 0,3,8-11; left out: all,\nor of more than 16 the first 16"}};
}

Expected<std::vector<DeviceId>> devices_named(const std::string& text, int count, const SourceLocation& where) {
  if (text == "all") return first_devices(count);
  std::set<DeviceId> devices;
  for (const std::string& piece : split(text)) {
    const std::size_t dash = piece.find('-');
    const auto first = number_in(std::string_view{piece}.substr(0, dash));
    const auto last = dash == std::string::npos ? first : number_in(std::string_view{piece}.substr(dash + 1));
    if (!first || !last || *last < *first) return Diagnostic{where, "expected devices as 0,3,8-11 or all, found " + quoted(piece)};
    if (*last >= count) return Diagnostic{where, fmt::format("expected devices below {}, found {}", count, *last)};
    for (int d = *first; d <= *last; ++d) devices.emplace(d);
  }
  return std::vector<DeviceId>(devices.begin(), devices.end());
}

std::string to_text(const std::vector<DeviceId>& increasing) {
  std::string text;
  for (std::size_t i = 0, last = 0; i < increasing.size(); i = last + 1) {
    for (last = i; last + 1 < increasing.size() && increasing[last + 1].value == increasing[last].value + 1;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", increasing[i].value);
    if (last > i) text += fmt::format("-{}", increasing[last].value);
  }
  return text;
}

Expected<std::optional<TraceRequest>> trace_request(const Options& options, int devices) {
  if (!options.has("trace")) {
    if (options.has("trace-devices")) return Diagnostic{option("trace-devices"), "expected --trace FILE beside it, found none"};
    return std::optional<TraceRequest>{};
  }
  const std::string& path = options.text("trace");
  if (!path.ends_with(".json") && !path.ends_with(".json.gz"))
    return Diagnostic{option("trace"), "expected a file name that ends in .json or .json.gz, found " + quoted(path)};
  TraceRequest request;
  if (options.has("trace-devices")) {
    auto named = devices_named(options.text("trace-devices"), devices, option("trace-devices"));
    if (!named) return named.error();
    request.devices = *std::move(named);
  } else {
    request.devices = first_devices(std::min(devices, shown_unasked));
    if (devices > shown_unasked)
      request.note = fmt::format("the trace has devices {} of {}; --trace-devices chooses others", to_text(request.devices), devices);
  }
  auto sink = open_sink(path);
  if (!sink) return sink.error();
  request.sink = *std::move(sink);
  return std::optional<TraceRequest>{std::move(request)};
}

Status write_trace(const TraceRequest& request, const Run& run) {
  const Result& result = run.row.result;
  const Mesh& mesh = run.lowered->mesh;
  const TraceMetadata metadata{
      {"podsim_version", PODSIM_VERSION},
      {"machine", result.machine},
      {"slice", result.slice},
      {"mesh", to_text(mesh)},
      {"schedule", result.schedule},
      {"engine", result.engine},
      {"makespan_us", microseconds(run.timeline.makespan)},
      {"devices", fmt::format("{} of {}", to_text(request.devices), mesh.devices())},
  };
  return write_trace(run.model, run.timeline, request.devices, metadata, *request.sink);
}

}  // namespace podsim
