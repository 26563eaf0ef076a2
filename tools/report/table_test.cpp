#include "tools/report/table.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

const std::vector<std::vector<std::string>> runs{{"machine", "mesh", "algorithm", "time", "MFU", "peak memory"},
                                                 {"tpu_v4", "row=32,col=8", "meshslice", "9.977 ms", "90.2 %", "325.6 MB"},
                                                 {"tpu_v4", "row=32,col=8", "collective", "12.96 ms", "69.4 %", "810 MB"}};

TEST(Table, WithoutAScreenNothingIsLeftOut) {
  EXPECT_EQ(table(runs, 3),
            "machine  mesh          algorithm       time     MFU  peak memory\n"
            "tpu_v4   row=32,col=8  meshslice   9.977 ms  90.2 %     325.6 MB\n"
            "tpu_v4   row=32,col=8  collective  12.96 ms  69.4 %       810 MB\n");
}

TEST(Table, OnAScreenWhatIsAlikeInAllRowsIsSaidOnce) {
  const ScreenWidth screen{60};
  EXPECT_EQ(table(runs, 3),
            "machine  algorithm       time     MFU  peak memory\n"
            "tpu_v4   meshslice   9.977 ms  90.2 %     325.6 MB\n"
            "tpu_v4   collective  12.96 ms  69.4 %       810 MB\n"
            "in all rows: mesh row=32,col=8\n");
}

TEST(Table, OnANarrowScreenColumnsOfLessUseLeaveAndAreNamed) {
  const ScreenWidth screen{30};
  EXPECT_EQ(table(runs, 3),
            "algorithm       time     MFU\n"
            "meshslice   9.977 ms  90.2 %\n"
            "collective  12.96 ms  69.4 %\n"
            "in all rows: machine tpu_v4,\n"
            "mesh row=32,col=8\n"
            "left out for want of room:\n"
            "peak memory; --format csv or\n"
            "json has all\n");
}

TEST(Table, FactsAreBrokenIntoLines) {
  const ScreenWidth screen{40};
  const std::string text = table({{"machine", "tpu_v4, slice 4x8x8, mesh row=32,col=8 (256 devices)"}, {"time", "9.977 ms"}}, 1);
  EXPECT_EQ(text,
            "machine  tpu_v4, slice 4x8x8, mesh\n"
            "         row=32,col=8 (256 devices)\n"
            "time     9.977 ms\n");
}

TEST(Table, AScreenEndsWithItsScope) {
  { const ScreenWidth screen{30}; }
  EXPECT_NE(table(runs, 3).find("peak memory"), std::string::npos);
}

}  // namespace
}  // namespace podsim
