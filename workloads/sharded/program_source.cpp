#include "workloads/sharded/program_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/text.hpp"
#include "sim/base/units.hpp"

namespace podsim {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool goes_on_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

SourceLocation place_in(const ProgramText::Entry& entry, std::size_t offset) {
  SourceLocation place = entry.where;
  if (place.line == 0) place.line = 1;
  if (place.column == 0) place.column = 1;
  for (std::size_t i = 0; i < std::min(offset, entry.text.size()); ++i) {
    if (entry.text[i] == '\n') ++place.line, place.column = 1;
    else ++place.column;
  }
  return place;
}

ProgramSource::ProgramSource(const std::vector<ProgramText::Entry>& entries) : entries_{entries} {
  for (const ProgramText::Entry& entry : entries) {
    begins_.push_back(source_.size());
    source_ += entry.text + '\n';
  }
  if (!source_.empty()) source_.pop_back();
}

SourceLocation ProgramSource::place(std::size_t offset) const {
  if (begins_.empty()) return {};
  const std::size_t entry = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), offset) - begins_.begin()) - 1;
  return place_in(entries_[entry], offset - begins_[entry]);
}

std::string ProgramSource::found(std::size_t offset) const {
  if (offset >= source_.size()) return "the end";
  if (source_[offset] == '\n') return "the end of the line";
  std::size_t end = offset + 1;
  if (goes_on_name(source_[offset]))
    while (end < source_.size() && goes_on_name(source_[end])) ++end;
  return quoted(source_.substr(offset, end - offset));
}

void ProgramSource::skip_blanks() {
  while (at_ < source_.size() && (is_blank(source_[at_]) || (source_[at_] == '\n' && open_ > 0))) ++at_;
}

bool ProgramSource::next_is(char c) {
  skip_blanks();
  return at_ < source_.size() && source_[at_] == c;
}

bool ProgramSource::take(char c) {
  if (!next_is(c)) return false;
  ++at_;
  return true;
}

bool ProgramSource::take_word(std::string_view word) {
  skip_blanks();
  const std::size_t begin = at_;
  if (name() == word) return true;
  at_ = begin;
  return false;
}

Status ProgramSource::expect(char c, std::string_view what) {
  if (take(c)) return success();
  return error(at_, fmt::format("expected {}, found {}", what, found(at_)));
}

std::string ProgramSource::name() {
  skip_blanks();
  const std::size_t begin = at_;
  if (begin < source_.size() && begins_name(source_[begin]))
    while (at_ < source_.size() && goes_on_name(source_[at_])) ++at_;
  return source_.substr(begin, at_ - begin);
}

Expected<std::int64_t> ProgramSource::integer(std::int64_t most) {
  skip_blanks();
  const std::size_t begin = at_;
  if (at_ < source_.size() && source_[at_] == '-') ++at_;
  while (at_ < source_.size() && goes_on_name(source_[at_])) ++at_;
  if (at_ == begin) return error(begin, "expected a whole number, found " + found(begin));
  return parse_integer(std::string_view{source_}.substr(begin, at_ - begin), -most, most, place(begin));
}

Expected<double> ProgramSource::number() {
  double value = 0;
  const char* const begin = source_.data() + at_;
  const auto [end, status] = std::from_chars(begin, source_.data() + source_.size(), value);
  if (status != std::errc{} || !std::isfinite(value)) return error(at_, "expected a number, found " + found(at_));
  at_ += static_cast<std::size_t>(end - begin);
  return value;
}

std::string_view ProgramSource::text_until(std::string_view ends) {
  const std::size_t begin = at_;
  int depth = 0;
  while (at_ < source_.size() && source_[at_] != '\n' && (depth > 0 || ends.find(source_[at_]) == std::string_view::npos)) {
    depth += source_[at_] == '(' ? 1 : source_[at_] == ')' ? -1 : 0;
    ++at_;
  }
  return std::string_view{source_}.substr(begin, at_ - begin);
}

bool ProgramSource::skip_to_statement() {
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (c == '#') at_ = std::min(source_.find('\n', at_), source_.size());
    else if (is_blank(c) || c == '\n' || c == ';') ++at_;
    else return true;
  }
  return false;
}

}  // namespace podsim
