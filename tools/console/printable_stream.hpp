// What a command prints, without the control characters that names of files, schedules and axes may have: these would reach the terminal, which obeys them.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace podsim {

/// Which escape sequences of our own pass: those of coloured_text() (tools/report/colour.hpp), or the one that erases a line of progress.
enum class OwnSequences { none, colours, progress };

/// Control characters other than the end of a line and the tab, and bytes that are no UTF-8, become \xNN: "\x1b" for the escape character.
std::string printable(std::string_view text, OwnSequences own = OwnSequences::none);

/// Passes what is written on to `target` as printable(). What is written at once is looked at as a whole: a character or sequence must not be divided.
class PrintableStream : private std::streambuf {
 public:
  PrintableStream(std::ostream& target, OwnSequences own) : target_{target}, own_{own}, stream_{this} {}
  std::ostream& stream() { return stream_; }

 private:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

  std::ostream& target_;
  OwnSequences own_;
  std::ostream stream_;
};

}  // namespace podsim
