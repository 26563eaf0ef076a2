#include "validation/diff/match_coverage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podsim {
namespace {

using ::testing::HasSubstr;

constexpr Seconds millis(double count) { return Seconds{count * 1e-3}; }

const StepTimes predicted{millis(10), {{"ff1", "matmul", 4, millis(6), {}, Flops{1e12}, {}, 0}, {"gather W", "all-gather", 1, millis(2), {}, {}, Bytes{1 << 20}, 8}, {"norm", "elementwise", 1, millis(2), {}, {}, {}, 0}}};

TEST(MatchCoverage, AllOfEqualStepsIsMatchedWithoutAWarning) {
  const MatchCoverage coverage = coverage_of(diff_steps(predicted, predicted));
  EXPECT_EQ(to_text(coverage), "matched 3 of 3 predicted operations (100 % of their time) and 3 of 3 measured ones (100 %)");
  EXPECT_EQ(warning_of(coverage), "");
  EXPECT_TRUE(coverage.nearest.empty());
}

TEST(MatchCoverage, AForeignStepIsWarnedOfWithWhatIsMostAlike) {
  const StepTimes foreign{millis(9), {{"fusion.1", "matmul", 4, millis(3), {}, Flops{9e12}, {}, 0}, {"fusion.2", "matmul", 4, millis(2), {}, Flops{3e12}, {}, 0}, {"all-gather.7", "all-gather", 1, millis(4), {}, {}, Bytes{1 << 24}, 8}}};
  const MatchCoverage coverage = coverage_of(diff_steps(predicted, foreign));
  const std::string warning = warning_of(coverage);
  EXPECT_THAT(warning, ::testing::StartsWith("matched 0 of 3 predicted operations (0 % of their time) and 0 of 3 measured ones (0 %)"));
  EXPECT_THAT(warning, HasSubstr("predicted \"ff1\" (matmul, 1 TFLOP) is nearest to measured \"fusion.2\" (matmul, 3 TFLOP)"));  // the nearest size, not the longest
  EXPECT_THAT(warning, HasSubstr("predicted \"gather W\" (all-gather, 1.049 MB) is nearest to measured \"all-gather.7\" (all-gather, 16.78 MB)"));
  ASSERT_EQ(coverage.nearest.size(), 3U);
  EXPECT_EQ(coverage.nearest.back().predicted.name, "norm");  // nothing of its category: the longest
}

TEST(MatchCoverage, ATenthOfEitherSidesTimeIsEnough) {
  StepTimes measured = predicted;
  measured.operations.push_back({"other", "host", 1, millis(89), {}, {}, {}, 0});
  EXPECT_EQ(warning_of(coverage_of(diff_steps(predicted, measured))), "");
  measured.operations.back().time = millis(91);
  EXPECT_THAT(warning_of(coverage_of(diff_steps(predicted, measured))), HasSubstr("3 of 4 measured ones (9 %)"));
}

TEST(MatchCoverage, OfSeveralDevicesItIsTheSum) {
  MatchCoverage sum;
  for (int device = 0; device < 2; ++device) sum += coverage_of(diff_steps(predicted, predicted));
  EXPECT_THAT(to_text(sum), HasSubstr("matched 6 of 6"));
  EXPECT_DOUBLE_EQ(sum.measured.time.count(), 20e-3);
}

}  // namespace
}  // namespace podsim
