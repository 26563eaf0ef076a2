// Text formatting for reports.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/text.hpp"

namespace podsim {

/// Output formats.
enum class Format { table, json, csv };
inline constexpr std::array table_json_csv{Format::table, Format::json, Format::csv};
inline constexpr std::array table_json{Format::table, Format::json};
inline constexpr std::array table_only{Format::table};

/// Rows of cells as aligned text; the first row is the heading. The first `left` columns are left-aligned, the others right-aligned, by the columns that a terminal shows.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// "1.353 ms"
std::string time_text(double seconds);

/// Breaks a sentence at spaces into lines of at most 120 columns.
std::string wrapped(const std::string& text);

/// A text between the tags of an SVG or HTML file. Control characters, which XML does not have, are left out.
std::string xml_text(std::string_view text);

}  // namespace podsim
