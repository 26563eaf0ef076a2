// Losses, embeddings and optimisers: what check_shapes() says of them, word for word, their arithmetic and their traffic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sim/schedule/testing.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Writer;

struct TrainingOperand {
  std::vector<std::int64_t> extents;
  DType dtype = DType::f32;
};
using TrainingOperands = std::vector<TrainingOperand>;

/// The Local on buffers of these extents, reads before writes, as the only task.
Schedule schedule_of(Local local, const TrainingOperands& operands) {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  for (const auto& [extents, dtype] : operands) {
    Region region{w.scratch("operand", extents, dtype), {}};
    for (const std::int64_t length : extents) region.dims.push_back(all(length));
    (local.reads.size() < static_cast<std::size_t>(traits_of(local.kind).reads) ? local.reads : local.writes).push_back(region);
  }
  w.add("t", std::move(local));
  return w.schedule;
}
const Local& local_in(const Schedule& schedule) { return std::get<Local>(schedule.programs[0].tasks[0].op); }

std::vector<std::string> said_of_training(const Local& local, const TrainingOperands& operands) {
  std::vector<std::string> texts;
  for (const Diagnostic& problem : check_shapes(schedule_of(local, operands)))
    texts.push_back(to_text(problem).substr(std::string_view{"task 0 \"t\": "}.size()));
  return texts;
}

Local local_of_kind(LocalKind kind) { return {kind, {}, {}}; }
Local mean_over(LocalKind kind, double count) { return {kind, {}, {}, count}; }
Local with_classes(LocalKind kind, std::int64_t classes, bool features_first = false, double tokens = 12) {
  Local local{kind, {}, {}, tokens, Unit::core, features_first};
  local.classes = classes;
  return local;
}
Local with_optimiser(LocalKind kind, const Optimiser& optimiser) {
  Local local{kind, {}, {}};
  local.optimiser = optimiser;
  return local;
}

constexpr DType bits16 = DType::bf16, whole = DType::s32;
constexpr Optimiser usual{1e-3, 0.9, 0.95, 1e-8, 0.1, 3};
const double nan = std::numeric_limits<double>::quiet_NaN();

TEST(TrainingShapes, AConversionKeepsTheCount) {
  EXPECT_THAT(said_of_training(local_of_kind(LocalKind::convert), {{{4, 6}, bits16}, {{24}}}), IsEmpty());
  EXPECT_THAT(said_of_training(local_of_kind(LocalKind::convert), {{{4, 6}}, {{5}, bits16}}),
              ElementsAre("the read region has 24 elements, the written region has 5"));
  EXPECT_THAT(said_of_training(local_of_kind(LocalKind::convert), {{{4}, whole}, {{4}}}),
              ElementsAre("an operand of convert is s32; expected f32 or bf16 or f8e4m3fn or f8e5m2"));
}

TEST(TrainingShapes, ALossIsOneElementOfAMean) {
  for (const DType dtype : {DType::f32, bits16}) {
    EXPECT_THAT(said_of_training(mean_over(LocalKind::mean_square, 24), {{{4, 6}, dtype}, {{24}, dtype}, {{}}}), IsEmpty());
    EXPECT_THAT(said_of_training(mean_over(LocalKind::mean_square_grad, 24), {{{4, 6}, dtype}, {{24}, dtype}, {{6, 4}, dtype}}), IsEmpty());
  }
  EXPECT_THAT(said_of_training(mean_over(LocalKind::mean_square, 24), {{{4}}, {{5}, bits16}, {{2}, bits16}}),
              ElementsAre("y has 4 elements, the target has 5", "y is f32, the target is bf16", "the loss has 2 elements; expected 1",
                          "the loss is bf16; expected f32"));
  EXPECT_THAT(said_of_training(mean_over(LocalKind::mean_square_grad, 24), {{{4}}, {{4}}, {{5}}}), ElementsAre("y has 4 elements, dy has 5"));
  EXPECT_THAT(said_of_training(mean_over(LocalKind::mean_square, 0), {{{4}}, {{4}}, {{1}}}),
              ElementsAre("a mean over 0; expected a positive number"));
  EXPECT_THAT(said_of_training(mean_over(LocalKind::mean_square_grad, nan), {{{4}}, {{4}}, {{4}}}),
              ElementsAre("a mean over nan; expected a positive number"));
  EXPECT_THAT(said_of_training(mean_over(LocalKind::mean_square_grad, -1), {{{4}}, {{4}}, {{4}}}),
              ElementsAre("a mean over -1; expected a positive number"));
}

TEST(TrainingShapes, StatisticsAreTwoNumbersOfEachToken) {
  constexpr LocalKind kind = LocalKind::softmax_statistics;
  EXPECT_THAT(said_of_training(with_classes(kind, 100), {{{12, 50}, bits16}, {{12, 2}}}), IsEmpty());
  EXPECT_THAT(said_of_training(with_classes(kind, 100), {{{12, 50}}, {{1, 12, 2}}}), IsEmpty());
  EXPECT_THAT(said_of_training(with_classes(kind, 100, true), {{{50, 12}}, {{12, 2}}}), IsEmpty());
  EXPECT_THAT(said_of_training(with_classes(kind, 100), {{{12, 50}}, {{2, 12, 2}}}), ElementsAre("the statistics are [2,12,2]; expected [12,2]"));
  EXPECT_THAT(said_of_training(with_classes(kind, 100), {{{50, 12}}, {{12, 2}, bits16}}),
              ElementsAre("the statistics are [12,2]; expected [50,2]", "a statistic is bf16; expected f32"));
  EXPECT_THAT(said_of_training(with_classes(kind, 100), {{{3, 4, 50}}, {{12, 2}}}),
              ElementsAre("the logits are [3,4,50]; expected [tokens,classes]"));
  EXPECT_THAT(said_of_training(with_classes(kind, 100, true), {{{50}}, {{12, 2}}}), ElementsAre("the logits are [50]; expected [classes,tokens]"));
  for (const std::int64_t classes : {std::int64_t{0}, std::int64_t{-5}, (std::int64_t{1} << 31) + 1})
    EXPECT_THAT(said_of_training(with_classes(kind, classes), {{{12, 50}}, {{12, 2}}}),
                ElementsAre(std::to_string(classes) + " classes; expected a whole number between 1 and 2^31"));
  Local numbered = with_classes(kind, 100);
  numbered.numbering = {{0}, {0}};
  EXPECT_THAT(said_of_training(numbered, {{{12, 50}}, {{12, 2}}}), ElementsAre("2 numberings; expected at most 1"));
}

TEST(TrainingShapes, CrossEntropyTakesStatisticsOfAllDevicesAndATargetOfEachToken) {
  const TrainingOperand logits{{12, 50}, bits16}, turned{{50, 12}, bits16}, statistics{{2, 12, 2}}, targets{{3, 4}, whole}, loss{{1}};
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy, 100), {logits, statistics, targets, loss}), IsEmpty());
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy, 50), {logits, {{12, 2}}, targets, loss}), IsEmpty());
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy_grad, 99), {logits, statistics, targets, logits}), IsEmpty());
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy_grad, 99, true), {turned, statistics, targets, turned}), IsEmpty());
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy, 101), {logits, statistics, targets, loss}),
              ElementsAre("101 classes on 2 devices with 50 each; expected as many on all of them"));
  EXPECT_THAT(
      said_of_training(with_classes(LocalKind::cross_entropy, 100), {logits, {{2, 12}}, {{11}}, loss}),
      ElementsAre("the statistics are [2,12]; expected [devices,12,2]", "100 classes on 1 devices with 50 each; expected as many on all of them",
                  "11 targets of 12 tokens", "a target is f32; expected s32"));
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy, 100), {{{12, 50}, whole}, statistics, targets, {{12}}}),
              ElementsAre("a logit is s32; expected f32 or bf16", "the loss has 12 elements; expected 1"));
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy_grad, 100), {logits, statistics, targets, {{50, 12}}}),
              ElementsAre("dlogits is [50,12], the array of logits is [12,50]", "dlogits is f32, the array of logits is bf16"));
  EXPECT_THAT(said_of_training(with_classes(LocalKind::cross_entropy_grad, 100, false, 0), {logits, statistics, targets, logits}),
              ElementsAre("a mean over 0; expected a positive number"));
}

TEST(TrainingShapes, RowsAreAddedByAnIndexOfTheirNumbers) {
  Local add{LocalKind::add_rows, {}, {}, 100};
  add.numbering = {{own({0, 1, 2}), 2, 3}};
  EXPECT_THAT(said_of_training(add, {{{5, 6}, bits16}, {{5}, whole}, {{40, 6}}}), IsEmpty());
  EXPECT_THAT(said_of_training(add, {{{5, 6}}, {{5}, whole}, {{40, 7}}}), ElementsAre("the picked rows is 5x6; expected 5x7"));
  EXPECT_THAT(said_of_training(add, {{{5, 6}, whole}, {{5}}, {{40, 6}}}),
              ElementsAre("an array of rows is s32; expected f32 or bf16", "the index is f32; expected s32"));
  add.factor = 2.5;
  EXPECT_THAT(said_of_training(add, {{{5, 6}}, {{5}, whole}, {{40, 6}}}),
              ElementsAre("2.5 numbers of rows; expected a whole number between 1 and 2^31"));
}

TEST(TrainingShapes, OneHotRowsAreAsManyAsTheIndexHasNumbers) {
  Local one_hot{LocalKind::one_hot, {}, {}, 100};
  one_hot.numbering = {{own({0, 1, 2})}};
  EXPECT_THAT(said_of_training(one_hot, {{{5}, whole}, {{5, 50}, bits16}}), IsEmpty());
  EXPECT_THAT(said_of_training(one_hot, {{{5}, whole}, {{6, 50}}}), ElementsAre("the result is 6x50; expected 5x50"));
  EXPECT_THAT(said_of_training(one_hot, {{{5}}, {{5, 50}, whole}}),
              ElementsAre("the index is f32; expected s32", "the result is s32; expected f32 or bf16"));
  one_hot.factor = 0;
  EXPECT_THAT(said_of_training(one_hot, {{{5}, whole}, {{5, 50}}}), ElementsAre("0 numbers of rows; expected a whole number between 1 and 2^31"));
}

TEST(TrainingShapes, OptimisersKeepCountsAndMomentsAreRealNumbers) {
  const TrainingOperand parameters{{4, 6}, bits16}, gradient{{24}}, moment{{24}};
  const TrainingOperands right{parameters, gradient, moment, moment, parameters, moment, moment};
  EXPECT_THAT(said_of_training(with_optimiser(LocalKind::adamw, usual), right), IsEmpty());
  EXPECT_THAT(said_of_training(with_optimiser(LocalKind::sgd, usual), {parameters, gradient, parameters}), IsEmpty());
  EXPECT_THAT(said_of_training(with_optimiser(LocalKind::sgd, usual), {parameters, {{5}}, gradient}),
              ElementsAre("the gradient has 5 elements, the array of parameters has 24", "the result is f32, the array of parameters is bf16"));
  EXPECT_THAT(
      said_of_training(with_optimiser(LocalKind::adamw, usual), {parameters, gradient, {{24}, whole}, {{5}}, parameters, {{5}}, {{24}, whole}}),
      ElementsAre("an operand of adamw is s32; expected f32 or bf16", "an operand of adamw is s32; expected f32 or bf16", "v has 5 elements, the array of parameters has 24",
                  "the new m has 5 elements, the array of parameters has 24"));
  const TrainingOperand rounded{{24}, bits16};
  EXPECT_THAT(said_of_training(with_optimiser(LocalKind::adamw, usual), {parameters, gradient, rounded, rounded, parameters, rounded, rounded}), IsEmpty());
}

TEST(TrainingShapes, NumbersOfAnOptimiserAreInTheirRanges) {
  const TrainingOperand x{{4}};
  const auto said_of = [&](Optimiser optimiser) { return said_of_training(with_optimiser(LocalKind::adamw, optimiser), TrainingOperands(7, x)); };
  EXPECT_THAT(said_of({}), ElementsAre("a learning rate of 0; expected a positive number", "an epsilon of 0; expected a positive number"))
      << "left out";
  for (const double rate : {-1e-3, nan, std::numeric_limits<double>::infinity()})
    EXPECT_THAT(said_of({rate, 0, 0, 1}), ElementsAre(::testing::HasSubstr("expected a positive number")));
  EXPECT_THAT(said_of({1, 1, 0.5, 1}), ElementsAre("a beta of 1; expected a number of at least 0 and below 1"));
  EXPECT_THAT(said_of({1, 0.5, -0.5, 1}), ElementsAre("a beta of -0.5; expected a number of at least 0 and below 1"));
  EXPECT_THAT(said_of({1, 0.5, nan, 1}), ElementsAre("a beta of nan; expected a number of at least 0 and below 1"));
  EXPECT_THAT(said_of({1, 0.5, 0.5, 1, -0.1}), ElementsAre("a weight decay of -0.1; expected a number that is not negative"));
  EXPECT_THAT(said_of({1, 0.5, 0.5, 1, 0, 0}), ElementsAre("step 0; steps count from 1"));
  EXPECT_THAT(said_of_training(with_optimiser(LocalKind::sgd, {1}), {x, x, x}), IsEmpty()) << "the others are not read";
}

TEST(TrainingLocals, HaveTheirArithmetic) {
  const auto vector = [](Local local, const TrainingOperands& operands) {
    const Schedule schedule = schedule_of(std::move(local), operands);
    const LocalFlops flops = flops_of(local_in(schedule));
    EXPECT_EQ(flops.matrix, Flops{});
    return flops.vector.count();
  };
  const TrainingOperand x{{4, 6}}, logits{{12, 50}}, statistics{{2, 12, 2}}, targets{{12}, whole}, loss{{1}};
  EXPECT_EQ(vector(local_of_kind(LocalKind::convert), {x, x}), 0);
  EXPECT_EQ(vector(local_of_kind(LocalKind::mean_square), {x, x, loss}), 3 * 24);
  EXPECT_EQ(vector(local_of_kind(LocalKind::mean_square_grad), {x, x, x}), 2 * 24);
  EXPECT_EQ(vector(local_of_kind(LocalKind::softmax_statistics), {logits, {{12, 2}}}), 4 * 600);
  EXPECT_EQ(vector(local_of_kind(LocalKind::cross_entropy), {logits, statistics, targets, loss}), 5 * 24 + 3 * 12);
  EXPECT_EQ(vector(local_of_kind(LocalKind::cross_entropy_grad), {logits, statistics, targets, logits}), 5 * 24 + 3 * 600);
  EXPECT_EQ(vector(local_of_kind(LocalKind::add_rows), {{{5, 6}}, {{5}, whole}, {{40, 6}}}), 30)
      << "one addition per element of the rows that are added";
  EXPECT_EQ(vector(local_of_kind(LocalKind::one_hot), {targets, logits}), 600) << "a comparison for each element";
  EXPECT_EQ(vector(local_of_kind(LocalKind::sgd), {x, x, x}), 4 * 24);
  EXPECT_EQ(vector(local_of_kind(LocalKind::adamw), TrainingOperands(7, x)), 16 * 24);
}

TEST(TrainingLocals, ReadAndWriteEachRegionOnceButOfLogitsOnlyThoseOfTheTargets) {
  const auto traffic = [](LocalKind kind, const TrainingOperands& operands) {
    const Schedule schedule = schedule_of(local_of_kind(kind), operands);
    std::vector<std::int64_t> elements;
    for (std::size_t i = 0; i < operands.size(); ++i) elements.push_back(traits_of(kind).traffic(local_in(schedule), i));
    return elements;
  };
  const TrainingOperand x{{4, 6}}, logits{{12, 50}}, statistics{{2, 12, 2}}, targets{{12}, whole};
  EXPECT_THAT(traffic(LocalKind::adamw, TrainingOperands(7, x)), ::testing::Each(24)) << "as a fused optimiser: four read, three written";
  EXPECT_THAT(traffic(LocalKind::cross_entropy, {logits, statistics, targets, {{1}}}), ElementsAre(12, 48, 12, 1));
  EXPECT_THAT(traffic(LocalKind::cross_entropy_grad, {logits, statistics, targets, logits}), ElementsAre(600, 48, 12, 600));
  EXPECT_THAT(traffic(LocalKind::add_rows, {{{5, 6}}, {{5}, whole}, {{40, 6}}}), ElementsAre(30, 5, 240)) << "the whole gradient is written";
}

TEST(TrainingLocals, ArePrintedWithTheirNumbers) {
  const TrainingOperand x{{4}};
  EXPECT_THAT(to_text(schedule_of(with_optimiser(LocalKind::adamw, usual), TrainingOperands(7, x))),
              ::testing::HasSubstr("-> operand[:] learning rate 0.001 betas 0.9,0.95 epsilon 1e-08 weight decay 0.1 step 3\n"));
  EXPECT_THAT(to_text(schedule_of(with_classes(LocalKind::cross_entropy, 100), {{{12, 50}}, {{2, 12, 2}}, {{12}, whole}, {{1}}})),
              ::testing::HasSubstr("core cross-entropy operand[:,:] operand[:,:,:] operand[:] -> operand[:] factor 12 classes 100\n"));
}

}  // namespace
}  // namespace podsim
