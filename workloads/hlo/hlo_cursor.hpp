// A place in a text of HLO, the tokens behind it, and errors that say where they are. What the readers of shapes, groups and modules share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"

namespace podsim {

/// Reads from the front to the back. A function whose name begins with `take` moves only if it found what it looks for.
class HloCursor {
 public:
  /// `where` is the place of text[0]; without a line, errors have it as it is.
  HloCursor(std::string_view text, std::size_t at, SourceLocation where) : text_{text}, at_{at}, where_{std::move(where)} {}

  [[nodiscard]] std::string_view text() const { return text_; }
  /// The place of text[0].
  [[nodiscard]] const SourceLocation& origin() const { return where_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  void move_to(std::size_t at) { at_ = at; }
  [[nodiscard]] bool ended() const { return at_ >= text_.size(); }
  /// The character here; 0 at the end.
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] std::string_view since(std::size_t begin) const { return text_.substr(begin, at_ - begin); }

  /// Spaces, line ends and /* comments */; a // comment reaches to the end of its line.
  void skip_blanks();
  /// Spaces and comments on this line.
  void skip_spaces();
  bool take(char token);
  bool take(std::string_view token);
  /// [A-Za-z_][A-Za-z0-9_.-]*, empty if there is none. HLO's names.
  std::string_view take_name();
  /// A decimal integer with a sign. nullopt if there is none, or it does not fit 64 bits.
  std::optional<std::int64_t> take_integer();
  /// "..." with escapes, without its quotation marks and as written; nullopt if there is none, or no end.
  std::optional<std::string_view> take_quoted();
  /// Moves behind the bracket that closes the one here, over strings, or returns false. Nesting is bounded to 4096.
  bool take_balanced();
  /// Moves to the first of `ends` outside brackets and strings, to a closing bracket that nothing opened, or to the end.
  void skip_to(std::string_view ends);

  /// O(distance from the last place asked for, and the length of the line).
  [[nodiscard]] SourceLocation where(std::size_t at) const;
  [[nodiscard]] SourceLocation where() const { return where(at_); }
  /// "expected WHAT, got FOUND" here.
  [[nodiscard]] Diagnostic expected(std::string_view what) const { return expected_at(at_, what); }
  [[nodiscard]] Diagnostic expected_at(std::size_t at, std::string_view what) const;

 private:
  bool skip_string();

  std::string_view text_;
  std::size_t at_;
  SourceLocation where_;
  mutable std::size_t known_at_ = 0, known_line_begin_ = 0;
  mutable int known_lines_ = 0;
};

/// Text between quotation marks, with \" \' \\ \n as the characters they stand for.
std::string unescaped(std::string_view quoted);

}  // namespace podsim
