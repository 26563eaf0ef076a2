#include "tools/sweep/merge_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "sim/base/text.hpp"
#include "tools/report/json.hpp"
#include "tools/sweep/store.hpp"
#include "tools/sweep/store_schema.hpp"
#include "tools/sweep/sweep_file.hpp"

namespace podsim {

namespace {

Diagnostic wrong(const std::string& file, std::string message) { return {{file, 0, 0}, std::move(message)}; }

/// The statements that made the tables are ours, so that columns are.
Status same_tables(Database& database, const std::string& file) {
  for (const std::string& sql : {create_points(), create_other_tables()[1]}) {
    auto found = database.prepare("SELECT count(*) FROM sqlite_master WHERE sql = ?");
    if (!found) return found.error();
    found->bind(0, sql);
    if (const auto row = found->step(); !row) return row.error();
    if (found->integer(0) != 1) return wrong(file, "the store is by another build of podsim, with other columns; run its sweep once more with this one");
  }
  const auto version = database.number("PRAGMA user_version");
  if (!version) return version.error();
  if (*version == store_format_version) return success();
  return wrong(file, fmt::format("the store has format {}; run its sweep once more, which brings it to format {}", *version, store_format_version));
}

/// "(p.a, p.b)"
std::string row_of(const std::string& table, const std::vector<std::string>& columns) {
  std::string row;
  for (const std::string& column : columns) row += fmt::format("{}{}.\"{}\"", row.empty() ? "(" : ", ", table, column);
  return row + ")";
}

std::vector<std::string> compared_columns() {
  std::vector<std::string> columns;
  for (const RunColumn& column : run_columns())
    if (column.use == RunColumn::Use::result) columns.emplace_back(column.name);
  return columns;
}

/// Rows of `p` that an outcome of `m` under the same position contradicts.
std::string points_that_differ(const std::string& m) {
  const std::vector<std::string> outcome = outcome_columns_of_points();
  return fmt::format(
      "FROM part.points p JOIN {}.points m USING (position) WHERE p.input_key <> m.input_key OR "
      "((p.key IS NOT NULL OR p.reason IS NOT NULL) AND (m.key IS NOT NULL OR m.reason IS NOT NULL) AND {} IS NOT {})",
      m, row_of("p", outcome), row_of("m", outcome));
}
std::string runs_that_differ(const std::string& m) {
  return fmt::format("FROM part.runs p JOIN {}.runs m USING (key) WHERE {} IS NOT {}", m, row_of("p", compared_columns()), row_of("m", compared_columns()));
}

/// The first part before `i` of which the query finds a row as `other`; attached as that until the next call.
Expected<std::string> other_part(Database& database, const std::vector<MergePart>& parts, std::size_t i, const std::string& query, StoreValue of) {
  for (std::size_t j = 0; j < i; ++j) {
    if (auto ok = database.attach(parts[j].state.file, "other"); !ok) return ok.error();
    {
      auto found = database.prepare(query);
      if (!found) return found.error();
      found->bind_value(0, of);
      const auto row = found->step();
      if (!row) return row.error();
      if (*row) return parts[j].state.file;
    }
    if (auto ok = database.detach("other"); !ok) return ok.error();
  }
  return std::string{"another part"};
}

std::string text_of(const Statement& row, int column) {
  switch (row.type(column)) {
    case Statement::Type::null: return "nothing";
    case Statement::Type::integer: return std::to_string(row.integer(column));
    case Statement::Type::real: return fmt::format("{}", row.real(column));
    default: return quoted(row.text(column));
  }
}

/// "3/8": 3, 8.
std::pair<std::size_t, std::size_t> numbers_of(const std::string& shard) {
  const auto read = parse_shard(shard, {});
  return read ? std::pair{read->count, read->index} : std::pair<std::size_t, std::size_t>{};
}

/// Pairs of the JSON that `meta` holds under a name.
Expected<std::map<std::string, std::string>> pairs_of(Database& database, const std::string& name) {
  auto rows = database.prepare("SELECT j.key, j.value FROM meta, json_each(meta.value) j WHERE meta.name = ?");
  if (!rows) return rows.error();
  rows->bind(0, name);
  std::map<std::string, std::string> pairs;
  for (;;) {
    const auto more = rows->step();
    if (!more) return more.error();
    if (!*more) return pairs;
    pairs.emplace(rows->text(0), rows->text(1));
  }
}

}  // namespace

Expected<std::optional<MergePart>> read_part(const std::string& file, Cancellation stop) {
  std::error_code none;  // what cannot be looked at is told where it is opened
  if (std::filesystem::is_directory(file, none)) return wrong(file, "expected a file, found a directory");
  auto opened = open_store_if_begun(file, stop);
  if (!opened) return opened.error();
  if (!*opened) return std::optional<MergePart>{};
  Database& database = **opened;
  if (auto ok = same_tables(database, file); !ok) return ok.error();
  MergePart part;
  part.state.file = file;
  std::string shards, points;
  for (const auto& [name, text] : {std::pair{"sweep", &part.text}, {"file", &part.sweep_file}, {"version", &part.version}, {"shards", &shards}, {"points", &points}}) {
    auto value = database.prepare("SELECT value FROM meta WHERE name = ?");
    if (!value) return value.error();
    value->bind(0, std::string_view{name});
    const auto row = value->step();
    if (!row) return row.error();
    if (*row) *text = value->text(0);
  }
  if (!shards.empty()) part.shards = split(shards);
  // A store of an older build is that of a whole sweep, and does not say how many points this has.
  const auto counted = database.number(points.empty() ? "SELECT count(*) FROM points" : "SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'points'");
  if (!counted) return counted.error();
  part.sweep_points = static_cast<std::size_t>(*counted);
  auto contents = pairs_of(database, "contents");
  if (!contents) return contents.error();
  part.contents = *std::move(contents);
  return std::optional<MergePart>{std::move(part)};
}

Status same_sweep(const std::vector<MergePart>& parts) {
  std::map<std::string, std::pair<std::string, std::string>> contents;  // of what, and in which part
  const MergePart& first = parts.front();
  for (const MergePart& part : parts) {
    const auto differ = [&](const std::string& what) { return wrong(part.state.file, fmt::format("expected a part of the sweep of {}, found {}", first.state.file, what)); };
    if (!ask_the_same(part.text, first.text)) return differ("that of another sweep, " + quoted(part.sweep_file));
    if (part.version != first.version) return differ(fmt::format("one by podsim {}, not {}", part.version, first.version));
    for (const auto& [named, key] : part.contents) {
      const auto [known, is_new] = contents.try_emplace(named, key, part.state.file);
      if (!is_new && known->second.first != key)
        return wrong(part.state.file, fmt::format("{} had other contents there than in {}: run one of the two again with the same files", named, known->second.second));
    }
    if (part.sweep_points != first.sweep_points)
      return differ(fmt::format("one of {} points, not {}", part.sweep_points, first.sweep_points));
  }
  return success();
}

Status same_points(Database& database, const std::vector<MergePart>& parts, std::size_t i) {
  auto found = database.prepare("SELECT p.position, p.command, p.input_key <> m.input_key, p.key, p.reason, m.key, m.reason " + points_that_differ("main") +
                                " ORDER BY 1 LIMIT 1");
  if (!found) return found.error();
  const auto row = found->step();
  if (!row) return row.error();
  if (!*row) return success();
  const std::int64_t position = found->integer(0);
  const std::string& file = parts[i].state.file;
  const std::string what = found->integer(2) != 0
                               ? fmt::format("asks for something else there: {}", found->text(1))
                               : fmt::format("came to another result there: {}, here {}", text_of(*found, found->type(5) == Statement::Type::null ? 6 : 5),
                                             text_of(*found, found->type(3) == Statement::Type::null ? 4 : 3));
  found = database.prepare("SELECT 1");  // ends the read, so that another file may be attached
  const auto other = other_part(database, parts, i, "SELECT 1 " + [] {
    std::string sql = points_that_differ("other");
    return sql.insert(sql.find("WHERE ") + 6, "p.position = ? AND (") + ")";
  }(), position);
  if (!other) return other.error();
  return wrong(file, fmt::format("point {} differs from {}: it {}", position + 1, *other, what));
}

Status same_runs(Database& database, const std::vector<MergePart>& parts, std::size_t i) {
  auto found = database.prepare("SELECT min(p.key), count(*) " + runs_that_differ("main"));
  if (!found) return found.error();
  if (const auto row = found->step(); !row) return row.error();
  const std::int64_t count = found->integer(1);
  if (count == 0) return success();
  const std::string key = found->text(0);
  found = database.prepare("SELECT 1");
  const auto other = other_part(database, parts, i, "SELECT 1 " + runs_that_differ("other") + " AND p.key = ?", key);
  if (!other) return other.error();
  // The first figure that differs, and the points.
  std::string pairs, difference;
  for (const std::string& column : compared_columns()) pairs += fmt::format(", p.\"{0}\", m.\"{0}\"", column);
  auto rows = database.prepare(
      "SELECT (SELECT min(position) FROM part.points WHERE key = p.key), (SELECT min(position) FROM main.points WHERE key = p.key)" + pairs +
      " FROM part.runs p JOIN main.runs m USING (key) WHERE p.key = ?");
  if (!rows) return rows.error();
  rows->bind(0, key);
  if (const auto row = rows->step(); !row) return row.error();
  for (std::size_t c = 0; c < compared_columns().size() && difference.empty(); ++c) {
    const int there = 2 + 2 * static_cast<int>(c);
    if (rows->value(there) != rows->value(there + 1))
      difference = fmt::format("{} is {}, in {} {}", compared_columns()[c], text_of(*rows, there), *other, text_of(*rows, there + 1));
  }
  const auto point = [&](int column) { return rows->type(column) == Statement::Type::null ? std::string{"no point"} : fmt::format("point {}", rows->integer(column) + 1); };
  return wrong(parts[i].state.file, fmt::format("the run of {} came to another result than in {} (of {} there): {}{}", point(0), *other, point(1), difference,
                                                count > 1 ? fmt::format("; {} more runs differ", count - 1) : ""));
}

std::vector<std::string> missing_shards(const std::vector<MergePart>& parts) {
  std::set<std::pair<std::size_t, std::size_t>> found;
  for (const MergePart& part : parts) {
    if (part.shards.empty()) return {};
    for (const std::string& shard : part.shards) found.insert(numbers_of(shard));
  }
  const std::size_t count = found.begin()->first;
  if (std::prev(found.end())->first != count) return {};
  std::vector<std::string> missing;
  for (std::size_t index = 1; index <= count; ++index)
    if (!found.contains({count, index})) missing.push_back(to_text(SweepShard{index, count}));
  return missing;
}

Status set_meta(Database& database, const std::vector<MergePart>& parts, bool whole) {
  std::set<std::pair<std::size_t, std::size_t>> shards;
  Json contents = Json::object();
  std::map<std::string, std::string> all;
  for (const MergePart& part : parts) {
    all.insert(part.contents.begin(), part.contents.end());
    for (const std::string& shard : part.shards) shards.insert(numbers_of(shard));
  }
  for (const auto& [named, key] : all) contents.set(named, key);
  std::vector<std::string> texts;
  for (const auto& [count, index] : shards) texts.push_back(to_text(SweepShard{index, count}));
  const MergePart& first = parts.front();
  auto insert = database.prepare("INSERT INTO main.meta VALUES (?, ?)");
  if (!insert) return insert.error();
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"sweep", first.text},
                                                                                    {"file", first.sweep_file},
                                                                                    {"version", first.version},
                                                                                    {"points", std::to_string(first.sweep_points)},
                                                                                    {"contents", contents.dump()},
                                                                                    {"shards", fmt::format("{}", fmt::join(texts, ","))}}) {
    if (name == "shards" && whole) continue;
    insert->bind(0, name);
    insert->bind(1, value);
    if (auto ok = insert->run(); !ok) return ok;
  }
  return success();
}

}  // namespace podsim
