#include "validation/calibration/importers/json_elements.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace podsim {

namespace {

constexpr std::size_t longest_element = std::size_t{1} << 26;
constexpr std::size_t deepest = 512;
constexpr std::size_t longest_rest = std::size_t{1} << 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

JsonElements::JsonElements(std::unique_ptr<ByteSource> bytes, std::string file, std::string key)
    : bytes_{std::move(bytes)}, file_{std::move(file)}, key_{std::move(key)} {}

SourceLocation JsonElements::here() const {
  constexpr std::size_t most = std::numeric_limits<int>::max();
  return {file_, static_cast<int>(std::min(line_, most)), static_cast<int>(std::clamp<std::size_t>(column_, 1, most))};
}

Expected<bool> JsonElements::fill() {
  const auto piece = bytes_->next();
  if (!piece) return piece.error();
  piece_ = *piece;
  at_ = 0;
  return !piece_.empty();
}

/// What a character does that is in no string: brackets, and in the root which key is meant.
Status JsonElements::outside(char c) {
  if (ended_)
    return is_blank(c) ? success() : Status{Diagnostic{here(), "nothing may follow the end of the JSON, got " + quoted(std::string_view{&c, 1})}};
  if (open_.empty() && c != '{' && c != '[' && !is_blank(c))
    return Diagnostic{here(), "JSON must begin with { or [, got " + quoted(std::string_view{&c, 1})};
  if (in_array() && c != '{' && c != ']' && c != ',' && !is_blank(c))
    return Diagnostic{here(), "every element must be an object, got " + quoted(std::string_view{&c, 1})};
  if (c == '{' || c == '[') {
    if (open_.size() == deepest) return Diagnostic{here(), "brackets are nested deeper than " + std::to_string(deepest)};
    open_.push_back(c);
    const bool root = open_.size() == 1, value = open_.size() == 2 && string_is_key_ && string_ == key_ && open_.front() == '{';
    if (c == '[' && !found_ && (root || value)) {
      found_ = true;
      array_depth_ = open_.size();
    }
    string_is_key_ = false;
  } else if (c == '}' || c == ']') {
    if (open_.empty() || (open_.back() == '{') != (c == '}'))
      return Diagnostic{here(), "this bracket closes none, got " + quoted(std::string_view{&c, 1})};
    if (in_array()) left_ = true;
    open_.pop_back();
    ended_ = open_.empty();
  } else if (c == '"') {
    in_string_ = true;
    if (open_.size() == 1) string_.clear();
  } else if (open_.size() == 1 && !is_blank(c)) {
    string_is_key_ = c == ':';
  }
  return success();
}

void JsonElements::keep(char c) {
  if (!rest_fits_) return;
  rest_ += c;
  rest_fits_ = rest_.size() <= longest_rest;
  if (!rest_fits_) rest_.clear();
}

Expected<bool> JsonElements::next(std::string& element) {
  element.clear();
  bool inside = false;  // an element
  while (true) {
    if (at_ == piece_.size()) {
      const auto more = fill();
      if (!more) return more.error();
      if (!*more) {
        if (ended_) return false;
        return Diagnostic{here(), line_ == 1 && column_ == 0 ? "the file is empty" : "the JSON is cut short here"};
      }
    }
    std::size_t copied = at_;  // of this piece, up to where the element has it
    while (at_ < piece_.size()) {
      const char c = piece_[at_++];
      ++column_;
      const bool beside = !inside && !in_array();
      if (beside) keep(c);
      if (in_string_) {
        if (escaped_)
          escaped_ = false;
        else if (c == '\\')
          escaped_ = true;
        else if (c == '"')
          in_string_ = false;
        if (in_string_ && open_.size() == 1 && string_.size() <= key_.size()) string_ += c;
      } else {
        const bool was_in_array = in_array();
        if (Status known = outside(c); !known) return known.error();
        if (was_in_array && c == ']') keep(c);
        if (was_in_array && c == '{') {
          inside = true;
          where_ = here();
          copied = at_ - 1;
        } else if (inside && in_array()) {
          element.append(piece_.data() + copied, at_ - copied);
          return true;
        }
      }
      if (c == '\n') {
        ++line_;
        column_ = 0;
      }
    }
    if (inside) element.append(piece_.data() + copied, at_ - copied);
    if (element.size() > longest_element) return Diagnostic{where_, "this element is longer than " + std::to_string(longest_element) + " bytes"};
  }
}

}  // namespace podsim
