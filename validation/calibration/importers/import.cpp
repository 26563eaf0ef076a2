#include "validation/calibration/importers/import.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/text.hpp"
#include "validation/calibration/importers/hlo_stats.hpp"
#include "validation/calibration/importers/meshslice_log.hpp"
#include "validation/calibration/importers/nccl_inspector.hpp"
#include "validation/calibration/importers/nccl_json.hpp"
#include "validation/calibration/importers/nccl_tests.hpp"
#include "validation/calibration/importers/osu.hpp"
#include "validation/calibration/importers/profile_files.hpp"
#include "validation/calibration/importers/trace_json.hpp"
#include "validation/calibration/importers/training_log.hpp"
#include "validation/calibration/importers/xplane.hpp"

namespace podsim {

namespace {

constexpr std::size_t longest_text = std::size_t{1} << 28;

constexpr double as_measured_again = 1.2;  // of two times of one product

/// Products that are listed again with another time: two tables in one file, or what a machine did on another day.
std::string note_on_repeated(const std::vector<Observation>& observations) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::optional<DType>>, std::pair<Seconds, Seconds>> times;
  for (const Observation& o : observations) {
    if (o.op != ObservedOp::matmul) continue;
    const auto [at, is_new] = times.try_emplace({o.m, o.n, o.k, o.dtype}, o.time, o.time);
    at->second = {std::min(at->second.first, o.time), std::max(at->second.second, o.time)};
  }
  std::size_t count = 0;
  double largest = 1;
  for (const auto& [product, range] : times) {
    const double ratio = range.second.count() / range.first.count();
    count += ratio > as_measured_again ? 1 : 0;
    largest = std::max(largest, ratio);
  }
  if (count == 0) return {};
  return fmt::format("{} product{} listed again with times that differ, by up to {:.2g} times; every row counts", count, count == 1 ? " is" : "s are",
                     largest);
}

Expected<Imported> import_csv(std::string_view text, const std::string& file, const ImportOptions&) {
  auto observations = read_observations(text, file);
  if (!observations) return observations.error();
  Imported imported{*std::move(observations), {}};
  if (std::string note = note_on_repeated(imported.observations); !note.empty()) imported.notes.push_back(std::move(note));
  return imported;
}

/// A format that is read whole.
template <Expected<Imported> (*import)(std::string_view, const std::string&, const ImportOptions&)>
Expected<Imported> whole(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options) {
  const auto text = read_all(*bytes, longest_text, file);
  if (!text) return text.error();
  return import(*text, file, options);
}

bool has(std::string_view head, std::string_view text) { return head.find(text) != std::string_view::npos; }
bool any_line_begins(std::string_view head, std::initializer_list<std::string_view> beginnings) {
  for (std::size_t at = 0; at < head.size(); at = std::min(head.find('\n', at), head.size() - 1) + 1)
    for (const std::string_view beginning : beginnings)
      if (head.substr(at).starts_with(beginning)) return true;
  return false;
}
/// An object, or an array of them: a log may begin with [rank0].
bool is_json(std::string_view head) {
  head = trimmed(head);
  return head.starts_with('{') || (head.starts_with('[') && trimmed(head.substr(1)).starts_with('{'));
}
bool is_csv(std::string_view head, std::string_view) { return any_line_begins(head, {"op,", "m,n,k,"}); }
bool is_nccl_json(std::string_view head, std::string_view) {
  return is_json(head) && ((has(head, "\"size\"") && (has(head, "\"busBw\"") || has(head, "\"bus_bw\""))) || (has(head, "\"nccl_version\"") && has(head, "\"args\"")));
}
bool is_nccl_csv(std::string_view head, std::string_view) { return any_line_begins(head, {"numCycle,"}); }
bool is_nccl_tests(std::string_view head, std::string_view) { return !is_json(head) && (has(head, "nThread") || (has(head, "algbw") && has(head, "busbw"))); }
bool is_osu(std::string_view head, std::string_view) { return !is_json(head) && is_osu_table(head); }
bool is_perftest(std::string_view head, std::string_view) { return has(head, "#bytes") && has(head, "#iterations"); }
bool is_training_log(std::string_view head, std::string_view) {
  return !is_json(head) && (has(head, "elapsed time per iteration (ms):") || (has(head, "step:") && has(head, "loss:") && has(head, "tps:")) || has(head, "[titan]") || has(head, "using world size: "));
}
bool is_xplane(std::string_view, std::string_view file) { return file.ends_with(".xplane.pb") || file.ends_with(".xplane.pb.gz"); }
bool is_trace_json(std::string_view head, std::string_view) { return is_json(head) && has(head, "\"traceEvents\""); }
bool is_hlo_stats(std::string_view head, std::string_view) { return has(head.substr(0, head.find('\n')), "hlo_op") && has(head, "avg_self_time_us"); }
bool is_meshslice_log(std::string_view head, std::string_view) { return any_line_begins(head, {"Running benchmark on ", "Allgather", "ReduceScatter", "SendRecv"}); }

constexpr std::array<ImportFormat, 12> formats = {{{"csv", "observations: op,devices,bytes,seconds,...", whole<import_csv>, is_csv},
                                                   {"nccl-json", "what nccl-tests -J and rccl-tests -Z json write", whole<import_nccl_json>, is_nccl_json},
                                                   {"nccl-inspector", "what NCCL's inspector writes, a line a collective", whole<import_nccl_inspector>, [](std::string_view head, std::string_view) { return is_nccl_inspector(head); }},
                                                   {"nccl-csv", "what rccl-tests -Z csv write", whole<import_nccl_csv>, is_nccl_csv},
                                                   {"nccl-tests", "what nccl-tests print", whole<import_nccl_tests>, is_nccl_tests},
                                                   {"osu", "what the OSU micro-benchmarks print", whole<import_osu>, is_osu},
                                                   {"perftest", "what ib_write_bw and its like print", whole<import_perftest>, is_perftest},
                                                   {"training-log", "logs of torchtitan and Megatron-LM", whole<import_training_log>, is_training_log},
                                                   {"xplane", "profiles of TPUs: *.xplane.pb", import_xplane, is_xplane},
                                                   {"trace-json", "profiles of TPUs: *.trace.json.gz of jax.profiler", import_trace_json, is_trace_json},
                                                   {"hlo-stats", "tables of HLO op statistics, as CSV", whole<import_hlo_stats>, is_hlo_stats},
                                                   {"meshslice-log", "logs of MeshSlice's benchmarks of collectives", whole<import_meshslice_log>, is_meshslice_log}}};

constexpr std::size_t head_of_file = std::size_t{1} << 16;

/// By the beginning of a file; csv, whose errors say what is expected, where that tells nothing.
Expected<const ImportFormat*> recognised(ByteSource& source, const std::string& file) {
  std::string head;
  while (head.size() < head_of_file) {
    const auto more = source.next();
    if (!more) return more.error();
    if (more->empty()) break;
    head += *more;
  }
  const ImportFormat* format = format_of(std::string_view{head}.substr(0, head_of_file), file);
  return format == nullptr ? formats.data() : format;
}

/// A profile of several hosts.
Expected<Imported> import_folder(std::string_view format, const std::string& path, const ImportOptions& options) {
  const auto files = find_profile(path, format);
  if (!files) return files.error();
  ProfileOps ops;
  const auto profile = read_profile(*files, ops);
  if (!profile) return profile.error();
  return ops.finish(*profile, path, options);
}

Expected<const ImportFormat*> format_named(std::string_view name) {
  const auto found = std::ranges::find(formats, name, &ImportFormat::name);
  if (found != formats.end()) return &*found;
  std::vector<std::string> names;
  std::string list;
  for (const ImportFormat& format : formats) {
    names.emplace_back(format.name);
    list += (list.empty() ? " " : ", ") + names.back();
  }
  return Diagnostic{{}, quoted(name) + " is no format of measurements" + did_you_mean(name, names) + "; there are" + list};
}

}  // namespace

std::span<const ImportFormat> import_formats() { return formats; }

const ImportFormat* format_of(std::string_view head, std::string_view file) {
  const auto found = std::ranges::find_if(formats, [&](const ImportFormat& format) { return format.is(head, file); });
  return found == formats.end() ? nullptr : &*found;
}

Expected<Imported> import_observations(std::string_view format, std::string_view bytes, const std::string& file, const ImportOptions& options) {
  const auto found = format.empty() ? recognised(*source_of(bytes, file), file) : format_named(format);
  if (!found) return found.error();
  return (*found)->read(source_of(bytes, file), file, options);
}

Expected<Imported> import_file(std::string_view format, const std::string& path, const ImportOptions& options) {
  std::error_code unknown;
  if (format.empty() && !std::filesystem::is_regular_file(path, unknown)) {  // a pipe is read once
    auto source = source_of_file(path);
    if (!source) return source.error();
    const auto text = read_all(**source, longest_text, path);
    return text ? import_observations("", *text, path, options) : Expected<Imported>{text.error()};
  }
  if (format.empty()) {
    auto source = source_of_file(path);
    if (!source) return source.error();
    const auto found = recognised(**source, path);
    return found ? import_file((*found)->name, path, options) : Expected<Imported>{found.error()};
  }
  const auto found = format_named(format);
  if (!found) return found.error();
  if (std::filesystem::is_directory(path, unknown) && (format == "xplane" || format == "trace-json")) return import_folder(format, path, options);
  auto source = source_of_file(path);
  if (!source) return source.error();
  return (*found)->read(*std::move(source), path, options);
}

}  // namespace podsim
