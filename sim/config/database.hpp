// SQLite with owners instead of handles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace podsim {

/// One cell; nothing: NULL.
using StoreValue = std::variant<std::monostate, std::string, std::int64_t, double>;

/// One prepared statement. Parameters and columns count from 0.
class Statement {
 public:
  void bind(int parameter, std::string_view text);
  void bind(int parameter, std::int64_t number);
  void bind(int parameter, double number);
  void bind_value(int parameter, const StoreValue& value);
  void bind_null(int parameter);
  template <class T>
  void bind(int parameter, const std::optional<T>& value) {
    value ? bind(parameter, *value) : bind_null(parameter);
  }

  /// Whether there is a row (more). Errors: what SQLite says.
  Expected<bool> step();
  /// Runs it to its end and makes it ready for the next parameters.
  Status run();

  enum class Type { null, integer, real, text, blob };
  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string column_name(int column) const;
  [[nodiscard]] Type type(int column) const;
  [[nodiscard]] std::string text(int column) const;  // empty where null
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] StoreValue value(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3_stmt* statement, std::string file) : statement_{statement}, file_{std::move(file)} {}
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::string file_;
};

/// One connection; one thread at a time. Errors of all: what SQLite says, in our words where it can be said better, with the file.
class Database {
 public:
  enum class Mode {
    read,
    write,  // created if there is none
    build,  // a file that is thrown away should anything fail: no journal, no syncing; large pages and caches, for many rows at once
  };
  static Expected<Database> open(const std::string& file, Mode mode);
  /// Of a connection of Mode::build, outside transactions: reads the tables of another file as NAME.table. Errors name that file.
  Status attach(const std::string& file, const std::string& name);
  Status detach(const std::string& name);

  /// One statement without parameters and results.
  Status run(std::string_view sql);
  Status run_all(const std::vector<std::string>& statements);
  /// Errors: also more than one statement.
  Expected<Statement> prepare(std::string_view sql);
  /// The first column of the first row, 0 without one.
  Expected<std::int64_t> number(std::string_view sql);
  /// Rows that the last INSERT, UPDATE or DELETE changed.
  [[nodiscard]] std::int64_t changes() const;

  /// From now on only what reads: nothing that writes, attaches, or changes settings.
  void only_reads();
  /// Statements end soon with cancelled_work() once `stop` is requested, however long they would run.
  void end_on(Cancellation stop);
  /// How long to wait for another process.
  void wait(int milliseconds);

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database(sqlite3* database, std::string file) : database_{database}, file_{std::move(file)} {}
  std::unique_ptr<Cancellation> stop_;  // SQLite asks it: it stays where it is, and longer than the connection
  std::unique_ptr<sqlite3, Close> database_;
  std::string file_;
};

}  // namespace podsim
