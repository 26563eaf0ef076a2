#include "topologies/drawing.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

std::optional<std::string> drawn(std::vector<GridDimension> dimensions) { return draw(*Grid::make(std::move(dimensions))); }

TEST(Draw, LinesThatLeaveAreWraparounds) {
  EXPECT_EQ(drawn({{2, true, {}}, {3, true, {}}}),
            "- 0 - 1 - 2 -\n"
            "  |   |   |\n"
            "- 3 - 4 - 5 -\n");
  EXPECT_EQ(drawn({{3, true, {}}, {2, true, {}}}),
            "  |   |\n"
            "  0 - 1\n"
            "  |   |\n"
            "  2 - 3\n"
            "  |   |\n"
            "  4 - 5\n"
            "  |   |\n");
}

TEST(Draw, OneDimensionIsARow) {
  EXPECT_EQ(drawn({{3, false, {}}}), "  0 - 1 - 2\n");
  EXPECT_EQ(drawn({{1, false, {}}}), "  0\n");
}

TEST(Draw, NumbersLineUp) {
  EXPECT_EQ(drawn({{2, false, {}}, {6, false, {}}}),
            "   0 -  1 -  2 -  3 -  4 -  5\n"
            "   |    |    |    |    |    |\n"
            "   6 -  7 -  8 -  9 - 10 - 11\n");
}

TEST(Draw, OtherDimensionsArePlanes) {
  EXPECT_EQ(drawn({{3, true, {}}, {1, false, {}}, {2, false, {}}}),
            "x=0\n  0 - 1\n"
            "x=1\n  2 - 3\n"
            "x=2\n  4 - 5\n"
            "x: each chip is linked to those at x+1 and x-1, 2 to 0\n");
}

TEST(Draw, GivesUpOnWhatNobodyCouldRead) {
  EXPECT_TRUE(drawn({{16, true, {}}, {16, true, {}}}));
  EXPECT_FALSE(drawn({{17, true, {}}, {2, true, {}}}));
  EXPECT_FALSE(drawn({{2, true, {}}, {17, true, {}}}));
  EXPECT_FALSE(drawn({{17, true, {}}, {2, true, {}}, {2, true, {}}}));
}

}  // namespace
}  // namespace podsim
