#include "tools/sweep/store.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include "tools/report/json.hpp"
#include "tools/sweep/seconds_now.hpp"
#include "tools/sweep/store_schema.hpp"

namespace podsim {

namespace {

constexpr std::int64_t application_id = 0x506f6453;  // "PodS": in the header of the file

/// SQLite takes a file of a few bytes for an empty one, and would write over it.
Status begins_as_sqlite(const std::string& file) {
  constexpr std::string_view magic{"SQLite format 3\0", 16};
  std::ifstream stream(file, std::ios::binary);
  std::array<char, magic.size()> bytes{};
  stream.read(bytes.data(), bytes.size());
  const std::string_view found{bytes.data(), static_cast<std::size_t>(stream.gcount())};
  if (found.empty() || found == magic) return success();  // empty: new, or not there
  return Diagnostic{{file, 0, 0}, "expected a SQLite file, found something else"};
}

/// Whether it holds tables of ours: false where it holds nothing yet. Errors: it is something else.
Expected<bool> holds_a_store(Database& database, const std::string& file) {
  const auto wrong = [&](const std::string& message) { return Diagnostic{{file, 0, 0}, message}; };
  const auto tables = database.number("SELECT count(*) FROM sqlite_master");
  if (!tables) return tables.error();
  const auto id = database.number("PRAGMA application_id");
  if (!id) return id.error();
  if (*id == 0 && *tables == 0) return false;
  if (*id != application_id) return wrong("expected the store of a sweep, found a SQLite file of something else");
  const auto version = database.number("PRAGMA user_version");
  if (!version) return version.error();
  if (*version > store_format_version)
    return wrong(fmt::format("the store has format {}, newer than what this program reads, {}", *version, store_format_version));
  auto checked = database.prepare("PRAGMA quick_check(1)");
  if (!checked) return checked.error();
  const auto row = checked->step();
  if (!row) return row.error();
  if (const std::string said = checked->text(0); said != "ok") return wrong("the file is damaged (SQLite: " + said + ")");
  return true;
}

}  // namespace

Expected<std::optional<Database>> open_store_if_begun(const std::string& file, Cancellation stop) {
  if (auto ok = begins_as_sqlite(file); !ok) return ok.error();
  auto database = Database::open(file, Database::Mode::read);
  if (!database) return database.error();
  database->end_on(stop);
  const auto holds = holds_a_store(*database, file);
  if (!holds) return holds.error();
  const auto points = database->number("SELECT count(*) FROM sqlite_master WHERE name = 'points'");
  if (!points) return points.error();
  if (!*holds || *points == 0) return std::optional<Database>{};
  return std::optional<Database>{*std::move(database)};
}

Expected<Database> open_store_to_read(const std::string& file, Cancellation stop) {
  auto database = open_store_if_begun(file, stop);
  if (!database) return database.error();
  if (!*database) return Diagnostic{{file, 0, 0}, "expected the store of a sweep, found nothing in it"};
  return **std::move(database);
}

Expected<std::optional<Database>> open_store_to_replace(const std::string& file) {
  std::error_code none;  // what cannot be looked at is told where it is written
  if (!std::filesystem::exists(file, none)) return std::optional<Database>{};
  if (auto ok = begins_as_sqlite(file); !ok) return ok.error();
  auto database = Database::open(file, Database::Mode::write);
  if (!database) return database.error();
  const auto holds = holds_a_store(*database, file);
  if (!holds) return holds.error();
  // What a killed process left in a log comes into the file, or it would be taken for the log of the file that replaces this one.
  if (auto ok = database->run_all({"PRAGMA journal_mode = DELETE", "BEGIN IMMEDIATE"}); !ok) return ok.error();
  const auto points = database->number("SELECT count(*) FROM sqlite_master WHERE name = 'points'");
  if (!points) return points.error();
  if (*points == 0) return std::optional<Database>{};
  return std::optional<Database>{*std::move(database)};
}

std::vector<std::string> statements_of_new_store() {
  std::vector<std::string> statements = create_other_tables();
  statements.push_back(fmt::format("PRAGMA application_id = {}", application_id));
  statements.push_back(fmt::format("PRAGMA user_version = {}", store_format_version));
  return statements;
}

Expected<SweepStore> SweepStore::open(const std::string& file) {
  if (auto ok = begins_as_sqlite(file); !ok) return ok.error();
  auto database = Database::open(file, Database::Mode::write);
  if (!database) return database.error();
  // Looked at before anything is written: what is not ours stays as it is.
  if (const auto holds = holds_a_store(*database, file); !holds) return holds.error();
  // Readers go on while this process writes. NORMAL: a commit survives the end of the process, not always that of the computer's power; the file is
  // whole either way.
  if (auto ok = database->run_all({"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE"}); !ok) return ok.error();
  SweepStore store{*std::move(database), file};
  const auto tables = store.database_.number("SELECT count(*) FROM sqlite_master");
  if (!tables) return tables.error();
  if (*tables == 0) {
    if (auto ok = store.database_.run_all(statements_of_new_store()); !ok) return ok.error();
  } else if (auto ok = store.bring_up_to_date(); !ok) {
    return ok.error();
  }
  store.open_ = true;
  return store;
}

SweepStore::~SweepStore() = default;

Status SweepStore::bring_up_to_date() {
  const auto version = database_.number("PRAGMA user_version");
  if (!version) return version.error();
  if (*version == store_format_version) return success();
  const auto points = database_.number("SELECT count(*) FROM sqlite_master WHERE name = 'points'");
  if (!points) return points.error();
  std::vector<std::string> steps;
  // What format 1 wrote for what is no property of a point. Since format 2 no such reason is written, so it is looked for once.
  if (*points > 0)
    steps.emplace_back(
        "UPDATE points SET reason = NULL WHERE reason = 'interrupted' OR reason GLOB 'simgrid: the child process *' "
        "OR reason GLOB 'simgrid: no pipe: *' OR reason GLOB 'simgrid: no process: *' OR reason GLOB 'simgrid: no memory file: *'");
  steps.push_back(fmt::format("PRAGMA user_version = {}", store_format_version));
  return database_.run_all(steps);
}

Expected<bool> SweepStore::is_the_same(const AskedPoints& asked) {
  auto tables = database_.prepare("SELECT count(*) FROM sqlite_master WHERE sql IN (?, ?)");
  if (!tables) return tables.error();
  tables->bind(0, create_points());
  tables->bind(1, create_results_view());
  const auto found = tables->step();
  if (!found) return found.error();
  if (tables->integer(0) != 2) return false;
  auto rows = database_.prepare("SELECT position, input_key FROM points ORDER BY position");
  if (!rows) return rows.error();
  for (std::size_t i = 0;; ++i) {
    const auto more = rows->step();
    if (!more) return more.error();
    if (!*more) return i == asked.positions.size();
    if (i >= asked.positions.size() || rows->integer(0) != static_cast<std::int64_t>(asked.positions[i]) || rows->text(1) != asked.input_keys[i]) return false;
  }
}

namespace {

struct KnownOutcome {
  std::optional<std::string> key, reason;
  std::string algorithm, dataflow;
  std::optional<std::int64_t> slice_count;
  double padding = 0;
};

/// What the points so far came to, by what they ask.
Expected<std::map<std::string, KnownOutcome>> known_outcomes(Database& database) {
  std::map<std::string, KnownOutcome> known;
  const auto exists = database.number("SELECT count(*) FROM sqlite_master WHERE name = 'points'");
  if (!exists) return exists.error();
  if (*exists == 0) return known;
  auto rows = database.prepare(
      "SELECT input_key, key, reason, used_algorithm, used_dataflow, used_slice_count, padding FROM points "
      "WHERE key IS NOT NULL OR reason IS NOT NULL");
  if (!rows) return rows.error();
  for (;;) {
    const auto more = rows->step();
    if (!more) return more.error();
    if (!*more) return known;
    KnownOutcome outcome;
    if (rows->type(1) != Statement::Type::null) outcome.key = rows->text(1);
    if (rows->type(2) != Statement::Type::null) outcome.reason = rows->text(2);
    outcome.algorithm = rows->text(3);
    outcome.dataflow = rows->text(4);
    if (rows->type(5) != Statement::Type::null) outcome.slice_count = rows->integer(5);
    outcome.padding = rows->real(6);
    known.emplace(rows->text(0), std::move(outcome));
  }
}

/// Of pairs of texts.
template <class Pairs>
std::string json_of(const Pairs& pairs) {
  Json json = Json::object();
  for (const auto& [name, value] : pairs) json.set(name, value);
  return json.dump();
}

}  // namespace

Status SweepStore::replace_points(const AskedPoints& asked) {
  const auto known = known_outcomes(database_);
  if (!known) return known.error();
  if (auto ok = database_.run_all({"DROP VIEW IF EXISTS results", "DROP TABLE IF EXISTS points", create_points(), create_results_view()}); !ok)
    return ok;
  std::string columns = "position, input_key, key, reason, used_algorithm, used_dataflow, used_slice_count, padding, command",
              values = "?,?,?,?,?,?,?,?,?";
  for (const FieldKind& field : scenario_fields()) columns += fmt::format(", \"{}\"", point_column(field)), values += ",?";
  auto insert = database_.prepare(fmt::format("INSERT INTO points ({}) VALUES ({})", columns, values));
  if (!insert) return insert.error();
  for (std::size_t i = 0; i < asked.positions.size(); ++i) {
    const PointInputs inputs = asked.points->inputs(asked.positions[i]);
    const auto found = known->find(asked.input_keys[i]);
    const KnownOutcome outcome = found == known->end() ? KnownOutcome{} : found->second;
    insert->bind(0, static_cast<std::int64_t>(asked.positions[i]));
    insert->bind(1, asked.input_keys[i]);
    insert->bind(2, outcome.key);
    insert->bind(3, outcome.reason);
    if (outcome.key) {
      insert->bind(4, outcome.algorithm);
      insert->bind(5, outcome.dataflow);
      insert->bind(6, outcome.slice_count);
      insert->bind(7, outcome.padding);
    } else {
      for (int c = 4; c < 8; ++c) insert->bind_null(c);
    }
    insert->bind(8, command_of(inputs));
    for (std::size_t f = 0; f < scenario_fields().size(); ++f) {
      const int column = 9 + static_cast<int>(f);
      const std::string& text = inputs.texts[f];
      if (scenario_fields()[f].name == "set" && !inputs.sets.empty())
        insert->bind(column, json_of(inputs.sets));
      else if (text.empty())
        insert->bind_null(column);
      else
        insert->bind(column, text);
    }
    if (auto ok = insert->run(); !ok) return ok;
  }
  return success();
}

Status SweepStore::check_shard(const std::optional<SweepShard>& asked) {
  const auto points = database_.number("SELECT count(*) FROM sqlite_master WHERE name = 'points'");
  if (!points) return points.error();
  if (!asked || *points == 0) return success();
  auto shards = database_.prepare("SELECT value FROM meta WHERE name = 'shards'");
  if (!shards) return shards.error();
  const auto row = shards->step();
  if (!row) return row.error();
  const std::string found = *row ? shards->text(0) : "";
  if (found == to_text(*asked)) return success();
  return Diagnostic{{file_, 0, 0},
                    fmt::format("expected a store for shard {} alone, found one for {}", to_text(*asked), found.empty() ? "a whole sweep" : "shard " + found)};
}

Status SweepStore::set_meta(const SweepText& sweep, const AskedPoints& asked) {
  auto set = database_.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)");
  if (!set) return set.error();
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"sweep", sweep.text},
                                                                                    {"file", sweep.file},
                                                                                    {"version", sweep.version},
                                                                                    {"points", std::to_string(asked.points->size())},
                                                                                    {"contents", json_of(asked.contents)},
                                                                                    {"shards", sweep.shard ? to_text(*sweep.shard) : ""}}) {
    set->bind(0, name);
    set->bind(1, value);
    if (auto ok = set->run(); !ok) return ok;
  }
  return database_.run("DELETE FROM meta WHERE name = 'shards' AND value = ''");
}

Expected<std::vector<bool>> SweepStore::begin(const SweepText& sweep, const AskedPoints& asked) {
  if (auto ok = check_shard(sweep.shard); !ok) {
    static_cast<void>(database_.run("ROLLBACK"));
    leave_one_file();
    return ok.error();
  }
  version_ = sweep.version;
  const auto same = is_the_same(asked);
  if (!same) return same.error();
  if (!*same)
    if (auto ok = replace_points(asked); !ok) return ok.error();
  if (auto ok = set_meta(sweep, asked); !ok) return ok.error();
  {
    auto session = database_.prepare("INSERT INTO sessions VALUES (?, ?, 0, 0, 0)");
    if (!session) return session.error();
    const double now = seconds_now();
    session->bind(0, now);
    session->bind(1, now);
    if (auto ok = session->run(); !ok) return ok.error();
  }
  std::vector<bool> known;
  {
    auto rows = database_.prepare("SELECT key IS NOT NULL OR reason IS NOT NULL FROM points ORDER BY position");
    if (!rows) return rows.error();
    for (;;) {
      const auto more = rows->step();
      if (!more) return more.error();
      if (!*more) break;
      known.push_back(rows->integer(0) != 0);
    }
  }
  if (auto ok = prepare(); !ok) return ok.error();
  if (auto ok = commit(); !ok) return ok.error();
  return known;
}

Status SweepStore::prepare() {
  std::string columns = "key, version", values = "?, ?";
  for (const RunColumn& column : run_columns()) columns += fmt::format(", \"{}\"", column.name), values += ", ?";
  for (auto& [statement, sql] :
       {std::pair{&add_run_, fmt::format("INSERT OR IGNORE INTO runs ({}) VALUES ({})", columns, values)},
        {&set_point_,
         "UPDATE points SET key = ?, reason = ?, used_algorithm = ?, used_dataflow = ?, used_slice_count = ?, padding = ? WHERE position = ? "
         "AND key IS NULL AND reason IS NULL"},
        {&note_session_,
         "UPDATE sessions SET updated_s = ?, ended = ?, finished = ?, simulated = ? WHERE rowid = (SELECT max(rowid) FROM sessions)"}}) {
    auto prepared = database_.prepare(sql);
    if (!prepared) return prepared.error();
    *statement = *std::move(prepared);
  }
  return success();
}

Expected<std::vector<std::string>> SweepStore::run_keys() {
  auto rows = database_.prepare("SELECT key FROM runs");
  if (!rows) return rows.error();
  std::vector<std::string> keys;
  for (;;) {
    const auto more = rows->step();
    if (!more) return more.error();
    if (!*more) return keys;
    keys.push_back(rows->text(0));
  }
}

}  // namespace podsim
