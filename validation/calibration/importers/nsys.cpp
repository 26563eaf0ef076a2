#include "validation/calibration/importers/nsys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "sim/base/text.hpp"
#include "sim/config/database.hpp"
#include "validation/calibration/importers/kineto_kernels.hpp"

namespace podsim {

namespace {

constexpr std::string_view kernels_table = "CUPTI_ACTIVITY_KIND_KERNEL";

/// Whether there is a table with all of these columns.
Expected<bool> has_columns(Database& database, std::string_view table, std::initializer_list<std::string_view> columns) {
  const auto query = database.prepare(fmt::format("SELECT {} FROM {} LIMIT 0", fmt::join(columns, ", "), table));
  if (query) return true;
  if (query.error().message.find("no such ") != std::string::npos) return false;  // as SQLite says it of tables and columns
  return query.error();
}

/// Times are ns since the session began.
double micros(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

class NsysReader {
 public:
  NsysReader(Database database, const std::string& file) : database_{std::move(database)}, file_{file} {}

  Expected<ReadProfile> read(ProfileSink& sink) {
    if (auto ok = read_kernels(kernels_table, "(SELECT value FROM StringIds WHERE id = demangledName)", {"demangledName"}); !ok) return ok.error();
    if (auto ok = read_kernels("CUPTI_ACTIVITY_KIND_MEMCPY", "CASE copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN 2 THEN 'Memcpy DtoH' WHEN 8 THEN 'Memcpy DtoD' WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END", {"copyKind"}); !ok)
      return ok.error();
    if (auto ok = read_kernels("CUPTI_ACTIVITY_KIND_MEMSET", "'Memset'", {}); !ok) return ok.error();
    if (auto ok = read_kernels("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "'CUDA graph ' || graphId", {"graphId"}); !ok) return ok.error();
    if (devices_.empty()) return Diagnostic{{file_}, fmt::format("expected kernels of GPUs in the table {}, found none (profile with --trace=cuda,nvtx)", kernels_table)};
    if (auto ok = read_launches(); !ok) return ok.error();
    if (auto ok = read_ranges(); !ok) return ok.error();
    ReadProfile profile;
    kernels_.finish(sink, 0, "", profile);
    profile.has_operators = any_range_;
    if (auto ok = read_machines(profile); !ok) return ok.error();
    return profile;
  }

 private:
  Status read_kernels(std::string_view table, std::string_view name, std::initializer_list<std::string_view> columns) {
    auto there = has_columns(database_, table, {"start", "end", "deviceId", "streamId", "correlationId"});
    if (there && *there && columns.size() > 0) there = has_columns(database_, table, columns);
    if (!there) return there.error();
    if (!*there) return success();
    auto query = database_.prepare(fmt::format("SELECT start, end, deviceId, streamId, correlationId, {} FROM {} ORDER BY start", name, table));
    if (!query) return query.error();
    while (true) {
      const auto row = query->step();
      if (!row) return row.error();
      if (!*row) return success();
      const std::int64_t begin = query->integer(0), end = query->integer(1);
      if (begin < 0 || end < begin) return Diagnostic{{file_}, fmt::format("expected times of {} that do not end before they begin, found {} to {} ns", table, begin, end)};
      const std::string text = query->text(5);
      ChromeTraceEvent event;
      event.phase = "X", event.kind = "kernel", event.name = text.empty() ? std::string_view{"kernel without a name"} : std::string_view{text};
      event.begin_us = micros(begin), event.duration_us = micros(end - begin);
      event.device = query->integer(2), event.stream = query->integer(3), event.correlation = query->integer(4);
      devices_.insert(event.device);
      if (auto ok = kernels_.add(event, {file_}); !ok) return ok;
    }
  }

  /// Of kernels, on the threads of the CPU.
  Status read_launches() {
    constexpr std::string_view table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    const auto there = has_columns(database_, table, {"start", "globalTid", "correlationId"});
    if (!there) return there.error();
    return *there ? read_spans(fmt::format("SELECT start, start, globalTid, correlationId, '' FROM {}", table), "cuda_runtime") : success();
  }

  Status read_ranges() {
    const auto there = has_columns(database_, "NVTX_EVENTS", {"start", "end", "globalTid", "text"});
    if (!there) return there.error();
    if (!*there) return success();
    const auto has_ids = has_columns(database_, "NVTX_EVENTS", {"textId"});
    if (!has_ids) return has_ids.error();
    return read_spans(fmt::format("SELECT start, end, globalTid, -1, {} FROM NVTX_EVENTS WHERE end IS NOT NULL AND end >= start AND start >= 0", *has_ids ? "coalesce(text, (SELECT value FROM StringIds WHERE id = textId))" : "text"),
                      "cpu_op");
  }

  Status read_spans(const std::string& sql, std::string_view kind) {
    auto query = database_.prepare(sql);
    if (!query) return query.error();
    while (true) {
      const auto row = query->step();
      if (!row) return row.error();
      if (!*row) return success();
      const std::string text = query->text(4);
      ChromeTraceEvent event;
      event.phase = "X", event.kind = kind, event.name = text;
      event.begin_us = micros(query->integer(0)), event.duration_us = micros(query->integer(1) - query->integer(0));
      event.tid = query->integer(2), event.correlation = query->integer(3);
      if (kind == "cpu_op" && text.empty()) continue;
      if (auto ok = kernels_.add(event, {file_}); !ok) return ok;
      if (kind != "cpu_op") continue;
      any_range_ = true;
      event.kind = "user_annotation";  // those that repeat are steps
      if (auto ok = kernels_.add(event, {file_}); !ok) return ok;
    }
  }

  Status read_machines(ReadProfile& profile) {
    const auto there = has_columns(database_, "TARGET_INFO_GPU", {"id", "name"});
    if (!there) return there.error();
    if (!*there) return success();
    auto query = database_.prepare("SELECT id, name FROM TARGET_INFO_GPU ORDER BY id");
    if (!query) return query.error();
    while (true) {
      const auto row = query->step();
      if (!row) return row.error();
      if (!*row) return success();
      if (devices_.contains(query->integer(0)) && !query->text(1).empty()) add_machine(profile, query->text(1));
    }
  }

  Database database_;
  const std::string& file_;
  KinetoKernels kernels_{"Nsight's"};
  std::set<std::int64_t> devices_;
  bool any_range_ = false;
};

}  // namespace

bool is_nsys_export(const std::string& file) {
  auto database = Database::open(file, Database::Mode::read);
  if (!database) return false;
  const auto there = has_columns(*database, kernels_table, {"start", "end"});
  return there && *there;
}

Expected<ReadProfile> read_nsys(const std::string& file, ProfileSink& sink) {
  auto database = Database::open(file, Database::Mode::read);
  if (!database) return database.error();
  database->only_reads();
  return NsysReader{*std::move(database), file}.read(sink);
}

}  // namespace podsim
