#include "tools/sweep/store_schema.hpp"

#include <fmt/format.h>

#include <array>

namespace podsim {

namespace {

std::string mesh_of(const Result& result) {
  std::string text;
  for (const auto& [name, size] : result.mesh) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

/// As in the view: what a point asks for has the plain name.
std::string name_in_view(const std::string& run_column) {
  for (const char* asked : {"machine", "slice", "mesh", "engine", "schedule"})
    if (run_column == asked) return "used_" + run_column;
  return run_column;
}

constexpr std::array outcome_columns = {"used_algorithm TEXT", "used_dataflow TEXT", "used_slice_count INTEGER", "padding REAL"};

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

StoreValue value_of(const std::optional<double>& number) { return number ? StoreValue{*number} : StoreValue{}; }

}  // namespace

std::span<const RunColumn> run_columns() {
  using R = Row;
  using enum RunColumn::Use;
  static constexpr std::array<RunColumn, 25> columns{{
      {"machine", "TEXT", result, [](const R& r) -> StoreValue { return r.result.machine; }},
      {"slice", "TEXT", result, [](const R& r) -> StoreValue { return r.result.slice; }},
      {"hypothetical", "INTEGER", result, [](const R& r) -> StoreValue { return std::int64_t{r.result.hypothetical}; }},
      {"mesh", "TEXT", result, [](const R& r) -> StoreValue { return mesh_of(r.result); }},
      {"schedule", "TEXT", result, [](const R& r) -> StoreValue { return r.result.schedule; }},
      {"engine", "TEXT", result, [](const R& r) -> StoreValue { return r.result.engine; }},
      {"devices", "INTEGER", result, [](const R& r) -> StoreValue { return std::int64_t{r.result.devices}; }},
      {"device_classes", "INTEGER", result, [](const R& r) -> StoreValue { return std::int64_t{r.result.device_classes}; }},
      {"makespan_s", "REAL", result, [](const R& r) -> StoreValue { return r.result.makespan_s; }},
      {"compute_s", "REAL", result, [](const R& r) -> StoreValue { return r.result.compute_s; }},
      {"exposed_communication_s", "REAL", result, [](const R& r) -> StoreValue { return r.result.exposed_communication_s; }},
      {"waiting_s", "REAL", result, [](const R& r) -> StoreValue { return r.result.waiting_s; }},
      {"flops", "REAL", result, [](const R& r) -> StoreValue { return r.result.flops; }},
      {"mfu", "REAL", result, [](const R& r) -> StoreValue { return value_of(r.result.mfu); }},
      {"link_bytes", "REAL", result, [](const R& r) -> StoreValue { return r.result.link_bytes; }},
      {"peak_memory_bytes", "INTEGER", result, [](const R& r) -> StoreValue { return r.result.peak_memory_bytes; }},
      {"over_hbm", "INTEGER", result, [](const R& r) -> StoreValue { return std::int64_t{r.over_hbm}; }},
      {"tasks", "INTEGER", result, [](const R& r) -> StoreValue { return r.result.tasks; }},
      {"events", "INTEGER", effort, [](const R& r) -> StoreValue { return r.result.events; }},
      {"rings", "TEXT", result, [](const R& r) -> StoreValue { return r.rings; }},
      {"trust_level", "TEXT", result, [](const R& r) -> StoreValue { return r.result.trust.level; }},
      {"trust_dataset", "TEXT", result, [](const R& r) -> StoreValue { return r.result.trust.dataset; }},
      {"trust_error", "REAL", result, [](const R& r) -> StoreValue { return value_of(r.result.trust.error); }},
      {"wall_s", "REAL", host, [](const R& r) -> StoreValue { return r.result.wall_s; }},
      {"build_s", "REAL", host, [](const R& r) -> StoreValue { return r.result.build_s; }},
  }};
  return columns;
}

StoredRun stored_run(std::string key, const Row& row) {
  StoredRun run{std::move(key), {}};
  for (const RunColumn& column : run_columns()) run.values.push_back(column.value(row));
  return run;
}

namespace {

/// A slice count is a text only because an option may name one per stage, which a sweep cannot.
bool is_number(const FieldKind& field) { return field.form == Form::count || field.name == "slice_count"; }

}  // namespace

std::string point_column(const FieldKind& field) { return field.name == "set" ? "sets" : field.name == "devices" ? "mesh_devices" : std::string{field.name}; }

std::vector<std::string> outcome_columns_of_points() {
  std::vector<std::string> columns{"key", "reason"};
  for (const char* column : outcome_columns) columns.push_back(first_word(column));
  return columns;
}

std::string create_points() {
  std::string sql = "CREATE TABLE points (\n  position INTEGER PRIMARY KEY,\n  input_key TEXT NOT NULL,\n  key TEXT,\n  reason TEXT,\n";
  for (const FieldKind& field : scenario_fields()) sql += fmt::format("  \"{}\" {},\n", point_column(field), is_number(field) ? "INTEGER" : "TEXT");
  for (const char* column : outcome_columns) sql += fmt::format("  {},\n", column);
  return sql + "  command TEXT NOT NULL\n)";
}

std::string create_results_view() {
  std::string sql =
      "CREATE VIEW results AS SELECT\n  p.position + 1 AS point,\n"
      "  CASE WHEN p.key IS NOT NULL THEN 'done' WHEN p.reason IS NOT NULL THEN 'skipped' ELSE 'remaining' END AS status,\n";
  for (const FieldKind& field : scenario_fields()) sql += fmt::format("  p.\"{}\",\n", point_column(field));
  for (const char* column : outcome_columns) sql += fmt::format("  p.{},\n", first_word(column));
  for (const RunColumn& column : run_columns()) sql += fmt::format("  r.\"{}\" AS {},\n", column.name, name_in_view(column.name));
  return sql + "  p.reason,\n  p.command,\n  p.key,\n  r.version\nFROM points p LEFT JOIN runs r ON r.key = p.key";
}

std::vector<std::string> create_other_tables() {
  std::string runs = "CREATE TABLE runs (\n  key TEXT PRIMARY KEY,\n  version TEXT NOT NULL";
  for (const RunColumn& column : run_columns()) runs += fmt::format(",\n  \"{}\" {}", column.name, column.type);
  return {"CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)", runs + "\n)",
          "CREATE TABLE sessions (started_s REAL NOT NULL, updated_s REAL NOT NULL, ended INTEGER NOT NULL, finished INTEGER NOT NULL, "
          "simulated INTEGER NOT NULL)"};
}

std::vector<std::string> exported_columns() {
  std::vector<std::string> columns{"point", "status"};
  for (const FieldKind& field : scenario_fields()) columns.push_back(point_column(field));
  for (const char* column : outcome_columns) columns.push_back(first_word(column));
  for (const RunColumn& column : run_columns())
    if (column.use != RunColumn::Use::host) columns.push_back(name_in_view(column.name));
  columns.emplace_back("reason");
  return columns;
}

}  // namespace podsim
