#include "tools/sweep/store_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "sim/base/units.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/text.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"
#include "tools/sweep/store_schema.hpp"

namespace podsim {

namespace {

using Type = Statement::Type;

std::string cell(const Statement& row, int column) {
  switch (row.type(column)) {
    case Type::null: return "";
    case Type::integer: return std::to_string(row.integer(column));
    case Type::real: return fmt::format("{}", row.real(column));
    default: return row.text(column);
  }
}

Json json_of(const Statement& row, int column) {
  switch (row.type(column)) {
    case Type::null: return {};
    case Type::integer: return row.integer(column);
    case Type::real: return row.real(column);
    default: return row.text(column);
  }
}

std::string dumped_report(const Json& json) { return json.dump(2) + "\n"; }

/// All rows of a statement.
Expected<std::string> results_of(Statement& statement, Format format) {
  std::vector<std::string> names;
  for (int c = 0; c < statement.columns(); ++c) names.push_back(statement.column_name(c));
  std::vector<std::vector<std::string>> rows{names};
  std::string text = csv_row(names);
  Json json = Json::array();
  for (;;) {
    const auto more = statement.step();
    if (!more) return more.error();
    if (!*more) break;
    if (format == Format::json) {
      Json row = Json::object();
      for (int c = 0; c < statement.columns(); ++c) row.set(names[static_cast<std::size_t>(c)], json_of(statement, c));
      json.push_back(std::move(row));
      continue;
    }
    std::vector<std::string> cells;
    for (int c = 0; c < statement.columns(); ++c) cells.push_back(cell(statement, c));
    if (format == Format::csv)
      text += csv_row(cells);
    else
      rows.push_back(std::move(cells));
  }
  if (format == Format::csv) return text;
  if (format == Format::json) return dumped_report(Json{{"columns", names}, {"rows", json}});
  return table(rows, names.size());
}

std::string quoted_name(const std::string& name) {
  std::string result = "\"";
  for (const char c : name) result += c == '"' ? std::string{"\"\""} : std::string(1, c);
  return result + "\"";
}

std::string quoted_text(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string{"''"} : std::string(1, c);
  return result + "'";
}

/// The paths of all sets, as they first occur.
Expected<std::vector<std::string>> set_paths(Database& database) {
  auto rows = database.prepare(
      "SELECT e.key FROM points p, json_each(p.sets) e WHERE p.sets IS NOT NULL GROUP BY e.key ORDER BY min(p.position * 1000 + e.id), e.key");
  if (!rows) return rows.error();
  std::vector<std::string> paths;
  for (;;) {
    const auto more = rows->step();
    if (!more) return more.error();
    if (!*more) return paths;
    paths.push_back(rows->text(0));
  }
}

/// What a sweep may ask for and this one does not: of the many options a sweep has few.
Expected<std::set<std::string>> unused_columns(Database& database) {
  std::string sql;
  for (const FieldKind& field : scenario_fields()) sql += fmt::format("{}count(\"{}\")", sql.empty() ? "SELECT " : ", ", point_column(field));
  auto counts = database.prepare(sql + " FROM points");
  if (!counts) return counts.error();
  const auto row = counts->step();
  if (!row) return row.error();
  std::set<std::string> unused;
  for (int c = 0; c < counts->columns(); ++c)
    if (counts->integer(c) == 0) unused.insert(point_column(scenario_fields()[static_cast<std::size_t>(c)]));
  return unused;
}

struct StoreStatus {
  std::int64_t points = 0, done = 0, skipped = 0, remaining = 0, runs = 0;
  std::int64_t sweep_points = 0;    // with those of shards that the store is not for
  std::vector<std::string> shards;  // none: the whole sweep
  bool running = false;
  double rate = 0, seconds_left = 0;  // where it is running and has a rate
  std::uintmax_t bytes = 0;
  std::string sweep_file, version;
  std::vector<std::pair<std::int64_t, std::string>> reasons;  // the most frequent
};

constexpr double longest_silence_s =
    60;  // a process that works on a store commits after every run; one that has not for so long may have been killed

Expected<StoreStatus> status_of(Database& database, const std::string& file) {
  StoreStatus status;
  for (const auto& [number, sql] : {std::pair{&status.points, "SELECT count(*) FROM points"},
                                    {&status.done, "SELECT count(*) FROM points WHERE key IS NOT NULL"},
                                    {&status.skipped, "SELECT count(*) FROM points WHERE reason IS NOT NULL"},
                                    {&status.runs, "SELECT count(*) FROM runs"}}) {
    const auto counted = database.number(sql);
    if (!counted) return counted.error();
    *number = *counted;
  }
  status.remaining = status.points - status.done - status.skipped;
  auto session = database.prepare("SELECT started_s, updated_s, ended, finished FROM sessions ORDER BY rowid DESC LIMIT 1");
  if (!session) return session.error();
  const auto has_session = session->step();
  if (!has_session) return has_session.error();
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (*has_session && session->integer(2) == 0 && now - session->real(1) < longest_silence_s) {
    status.running = true;
    const double seconds = session->real(1) - session->real(0);
    if (seconds > 0) status.rate = static_cast<double>(session->integer(3)) / seconds;
    if (status.rate > 0) status.seconds_left = static_cast<double>(status.remaining) / status.rate;
  }
  auto meta = database.prepare(
      "SELECT (SELECT value FROM meta WHERE name = 'file'), (SELECT value FROM meta WHERE name = 'version'), (SELECT value FROM meta WHERE name = 'shards'), "
      "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'points')");
  if (!meta) return meta.error();
  if (const auto row = meta->step(); !row) return row.error();
  status.sweep_file = meta->text(0);
  status.version = meta->text(1);
  if (const std::string shards = meta->text(2); !shards.empty()) status.shards = split(shards);
  status.sweep_points = status.shards.empty() ? status.points : meta->integer(3);
  auto reasons = database.prepare("SELECT count(*), reason FROM points WHERE reason IS NOT NULL GROUP BY reason ORDER BY 1 DESC, 2 LIMIT 5");
  if (!reasons) return reasons.error();
  for (;;) {
    const auto more = reasons->step();
    if (!more) return more.error();
    if (!*more) break;
    status.reasons.emplace_back(reasons->integer(0), reasons->text(1));
  }
  for (const char* suffix : {"", "-wal"}) {
    std::error_code none;
    if (const auto bytes = std::filesystem::file_size(file + suffix, none); !none) status.bytes += bytes;
  }
  return status;
}

}  // namespace

Expected<std::string> export_results(Database& database, Format format) {
  const auto paths = set_paths(database);
  if (!paths) return paths.error();
  const auto unused = unused_columns(database);
  if (!unused) return unused.error();
  std::string columns;
  for (const std::string& name : exported_columns()) {
    if (unused->contains(name)) continue;
    if (name != "sets") {
      columns += (columns.empty() ? "" : ", ") + quoted_name(name);
      continue;
    }
    for (const std::string& path : *paths)
      columns += fmt::format(", json_extract(sets, {}) AS {}", quoted_text("$." + quoted_name(path)), quoted_name(path));
  }
  auto statement = database.prepare("SELECT " + columns + " FROM results WHERE status <> 'remaining' ORDER BY point");
  if (!statement) return statement.error();
  return results_of(*statement, format);
}

Expected<std::string> query_results(Database& database, const std::string& sql, Format format) {
  database.only_reads();
  auto statement = database.prepare(sql);
  if (!statement) return statement.error();
  return results_of(*statement, format);
}

Expected<std::string> store_status(Database& database, const std::string& file, Format format) {
  // One transaction, so that the counts are of one moment.
  if (auto ok = database.run("BEGIN"); !ok) return ok.error();
  const auto status = status_of(database, file);
  if (!status) return status.error();
  const bool rated = status->running && status->rate > 0;
  if (format == Format::json) {
    Json reasons = Json::array();
    for (const auto& [count, reason] : status->reasons) reasons.push_back(Json{{"points", count}, {"reason", reason}});
    return dumped_report(Json{{"store", file},
                       {"sweep", status->sweep_file},
                       {"version", status->version},
                       {"shards", status->shards},
                       {"sweep_points", status->sweep_points},
                       {"points", status->points},
                       {"done", status->done},
                       {"skipped", status->skipped},
                       {"remaining", status->remaining},
                       {"runs", status->runs},
                       {"running", status->running},
                       {"points_per_s", rated ? Json(status->rate) : Json()},
                       {"left_s", rated ? Json(status->seconds_left) : Json()},
                       {"store_bytes", status->bytes},
                       {"reasons", reasons}});
  }
  if (format == Format::csv)
    return csv_row({"store", "points", "done", "skipped", "remaining", "runs", "running", "store_bytes"}) +
           csv_row({file, std::to_string(status->points), std::to_string(status->done), std::to_string(status->skipped),
                std::to_string(status->remaining), std::to_string(status->runs), status->running ? "true" : "false", std::to_string(status->bytes)});
  std::vector<std::vector<std::string>> rows{
      {"store", fmt::format("{}, {}", file, to_text(Bytes{static_cast<std::int64_t>(status->bytes)}))},
      {"sweep", fmt::format("{}, by podsim {}", status->sweep_file, status->version)},
      {"points", status->shards.empty() ? std::to_string(status->points)
                                        : fmt::format("{} of {}: shard {}", status->points, status->sweep_points, fmt::join(status->shards, ", "))},
      {"  done", fmt::format("{}  ({} runs in the store)", status->done, status->runs)},
      {"  skipped", std::to_string(status->skipped)},
      {"  remaining", std::to_string(status->remaining)},
  };
  if (rated) rows.push_back({"running", fmt::format("{:.3g} points/s, {} left", status->rate, time_text(status->seconds_left))});
  for (const auto& [count, reason] : status->reasons) rows.push_back({"  reason", fmt::format("{} times: {}", count, reason)});
  return table(rows, 2);
}

}  // namespace podsim
