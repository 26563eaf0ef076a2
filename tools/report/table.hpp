// Text formatting for reports.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/text.hpp"

namespace podsim {

/// Output formats.
enum class Format { table, json, csv, markdown };
inline constexpr std::array table_json_csv{Format::table, Format::json, Format::csv};
inline constexpr std::array table_json_csv_markdown{Format::table, Format::json, Format::csv, Format::markdown};
inline constexpr std::array table_json{Format::table, Format::json};
inline constexpr std::array table_only{Format::table};

/// While one lives, texts of this thread keep to the columns of a terminal: see table() and wrapped(). 0: there is none, and nothing is cut.
class ScreenWidth {
 public:
  explicit ScreenWidth(std::size_t columns);
  ~ScreenWidth();
  ScreenWidth(const ScreenWidth&) = delete;
  ScreenWidth& operator=(const ScreenWidth&) = delete;

 private:
  std::size_t before_;
};

/// Rows of cells as aligned text; the first row is the heading. The first `left` columns are left-aligned, the others right-aligned, by the columns that a terminal shows.
/// On a screen that is narrower, of several columns those whose cells are all alike leave, and are said in a line below; then, where the first row is a heading, those that tell least; what
/// was left out is named. Of two columns the second is broken into lines.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// "1.353 ms"
std::string time_text(double seconds);

/// Breaks a sentence at spaces into lines of at most 120 columns, or as many as the screen has.
std::string wrapped(const std::string& text);

/// A text between the tags of an SVG or HTML file. Control characters, which XML does not have, are left out.
std::string xml_text(std::string_view text);

}  // namespace podsim
