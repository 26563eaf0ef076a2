#include "workloads/hlo/hlo_cursor.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace podsim {

namespace {

constexpr std::size_t deepest_brackets = 4096, longest_found = 40;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_in_name(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; }

}  // namespace

void HloCursor::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++at_;
      continue;
    }
    const std::size_t before = at_;
    skip_spaces();
    if (at_ == before) return;
  }
}

void HloCursor::skip_spaces() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) {
        at_ = text_.size();
        return;
      }
      at_ = end + 2;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool HloCursor::take(char token) {
  if (peek() != token || ended()) return false;
  ++at_;
  return true;
}

bool HloCursor::take(std::string_view token) {
  if (text_.compare(at_, token.size(), token) != 0) return false;
  at_ += token.size();
  return true;
}

std::string_view HloCursor::take_name() {
  const std::size_t begin = at_;
  if (at_ < text_.size() && is_letter(text_[at_]))
    while (at_ < text_.size() && is_in_name(text_[at_])) ++at_;
  return since(begin);
}

std::optional<std::int64_t> HloCursor::take_integer() {
  std::int64_t value = 0;
  const char *const begin = text_.data() + at_, *const end = text_.data() + text_.size();
  const auto [rest, status] = std::from_chars(begin, end, value);
  if (status != std::errc{}) return std::nullopt;
  at_ += static_cast<std::size_t>(rest - begin);
  return value;
}

bool HloCursor::skip_string() {
  std::size_t at = at_ + 1;
  while (true) {
    at = text_.find_first_of("\"\\", at);
    if (at == std::string_view::npos) return false;
    if (text_[at] == '"') break;
    at += 2;
  }
  at_ = at + 1;
  return true;
}

std::optional<std::string_view> HloCursor::take_quoted() {
  const std::size_t begin = at_;
  if (peek() != '"' || !skip_string()) return std::nullopt;
  return text_.substr(begin + 1, at_ - begin - 2);
}

bool HloCursor::take_balanced() {
  const std::size_t begin = at_;
  std::string open;
  do {
    at_ = std::min(text_.find_first_of("(){}[]\"", at_), text_.size());
    if (ended()) break;
    const char c = text_[at_];
    if (c == '"') {
      if (!skip_string()) break;
      continue;
    }
    ++at_;
    if (c == '(' || c == '{' || c == '[') {
      open.push_back(c);
      if (open.size() > deepest_brackets) break;
      continue;
    }
    if (open.empty() || open.back() != (c == ')' ? '(' : c == '}' ? '{' : '[')) break;
    open.pop_back();
    if (open.empty()) return true;
  } while (!open.empty());
  at_ = begin;
  return false;
}

void HloCursor::skip_to(std::string_view ends) {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (ends.find(c) != std::string_view::npos || c == ')' || c == '}' || c == ']') return;
    const bool nested = c == '(' || c == '{' || c == '[';
    if (nested ? !take_balanced() : c == '"' && !skip_string()) {
      at_ = text_.size();
      return;
    }
    if (!nested && c != '"') ++at_;
  }
}

SourceLocation HloCursor::where(std::size_t at) const {
  SourceLocation place = where_;
  if (where_.line == 0) return place;
  at = std::min(at, text_.size());
  if (at < known_at_) {
    known_lines_ -=
        static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at), text_.begin() + static_cast<std::ptrdiff_t>(known_at_), '\n'));
    known_at_ = at;
    known_line_begin_ = at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  }
  while (true) {
    const void* const end = at == known_at_ ? nullptr : std::memchr(text_.data() + known_at_, '\n', at - known_at_);
    if (end == nullptr) break;
    known_at_ = known_line_begin_ = static_cast<std::size_t>(static_cast<const char*>(end) - text_.data()) + 1;
    ++known_lines_;
  }
  known_at_ = at;
  place.line += known_lines_;
  place.column = static_cast<int>(at - known_line_begin_) + (known_lines_ == 0 ? where_.column : 1);
  return place;
}

Diagnostic HloCursor::expected_at(std::size_t at, std::string_view what) const {
  const std::string_view rest = text_.substr(std::min(at, text_.size()));
  const std::string_view line = rest.substr(0, std::min(rest.find('\n'), longest_found));
  const std::string found = rest.empty() ? "the end" : line.empty() ? "the end of the line" : quoted(line);
  return {where(at), "expected " + std::string{what} + ", got " + found, rest.empty() ? Cause::cut_off : Cause::input};
}

std::string unescaped(std::string_view quoted) {
  std::string text;
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\' || i + 1 == quoted.size()) {
      text += quoted[i];
      continue;
    }
    ++i;
    text += quoted[i] == 'n' ? '\n' : quoted[i];
  }
  return text;
}

}  // namespace podsim
