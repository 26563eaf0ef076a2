#include "tools/report/table.hpp"

#include <algorithm>

#include "sim/base/units.hpp"
#include "tools/report/text_width.hpp"

namespace podsim {

std::string time_text(double seconds) { return to_text(Seconds{seconds}); }

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == widths.size()) widths.push_back(0);
      widths[c] = std::max(widths[c], width_of(row[c]));
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += (c < left ? left_aligned : right_aligned)(row[c], widths[c]) + "  ";
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string wrapped(const std::string& text) {
  constexpr std::size_t widest = 120;
  std::string lines;
  std::size_t width = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t word = width_of(std::string_view{text}.substr(begin, end - begin));
    if (width > 0 && width + 1 + word > widest) {
      lines += '\n';
      width = 0;
    } else if (width > 0) {
      lines += ' ';
      ++width;
    }
    lines += text.substr(begin, end - begin);
    width += word;
    begin = end + 1;
  }
  return lines;
}

std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (static_cast<unsigned char>(c) >= ' ')
      result += c;
  }
  return result;
}

}  // namespace podsim
