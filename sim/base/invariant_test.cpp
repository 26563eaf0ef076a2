#include "sim/base/invariant.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace podsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int half_of(int even) { return PODSIM_ASSERT(even % 2 == 0), even / 2; }

TEST(Invariant, ThrowsWhereItIsBroken) {
  EXPECT_EQ(half_of(4), 2);
  try {
    half_of(3);
    FAIL() << "3 is not even";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("invariant_test.cpp:"), HasSubstr(": expected even % 2 == 0, in half_of()")));
  }
}

TEST(Invariant, TakesCommas) { EXPECT_THROW(PODSIM_ASSERT(std::pair<int, int>(1, 2).first == 2), InternalError); }

}  // namespace
}  // namespace podsim
