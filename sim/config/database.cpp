#include "sim/config/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cctype>
#include <filesystem>

#include "sim/base/invariant.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

namespace {

Diagnostic error_of(sqlite3* database, const std::string& file) {
  const int code = database == nullptr ? SQLITE_NOMEM : sqlite3_errcode(database);
  const std::string said = database == nullptr ? "out of memory" : sqlite3_errmsg(database);
  const auto in = [&](const std::string& message) { return Diagnostic{{file, 0, 0}, message}; };
  switch (code & 0xff) {
    case SQLITE_NOTADB: return in("expected a SQLite file, found something else");
    case SQLITE_CORRUPT: return in("the file is damaged (SQLite: " + said + ")");
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return in("another process is writing to this store; one at a time can");
    case SQLITE_INTERRUPT: return cancelled_work();
    case SQLITE_FULL: return {{file, 0, 0}, "the disk is full", Cause::environment};
    case SQLITE_CANTOPEN: return in("cannot open the file");
    case SQLITE_AUTH: return in("a query may only read");
    case SQLITE_READONLY: return in("the file cannot be written");
    default: return in("SQLite: " + said);
  }
}

/// With characters that mean something in a URI as %XX.
std::string uri_of(const std::string& file, std::string_view mode) {
  std::string uri = "file://";
  for (const char c : std::filesystem::absolute(file).string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view{"/-_.~"}.find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return fmt::format("{}?mode={}", uri, mode);
}

void check(int code) {
  PODSIM_ASSERT(code == SQLITE_OK);  // of a binding: a parameter that is not there, or no memory
  static_cast<void>(code);
}

}  // namespace

// ---- Statement ------------------------------------------------------------------------------------------------------------------------

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int parameter, std::string_view text) {
  check(sqlite3_bind_text(statement_.get(), parameter + 1, text.empty() ? "" : text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
}
void Statement::bind(int parameter, std::int64_t number) { check(sqlite3_bind_int64(statement_.get(), parameter + 1, number)); }
void Statement::bind(int parameter, double number) { check(sqlite3_bind_double(statement_.get(), parameter + 1, number)); }
void Statement::bind_value(int parameter, const StoreValue& value) {
  std::visit(Overloaded{[&](std::monostate) { bind_null(parameter); }, [&](const auto& there) { bind(parameter, there); }}, value);
}
void Statement::bind_null(int parameter) { check(sqlite3_bind_null(statement_.get(), parameter + 1)); }

Expected<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Diagnostic error = error_of(sqlite3_db_handle(statement_.get()), file_);
  sqlite3_reset(statement_.get());
  return error;
}

Status Statement::run() {
  for (;;) {
    const auto more = step();
    if (!more) return more.error();
    if (*more) continue;
    sqlite3_reset(statement_.get());
    return success();
  }
}

int Statement::columns() const { return sqlite3_column_count(statement_.get()); }
std::string Statement::column_name(int column) const { return sqlite3_column_name(statement_.get(), column); }

Statement::Type Statement::type(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_INTEGER: return Type::integer;
    case SQLITE_FLOAT: return Type::real;
    case SQLITE_TEXT: return Type::text;
    case SQLITE_BLOB: return Type::blob;
    default: return Type::null;
  }
}

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string{} : std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

StoreValue Statement::value(int column) const {
  switch (type(column)) {
    case Type::null: return {};
    case Type::integer: return integer(column);
    case Type::real: return real(column);
    default: return text(column);
  }
}

// ---- Database -------------------------------------------------------------------------------------------------------------------------

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Expected<Database> Database::open(const std::string& file, Mode mode) {
  sqlite3* handle = nullptr;
  const int flags = mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | (mode == Mode::build ? SQLITE_OPEN_URI : 0);
  const std::string name = mode == Mode::build ? uri_of(file, "rwc") : file;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  Database database{handle, file};
  if (code != SQLITE_OK) return error_of(handle, file);
  sqlite3_extended_result_codes(handle, 0);
  database.wait(1000);
  if (mode == Mode::build)
    if (auto ok = database.run_all({"PRAGMA main.page_size = 16384", "PRAGMA main.journal_mode = OFF", "PRAGMA main.synchronous = OFF",
                                    "PRAGMA main.locking_mode = EXCLUSIVE", "PRAGMA main.cache_size = -262144"});
        !ok)
      return ok.error();
  return database;
}

Status Database::attach(const std::string& file, const std::string& name) {
  auto statement = prepare("ATTACH ? AS " + name);
  if (!statement) return statement.error();
  statement->bind(0, uri_of(file, "ro"));
  if (!statement->run()) return error_of(database_.get(), file);
  return run("PRAGMA " + name + ".cache_size = -131072");  // each page is read once
}

Status Database::detach(const std::string& name) { return run("DETACH " + name); }

void Database::end_on(Cancellation stop) {
  stop_ = std::make_unique<Cancellation>(stop);
  constexpr int steps = 10'000;  // of SQLite's virtual machine, between two looks: well below a millisecond
  sqlite3_progress_handler(
      database_.get(), steps, [](void* asked) { return static_cast<const Cancellation*>(asked)->requested() ? 1 : 0; }, stop_.get());
}

void Database::wait(int milliseconds) { sqlite3_busy_timeout(database_.get(), milliseconds); }

Status Database::run(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  return statement->run();
}

Status Database::run_all(const std::vector<std::string>& statements) {
  for (const std::string& sql : statements)
    if (auto ok = run(sql); !ok) return ok;
  return success();
}

Expected<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const char* tail = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &handle, &tail) != SQLITE_OK)
    return error_of(database_.get(), file_);
  Statement statement{handle, file_};
  if (handle == nullptr) return Diagnostic{{}, "expected an SQL statement, found none"};
  const std::string_view rest = sql.substr(static_cast<std::size_t>(tail - sql.data()));
  if (rest.find_first_not_of(" \t\r\n;") != std::string_view::npos) return Diagnostic{{}, "expected one SQL statement, found more behind it"};
  return statement;
}

Expected<std::int64_t> Database::number(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const auto row = statement->step();
  if (!row) return row.error();
  return *row ? statement->integer(0) : 0;
}

std::int64_t Database::changes() const { return sqlite3_changes(database_.get()); }

void Database::only_reads() {
  sqlite3_set_authorizer(
      database_.get(),
      [](void*, int action, const char*, const char*, const char*, const char*) {
        return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE ? SQLITE_OK : SQLITE_DENY;
      },
      nullptr);
}

}  // namespace podsim
