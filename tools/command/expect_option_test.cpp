#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::podsim;
using ::testing::AllOf;
using ::testing::HasSubstr;

// 64 MiB over 8 links of 100 GB/s one way without latency: 7 steps of 8 MiB.
const std::string bounded_run = "run --machine ideal --slice 8 --mesh x=8 --set link.bandwidth=100GB/s --collective all-gather --bytes 8MiB --algorithm ring-one-way ";
constexpr double takes = 7 * 8 * 1048576 / 100e9;

TEST(Expect, ABoundThatIsKeptChangesNoStatusAndOneThatIsNotEndsWithOne) {
  for (const auto& [bound, is_kept] : {std::pair{"time<=588us", true}, std::pair{"time<=587us", false}, std::pair{"time>=587us", true}, std::pair{"exposed>=588us", false}, std::pair{"compute<=0s", true}}) {
    const auto ended = podsim(bounded_run + "--expect " + bound);
    EXPECT_EQ(ended.status, is_kept ? exit_done : exit_false) << bound;
    EXPECT_THAT(ended.out, HasSubstr(fmt::format("expected {}: {}", bound, is_kept ? "kept" : "not kept")));
    EXPECT_EQ(ended.err, is_kept ? "" : fmt::format("podsim: expected {}: not kept, 587.2 us\n", bound));
  }
  EXPECT_NEAR(json_of(bounded_run)["makespan_s"].get<double>(), takes, 1e-9) << "between both bounds";
}

TEST(Expect, SeveralBoundsMustAllBeKept) {
  EXPECT_EQ(podsim(bounded_run + "--expect time<=1ms,memory<=1GB --expect exposed<=1ms").status, exit_done);
  EXPECT_EQ(podsim(bounded_run + "--expect time<=1ms,memory<=1MB --expect exposed<=1ms").status, exit_false);
}

TEST(Expect, WhatIsNotKnownIsNotKept) {
  const auto ended = podsim(bounded_run + "--expect mfu>=1%");  // a collective computes nothing
  EXPECT_EQ(ended.status, exit_false);
  EXPECT_THAT(ended.err, HasSubstr("mfu is not known here"));
}

TEST(Expect, AWrongBoundIsRefusedBeforeAnythingIsSimulated) {
  for (const auto& [bound, why] : {std::pair{"time<820ms", "expected a bound, as time<=820ms or mfu>=40%"}, std::pair{"time<=820", "got \"820\""}, std::pair{"time<=1GB", "got \"1GB\""},
                                   std::pair{"tim<=1ms", "expected time, compute, exposed, memory or mfu, found \"tim\""}, std::pair{"mfu>=0.4", "expected a percentage"}, std::pair{"", "expected a bound"}}) {
    const auto ended = podsim(bounded_run + fmt::format("--expect '{}'", bound));
    EXPECT_EQ(ended.status, exit_bad_input) << bound;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("--expect"), HasSubstr(why))) << bound;
  }
}

}  // namespace
}  // namespace podsim
