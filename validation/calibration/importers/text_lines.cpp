#include "validation/calibration/importers/text_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, number, 1});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(blanks); begin != std::string_view::npos; begin = text.find_first_not_of(blanks, begin)) {
    const std::size_t end = std::min(text.find_first_of(blanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

SourceLocation place_of(const std::string& file, const TextLine& line, std::string_view part) {
  return {file, line.number, static_cast<int>(part.data() - line.text.data()) + line.column};
}

Expected<double> positive_number(std::string_view text, std::string_view what, const SourceLocation& where) {
  double value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc{} && rest == text.data() + text.size() && value > 0 && std::isfinite(value)) return value;
  return Diagnostic{where, std::string{what} + " must be a positive number, got " + quoted(text)};
}

}  // namespace podsim
