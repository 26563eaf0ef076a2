// Gates of experts and the sums of their outputs: against float64 written another way, gradients against central differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/test_kernels.hpp"
#include "sim/engine/numeric/transformer_kernels.hpp"

namespace podsim {
namespace {

using namespace testing;

struct Experts {
  std::size_t tokens, experts, each, features;
  [[nodiscard]] Lengths lengths(const std::vector<std::size_t>& of) const { return {of.begin(), of.end()}; }
  [[nodiscard]] std::size_t capacity() const { return tokens * each / experts; }
  [[nodiscard]] Lengths logits() const { return lengths({tokens, experts}); }
  [[nodiscard]] Lengths gates() const { return lengths({tokens, each}); }
  [[nodiscard]] Lengths y() const { return lengths({experts, capacity(), features}); }
  [[nodiscard]] Lengths x() const { return lengths({tokens, features}); }
};

/// By expert instead of by token: the tokens of each expert in turn, the slots of a token in the order of its experts.
struct Routed {
  std::size_t expert, place, token, slot;
};
std::vector<Routed> routed(const Experts& n) {
  std::vector<Routed> all;
  std::vector<std::size_t> taken(n.tokens, 0);
  for (std::size_t e = 0; e < n.experts; ++e)
    for (std::size_t place = 0; place < n.capacity(); ++place) {
      const std::size_t token = e / n.each * n.capacity() + place;
      all.push_back({e, place, token, taken[token]++});
    }
  for (const std::size_t slots : taken) EXPECT_EQ(slots, n.each) << "balanced";
  return all;
}

/// 1 over the sum of exp(other - own).
Values reference_gates(const Experts& n, const Values& logits) {
  Values gates(n.tokens * n.each);
  const std::vector<Routed> all = routed(n);
  for (const Routed& own : all) {
    double sum = 0;
    for (const Routed& other : all)
      if (other.token == own.token) sum += std::exp(logits[other.token * n.experts + other.expert] - logits[own.token * n.experts + own.expert]);
    gates[own.token * n.each + own.slot] = 1 / sum;
  }
  return gates;
}

Values reference_combine(const Experts& n, const Values& y, const Values& gates) {
  Values x(n.tokens * n.features, 0.0);
  for (const Routed& of : routed(n))
    for (std::size_t i = 0; i < n.features; ++i)
      x[of.token * n.features + i] += gates[of.token * n.each + of.slot] * y[(of.expert * n.capacity() + of.place) * n.features + i];
  return x;
}

/// A token takes one expert, two, or all.
const std::vector<Experts>& some_experts() {
  static const std::vector<Experts> some{{4, 4, 1, 3}, {6, 4, 2, 5}, {3, 4, 4, 2}, {8, 8, 2, 1}, {5, 1, 1, 2}};
  return some;
}

TEST(ExpertGates, AndTheirGradientsAreThoseOfFloat64) {
  for (const Experts& n : some_experts()) {
    SCOPED_TRACE(::testing::PrintToString(n.logits()) + ::testing::PrintToString(n.gates()));
    const auto f = [&](const Values& logits) { return reference_gates(n, logits); };
    const auto forward = run_alone(local_of(LocalKind::expert_gates), {n.logits()}, {n.gates()});
    expect_close(forward[1], f(forward[0]), "gates");

    Array logits{n.logits(), 1}, gates{n.gates(), 2}, dgates{n.gates(), 3}, dlogits{n.logits(), 4};
    expert_gates(logits.view(), gates.view()), expert_gates_grad(dgates.view(), gates.view(), dlogits.view());
    const auto numbers = [](const Array& of) { return Values(of.values.begin(), of.values.end()); };
    if (n.each == 1) {
      EXPECT_THAT(dlogits.values, ::testing::Each(0.0F)) << "of one gate, which is 1";
    } else {
      expect_close(numbers(dlogits), central_differences(f, numbers(logits), numbers(dgates)), "dlogits");
    }

    const auto backward = run_alone(local_of(LocalKind::expert_gates_grad), {n.gates(), n.gates()}, {n.logits()});
    Values slopes(n.tokens * n.experts, 0.0);  // g (dg - the mean of dg that gates weigh), 0 for experts that a token does not take
    const std::vector<Routed> all = routed(n);
    for (const Routed& own : all) {
      double mean = 0;
      for (const Routed& other : all)
        if (other.token == own.token) mean += backward[0][other.token * n.each + other.slot] * backward[1][other.token * n.each + other.slot];
      slopes[own.token * n.experts + own.expert] = backward[1][own.token * n.each + own.slot] * (backward[0][own.token * n.each + own.slot] - mean);
    }
    expect_close(backward[2], slopes, "dlogits, of gates that no logits gave");
  }
}

TEST(ExpertGates, LargeLogitsDoNotOverflow) {
  Array logits{{1, 2}, 1}, gates{{1, 2}, 2};
  logits.values = {3e38F, -3e38F};
  expert_gates(logits.view(), gates.view());
  EXPECT_THAT(gates.values, ::testing::ElementsAre(1, 0));
}

TEST(ExpertCombine, AndItsGradientsAreThoseOfFloat64) {
  for (const Experts& n : some_experts()) {
    SCOPED_TRACE(::testing::PrintToString(n.y()) + ::testing::PrintToString(n.gates()));
    const auto forward = run_alone(local_of(LocalKind::expert_combine), {n.y(), n.gates()}, {n.x()});
    expect_close(forward[2], reference_combine(n, forward[0], forward[1]), "x");
    const auto backward = run_alone(local_of(LocalKind::expert_combine_grad), {n.x(), n.y(), n.gates()}, {n.y(), n.gates()});
    const Values &dx = backward[0], &y = backward[1], &gates = backward[2];
    expect_close(backward[3], central_differences([&](const Values& of) { return reference_combine(n, of, gates); }, y, dx), "dy");
    expect_close(backward[4], central_differences([&](const Values& of) { return reference_combine(n, y, of); }, gates, dx), "dgates");
  }
}

TEST(ExpertKernels, RoundWhatBf16BuffersStore) {
  const auto rounded = [](double value) { return static_cast<double>(round_to_bf16(static_cast<float>(value))); };
  const Experts n{6, 4, 2, 5};
  const auto gates = run_alone(local_of(LocalKind::expert_gates), {n.logits()}, {n.gates()}, DType::bf16);
  const Values of_gates = reference_gates(n, gates[0]);
  for (std::size_t i = 0; i < of_gates.size(); ++i) EXPECT_EQ(gates[1][i], rounded(of_gates[i]));
  const auto combined = run_alone(local_of(LocalKind::expert_combine), {n.y(), n.gates()}, {n.x()}, DType::bf16);
  const Values of_x = reference_combine(n, combined[0], combined[1]);
  for (std::size_t i = 0; i < of_x.size(); ++i) EXPECT_EQ(combined[2][i], rounded(of_x[i])) << "the sum over experts is rounded once";
}

TEST(ExpertKernels, ReadAllBeforeTheyWriteWherever) {
  const Experts n{6, 4, 2, 5};
  Array dx{n.x(), 1}, y{n.y(), 2}, gates{n.gates(), 3}, dy{n.y(), 4}, dgates{n.gates(), 5};
  expert_combine_grad(dx.view(), y.view(), gates.view(), dy.view(), dgates.view());
  expert_combine_grad(dx.view(), y.view(), gates.view(), y.view(), gates.view());  // each over what the other needs
  EXPECT_EQ(y.values, dy.values);
  EXPECT_EQ(gates.values, dgates.values);

  Array slopes{n.gates(), 6}, values{n.gates(), 7}, dlogits{n.logits(), 8}, over{n.logits(), 9};
  expert_gates_grad(slopes.view(), values.view(), dlogits.view());
  std::copy(slopes.values.begin(), slopes.values.end(), over.values.begin());
  View at_begin = over.view();
  at_begin.layout = slopes.view().layout;
  expert_gates_grad(at_begin, values.view(), over.view());
  EXPECT_EQ(over.values, dlogits.values);
}

}  // namespace
}  // namespace podsim
