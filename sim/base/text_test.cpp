#include "sim/base/text.hpp"

#include <gmock/gmock.h>

namespace podsim {
namespace {

using ::testing::ElementsAre;

TEST(Split, KeepsEmptyPieces) {
  EXPECT_THAT(split("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split(",a,"), ElementsAre("", "a", ""));
  EXPECT_THAT(split(""), ElementsAre(""));
  EXPECT_THAT(split("1.2,3.4", '.'), ElementsAre("1", "2,3", "4"));
}

TEST(PlainSpelling, IsOneOfAllSpellings) {
  for (const char* name : {"all-reduce", "all_reduce", "AllReduce", "ALLREDUCE"}) EXPECT_EQ(plain_spelling(name), "allreduce");
  EXPECT_EQ(plain_spelling("TPU-v5p"), "tpuv5p");
}

TEST(Percent, HasOneDigitBehindThePointAndARoughOneTwoSignificant) {
  EXPECT_EQ(percent(0.1234), "12.3 %");
  EXPECT_EQ(percent(-0.01), "-1.0 %");
  EXPECT_EQ(signed_percent(0.01), "+1.0 %");
  EXPECT_EQ(signed_percent(-0.031), "-3.1 %");
  EXPECT_EQ(rough_percent(0.00123), "0.12 %");
  EXPECT_EQ(rough_percent(0.1499), "15 %");
}

}  // namespace
}  // namespace podsim
