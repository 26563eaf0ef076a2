// Text that reports are made of.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/text.hpp"

namespace podsim {

/// How results are printed.
enum class Format { table, json, csv };
inline constexpr std::array table_json_csv{Format::table, Format::json, Format::csv};
inline constexpr std::array table_json{Format::table, Format::json};
inline constexpr std::array table_only{Format::table};

/// Rows of cells as aligned text: the first `left` columns to the left, numbers to the right. The first row is the heading.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

/// "1.353 ms"
std::string time_text(double seconds);

/// A sentence in lines of at most 120 characters, broken at blanks.
std::string wrapped(const std::string& text);

}  // namespace podsim
