#include "validation/diff/step_diff.hpp"

#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

constexpr Seconds ms(double count) { return Seconds{count * 1e-3}; }

StepOperation matmul_operation(const std::string& name, double time_ms, double flops, double count = 1) {
  return {name, "matmul", count, ms(time_ms), {}, Flops{flops}, {}, 0};
}
StepOperation gather_operation(const std::string& name, double time_ms, std::int64_t bytes, int devices, double count = 1) {
  return {name, "all-gather", count, ms(time_ms), {}, {}, Bytes{bytes}, devices};
}
StepOperation other_operation(const std::string& name, const std::string& category, double time_ms) { return {name, category, 1, ms(time_ms), {}, {}, {}, 0}; }

const DiffRow& row_named(const std::vector<DiffRow>& rows, const std::string& name) {
  for (const DiffRow& row : rows)
    if (row.name == name) return row;
  ADD_FAILURE() << "no row " << name;
  return rows.at(0);
}

TEST(DiffSteps, EqualSidesHaveNoGapAndNothingIsLeftOver) {
  const StepTimes step{ms(10), {matmul_operation("ff1", 5, 1e12, 4), gather_operation("ff1: gather W", 2, 1 << 20, 8), other_operation("norm", "elementwise", 1)}};
  const StepDiff diff = diff_steps(step, step);
  EXPECT_EQ(diff.sentence, "The step takes 10 ms, as long as predicted.");
  EXPECT_TRUE(diff.unmatched.empty());
  ASSERT_EQ(diff.categories.size(), 4U);
  for (const DiffRow& row : diff.categories) {
    EXPECT_EQ(row.gap(), Seconds{}) << row.name;
    EXPECT_FALSE(row.share) << row.name;
  }
  EXPECT_DOUBLE_EQ(row_named(diff.categories, "idle").predicted.time.count(), 2e-3);
}

TEST(DiffSteps, AStepOfLayersIsThatManyBlocks) {
  const StepTimes block{ms(10), {matmul_operation("ff1", 5, 1e12, 4), {"g", "all-gather", 1, ms(2), ms(1), {}, Bytes{1 << 20}, 8}}};
  const StepTimes model{ms(820), {matmul_operation("fusion.1", 400, 1e12, 320), {"a", "all-gather", 80, ms(160), ms(80), {}, Bytes{1 << 20}, 8},
                                  other_operation("adam", "elementwise", 20)}};
  const StepDiff diff = diff_steps(block, model, 80);
  EXPECT_EQ(diff.layers, 80);
  EXPECT_DOUBLE_EQ(diff.predicted.count(), 0.8);
  EXPECT_EQ(diff.sentence, "The step takes 820 ms, 20 ms (2.5 %) more than predicted for 80 layers: 100 % of the gap is elementwise (adam).");
  EXPECT_EQ(row_named(diff.operations, "ff1").predicted.count, 320);
  EXPECT_DOUBLE_EQ(row_named(diff.operations, "g").predicted.beside.count(), 80e-3);
  EXPECT_DOUBLE_EQ(row_named(diff.categories, "idle").predicted.time.count(), 240e-3);
}

TEST(DiffSteps, TheSentenceNamesWhatIsSlower) {
  const StepTimes predicted{ms(20), {matmul_operation("ff1", 15, 1e12), gather_operation("ff1: gather W", 3, 1 << 20, 8), other_operation("norm", "elementwise", 2)}};
  const StepTimes measured{ms(25), {matmul_operation("fusion.1", 16, 1e12), gather_operation("all-gather.3", 7, 1 << 20, 8), other_operation("fusion.2", "elementwise", 2)}};
  const StepDiff diff = diff_steps(predicted, measured);
  EXPECT_EQ(diff.sentence,
            "The step takes 25 ms, 5 ms (25 %) more than predicted: 80 % of the gap is all-gather (ff1: gather W), 20 % matmul (ff1).");
  EXPECT_EQ(diff.categories.front().name, "all-gather");
  EXPECT_DOUBLE_EQ(diff.categories.front().share.value(), 0.8);
  EXPECT_EQ(diff.operations.front().name, "ff1: gather W");
  EXPECT_THAT(diff.operations.front().measured.names, ElementsAre("all-gather.3"));
}

TEST(DiffSteps, TripsOfALoopAreTheInstructionOfTheProfile) {
  // By name: neither side's bytes say which is which.
  const StepTimes predicted{ms(20), {gather_operation("while.1 0 all-gather.2", 3, 1 << 20, 8), gather_operation("while.1 0 all-gather.3", 2, 1 << 20, 8),
                                     gather_operation("while.1 1 all-gather.2", 3, 1 << 20, 8), gather_operation("while.1 1 all-gather.3", 2, 1 << 20, 8)}};
  const StepTimes measured{ms(20), {gather_operation("all-gather.3", 5, 0, 0, 2), gather_operation("all-gather.2", 6, 0, 0, 2)}};
  const StepDiff diff = diff_steps(predicted, measured);
  EXPECT_TRUE(diff.unmatched.empty());
  for (const auto& [name, trip, time] : std::vector<std::tuple<std::string, std::string, double>>{{"all-gather.2", "while.1 0 all-gather.2", 6}, {"all-gather.3", "while.1 0 all-gather.3", 5}}) {
    const DiffRow& row = row_named(diff.operations, trip);
    EXPECT_EQ(row.predicted.count, 2);
    EXPECT_THAT(row.measured.names, ElementsAre(name));
    EXPECT_DOUBLE_EQ(row.measured.time.count(), time * 1e-3);
  }
}

TEST(DiffSteps, AFasterStepIsToldAsOneAndMoreThanTheGapAsTime) {
  const StepTimes predicted{ms(20), {matmul_operation("ff1", 15, 1e12), gather_operation("g", 5, 1 << 20, 8)}};
  const StepTimes measured{ms(16), {matmul_operation("f", 9, 1e12), gather_operation("a", 7, 1 << 20, 8)}};
  EXPECT_EQ(diff_steps(predicted, measured).sentence, "The step takes 16 ms, 4 ms (20 %) less than predicted: matmul takes 6 ms less (ff1).");
}

TEST(DiffSteps, EqualStepsOfUnequalPartsSaySo) {
  const StepTimes predicted{ms(20), {matmul_operation("ff1", 15, 1e12), gather_operation("g", 5, 1 << 20, 8)}};
  const StepTimes measured{ms(20), {matmul_operation("f", 12, 1e12), gather_operation("a", 8, 1 << 20, 8)}};
  EXPECT_EQ(diff_steps(predicted, measured).sentence,
            "The step takes 20 ms, as long as predicted; but all-gather takes 3 ms more (g), matmul takes 3 ms less (ff1).");
}

TEST(DiffSteps, SizesDecideAndSeveralOfASizeAreSummed) {
  const StepTimes predicted{ms(30), {matmul_operation("dX", 3, 1e12), matmul_operation("dW", 4, 1e12), matmul_operation("out", 1, 2e11)}};
  const StepTimes measured{ms(30), {matmul_operation("fusion.1", 9, 1.004e12), matmul_operation("fusion.2", 2, 2e11), matmul_operation("fusion.3", 5, 3e12)}};
  const StepDiff diff = diff_steps(predicted, measured);
  ASSERT_EQ(diff.operations.size(), 2U);
  EXPECT_THAT(diff.operations[0].predicted.names, ElementsAre("dX", "dW"));
  EXPECT_DOUBLE_EQ(diff.operations[0].predicted.time.count(), 7e-3);
  EXPECT_THAT(diff.operations[1].measured.names, ElementsAre("fusion.2"));
  ASSERT_EQ(diff.unmatched.size(), 1U);
  EXPECT_TRUE(diff.unmatched[0].measured);
  EXPECT_EQ(diff.unmatched[0].operation.name, "fusion.3");
}

TEST(DiffSteps, ACollectiveOfOtherDevicesIsAnotherOne) {
  const StepTimes predicted{ms(30), {gather_operation("along row", 3, 1 << 20, 8), gather_operation("along col", 4, 1 << 20, 4)}};
  const StepTimes measured{ms(30),
                           {gather_operation("all-gather.1", 5, 1 << 20, 4), gather_operation("all-gather.2", 6, 1 << 20, 16), gather_operation("all-gather.3", 1, 1 << 20, 0)}};
  const StepDiff diff = diff_steps(predicted, measured);
  EXPECT_THAT(row_named(diff.operations, "along col").measured.names, ElementsAre("all-gather.1"));
  EXPECT_THAT(row_named(diff.operations, "along row").measured.names, ElementsAre("all-gather.3"));
  ASSERT_EQ(diff.unmatched.size(), 1U);
  EXPECT_EQ(diff.unmatched[0].operation.name, "all-gather.2");
}

TEST(DiffSteps, ProvenanceNamesTheOperationOrOneLevelBelowIt) {
  const auto from = [](StepOperation operation, const std::string& provenance) {
    operation.provenance = provenance;
    return operation;
  };
  const StepTimes predicted{ms(30), {gather_operation("ff1: gather W", 3, 1 << 20, 8), gather_operation("ff2: gather W", 4, 1 << 20, 8), other_operation("norm1: norm", "elementwise", 1),
                                     other_operation("norm2: norm", "elementwise", 2), other_operation("step: layer", "call", 5)}};
  const StepTimes measured{ms(30), {from(gather_operation("all-gather.7", 8, 1 << 20, 8), "jit(step)/ff2/gather W:"), from(gather_operation("all-gather.8", 6, 1 << 20, 8), "jit(step)/ff1/gather W:"),
                                    from(other_operation("fusion.1", "elementwise", 3), "jit(step)/norm2/norm"), from(other_operation("fusion.2", "elementwise", 1), "jit(step)/norm1/norm:"),
                                    from(other_operation("call.3", "call", 2), "jit(step)/step/layer/fwd_0__0 layer 3:"), from(other_operation("call.4", "call", 2), "jit(step)/step/layer/fwd_0__1 layer 3:"),
                                    from(other_operation("fusion.9", "copy", 1), "jit(step)/norm1/norm:"), from(other_operation("fusion.10", "elementwise", 1), "pmap(step)/norm1/norm:")}};
  const StepDiff diff = diff_steps(predicted, measured);
  EXPECT_THAT(row_named(diff.operations, "ff1: gather W").measured.names, ElementsAre("all-gather.8"));
  EXPECT_THAT(row_named(diff.operations, "ff2: gather W").measured.of, ElementsAre(0));
  EXPECT_THAT(row_named(diff.operations, "norm1: norm").measured.names, ElementsAre("fusion.2"));
  EXPECT_THAT(row_named(diff.operations, "norm2: norm").measured.names, ElementsAre("fusion.1"));
  EXPECT_THAT(row_named(diff.operations, "step: layer").measured.names, ElementsAre("call.3", "call.4"));
  EXPECT_THAT(row_named(diff.operations, "step: layer").predicted.of, ElementsAre(4));
  EXPECT_EQ(diff.unmatched.size(), 2U) << "of another category, and of what is no jit";
}

TEST(DiffSteps, PaceHasAMarginOfOnePercentAndOfAMillionthOfTheStep) {
  EXPECT_EQ(pace_of(ms(1), ms(1.009), ms(10)), Pace::as_predicted);
  EXPECT_EQ(pace_of(ms(1), ms(1.011), ms(10)), Pace::late);
  EXPECT_EQ(pace_of(ms(1), ms(0.989), ms(10)), Pace::early);
  EXPECT_EQ(pace_of(ms(0), ms(9e-6), ms(10)), Pace::as_predicted);
  EXPECT_EQ(pace_of(ms(0), ms(11e-6), ms(10)), Pace::late);
}

TEST(DiffSteps, SlicesMeetOnePieceAndASoleOperationWithoutASizeItsLike) {
  const StepTimes predicted{
      ms(30), {matmul_operation("ff1", 8, 1e11, 8), other_operation("attention", "attention", 3), other_operation("norm", "elementwise", 1), other_operation("gelu", "elementwise", 1)}};
  const StepTimes measured{ms(30), {matmul_operation("fusion.1", 9, 8e11, 1), other_operation("splash", "attention", 4), other_operation("fusion.2", "elementwise", 3)}};
  const StepDiff diff = diff_steps(predicted, measured);
  EXPECT_THAT(row_named(diff.operations, "ff1").measured.names, ElementsAre("fusion.1"));
  EXPECT_THAT(row_named(diff.operations, "attention").measured.names, ElementsAre("splash"));
  EXPECT_EQ(diff.unmatched.size(), 3U) << "nothing tells which of two is the one";
}

TEST(DiffSteps, OnRandomStepsCategoriesSumToBothStepsAndNothingIsLostOrTwice) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    const auto step = [&rng] {
      StepTimes made;
      double sum = 0;
      for (int i = 0, count = rng.between(0, 9); i < count; ++i) {
        const double time = rng.between(1, 100);
        sum += time;
        const int kind = rng.between(0, 2);
        const std::string name = "op" + std::to_string(rng.between(0, 5));
        made.operations.push_back(kind == 0   ? matmul_operation(name, time, rng.between(0, 3) * 1e9, rng.between(1, 2))
                                  : kind == 1 ? gather_operation(name, time, rng.between(0, 2) * 1024, rng.between(0, 2))
                                              : other_operation(name, rng.between(0, 1) == 0 ? "copy" : "matmul", time));
      }
      made.time = ms(sum + rng.between(0, 20));
      return made;
    };
    const StepTimes predicted = step(), measured = step();
    const StepDiff diff = diff_steps(predicted, measured);
    EXPECT_NEAR(diff.predicted.count(), predicted.time.count(), 1e-9);
    EXPECT_NEAR(diff.measured.count(), measured.time.count(), 1e-9);
    Seconds left, right;
    for (const DiffRow& row : diff.operations) {
      EXPECT_FALSE(row.predicted.names.empty());
      EXPECT_FALSE(row.measured.names.empty());
      left += row.predicted.time, right += row.measured.time;
    }
    for (const UnmatchedOperation& one : diff.unmatched) (one.measured ? right : left) += one.operation.time;
    for (const StepOperation& one : predicted.operations) left -= one.time;
    for (const StepOperation& one : measured.operations) right -= one.time;
    EXPECT_NEAR(left.count(), 0, 1e-9);
    EXPECT_NEAR(right.count(), 0, 1e-9);
    EXPECT_EQ(diff.sentence, diff_steps(predicted, measured).sentence);
  }
}

}  // namespace
}  // namespace podsim
