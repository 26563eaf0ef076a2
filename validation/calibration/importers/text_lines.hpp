// Lines of a text and their words, with locations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// One line, without its line end.
struct TextLine {
  std::string_view text;
  int number = 0;
  int column = 1;  // of the first character of `text`
};

/// All lines of a text, ending in LF or CR LF.
std::vector<TextLine> lines_of(std::string_view text);

/// The words separated by spaces and tabs.
std::vector<std::string_view> words_of(std::string_view text);

/// The location of a part of a line.
SourceLocation place_of(const std::string& file, const TextLine& line, std::string_view part);

/// A positive finite number without unit; `what` names it in the error.
Expected<double> positive_number(std::string_view text, std::string_view what, const SourceLocation& where);

/// The largest size in a file of observations (read_observations).
inline constexpr Bytes most_observed_bytes{std::int64_t{1} << 42};
inline constexpr int most_observed_devices = 1 << 20;

}  // namespace podsim
