#include "tools/report/table.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "sim/base/units.hpp"
#include "tools/report/text_width.hpp"

namespace podsim {

std::string time_text(double seconds) { return to_text(Seconds{seconds}); }

namespace {

thread_local std::size_t screen_columns = 0;

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t column_gap = 2;  // between columns

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == widths.size()) widths.push_back(0);
      widths[c] = std::max(widths[c], width_of(row[c]));
    }
  return widths;
}

std::size_t total(const std::vector<std::size_t>& widths) { return std::accumulate(widths.begin(), widths.end(), column_gap * (widths.empty() ? 0 : widths.size() - 1)); }

void drop(Rows& rows, std::size_t column) {
  for (auto& row : rows)
    if (column < row.size()) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
}

/// Headings of columns that tell less than others, the first of them least.
constexpr std::array<std::string_view, 14> of_less_use{"source", "padding", "task instances", "link traffic", "hops", "vs best", "of cuts", "algbw", "peak memory", "memory", "compute", "waiting", "MFU", "slice"};

/// Takes columns out until the rest fits, and says which; `left`: how many of the first columns are left-aligned.
std::string make_fit(Rows& rows, std::size_t& left) {
  std::string said, missing;
  const auto fits = [&] { return total(widths_of(rows)) <= screen_columns; };
  const auto leave = [&](std::size_t column) {
    if (column < left) --left;
    drop(rows, column);
  };
  for (std::size_t c = rows.front().size(); c-- > 0 && rows.size() > 2 && !fits();) {
    const auto same = [&](const std::vector<std::string>& row) { return c < row.size() && row[c] == rows[1][c]; };
    if (c >= rows[1].size() || rows.front()[c].empty() || !std::all_of(rows.begin() + 1, rows.end(), same)) continue;
    said.insert(0, rows.front()[c] + " " + rows[1][c] + (said.empty() ? "" : ", "));
    leave(c);
  }
  for (const std::string_view heading : of_less_use) {
    if (fits()) break;
    const auto found = std::ranges::find(rows.front(), heading);
    if (found == rows.front().end() || rows.front().size() <= 2) continue;
    missing += (missing.empty() ? "" : ", ") + std::string{heading};
    leave(static_cast<std::size_t>(found - rows.front().begin()));
  }
  std::string lines;
  if (!said.empty()) lines += wrapped("in all rows: " + said) + "\n";
  if (!missing.empty()) lines += wrapped("left out for want of room: " + missing + "; --format csv or json has all") + "\n";
  return lines;
}

/// The second cell in lines, below one another.
std::string in_two_columns(const Rows& rows, std::size_t first, std::size_t room) {
  std::string text;
  for (const auto& row : rows) {
    std::string rest = row.size() > 1 ? row[1] : "";
    std::string line = left_aligned(row.empty() ? "" : row[0], first);
    while (width_of(rest) > room) {
      std::size_t at = rest.rfind(' ', room);
      if (at == std::string::npos || at == 0) at = rest.find(' ');
      if (at == std::string::npos) break;
      text += line + "  " + rest.substr(0, at) + "\n";
      rest.erase(0, at + 1);
      line.assign(first, ' ');
    }
    line += "  " + rest;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

ScreenWidth::ScreenWidth(std::size_t columns) : before_{std::exchange(screen_columns, columns)} {}
ScreenWidth::~ScreenWidth() { screen_columns = before_; }

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> widths = widths_of(rows);
  constexpr std::size_t narrowest = 20;
  if (screen_columns > 0 && total(widths) > screen_columns) {
    if (widths.size() == 2 && widths[0] + column_gap + narrowest <= screen_columns) return in_two_columns(rows, widths[0], screen_columns - widths[0] - column_gap);
    if (widths.size() > 2) {
      Rows fewer = rows;
      std::size_t left_of_fewer = left;
      const std::string said = make_fit(fewer, left_of_fewer);
      if (!said.empty()) {
        const ScreenWidth as_it_is{0};
        return table(fewer, left_of_fewer) + said;
      }
    }
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
  constexpr std::size_t most = 120;
  const std::size_t widest = screen_columns > 0 ? std::min(most, screen_columns) : most;
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
