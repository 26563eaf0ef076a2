// Comma-separated values, row by row, with the line and column of every field.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

struct CsvField {
  std::string text;
  SourceLocation where;
};

/// One non-empty row and the line that it begins on.
struct CsvRow {
  std::vector<CsvField> fields;
  SourceLocation where;
};

/// Reads rows separated by LF or CRLF. A byte order mark, empty lines and lines that begin with `#` are skipped. A quoted field (`"a, ""b"" c"`) may
/// contain commas, doubled quotes and line breaks. Unquoted fields lose the spaces and tabs at both ends.
/// Errors: a quoted field without its closing quote, or with text behind it; a row that is not UTF-8, or holds NUL (what is skipped may hold any bytes).
/// `text` must outlive the reader.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string file);
  /// The next row; nullopt at the end.
  Expected<std::optional<CsvRow>> next();

 private:
  [[nodiscard]] SourceLocation here() const;
  Expected<std::string> quoted_field();
  std::string bare_field();
  void new_line();
  [[nodiscard]] bool at_line_end() const;

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
};

/// `text` as a CSV field, quoted only if it must be.
std::string csv_field(std::string_view text);

/// The fields separated by commas, with a line end.
std::string csv_row(const std::vector<std::string>& fields);

}  // namespace podsim
