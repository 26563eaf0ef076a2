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

#include "validation/calibration/importers/hlo_stats.hpp"
#include "validation/calibration/importers/meshslice_log.hpp"
#include "validation/calibration/importers/nccl_tests.hpp"
#include "validation/calibration/importers/profile_files.hpp"
#include "validation/calibration/importers/trace_json.hpp"
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

constexpr std::array<ImportFormat, 6> formats = {{{"csv", "observations: op,devices,bytes,seconds,...", whole<import_csv>},
                                                  {"nccl-tests", "what nccl-tests prints", whole<import_nccl_tests>},
                                                  {"xplane", "profiles of TPUs: *.xplane.pb", import_xplane},
                                                  {"trace-json", "profiles of TPUs: *.trace.json.gz of jax.profiler", import_trace_json},
                                                  {"hlo-stats", "tables of HLO op statistics, as CSV", whole<import_hlo_stats>},
                                                  {"meshslice-log", "logs of MeshSlice's benchmarks of collectives", whole<import_meshslice_log>}}};

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

Expected<Imported> import_observations(std::string_view format, std::string_view bytes, const std::string& file, const ImportOptions& options) {
  const auto found = format_named(format);
  if (!found) return found.error();
  return (*found)->read(source_of(bytes, file), file, options);
}

Expected<Imported> import_file(std::string_view format, const std::string& path, const ImportOptions& options) {
  const auto found = format_named(format);
  if (!found) return found.error();
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown) && (format == "xplane" || format == "trace-json")) return import_folder(format, path, options);
  auto source = source_of_file(path);
  if (!source) return source.error();
  return (*found)->read(*std::move(source), path, options);
}

}  // namespace podsim
