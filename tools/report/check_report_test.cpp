// What `podsim check` prints.
#include "tools/report/check_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace podsim {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CheckReport, WhatIsNotProvenIsNotCalledWrong) {
  CheckReport report;
  EXPECT_THAT(check_table(report), ContainsRegex("\nok +NO\n"));
  EXPECT_THAT(check_json(report, nullptr), Not(HasSubstr("\"proven\"")));
  report.not_proven = true;
  EXPECT_THAT(check_table(report, {}, {"m:4:3: k"}), ContainsRegex("\nok +not proven\n"));
  EXPECT_THAT(check_json(report, nullptr), HasSubstr("\"ok\": false"));
  EXPECT_THAT(check_json(report, nullptr), HasSubstr("\"proven\": false"));
  report.compared = "the module", report.inexact = "exp rounds", report.bit_equal = true, report.proof_tolerance = std::numeric_limits<double>::infinity();
  EXPECT_THAT(check_table(report), ContainsRegex("\nright on integers +not proven, all orders bit-equal \\(roundings alone may make inf of the largest value\\): exp rounds\n"));
}

TEST(CheckReport, TheAnswerSaysWhatItLeavesOut) {
  CheckReport report;
  report.ok = true;
  EXPECT_THAT(check_table(report), ContainsRegex("\nok +yes\n"));
  EXPECT_THAT(check_table(report, {}, {"m:4:3: k"}), ContainsRegex("\nok +yes, but for a custom-call that was not checked\n"));
  EXPECT_THAT(check_table(report, {}, {"m:4:3: k", "m:5:3: l"}), ContainsRegex("\nok +yes, but for 2 custom-calls that were not checked\n"));
  EXPECT_THAT(check_json(report, nullptr, {}, {}, {"m:4:3: k"}), HasSubstr("\"ok\": true"));
  EXPECT_THAT(check_json(report, nullptr, {}, {}, {"m:4:3: k"}), ContainsRegex("\"not_checked\": \\[[ \n]*\"m:4:3: k\"[ \n]*\\]"));
  report.ok = false;
  EXPECT_THAT(check_table(report, {}, {"m:4:3: k"}), ContainsRegex("\nok +NO\n"));
  EXPECT_THAT(check_json(report, nullptr), Not(HasSubstr("not_checked")));
}

}  // namespace
}  // namespace podsim
