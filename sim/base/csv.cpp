#include "sim/base/csv.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/utf8.hpp"

namespace podsim {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view blanks = " \t";

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string file) : text_{text}, file_{std::move(file)} {
  if (text_.starts_with(byte_order_mark)) at_ = line_begin_ = byte_order_mark.size();
}

SourceLocation CsvReader::here() const {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  return {file_, line_, static_cast<int>(std::min(at_ - line_begin_ + 1, most))};
}

bool CsvReader::at_line_end() const { return at_ == text_.size() || text_[at_] == '\n' || text_.substr(at_).starts_with("\r\n"); }

void CsvReader::new_line() {
  ++at_;
  ++line_;
  line_begin_ = at_;
}

Expected<std::optional<CsvRow>> CsvReader::next() {
  for (; at_ < text_.size(); new_line()) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') break;
    at_ = end;
    if (end == text_.size()) break;
  }
  if (at_ == text_.size()) return std::optional<CsvRow>{};

  const std::size_t begin = at_, line_begin = line_begin_;
  CsvRow row{{}, here()};
  while (true) {
    while (at_ < text_.size() && blanks.find(text_[at_]) != std::string_view::npos) ++at_;
    const SourceLocation where = here();
    if (at_ < text_.size() && text_[at_] == '"') {
      auto text = quoted_field();
      if (!text) return text.error();
      row.fields.push_back({*std::move(text), where});
    } else {
      row.fields.push_back({bare_field(), where});
    }
    if (at_line_end()) break;
    ++at_;  // the comma
  }
  if (const auto bad = first_non_text(text_.substr(begin, at_ - begin))) {
    for (at_ = begin, line_ = row.where.line, line_begin_ = line_begin; at_ < begin + *bad;) {
      if (text_[at_] == '\n') new_line();
      else ++at_;
    }
    return Diagnostic{here(), "expected text in UTF-8 without NUL, got " + quoted(text_.substr(at_, 1))};
  }
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size()) new_line();
  return std::optional{std::move(row)};
}

Expected<std::string> CsvReader::quoted_field() {
  const SourceLocation begin = here();
  std::string text;
  for (++at_; at_ < text_.size();) {
    const char c = text_[at_];
    if (c == '\n') {
      text += c;
      new_line();
      continue;
    }
    ++at_;
    if (c != '"') {
      text += c;
    } else if (at_ < text_.size() && text_[at_] == '"') {
      text += c;
      ++at_;
    } else {
      while (at_ < text_.size() && blanks.find(text_[at_]) != std::string_view::npos) ++at_;
      if (at_line_end() || text_[at_] == ',') return text;
      return Diagnostic{here(), "a comma or the end of the line must follow a quoted field, got " + quoted(text_.substr(at_, 1))};
    }
  }
  return Diagnostic{begin, "this quoted field does not end"};
}

std::string CsvReader::bare_field() {
  const std::size_t begin = at_;
  while (!at_line_end() && text_[at_] != ',') ++at_;
  std::string_view text = text_.substr(begin, at_ - begin);
  return std::string{text.substr(0, text.find_last_not_of(blanks) + 1)};
}

std::string csv_field(std::string_view text) {
  const bool plain = text.find_first_of(",\"\r\n#") == std::string_view::npos &&
                     (text.empty() || (blanks.find(text.front()) == std::string_view::npos && blanks.find(text.back()) == std::string_view::npos));
  if (plain) return std::string{text};
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}

std::string csv_row(const std::vector<std::string>& fields) {
  std::string row;
  for (const std::string& field : fields) row.append(&field == &fields.front() ? "" : ",").append(csv_field(field));
  return row + '\n';
}

}  // namespace podsim
