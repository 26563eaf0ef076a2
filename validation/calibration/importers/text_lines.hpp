// Lines of a text and the words in them, with their places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// One line, without its end.
struct TextLine {
  std::string_view text;
  int number = 0;
  int column = 1;  // of the first character of `text`
};

/// All lines of a text. An end by CR LF is none of the line.
std::vector<TextLine> lines_of(std::string_view text);

/// Words between spaces and tabs.
std::vector<std::string_view> words_of(std::string_view text);

/// Where a part of a line stands.
SourceLocation place_of(const std::string& file, const TextLine& line, std::string_view part);

/// A positive finite number without unit; `what` is it in the error.
Expected<double> positive_number(std::string_view text, std::string_view what, const SourceLocation& where);

/// The most that a file of observations takes (read_observations).
inline constexpr Bytes most_observed_bytes{std::int64_t{1} << 42};
inline constexpr int most_observed_devices = 1 << 20;

}  // namespace podsim
