// The statements of a program as one text with places: what a recursive descent over them reads, character by character and word by word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/sharded/program.hpp"

namespace podsim {

/// The place of a character of a text that begins at `where`. A text on the command line begins at line 1.
SourceLocation place_in(const ProgramText::Entry& entry, std::size_t offset);

bool begins_name(char c);
bool goes_on_name(char c);

class ProgramSource {
 public:
  /// All texts, one after the other; they must outlive the source.
  explicit ProgramSource(const std::vector<ProgramText::Entry>& entries);

 protected:
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] SourceLocation place(std::size_t offset) const;
  [[nodiscard]] Diagnostic error(std::size_t offset, std::string message) const { return {place(offset), std::move(message)}; }
  /// What stands at a place, for messages.
  [[nodiscard]] std::string found(std::size_t offset) const;

  void skip_blanks();
  [[nodiscard]] bool next_is(char c);
  bool take(char c);
  /// Takes a word, if it is the next one.
  bool take_word(std::string_view word);
  Status expect(char c, std::string_view what);
  /// Empty: no name is next.
  std::string name();
  /// From -most to most.
  Expected<std::int64_t> integer(std::int64_t most);
  /// Finite, without a sign.
  Expected<double> number();
  /// The text up to one of these characters that stands outside of parentheses, or the end of the line.
  std::string_view text_until(std::string_view ends);
  /// Skips separators and comments. False: the end.
  bool skip_to_statement();

  std::size_t at_ = 0;
  int open_ = 0;  // open parentheses, inside which a statement may go on in the next line

 private:
  const std::vector<ProgramText::Entry>& entries_;
  std::string source_;
  std::vector<std::size_t> begins_;  // of each text in it
};

}  // namespace podsim
