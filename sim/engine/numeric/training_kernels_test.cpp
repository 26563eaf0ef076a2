// Losses, the gradient of an embedding, optimisers: against float64 written another way, wherever operands lie, on any number of devices.
#include "sim/engine/numeric/training_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/test_boxes.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using testing::TestBox;
using Doubles = std::vector<double>;

Doubles doubles_of(TestBox& box) {
  Doubles numbers;
  for (const float value : box.values()) numbers.push_back(static_cast<double>(value));
  return numbers;
}

/// Within `roundings` of the largest element.
void expect_near(TestBox& found, const Doubles& expected, double roundings = 0x1p-24) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  const Doubles values = doubles_of(found);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], largest * roundings) << i;
}

/// The slopes of f at x.
template <class F>
Doubles slopes(F f, Doubles x) {
  Doubles result;
  for (double& value : x) {
    const double at = value, step = 1e-5;
    value = at + step;
    const double above = f(x);
    value = at - step;
    result.push_back((above - f(x)) / (2 * step));
    value = at;
  }
  return result;
}

TEST(MeanSquare, AndItsGradientAreThoseOfFloat64) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool spread : {false, true}) {
      TestBox y{{3, 5}, dtype, spread}, target{{15}, dtype, !spread}, loss{{1}}, dy{{5, 3}, dtype, spread};
      y.random(1), target.random(2);
      const Doubles targets = doubles_of(target);
      const auto f = [&](const Doubles& x) {
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(x[i] - targets[i], 2) / 60;
        return sum;
      };
      mean_square(60, y.view(), target.view(), loss.view());
      mean_square_grad(60, y.view(), target.view(), dy.view());
      expect_near(loss, {f(doubles_of(y))});
      expect_near(dy, slopes(f, doubles_of(y)), dtype == DType::bf16 ? 0x1p-8 : 0x1p-22);
      EXPECT_EQ(dy.changed_outside(), 0);
      mean_square_grad(60, y.view(), target.view(), y.view());
      EXPECT_EQ(y.values(), dy.values()) << "in place";
    }
}

TEST(MeanSquare, OfPartsAddsUp) {
  TestBox y{{4, 5}}, target{{4, 5}}, whole{{1}}, part{{1}};
  y.random(1), target.random(2);
  mean_square(20, y.view(), target.view(), whole.view());
  double sum = 0;
  for (std::int64_t row = 0; row < 4; ++row) {
    const auto row_of = [&](TestBox& box) {
      View view = box.view();
      view.layout.offset += row * 5, view.layout.length[0] = 1;
      return view;
    };
    mean_square(20, row_of(y), row_of(target), part.view());
    sum += static_cast<double>(part.word(0));
  }
  EXPECT_NEAR(sum, static_cast<double>(whole.word(0)), 1e-7);
}

// ---- Cross-entropy --------------------------------------------------------------------------------------------------------------------

/// [tokens, classes] logits, of which each of P devices has a block of columns, the last one with padding if P does not divide the classes.
struct ShardedLogits {
  std::int64_t tokens, classes, devices;
  [[nodiscard]] std::int64_t columns() const { return (classes + devices - 1) / devices; }
};

struct CrossEntropyResult {
  double loss = 0;
  Doubles gradient;  // [tokens, classes]
};

/// By the kernels, on each device after the other; the statistics of all are what an all-gather brings.
CrossEntropyResult by_kernels(const ShardedLogits& n, const Doubles& logits, const std::vector<std::int32_t>& targets, double mean_over, DType dtype,
                              bool turned) {
  const std::int64_t v = n.columns();
  TestBox statistics{{n.devices, n.tokens, 2}}, target{{n.tokens}, DType::s32};
  target.integers(targets);
  std::vector<TestBox> parts;
  const auto tokens_first_view = [&](TestBox& box) {
    View view = box.view();
    if (turned) std::swap(view.layout.length[0], view.layout.length[1]), std::swap(view.layout.stride[0], view.layout.stride[1]);
    return view;
  };
  const auto at = [&](std::int64_t t, std::int64_t c) { return turned ? c * n.tokens + t : t * v + c; };
  const auto classes_of = [&](std::int64_t p) { return Classes{{p * v, 0, 1}, n.classes}; };
  for (std::int64_t p = 0; p < n.devices; ++p) {
    TestBox& part = parts.emplace_back(turned ? std::vector<std::int64_t>{v, n.tokens} : std::vector<std::int64_t>{n.tokens, v}, dtype, turned);
    for (std::int64_t t = 0; t < n.tokens; ++t)
      for (std::int64_t c = 0; c < v; ++c)
        part.word(at(t, c)) = p * v + c < n.classes ? static_cast<float>(logits[static_cast<std::size_t>(t * n.classes + p * v + c)]) : 1e30F;
    View own = statistics.view();
    own.layout.offset += p * n.tokens * 2, own.layout.length[0] = 1;
    softmax_statistics(classes_of(p), tokens_first_view(part), own);
  }
  CrossEntropyResult result;
  result.gradient.resize(logits.size());
  for (std::int64_t p = 0; p < n.devices; ++p) {
    TestBox loss{{1}};
    TestBox& part = parts[static_cast<std::size_t>(p)];
    EXPECT_TRUE(cross_entropy(classes_of(p), mean_over, tokens_first_view(part), statistics.view(), target.view(), loss.view()));
    EXPECT_TRUE(cross_entropy_grad(classes_of(p), mean_over, tokens_first_view(part), statistics.view(), target.view(), tokens_first_view(part)));
    result.loss += static_cast<double>(loss.word(0));
    for (std::int64_t t = 0; t < n.tokens; ++t)
      for (std::int64_t c = 0; c < v; ++c) {
        if (p * v + c < n.classes)
          result.gradient[static_cast<std::size_t>(t * n.classes + p * v + c)] = static_cast<double>(part.word(at(t, c)));
        else
          EXPECT_EQ(part.word(at(t, c)), 0.0F) << "padding";
      }
    EXPECT_EQ(part.changed_outside(), 0);
  }
  return result;
}

TEST(CrossEntropy, OfAShardedVocabularyIsThatOfAWholeOne) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng{seed};
    const std::int64_t tokens = rng.between(1, 7), classes = rng.between(1, 13);
    const DType dtype = rng.below(3) == 0 ? DType::bf16 : DType::f32;
    const double far = rng.below(3) == 0 ? 90 : 2, mean_over = rng.between(1, 50);  // exp(90) is infinite in float32
    Doubles logits;
    for (std::int64_t i = 0; i < tokens * classes; ++i) {
      const auto value = static_cast<float>(far * (2 * rng.uniform() - 1));
      logits.push_back(static_cast<double>(dtype == DType::bf16 ? round_to_bf16(value) : value));
    }
    std::vector<std::int32_t> targets;
    for (std::int64_t t = 0; t < tokens; ++t) targets.push_back(rng.between(0, static_cast<int>(classes) - 1));
    const auto f = [&](const Doubles& x) {
      double sum = 0;
      for (std::size_t t = 0; t < targets.size(); ++t) {
        long double terms = 0;  // exp(90) is not
        for (std::int64_t c = 0; c < classes; ++c)
          terms += std::exp(static_cast<long double>(x[t * static_cast<std::size_t>(classes) + static_cast<std::size_t>(c)]));
        sum += static_cast<double>(std::log(terms)) - x[t * static_cast<std::size_t>(classes) + static_cast<std::size_t>(targets[t])];
      }
      return sum / mean_over;
    };
    const double loss = f(logits);
    const Doubles gradient = slopes(f, logits);
    for (const std::int64_t devices : {1, 2, 4}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " on " << devices);
      const CrossEntropyResult found = by_kernels({tokens, classes, devices}, logits, targets, mean_over, dtype, seed % 2 == 1);
      EXPECT_NEAR(found.loss, loss, 1e-6 * std::max(1.0, loss));
      for (std::size_t i = 0; i < gradient.size(); ++i)
        EXPECT_NEAR(found.gradient[i], gradient[i], (dtype == DType::bf16 ? 0x1p-8 : 1e-6) / mean_over) << i;
    }
  }
}

TEST(CrossEntropy, OfClassesInBlocksIsThatOfAdjacentOnes) {
  // Columns of device 0 are the classes 0 1 4 5, of device 1 2 3 6 and padding.
  TestBox first{{2, 4}}, second{{2, 4}}, whole{{2, 7}}, both{{2, 2, 2}}, one{{1, 2, 2}}, targets{{2}, DType::s32}, loss{{1}}, part{{1}};
  whole.random(1), targets.integers({6, 1});
  constexpr std::array<std::int64_t, 4> of_first{0, 1, 4, 5}, of_second{2, 3, 6, 6};
  for (std::int64_t t = 0; t < 2; ++t)
    for (std::int64_t c = 0; c < 4; ++c) {
      first.word(4 * t + c) = whole.word(7 * t + of_first[static_cast<std::size_t>(c)]);
      second.word(4 * t + c) = whole.word(7 * t + of_second[static_cast<std::size_t>(c)]);
    }
  const Classes a{{0, 2, 2}, 7}, b{{2, 2, 2}, 7}, all{{0, 0, 1}, 7};
  View own = both.view(), other = both.view();
  own.layout.length[0] = other.layout.length[0] = 1, other.layout.offset += 4;
  softmax_statistics(a, first.view(), own), softmax_statistics(b, second.view(), other), softmax_statistics(all, whole.view(), one.view());
  ASSERT_TRUE(cross_entropy(all, 2, whole.view(), one.view(), targets.view(), loss.view()));
  double sum = 0;
  ASSERT_TRUE(cross_entropy(a, 2, first.view(), both.view(), targets.view(), part.view()));
  sum += static_cast<double>(part.word(0));
  ASSERT_TRUE(cross_entropy(b, 2, second.view(), both.view(), targets.view(), part.view()));
  EXPECT_NEAR(sum + static_cast<double>(part.word(0)), static_cast<double>(loss.word(0)), 1e-6);
}

TEST(CrossEntropy, OfADeviceWithNothingButPaddingHasNoPart) {
  TestBox logits{{2, 3}}, statistics{{2, 2}};
  logits.random(1);
  softmax_statistics({{9, 0, 1}, 9}, logits.view(), statistics.view());
  const float nothing = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(statistics.values(), ElementsAre(nothing, 0, nothing, 0));
}

TEST(CrossEntropy, ATargetThatIsNoClassIsAnErrorOfTheRunAndNothingIsWritten) {
  TestBox logits{{3, 4}}, statistics{{2, 3, 2}}, targets{{3}, DType::s32}, loss{{1}};
  logits.random(1), statistics.random(2), loss.random(3);
  const std::vector<float> before = logits.values(), loss_before = loss.values();
  for (const std::int32_t wrong : {-1, 8, 2143289344}) {
    targets.integers({5, wrong, 0});
    const Status forward = cross_entropy({{0, 0, 1}, 8}, 3, logits.view(), statistics.view(), targets.view(), loss.view());
    const Status backward = cross_entropy_grad({{0, 0, 1}, 8}, 3, logits.view(), statistics.view(), targets.view(), logits.view());
    ASSERT_FALSE(forward || backward);
    EXPECT_EQ(forward.error().message, "target " + std::to_string(wrong) + " of token 1 is outside 0..7");
    EXPECT_EQ(backward.error().message, forward.error().message);
    EXPECT_EQ(forward.error().cause, Cause::data);
  }
  EXPECT_EQ(logits.values(), before);
  EXPECT_EQ(loss.values(), loss_before);
}

// ---- Optimisers -----------------------------------------------------------------------------------------------------------------------

constexpr Optimiser some_optimiser{1e-2, 0.9, 0.98, 1e-6, 0.1, 1};

TEST(AdamW, IsThatOfTenStepsOfAPlainLoop) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool spread : {false, true}) {
      constexpr std::size_t count = 12;
      TestBox p{{3, 4}, dtype, spread}, g{{4, 3}, dtype, !spread}, m{{12}, DType::f32, spread}, v{{12}, DType::f32, spread};
      p.random(1), m.numbers(std::vector<float>(count)), v.numbers(std::vector<float>(count));
      for (std::int64_t i = 0; i < 12; ++i) p.word(i) = dtype == DType::bf16 ? round_to_bf16(p.word(i)) : p.word(i);
      Doubles x = doubles_of(p), first(count), second(count);
      double power1 = 1, power2 = 1;
      for (std::int64_t step = 1; step <= 10; ++step) {
        g.random(static_cast<std::uint64_t>(step) + 10);
        Optimiser optimiser = some_optimiser;
        optimiser.step = step;
        adamw(optimiser, p.view(), g.view(), m.view(), v.view(), p.view(), m.view(), v.view());
        power1 *= 0.9, power2 *= 0.98;
        const Doubles gradient = doubles_of(g);
        for (std::size_t i = 0; i < count; ++i) {
          first[i] += (1 - 0.9) * (gradient[i] - first[i]);
          second[i] += (1 - 0.98) * (gradient[i] * gradient[i] - second[i]);
          x[i] *= 1 - 1e-2 * 0.1;
          x[i] -= 1e-2 * (first[i] / (1 - power1)) / (std::sqrt(second[i] / (1 - power2)) + 1e-6);
        }
      }
      expect_near(p, x, dtype == DType::bf16 ? 10 * 0x1p-9 : 1e-6);
      expect_near(m, first, 1e-6), expect_near(v, second, 1e-6);
      for (TestBox* box : {&p, &m, &v}) EXPECT_EQ(box->changed_outside(), 0);
    }
}

TEST(AdamW, InPlaceAndElsewhereGiveTheSameBits) {
  TestBox p{{8}}, g{{8}, DType::bf16}, m{{8}}, v{{8}}, new_p{{8}}, new_m{{8}}, new_v{{8}};
  p.random(1), g.random(2), m.random(3), v.random(4);
  for (std::int64_t i = 0; i < 8; ++i) v.word(i) = std::abs(v.word(i));
  adamw(some_optimiser, p.view(), g.view(), m.view(), v.view(), new_p.view(), new_m.view(), new_v.view());
  adamw(some_optimiser, p.view(), g.view(), m.view(), v.view(), p.view(), m.view(), v.view());
  EXPECT_EQ(p.values(), new_p.values());
  EXPECT_EQ(m.values(), new_m.values());
  EXPECT_EQ(v.values(), new_v.values());
}

TEST(Sgd, GoesAgainstTheGradientAndDecays) {
  TestBox p{{4}}, g{{2, 2}, DType::bf16}, result{{4}, DType::f32, true};
  p.numbers({1, 2, -3, 0}), g.numbers({0.5F, -1, 0, 4});
  sgd({0.25, 0, 0, 0, 0.5, 1}, p.view(), g.view(), result.view());
  EXPECT_THAT(result.values(), ElementsAre(1 - 0.25F * (0.5F + 0.5F), 2 - 0.25F * (-1 + 1.0F), -3 - 0.25F * (-1.5F), -1));
  EXPECT_EQ(result.changed_outside(), 0);
}

}  // namespace
}  // namespace podsim
