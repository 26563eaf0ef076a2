#include "tools/report/text_width.hpp"

#include <gtest/gtest.h>

#include "tools/report/table.hpp"

namespace podsim {
namespace {

const std::string tokyo = "\u6771\u4eac", cafe = "cafe\u0301", rocket = "\U0001f680", half = "\uff76";

TEST(TextWidth, IsThatOfATerminal) {
  EXPECT_EQ(width_of(""), 0U);
  EXPECT_EQ(width_of("row=0,col=3"), 11U);
  EXPECT_EQ(width_of(tokyo), 4U);
  EXPECT_EQ(width_of(cafe), 4U);
  EXPECT_EQ(width_of(rocket), 2U);
  EXPECT_EQ(width_of(half), 1U);
  EXPECT_EQ(width_of("\u00fc\u03b1\u0416"), 3U);
}

TEST(TextWidth, OfWhatIsNoTextIsAColumnEach) {
  EXPECT_EQ(width_of("\xff\xfe"), 2U);
  EXPECT_EQ(width_of(tokyo.substr(0, 2)), 2U) << "a character that is cut off";
  EXPECT_EQ(width_of(std::string("a\0b", 3)), 3U);
  EXPECT_EQ(on_one_line(std::string("a\0b\x1b[m\xff", 7), 80), "a?b?[m?");
}

TEST(TextWidth, CutsBetweenCharacters) {
  EXPECT_EQ(on_one_line("abcdef", 6), "abcdef");
  EXPECT_EQ(on_one_line("abcdefg", 6), "abc...");
  EXPECT_EQ(on_one_line(tokyo + tokyo, 8), tokyo + tokyo);
  EXPECT_EQ(on_one_line(tokyo + tokyo, 6), "\u6771...");
  EXPECT_EQ(on_one_line(cafe + cafe, 7), cafe + "...") << "with what combines";
  EXPECT_EQ(on_one_line(std::string(100, 'x'), 3), "...");
}

TEST(TextWidth, FirstColumnsEndBetweenCharacters) {
  EXPECT_EQ(first_columns("abcdef", 4), "abcd");
  EXPECT_EQ(first_columns(tokyo, 3), "\u6771");
  EXPECT_EQ(first_columns(tokyo, 4), tokyo);
  EXPECT_EQ(first_columns(cafe + "x", 4), cafe) << "with what combines";
  EXPECT_EQ(first_columns(tokyo, 0), "");
}

TEST(Table, AlignsNamesOfAnyAlphabet) {
  EXPECT_EQ(table({{"device", "time"}, {tokyo, "1 s"}, {cafe, "20 s"}, {rocket + "x", half}}, 1),
            "device  time\n" + tokyo + "     1 s\n" + cafe + "    20 s\n" + rocket + "x        " + half + "\n");
}

}  // namespace
}  // namespace podsim
