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
#include "validation/calibration/importers/log_prefix.hpp"
#include "validation/calibration/importers/meshslice_log.hpp"
#include "validation/calibration/importers/nccl_inspector.hpp"
#include "validation/calibration/importers/nccl_json.hpp"
#include "validation/calibration/importers/nccl_tests.hpp"
#include "validation/calibration/importers/osu.hpp"
#include "validation/calibration/importers/profile_files.hpp"
#include "validation/calibration/importers/text_lines.hpp"
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
  std::string storage;
  return import(plain_log(*text, storage), file, options);
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
bool has_nccl_tests(std::string_view text) { return has(text, "nThread") || (has(text, "algbw") && has(text, "busbw")); }
bool has_perftest(std::string_view text) { return has(text, "#bytes") && has(text, "#iterations"); }
template <bool (*is_in)(std::string_view)>
bool is_log(std::string_view head, std::string_view) { return !is_json(head) && is_in(head); }
bool is_xplane(std::string_view, std::string_view file) { return file.ends_with(".xplane.pb") || file.ends_with(".xplane.pb.gz"); }
bool is_trace_json(std::string_view head, std::string_view) { return is_json(head) && has(head, "\"traceEvents\""); }
bool is_hlo_stats(std::string_view head, std::string_view) { return has(head.substr(0, head.find('\n')), "hlo_op") && has(head, "avg_self_time_us"); }
bool is_meshslice_log(std::string_view head, std::string_view) { return any_line_begins(head, {"Running benchmark on ", "Allgather", "ReduceScatter", "SendRecv"}); }

constexpr std::array<ImportFormat, 12> formats = {{{"csv", "observations: op,devices,bytes,seconds,...", whole<import_csv>, is_csv},
                                                   {"nccl-json", "what nccl-tests -J and rccl-tests -Z json write", whole<import_nccl_json>, is_nccl_json},
                                                   {"nccl-inspector", "what NCCL's inspector writes, a line a collective", whole<import_nccl_inspector>, [](std::string_view head, std::string_view) { return is_nccl_inspector(head); }},
                                                   {"nccl-csv", "what rccl-tests -Z csv write", whole<import_nccl_csv>, is_nccl_csv},
                                                   {"nccl-tests", "what nccl-tests print", whole<import_nccl_tests>, is_log<has_nccl_tests>, has_nccl_tests},
                                                   {"osu", "what the OSU micro-benchmarks print", whole<import_osu>, is_log<is_osu_table>, is_osu_table},
                                                   {"perftest", "what ib_write_bw and its like print", whole<import_perftest>, is_log<has_perftest>, has_perftest},
                                                   {"training-log", "logs of torchtitan and Megatron-LM", whole<import_training_log>, is_log<has_training_log>, has_training_log},
                                                   {"xplane", "profiles of TPUs: *.xplane.pb", import_xplane, is_xplane},
                                                   {"trace-json", "profiles of TPUs: *.trace.json.gz of jax.profiler", import_trace_json, is_trace_json},
                                                   {"hlo-stats", "tables of HLO op statistics, as CSV", whole<import_hlo_stats>, is_hlo_stats},
                                                   {"meshslice-log", "logs of MeshSlice's benchmarks of collectives", whole<import_meshslice_log>, is_meshslice_log}}};

constexpr std::size_t head_of_file = std::size_t{1} << 16, piece_of_file = std::size_t{1} << 20;

/// At least `size` more bytes at the end of `text`; false: there are no more.
Expected<bool> read_more(ByteSource& source, std::size_t size, std::string& text) {
  for (const std::size_t full = text.size() + size; text.size() < full;) {
    const auto more = source.next();
    if (!more) return more.error();
    if (more->empty()) return false;
    text += *more;
  }
  return true;
}

const ImportFormat* log_in(std::string_view text) {
  std::string storage;
  text = plain_log(text, storage);
  const auto found = std::ranges::find_if(formats, [&](const ImportFormat& format) { return format.is_in != nullptr && format.is_in(text); });
  return found == formats.end() ? nullptr : &*found;
}

/// As format_of_file() says; `text` is what was read at first.
Expected<const ImportFormat*> recognised(ByteSource& source, const std::string& file, std::string& text) {
  auto more = read_more(source, head_of_file, text);
  if (!more) return more.error();
  std::string storage;
  const std::string_view head = plain_log(std::string_view{text}.substr(0, head_of_file), storage);
  if (const ImportFormat* format = format_of(head, file)) return format;
  const bool may_be_log = head.find('\0') == std::string_view::npos && !is_json(head) && !trimmed(head).starts_with('<');
  for (std::string piece = text; may_be_log && *more;) {
    more = read_more(source, piece_of_file, piece);
    if (!more) return more.error();
    if (const ImportFormat* format = log_in(piece)) return format;
    piece.erase(0, std::min(piece.rfind('\n'), piece.size()));  // a line may go on in the next
  }
  return nullptr;
}

/// Whether its first line that is no comment names columns.
bool looks_like_csv(std::string_view head, std::string_view file) {
  if (file.ends_with(".csv") || file.ends_with(".csv.gz")) return true;
  for (const TextLine& line : lines_of(head)) {
    const std::string_view heading = trimmed(line.text);
    if (heading.empty() || heading.starts_with('#')) continue;
    const auto columns = split(heading);
    return columns.size() > 1 && std::ranges::all_of(columns, [](const std::string& column) { return !column.empty() && column.find_first_of(" \t\"{}[]<>") == std::string::npos; });
  }
  return false;
}

Expected<const ImportFormat*> recognised_or_csv(ByteSource& source, const std::string& file) {
  std::string text;
  const auto found = recognised(source, file, text);
  if (!found || *found != nullptr) return found;
  if (text.empty() || looks_like_csv(std::string_view{text}.substr(0, head_of_file), file)) return formats.data();
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  std::string names;
  for (const ImportFormat& format : formats) names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  return Diagnostic{{file, 1, 1}, fmt::format("expected measurements in a form that podsim knows ({}), found {}", names, quoted(text.substr(begin, std::min<std::size_t>(text.find('\n', begin) - begin, 60))))};
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
  std::string storage;
  head = plain_log(head, storage);
  const auto found = std::ranges::find_if(formats, [&](const ImportFormat& format) { return format.is(head, file); });
  return found == formats.end() ? nullptr : &*found;
}

Expected<const ImportFormat*> format_of_file(const std::string& path) {
  auto source = source_of_file(path);
  if (!source) return source.error();
  std::string text;
  return recognised(**source, path, text);
}

Expected<Imported> import_observations(std::string_view format, std::string_view bytes, const std::string& file, const ImportOptions& options) {
  const auto found = format.empty() ? recognised_or_csv(*source_of(bytes, file), file) : format_named(format);
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
    const auto found = recognised_or_csv(**source, path);
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
