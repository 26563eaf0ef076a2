// Comma-separated values, row by row, with the place of every field.
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

/// One row that is not empty, with the line that it begins on.
struct CsvRow {
  std::vector<CsvField> fields;
  SourceLocation where;
};

/// Reads rows separated by LF or CRLF. Lines that begin with `#` and empty lines are left out, so is a byte order mark. A field may be quoted:
/// `"a, ""b"" c"`, with commas, doubled quotes and line breaks inside; of others, spaces and tabs at their ends do not count.
/// Errors: a quoted field that does not end, or that something follows. `text` must outlive the reader.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string file);
  /// The next row; nothing at the end.
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

/// As a field of a row: quoted only where it must be.
std::string csv_field(std::string_view text);

/// The fields between commas, and the end of the line.
std::string csv_row(const std::vector<std::string>& fields);

}  // namespace podsim
