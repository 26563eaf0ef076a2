// Graphs of training steps in float64: what their nodes mean, gradients against central differences, optimisers against plain loops, inputs of whole
// numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/engine/numeric/inputs.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/schedule/reference_builder.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Numbers = std::vector<double>;
using NamedNumbers = std::map<std::string, Numbers>;

/// The arrays of the outputs.
Expected<std::vector<Numbers>> evaluated(const ReferenceProgram& program, const NamedNumbers& inputs) {
  EXPECT_THAT(check_reference(program, Mesh{}), IsEmpty());
  ThreadPool pool{2};
  return evaluate(
      program, Mesh{}, [&](const ReferenceNode& node) { return inputs.at(node.tensor); }, pool);
}

/// One node on given operands.
Expected<Numbers> value_of(const std::function<int(ReferenceBuilder&)>& write, const NamedNumbers& inputs) {
  ReferenceBuilder builder;
  builder.output("Y", write(builder));
  const auto found = evaluated(std::move(builder).finish(""), inputs);
  if (!found) return found.error();
  return found->front();
}

Numbers random_numbers(std::uint64_t seed, std::int64_t count) {
  Rng rng{seed};
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(2 * rng.uniform() - 1);
  return numbers;
}

TEST(TrainingReference, RowsAreTakenAddedAndMarked) {
  const NamedNumbers given{{"E", {1, 2, 3, 4, 5, 6}}, {"i", {2, 0, 2, 2}}, {"D", {1, 2, 3, 4, 5, 6, 7, 8}}};
  EXPECT_EQ(*value_of(
                [](ReferenceBuilder& g) {
                  return g.take_rows(g.input("E", {3, 2}), g.input("i", {2, 2}));
                },
                given),
            (Numbers{5, 6, 1, 2, 5, 6, 5, 6}));
  EXPECT_EQ(*value_of(
                [](ReferenceBuilder& g) {
                  return g.add_rows(g.input("D", {4, 2}), g.input("i", {4}), 4);
                },
                given),
            (Numbers{3, 4, 0, 0, 1 + 5 + 7, 2 + 6 + 8, 0, 0}));
  EXPECT_EQ(*value_of([](ReferenceBuilder& g) { return g.one_hot(g.input("i", {4}), 3); }, given), (Numbers{0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1}));
}

TEST(TrainingReference, SoftmaxIsAlongTheLastDimension) {
  const NamedNumbers given{{"A", {0, std::log(3.0), 1000, 1000, -1000, 1000}}};
  const auto a = [](ReferenceBuilder& g) { return g.input("A", {3, 2}); };
  const Numbers softmax = *value_of([&](ReferenceBuilder& g) { return g.each(ReferenceKind::softmax, a(g)); }, given);
  const Numbers expected{0.25, 0.75, 0.5, 0.5, 0, 1};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(softmax[i], expected[i], 1e-12);
  const Numbers sums = *value_of([&](ReferenceBuilder& g) { return g.log_sum_exp(a(g)); }, given);
  EXPECT_NEAR(sums[0], std::log(4.0), 1e-12);
  EXPECT_NEAR(sums[1], 1000 + std::log(2.0), 1e-12);
  EXPECT_EQ(sums[2], 1000);
  EXPECT_EQ(*value_of([](ReferenceBuilder& g) { return g.each(ReferenceKind::square_root, g.input("B", {2})); }, {{"B", {9, 0}}}), (Numbers{3, 0}));
}

TEST(TrainingReference, AnIndexOfNoRowIsToldByItsNode) {
  for (const auto& [wrong, text] : std::map<double, std::string>{{3, "3"}, {-1, "-1"}, {0.5, "0.5"}}) {
    const auto found = value_of(
        [](ReferenceBuilder& g) {
          return g.take_rows(g.input("E", {3, 1}), g.input("i", {1}));
        },
        {{"E", {1, 2, 3}}, {"i", {wrong}}});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().message, "node 2 (take-rows): row number " + text + " is outside 0..2");
    EXPECT_EQ(found.error().cause, Cause::data);
  }
  EXPECT_FALSE(value_of([](ReferenceBuilder& g) { return g.one_hot(g.input("i", {1}), 2); }, {{"i", {2}}}));
  EXPECT_FALSE(value_of(
      [](ReferenceBuilder& g) {
        return g.add_rows(g.input("D", {1, 1}), g.input("i", {1}), 2);
      },
      {{"D", {1}}, {"i", {std::nan("")}}}));
}

TEST(TrainingReference, ExtentsThatDoNotFollowAreTold) {
  const auto said = [](ReferenceKind kind, const std::vector<Extents>& operands, Extents result) {
    ReferenceBuilder builder;
    ReferenceNode node;
    node.kind = kind, node.extents = std::move(result);
    for (const Extents& extents : operands) node.operands.push_back(builder.input("A", extents));
    builder.output("Y", builder.add(std::move(node)));
    return check_reference(std::move(builder).finish(""), Mesh{});
  };
  EXPECT_THAT(said(ReferenceKind::take_rows, {{5, 3}, {4}}, {4, 3}), IsEmpty());
  EXPECT_THAT(
      said(ReferenceKind::take_rows, {{5, 3}, {4}}, {4, 2}),
      ElementsAre(
          R"(node 2 (take-rows): the result is [4,2], which does not follow from node 0 (input "A") is [5,3] and node 1 (input "A") is [4])"));
  EXPECT_THAT(said(ReferenceKind::take_rows, {{}, {4}}, {4}), ::testing::SizeIs(1)) << "a scalar has no rows";
  EXPECT_THAT(said(ReferenceKind::add_rows, {{4, 3}, {4}}, {9, 3}), IsEmpty());
  EXPECT_THAT(said(ReferenceKind::add_rows, {{4, 3}, {5}}, {9, 3}), ElementsAre(HasSubstr("which does not follow from")));
  EXPECT_THAT(said(ReferenceKind::one_hot, {{4}}, {4, 9}), IsEmpty());
  EXPECT_THAT(said(ReferenceKind::one_hot, {{4}}, {9, 4}), ElementsAre(HasSubstr("which does not follow from")));
  EXPECT_THAT(said(ReferenceKind::log_sum_exp, {{4, 3}}, {3}), ElementsAre("node 1 (log-sum-exp): the result is [3]; expected [4]"));
  EXPECT_THAT(said(ReferenceKind::log_sum_exp, {{}}, {}), ElementsAre("node 1 (log-sum-exp): there is no last dimension"));
  EXPECT_THAT(said(ReferenceKind::softmax, {{}}, {}), ElementsAre("node 1 (softmax): there is no last dimension"));
  EXPECT_THAT(said(ReferenceKind::square_root, {{4}}, {3}), ElementsAre("node 1 (square-root): the result is [3]; expected [4]"));
}

// ---- Gradients ------------------------------------------------------------------------------------------------------------------------

/// Holds gradients that a graph has to the central differences of its loss along every element of these inputs.
void expect_slopes(const ReferenceProgram& program, NamedNumbers inputs, const std::map<std::string, std::size_t>& gradient_of) {
  const std::vector<Numbers> at = *evaluated(program, inputs);  // the loss is output 0
  constexpr double step = 1e-5;
  for (const auto& [tensor, output] : gradient_of)
    for (std::size_t i = 0; i < inputs[tensor].size(); ++i) {
      const auto loss_at = [&](double by) {
        NamedNumbers moved = inputs;
        moved[tensor][i] += by;
        return (*evaluated(program, moved))[0][0];
      };
      EXPECT_NEAR(at[output][i], (loss_at(step) - loss_at(-step)) / (2 * step), 1e-8) << tensor << " " << i;
    }
}

TEST(TrainingReference, TheGradientOfMeanSquareIsItsSlope) {
  ReferenceBuilder g;
  const auto [loss, gradient] = g.mean_square(g.input("Y", {3, 4}), g.input("T", {3, 4}), 24);
  g.output("loss", loss), g.output("dY", gradient);
  expect_slopes(std::move(g).finish(""), {{"Y", random_numbers(1, 12)}, {"T", random_numbers(2, 12)}}, {{"Y", 1}});
}

TEST(TrainingReference, TheGradientOfALanguageModelIsItsSlope) {
  constexpr std::int64_t tokens = 6, vocabulary = 5, width = 3;
  ReferenceBuilder g;  // tied embeddings: rows of the table are taken and multiplied
  const int table = g.input("E", {vocabulary, width}), index = g.input("tokens", {tokens}, vocabulary),
            targets = g.input("targets", {tokens}, vocabulary);
  const int x = g.take_rows(table, index), logits = g.product(x, table, false, true);
  const auto [loss, d_logits] = g.cross_entropy(logits, targets, tokens);
  const int dx = g.product(d_logits, table), through_logits = g.product(d_logits, x, true), through_rows = g.add_rows(dx, index, vocabulary);
  g.output("loss", loss), g.output("dE", g.elementwise(ReferenceKind::add, through_logits, through_rows));
  expect_slopes(std::move(g).finish(""),
                {{"E", random_numbers(1, vocabulary * width)}, {"tokens", {0, 4, 4, 1, 2, 4}}, {"targets", {4, 4, 1, 2, 4, 0}}}, {{"E", 1}});
}

// ---- Optimisers -----------------------------------------------------------------------------------------------------------------------

TEST(TrainingReference, TenStepsOfAdamWAreThoseOfAPlainLoop) {
  constexpr std::size_t count = 7;
  const double rate = 0.03, beta1 = 0.8, beta2 = 0.9, epsilon = 1e-4, decay = 0.2;
  ReferenceBuilder g;
  int p = g.input("P", {count});
  const int zero = g.input("zero", {count}, 1);
  ReferenceBuilder::Moments moments{zero, zero};
  NamedNumbers inputs{{"P", random_numbers(1, count)}, {"zero", Numbers(count)}};
  Numbers expected = inputs["P"], m(count), v(count);
  double correct1 = 1, correct2 = 1;
  for (std::int64_t step = 1; step <= 10; ++step) {
    const std::string name = "G" + std::to_string(step);
    p = g.adamw({rate, beta1, beta2, epsilon, decay, step}, p, g.input(name, {count}), moments);
    inputs[name] = random_numbers(static_cast<std::uint64_t>(step) + 1, count);
    correct1 *= beta1, correct2 *= beta2;
    for (std::size_t i = 0; i < count; ++i) {
      const double gradient = inputs[name][i];
      m[i] += (1 - beta1) * (gradient - m[i]), v[i] += (1 - beta2) * (gradient * gradient - v[i]);
      expected[i] -= rate * decay * expected[i] + rate * m[i] / (1 - correct1) / (std::sqrt(v[i] / (1 - correct2)) + epsilon);
    }
  }
  g.output("P", p), g.output("M", moments.m), g.output("V", moments.v);
  const auto found = evaluated(std::move(g).finish(""), inputs);
  ASSERT_TRUE(found);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NEAR((*found)[0][i], expected[i], 1e-13);
    EXPECT_NEAR((*found)[1][i], m[i], 1e-14);
    EXPECT_NEAR((*found)[2][i], v[i], 1e-14);
  }
}

TEST(TrainingReference, SgdGoesAgainstTheGradientAndDecays) {
  const NamedNumbers given{{"P", {1, -2}}, {"G", {4, 0.5}}};
  const auto step = [&](const Optimiser& optimiser) {
    return *value_of([&](ReferenceBuilder& g) { return g.sgd(optimiser, g.input("P", {2}), g.input("G", {2})); }, given);
  };
  EXPECT_EQ(step({0.25}), (Numbers{0, -2.125}));
  EXPECT_EQ(step({0.25, 0, 0, 0, 0.5}), (Numbers{-0.125, -1.875}));
}

// ---- Inputs of whole numbers ----------------------------------------------------------------------------------------------------------

/// One input of each dtype, claimed to be below a bound.
Schedule of_inputs_below(std::int64_t below, DType dtype) {
  Schedule schedule{"inputs", hand_built::mesh_of({{"x", 2, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  schedule.programs.push_back(
      {every_device(schedule.mesh), {hand_built::input("X", {40, 2}, {{x}, {}}, dtype), hand_built::input("other", {40, 2}, {{x}, {}}, dtype)}, {}});
  ReferenceBuilder g;
  g.output("Y", g.each(ReferenceKind::relu, g.input("X", {80, 2}, below)));
  schedule.computes = std::move(g).finish("");
  return schedule;
}

TEST(InputsBelowABound, AreWholeNumbersOfEveryKindWhateverTheFilling) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::s32})
    for (const Filling filling : {Filling::integers, Filling::uniform, Filling::fractions, Filling::arange, Filling::ones})
      for (const std::int64_t below : {1, 2, 7}) {
        const Schedule schedule = of_inputs_below(below, dtype);
        const Buffer& buffer = schedule.programs[0].buffers[0];
        const InputMaker maker{schedule, 3, filling};
        ThreadPool pool{2};
        const Numbers whole = maker.global_tensor(buffer, false, pool);
        std::map<double, int> seen;
        for (const double number : whole) ++seen[number];
        for (const auto& [number, count] : seen)
          EXPECT_TRUE(number >= 0 && number < static_cast<double>(below) && number == std::floor(number)) << number;
        if (filling == Filling::ones) {
          EXPECT_THAT(seen, ElementsAre(::testing::Pair(below > 1 ? 1 : 0, 160)));
        } else {
          EXPECT_EQ(seen.size(), static_cast<std::size_t>(below)) << "each of them";
        }
        if (filling == Filling::arange) {
          EXPECT_EQ(whole[101], static_cast<double>(101 % below));
        }
        std::vector<float> shard(80);
        maker.fill_shard(buffer, DeviceId{1}, shard.data());
        for (std::size_t i = 0; i < shard.size(); ++i) EXPECT_EQ(number_in(shard[i], dtype), whole[80 + i]);
        if (filling != Filling::ones) {
          EXPECT_NE(maker.global_tensor(schedule.programs[0].buffers[1], false, pool), whole) << "others are filled as ever";
        }
      }
}

TEST(InputsBelowABound, BoundsAreTakenByTheRangeOfExactIntegers) {
  ReferenceBuilder g;
  const int table = g.input("E", {1000, 4}), index = g.input("tokens", {64}, 1000);
  const int taken = g.take_rows(table, index), added = g.add_rows(taken, index, 1000), chosen = g.one_hot(index, 1000);
  g.output("Y", added), g.output("Z", chosen);
  const ReferenceProgram program = std::move(g).finish("");
  const ExactRange range = exact_range(program, Mesh{});
  EXPECT_EQ(range.range, (1 << 24) / 64) << "a row may be named by every token";
  EXPECT_THAT(range.exact, ::testing::Each(true));
  EXPECT_EQ(range.why_not, "");
}

TEST(InputsBelowABound, HaveOne) {
  ReferenceBuilder g;
  g.input("X", {4}, 3), g.input("X", {4}, 3), g.input("X", {4}, 4), g.input("Z", {4}, -1), g.input("U", {4}, (std::int64_t{1} << 31) + 1);
  g.output("Y", 0);
  EXPECT_THAT(check_reference(std::move(g).finish(""), Mesh{}),
              ElementsAre(R"(node 2 (input "X"): whole numbers below 4 here, below 3 in an earlier node)",
                          R"(node 3 (input "Z"): whole numbers below -1; expected at most 2^31)",
                          R"(node 4 (input "U"): whole numbers below 2147483649; expected at most 2^31)"));
}

}  // namespace
}  // namespace podsim
