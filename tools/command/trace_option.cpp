#include "tools/command/trace_option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>

#include "tools/report/trace.hpp"
#include "tools/report/xplane_trace.hpp"
#include "validation/diff/match_coverage.hpp"

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

constexpr std::string_view profile_end = ".xplane.pb";

/// nullopt: a file of another kind.
std::optional<TraceRequest::Form> form_of(const std::string& path) {
  std::error_code unknown;
  if (path.ends_with('/') || std::filesystem::is_directory(path, unknown)) return TraceRequest::Form::folder;
  if (path.ends_with(".json") || path.ends_with(".json.gz")) return TraceRequest::Form::json;
  if (path.ends_with(profile_end)) return TraceRequest::Form::xplane;
  const std::string last = std::filesystem::path{path}.filename().string();
  if (!last.empty() && last.find('.') == std::string::npos) return TraceRequest::Form::folder;
  return std::nullopt;
}

/// The hosts of these devices, by number.
std::map<int, std::vector<DeviceId>> hosts_among(const System& system, const std::vector<DeviceId>& devices) {
  const std::vector<int> host_of = hosts_of(system);
  std::map<int, std::vector<DeviceId>> hosts;
  for (const DeviceId device : devices) hosts[host_of[device.index()]].push_back(device);
  return hosts;
}

std::string host_name(int host) { return fmt::format("host-{}", host); }

std::string file_of_host(const std::string& folder, int host) { return fmt::format("{}/{}{}", folder, host_name(host), profile_end); }

/// Removes profiles of hosts that this run has none of, and what XProf derived from profiles that are replaced.
void remove_former(const std::string& folder, const std::map<int, std::vector<DeviceId>>& hosts) {
  std::set<std::string> kept;
  for (const auto& [host, devices] : hosts) kept.insert(host_name(host) + std::string{profile_end});
  std::error_code ignored;
  std::vector<std::filesystem::path> former;
  for (const auto& entry : std::filesystem::directory_iterator{folder, ignored}) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.starts_with("host-") && name.ends_with(profile_end) && !kept.contains(name);
    const bool derived = name.ends_with(".op_stats_v2.pb") || name.ends_with(".SSTABLE") || name.ends_with(".xplane.riegeli");
    if (ours || derived) former.push_back(entry.path());
  }
  for (const auto& path : former) std::filesystem::remove(path, ignored);
}

Status write_profiles(TraceRequest& request, const Run& run, WritingProgress& progress) {
  const auto hosts = hosts_among(*run.system, request.devices);
  std::vector<std::unique_ptr<Sink>> sinks;
  for (const auto& [host, devices] : hosts) {
    if (host == request.opened_host) {
      sinks.push_back(std::move(request.sink));
    } else {
      auto sink = open_sink(file_of_host(request.path, host));
      if (!sink) return sink.error();
      sinks.push_back(*std::move(sink));
    }
    if (auto ok = write_xplane(run.model, run.timeline, {host_name(host), devices, run.metrics.busiest, &progress, request.representatives}, *sinks.back()); !ok) return ok;
  }
  for (const auto& sink : sinks)
    if (auto ok = sink->close(); !ok) return ok;
  remove_former(request.path, hosts);
  request.folders.keep();
  return success();
}

}  // namespace

Expected<NewFolders> NewFolders::make(const std::string& path) {
  NewFolders folders;
  std::filesystem::path whole;
  for (const auto& part : std::filesystem::path{path}) {
    whole /= part;
    std::error_code error;
    if (std::filesystem::create_directory(whole, error)) folders.made_.push_back(whole.string());
    if (error == std::errc::file_exists) error = std::make_error_code(std::errc::not_a_directory);
    if (error) return Diagnostic{{path}, "cannot make the folder: " + error.message(), Cause::environment};
  }
  return folders;
}

NewFolders::~NewFolders() {
  std::error_code ignored;
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) std::filesystem::remove(*folder, ignored);
}

OptionGroup trace_options() {
  return {{"trace", output_file("FILE|DIR"),
       "write when everything happened, for ui.perfetto.dev or chrome://tracing: FILE.json or FILE.json.gz; as a profile for XProf and podsim diff: FILE.xplane.pb, or DIR for TensorBoard, a file per host", true},
          {"trace-devices", word("N[-M][,...]|all|representatives"),
       "which devices are in the trace, as 0,3,8-11; representatives: one of each class of a folded run, with how many are alike; left out: all, or of more than 16 the first 16"},
          {"with", input_file("PROFILE", files_of_profile),
       "put a measured step into --trace FILE.json, beside the simulated operations of each device and joined to them as podsim diff matches them: *.xplane.pb, *.trace.json[.gz], or the folder that TensorBoard shows, of which the last run counts"},
          {"with-step", word("N"), "which step of --with, from 1; left out: the median by time"}};
}

Expected<std::vector<DeviceId>> devices_named(const std::string& text, int count, const SourceLocation& where) {
  if (text == "all") return first_devices(count);
  std::set<DeviceId> devices;
  for (const std::string& piece : split(text)) {
    const std::size_t dash = piece.find('-');
    const auto first = number_in(std::string_view{piece}.substr(0, dash));
    const auto last = dash == std::string::npos ? first : number_in(std::string_view{piece}.substr(dash + 1));
    if (!first || !last || *last < *first) return Diagnostic{where, "expected devices as 0,3,8-11, all or representatives, found " + quoted(piece)};
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

namespace {

/// --with, --with-step
Expected<ProfiledStep> measured_step(const Options& options, const System& system, TraceRequest& request) {
  const std::string& path = options.text("with");
  if (request.form != TraceRequest::Form::json)
    return Diagnostic{option("with"), "expected --trace FILE.json or FILE.json.gz beside it, found " + quoted(options.text("trace"))};
  const auto files = find_profile(path);
  if (!files) return files.error();
  if (files->form.empty())
    return Diagnostic{option("with"), "expected a profile with a timeline, *.xplane.pb, *.trace.json, *.trace.json.gz or a folder, found " + quoted(path)};
  StepChoice choice;
  if (options.has("with-step")) {
    const auto asked = options.integer("with-step", 1, std::numeric_limits<int>::max());
    if (!asked) return asked.error();
    choice.number = static_cast<int>(*asked);
  }
  choice.takes = [&](std::string_view name) {
    const auto device = device_measured_as(name);
    return device && device->value < system.mesh.devices() && (request.representatives || std::ranges::binary_search(request.devices, *device));
  };
  auto step = profile_step(*files, {}, choice);
  if (!step) return step.error();
  std::vector<DeviceId> beside;
  for (const ProfiledDeviceStep& measured : step->devices) beside.push_back(*device_measured_as(measured.device));
  std::ranges::sort(beside);
  request.notes.push_back(
      fmt::format("step {} of {} of {} is beside device{} {}", step->number, step->steps, path, beside.size() > 1 ? "s" : "", to_text(beside)));
  request.notes.insert(request.notes.end(), step->notes.begin(), step->notes.end());
  return step;
}

}  // namespace

Expected<std::optional<TraceRequest>> trace_request(const Options& options, const System& system) {
  const int devices = system.mesh.devices();
  if (options.has("with-step") && !options.has("with")) return Diagnostic{option("with-step"), "expected --with PROFILE beside it, found none"};
  if (!options.has("trace")) {
    for (const char* name : {"trace-devices", "with"})
      if (options.has(name)) return Diagnostic{option(name), "expected --trace FILE beside it, found none"};
    return std::optional<TraceRequest>{};
  }
  const std::string& path = options.text("trace");
  const auto form = form_of(path);
  if (!form) return Diagnostic{option("trace"), "expected a folder, or a file name that ends in .json, .json.gz or .xplane.pb, found " + quoted(path)};
  TraceRequest request;
  request.form = *form;
  request.path = path;
  if (options.has("trace-devices") && options.text("trace-devices") == "representatives") {
    request.representatives = true;
  } else if (options.has("trace-devices")) {
    auto named = devices_named(options.text("trace-devices"), devices, option("trace-devices"));
    if (!named) return named.error();
    request.devices = *std::move(named);
  } else {
    request.devices = first_devices(std::min(devices, shown_unasked));
    if (devices > shown_unasked)
      request.notes.push_back(fmt::format("the trace has devices {} of {}; --trace-devices chooses others", to_text(request.devices), devices));
  }
  if (options.has("with")) {
    auto step = measured_step(options, system, request);
    if (!step) return step.error();
    request.measured = *std::move(step);
  }
  std::string file = path;
  if (request.form == TraceRequest::Form::folder) {
    request.path = (std::filesystem::path{path} / "plugins" / "profile" / "podsim").string();
    auto folders = NewFolders::make(request.path);
    if (!folders) return folders.error();
    request.folders = *std::move(folders);
    // Device 0 is the first of its class, so that its host has a file whichever classes there are.
    request.opened_host = hosts_among(system, request.representatives ? first_devices(1) : request.devices).begin()->first;
    file = file_of_host(request.path, request.opened_host);
  }
  auto sink = open_sink(file);
  if (!sink) return sink.error();
  request.sink = *std::move(sink);
  return std::optional<TraceRequest>{std::move(request)};
}

Status write_trace(TraceRequest& request, const Run& run, const WritingProgress::Counting& counting) {
  if (request.representatives) {
    request.devices.assign(run.model.device_of.begin(), run.model.device_of.end());
    std::ranges::sort(request.devices);
  }
  WritingProgress progress{run.model, request.devices, counting};
  if (request.form == TraceRequest::Form::folder) return write_profiles(request, run, progress);
  if (request.form == TraceRequest::Form::xplane) {
    std::string host = std::filesystem::path{request.path}.filename().string();
    host.resize(host.size() - profile_end.size());
    if (auto ok = write_xplane(run.model, run.timeline, {host, request.devices, run.metrics.busiest, &progress, request.representatives}, *request.sink); !ok) return ok;
    return request.sink->close();
  }
  const Result& result = run.row.result;
  const Mesh& mesh = run.lowered->mesh;
  TraceMetadata metadata{
      {"podsim_version", PODSIM_VERSION},
      {"machine", result.machine},
      {"slice", result.slice},
      {"mesh", to_text(mesh)},
      {"schedule", result.schedule},
      {"engine", result.engine},
      {"makespan_us", microseconds(run.timeline.makespan)},
      {"devices", fmt::format("{} of {}", to_text(request.devices), mesh.devices())},
  };
  TraceExtras extras{request.representatives};
  extras.progress = &progress;
  const std::vector<LedgerRow> ledger = collective_ledger(run);
  extras.ledger = &ledger;
  if (request.measured) {
    metadata.emplace_back("measured_step", fmt::format("{} of {}", request.measured->number, request.measured->steps));
    extras.measured = &*request.measured;
    extras.layers = run.row.problem.blocks;
  }
  MatchCoverage coverage;
  extras.compared = [&coverage](const StepDiff& diff) { coverage += coverage_of(diff); };
  if (auto ok = write_trace(run.model, run.timeline, request.devices, metadata, *request.sink, extras); !ok) return ok;
  if (!request.measured) return success();
  request.notes.push_back(to_text(coverage));
  if (std::string warning = warning_of(coverage); !warning.empty()) request.warnings.push_back(std::move(warning));
  return success();
}

}  // namespace podsim
