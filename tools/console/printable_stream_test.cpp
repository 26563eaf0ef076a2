#include "tools/console/printable_stream.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tools/report/colour.hpp"

namespace podsim {
namespace {

TEST(Printable, KeepsTextOfAnyAlphabet) {
  const std::string text = "axis col\t4\nπ Ж 語 😀\n";
  EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("x\x1b]0;title\a"), "x\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\rb\b\x7f"), "a\\x0d" "b\\x08\\x7f");
  EXPECT_EQ(printable(std::string_view{"a\0b", 3}), "a\\x00" "b");
  EXPECT_EQ(printable("\xc2\x9b" "31m"), "\\xc2\\x9b31m");  // U+009B, which some terminals take for ESC [
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("caf\xe9 \x9b"), "caf\\xe9 \\x9b");
  EXPECT_EQ(printable("\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe8\xaa"), "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xe8\\xaa");
}

TEST(Printable, OwnSequencesPassWhereTheyAreWritten) {
  const std::string colours = coloured_text("A", {1, 20, 255}), progress = "\r\x1b[K50 %";
  EXPECT_EQ(printable(colours, OwnSequences::colours), colours);
  EXPECT_EQ(printable(progress, OwnSequences::progress), progress);
  EXPECT_EQ(printable(colours, OwnSequences::progress), printable(colours));
  EXPECT_EQ(printable(progress, OwnSequences::colours), printable(progress));
  EXPECT_EQ(printable(colours + progress).find('\x1b'), std::string::npos);
  for (const char* other : {"\x1b[2J", "\x1b[8m", "\r", "\x1b[38;2;1;2;3;48;2;1;2;3", "\x1b]0;t\a"})
    for (const OwnSequences own : {OwnSequences::colours, OwnSequences::progress}) EXPECT_EQ(printable(other, own), printable(other)) << printable(other);
}

TEST(PrintableStream, PassesOnAndReportsFailure) {
  std::ostringstream target;
  PrintableStream printed{target, OwnSequences::none};
  printed.stream() << "name " << '\x1b' << " of " << 3 << "\n" << std::flush;
  EXPECT_EQ(target.str(), "name \\x1b of 3\n");
  target.setstate(std::ios::badbit);
  printed.stream() << "more";
  EXPECT_FALSE(printed.stream().good());
}

}  // namespace
}  // namespace podsim
