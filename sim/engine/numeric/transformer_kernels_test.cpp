// Norms, activations and attention: against float64 written another way, gradients against central differences, wherever operands lie.
#include "sim/engine/numeric/transformer_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/engine/numeric/test_kernels.hpp"

namespace podsim {
namespace {

using namespace hand_built;
using namespace testing;

// ---- What is expected -----------------------------------------------------------------------------------------------------------------

/// Each row of `features`, in two passes.
Values reference_norm(Values x, std::size_t features, bool subtract_mean) {
  for (auto row = x.begin(); row != x.end(); row += static_cast<std::ptrdiff_t>(features)) {
    const auto end = row + static_cast<std::ptrdiff_t>(features);
    const double mean = subtract_mean ? std::accumulate(row, end, 0.0) / static_cast<double>(features) : 0;
    std::for_each(row, end, [&](double& value) { value -= mean; });
    const double deviation = std::sqrt(std::inner_product(row, end, row, 0.0) / static_cast<double>(features) + 1e-5);
    std::for_each(row, end, [&](double& value) { value /= deviation; });
  }
  return x;
}

/// (1 + tanh z) / 2 = 1 / (1 + exp(-2z)), and back.
double reference_gelu(double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * std::pow(x, 3)))); }
double reference_swiglu(double gate, double up) { return gate * up * (1 + std::tanh(gate / 2)) / 2; }

struct AttentionExtents {
  std::size_t sequences, sequence, groups, q, head;
  [[nodiscard]] Lengths with(std::size_t heads) const {
    Lengths lengths;
    for (const std::size_t length : {sequences, sequence, groups, heads, head}) lengths.push_back(static_cast<std::int64_t>(length));
    return lengths;
  }
  [[nodiscard]] Lengths qkv() const { return with(q + 2); }
  [[nodiscard]] Lengths o() const { return with(q); }
};

/// Element by element, as the definition has it: nothing is shared, no largest score is taken off, what is masked counts zero.
Values reference_attention(const AttentionExtents& n, bool causal, const Values& qkv) {
  Values o;
  for (std::size_t s = 0; s < n.sequences; ++s)
    for (std::size_t t = 0; t < n.sequence; ++t)
      for (std::size_t g = 0; g < n.groups; ++g)
        for (std::size_t h = 0; h < n.q; ++h)
          for (std::size_t d = 0; d < n.head; ++d) {
            const auto at = [&](std::size_t token, std::size_t slot, std::size_t i) {
              return qkv[(((s * n.sequence + token) * n.groups + g) * (n.q + 2) + slot) * n.head + i];
            };
            double above = 0, below = 0;
            for (std::size_t u = 0; u < n.sequence; ++u) {
              double score = 0;
              for (std::size_t i = 0; i < n.head; ++i) score += at(t, h, i) * at(u, n.q, i);
              const double weight = causal && u > t ? 0 : std::exp(score / std::sqrt(static_cast<double>(n.head)));
              above += weight * at(u, n.q + 1, d), below += weight;
            }
            o.push_back(above / below);
          }
  return o;
}

Values applied(const std::function<double(double, double)>& f, const Values& a, const Values& b) {
  Values result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(f(a[i], b[i]));
  return result;
}

// ---- Norms ----------------------------------------------------------------------------------------------------------------------------

namespace norm_of {

enum : int { x, dy, xhat, dx, sums, gathered_sums, all_sums, dsums, gathered_dsums, all_dsums };
constexpr std::int64_t tokens = 3, features = 8;

/// Forward and backward over features on P devices; sums are added up in the order of the devices, hence to the same bits on all.
Schedule schedule(int P, std::int64_t w, bool features_first, DType dtype = DType::f32) {
  Schedule result{"norm", mesh_of({{"x", P, true}}), {}, {}};
  const AxisView axis = result.mesh.whole(0);
  const auto turned = [&](Lengths lengths) { return features_first ? Lengths{lengths[1], lengths[0]} : lengths; };
  const std::vector<std::vector<AxisView>> sharding =
      features_first ? std::vector<std::vector<AxisView>>{{axis}, {}} : std::vector<std::vector<AxisView>>{{}, {axis}};
  const Lengths shard = turned({tokens, features / P}), of_sums = turned({tokens, w}), of_all = {P, of_sums[0], of_sums[1]};
  Program program{every_device(result.mesh),
                  {input("X", shard, sharding, dtype), input("dY", shard, sharding, dtype), output("Xhat", shard, sharding, dtype),
                   output("dX", shard, sharding, dtype), scratch("sums", of_sums), scratch("gathered sums", of_all), output("S", of_sums, {{}, {}}),
                   scratch("dsums", of_sums), scratch("gathered dsums", of_all), output("dS", of_sums, {{}, {}})},
                  {}};
  const auto step = [&](LocalKind kind, const std::vector<int>& reads, int write, const std::vector<int>& after) {
    Local local{kind, {}, {whole(program, write)}, features, Unit::core, features_first};
    for (const int read : reads) local.reads.push_back(whole(program, read));
    return add(program, std::string(traits_of(kind).name), local, after);
  };
  const auto all_reduce = [&](int own_sums, int gathered, int all_of_them, int after) {
    const auto of_device = [&](Affine device) {
      Region region = whole(program, gathered);
      region.dims[0] = block(std::move(device), 1);
      return region;
    };
    int last = ring_gather(program, axis, gathered, 0, add(program, "own", copy(whole(program, own_sums), of_device(own(axis))), {after}));
    const Region total = whole(program, all_of_them);
    last = add(program, "first", copy(of_device(0), total), {last});
    for (int d = 1; d < P; ++d) last = add(program, "add", Local{LocalKind::add, {total, of_device(d)}, {total}}, {last});
    return last;
  };
  const int added = all_reduce(sums, gathered_sums, all_sums, step(LocalKind::norm_sums, {x}, sums, {}));
  step(LocalKind::norm, {x, all_sums}, xhat, {added});
  const int dadded = all_reduce(dsums, gathered_dsums, all_dsums, step(LocalKind::norm_grad_sums, {dy, x, all_sums}, dsums, {added}));
  step(LocalKind::norm_grad, {dy, x, all_sums, all_dsums}, dx, {dadded});
  result.programs.push_back(std::move(program));
  return result;
}

/// The global tensor of a buffer, tokens first.
Values values(const Tensors& tensors, int buffer, bool features_first) {
  Values shards;  // features first
  for (const auto& device : tensors.values) {
    const std::vector<float>& own = device[static_cast<std::size_t>(buffer)];
    const Values shard(own.begin(), own.end());
    const Values rows = features_first ? shard : transposed(shard, tokens);
    shards.insert(shards.end(), rows.begin(), rows.end());
    if (buffer == all_sums || buffer == all_dsums) break;  // replicated
  }
  return transposed(shards, static_cast<std::int64_t>(shards.size()) / tokens);
}

}  // namespace norm_of

TEST(Norm, AndItsGradientAreThoseOfTwoPassesInFloat64) {
  for (const std::int64_t w : {1, 2})
    for (const bool features_first : {false, true}) {
      SCOPED_TRACE(std::to_string(w) + (features_first ? " features first" : ""));
      const Tensors tensors = results_of(norm_of::schedule(1, w, features_first), {.filling = Filling::uniform});
      const auto values = [&](int buffer) { return norm_of::values(tensors, buffer, features_first); };
      const auto norm = [&](const Values& x) { return reference_norm(x, norm_of::features, w == 2); };
      const Values x = values(norm_of::x), dy = values(norm_of::dy);
      expect_close(values(norm_of::xhat), norm(x), "xhat");
      expect_close(values(norm_of::dx), central_differences(norm, x, dy), "dx");
      Values sums, dsums;
      for (std::size_t t = 0; t < norm_of::tokens; ++t) {
        const auto row = static_cast<std::ptrdiff_t>(t * norm_of::features), end = row + norm_of::features;
        const Values xhat = norm(x);
        if (w == 2) sums.push_back(std::accumulate(x.begin() + row, x.begin() + end, 0.0));
        sums.push_back(std::inner_product(x.begin() + row, x.begin() + end, x.begin() + row, 0.0));
        if (w == 2) dsums.push_back(std::accumulate(dy.begin() + row, dy.begin() + end, 0.0));
        dsums.push_back(std::inner_product(dy.begin() + row, dy.begin() + end, xhat.begin() + row, 0.0));
      }
      expect_close(values(norm_of::all_sums), sums, "sums");
      expect_close(values(norm_of::all_dsums), dsums, "sums of the gradient");
    }
}

TEST(Norm, OverFeaturesOfSeveralDevicesIsThatOfOneDevice) {
  for (const std::int64_t w : {1, 2})
    for (const bool features_first : {false, true})
      for (const int P : {2, 4}) {
        SCOPED_TRACE(std::to_string(w) + (features_first ? " features first" : "") + " on " + std::to_string(P));
        const Schedule schedule = norm_of::schedule(P, w, features_first);
        const Expected<CheckReport> report = check(schedule, {});
        ASSERT_TRUE(report && report->race_free && report->bit_equal) << "matched, free of races, and every order gives the same bits";
        const Tensors several = results_of(schedule, {}), one = results_of(norm_of::schedule(1, w, features_first), {});
        for (const int exact : {norm_of::x, norm_of::dy, norm_of::all_sums, norm_of::xhat})  // sums of integers are exact
          EXPECT_EQ(norm_of::values(several, exact, features_first), norm_of::values(one, exact, features_first)) << exact;
        for (const int buffer : {norm_of::all_dsums, norm_of::dx})
          expect_close(norm_of::values(several, buffer, features_first), norm_of::values(one, buffer, features_first), std::to_string(buffer));
      }
}

TEST(Norm, SumsOfBf16MayBeFloat32) {
  const Tensors tensors = results_of(norm_of::schedule(2, 2, false, DType::bf16), {.filling = Filling::uniform});
  const Values x = norm_of::values(tensors, norm_of::x, false), expected = reference_norm(x, norm_of::features, true);
  const Values found = norm_of::values(tensors, norm_of::xhat, false), sums = norm_of::values(tensors, norm_of::all_sums, false);
  int finer = 0;
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0x1p-8 * std::abs(expected[i]) + 1e-6) << "rounded once";
  for (const double sum : sums) finer += static_cast<double>(round_to_bf16(static_cast<float>(sum))) != sum;
  EXPECT_GT(finer, 0);
}

TEST(Norm, ADeviationThatRoundingMadeNegativeIsNone) {
  Array x{{1, 4}, 1}, sums{{1, 2}, 1}, xhat{{1, 4}, 1};
  x.values = {1, 1, 1, 2}, sums.values = {4, 3.9F};  // mean 1, mean square 0.975
  norm(4, x.view(), sums.view(), xhat.view());
  EXPECT_THAT(xhat.values, ::testing::ElementsAre(0, 0, 0, ::testing::FloatEq(1 / std::sqrt(1e-5F))));
}

// ---- Activations ----------------------------------------------------------------------------------------------------------------------

TEST(Gelu, AndItsGradientAreThoseOfFloat64) {
  const Lengths shape{7, 5};
  const auto forward = run_alone(local_of(LocalKind::gelu), {shape}, {{5, 7}});  // only the counts have to agree
  const auto gelu_of = [](const Values& x) { return applied([](double value, double) { return reference_gelu(value); }, x, x); };
  expect_close(forward[1], gelu_of(forward[0]), "y");
  const auto backward = run_alone(local_of(LocalKind::gelu_grad), {shape, shape}, {shape});
  expect_close(backward[2], central_differences(gelu_of, backward[1], backward[0]), "dx");
}

TEST(Gelu, FarFromZeroIsXOrNothing) {
  Array x{{4}, 1}, dy{{4}, 1}, y{{4}, 1}, dx{{4}, 1};
  x.values = {-3e38F, -50, 50, 3e38F}, dy.values = {2, 2, 2, 2};
  gelu(x.view(), y.view()), gelu_grad(dy.view(), x.view(), dx.view());
  EXPECT_THAT(y.values, ::testing::ElementsAre(0, 0, 50, 3e38F));
  EXPECT_THAT(dx.values, ::testing::ElementsAre(0, 0, 2, 2));
}

TEST(Swiglu, AndItsGradientsAreThoseOfFloat64) {
  const Lengths shape{7, 5};
  const auto forward = run_alone(local_of(LocalKind::swiglu), {shape, shape}, {{35}});
  expect_close(forward[2], applied(reference_swiglu, forward[0], forward[1]), "y");
  const auto backward = run_alone(local_of(LocalKind::swiglu_grad), {shape, {5, 7}, shape}, {shape, {35}});
  const Values &dy = backward[0], &gate = backward[1], &up = backward[2];
  expect_close(backward[3], central_differences([&](const Values& g) { return applied(reference_swiglu, g, up); }, gate, dy), "dgate");
  expect_close(backward[4], central_differences([&](const Values& u) { return applied(reference_swiglu, gate, u); }, up, dy), "dup");
}

TEST(Swiglu, FarFromZeroIsTheProductOrNothing) {
  Array gate{{2}, 1}, up{{2}, 1}, dy{{2}, 1}, y{{2}, 1}, dgate{{2}, 1}, dup{{2}, 1};
  gate.values = {-1e4F, 1e4F}, up.values = {3, 3}, dy.values = {2, 2};
  swiglu(gate.view(), up.view(), y.view()), swiglu_grad(dy.view(), gate.view(), up.view(), dgate.view(), dup.view());
  EXPECT_THAT(y.values, ::testing::ElementsAre(0, 3e4F));
  EXPECT_THAT(dgate.values, ::testing::ElementsAre(0, 6));
  EXPECT_THAT(dup.values, ::testing::ElementsAre(0, 2e4F));
}

// ---- Attention ------------------------------------------------------------------------------------------------------------------------

const std::vector<AttentionExtents>& some_attention() {
  static const std::vector<AttentionExtents> some{{1, 1, 1, 1, 1}, {2, 5, 1, 1, 4}, {1, 4, 3, 1, 2}, {2, 3, 2, 3, 4}};
  return some;
}

TEST(Attention, AndItsGradientAreThoseOfFloat64) {
  for (const AttentionExtents& n : some_attention())
    for (const bool features_first : {false, true})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(::testing::PrintToString(n.qkv()) + (features_first ? " features first" : "") + (causal ? " causal" : ""));
        const auto f = [&](const Values& qkv) { return reference_attention(n, causal, qkv); };
        const auto forward = run_alone(local_of(LocalKind::attention, features_first, causal), {n.qkv()}, {n.o()});
        expect_close(forward[1], f(forward[0]), "o");
        const auto backward = run_alone(local_of(LocalKind::attention_grad, features_first, causal), {n.o(), n.qkv()}, {n.qkv()});
        expect_close(backward[2], central_differences(f, backward[1], backward[0]), "dqkv");
      }
}

TEST(Attention, FeaturesFirstGivesTheTransposeOfTheSame) {
  for (const AttentionExtents& n : some_attention()) {
    Array qkv{n.qkv(), 1}, o{n.o(), 2}, dqkv{n.qkv(), 3};
    Array qkv_turned = qkv.turned(), o_turned = o.turned(), dqkv_turned = dqkv.turned();
    attention_grad(true, o.view(), qkv.view(), dqkv.view());
    attention_grad(true, tokens_first(o_turned.view()), tokens_first(qkv_turned.view()), tokens_first(dqkv_turned.view()));
    EXPECT_EQ(dqkv_turned.values, dqkv.turned().values);
    attention(false, qkv.view(), o.view());
    attention(false, tokens_first(qkv_turned.view()), tokens_first(o_turned.view()));
    EXPECT_EQ(o_turned.values, o.turned().values);
  }
}

TEST(Attention, QueriesOfAGroupShareItsKeysAndValues) {
  constexpr std::int64_t sequences = 2, sequence = 3, groups = 2, q = 3, head = 4;
  Array grouped{{sequences, sequence, groups, q + 2, head}, 1}, repeated{{sequences, sequence, groups * q, 3, head}, 1};
  Array o{{sequences, sequence, groups, q, head}, 2}, o_repeated{{sequences, sequence, groups * q, 1, head}, 2};
  const auto row = [](Array& box, std::int64_t token_and_group, std::int64_t slots, std::int64_t slot) {
    return box.values.begin() + (token_and_group * slots + slot) * head;
  };
  for (std::int64_t t = 0; t < sequences * sequence * groups; ++t)
    for (std::int64_t h = 0; h < q; ++h)
      for (const std::int64_t slot : {0, 1, 2})  // query, key, value
        std::copy_n(row(grouped, t, q + 2, slot == 0 ? h : q + slot - 1), head, row(repeated, t * q + h, 3, slot));

  Array dqkv{grouped.lengths, 3}, dqkv_repeated{repeated.lengths, 3};
  attention_grad(true, o.view(), grouped.view(), dqkv.view());
  attention_grad(true, o_repeated.view(), repeated.view(), dqkv_repeated.view());
  for (std::int64_t t = 0; t < sequences * sequence * groups; ++t)
    for (std::int64_t i = 0; i < head; ++i) {
      double key = 0, value = 0;
      for (std::int64_t h = 0; h < q; ++h) {
        EXPECT_EQ(row(dqkv, t, q + 2, h)[i], row(dqkv_repeated, t * q + h, 3, 0)[i]);
        key += static_cast<double>(row(dqkv_repeated, t * q + h, 3, 1)[i]), value += static_cast<double>(row(dqkv_repeated, t * q + h, 3, 2)[i]);
      }
      EXPECT_NEAR(static_cast<double>(row(dqkv, t, q + 2, q)[i]), key, 1e-6) << "the sum over those that share the key";
      EXPECT_NEAR(static_cast<double>(row(dqkv, t, q + 2, q + 1)[i]), value, 1e-6);
    }
  attention(true, grouped.view(), o.view()), attention(true, repeated.view(), o_repeated.view());
  EXPECT_EQ(o.values, o_repeated.values);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Array qkv{{1, 2, 1, 3, 1}, 1}, o{{1, 2, 1, 1, 1}, 1};
  qkv.values = {1e3F, 1e3F, 5, 1e3F, -1e3F, 7};  // the first key is what both queries look for
  attention(false, qkv.view(), o.view());
  EXPECT_THAT(o.values, ::testing::ElementsAre(5, 5));
}

TEST(Attention, WhatNobodyWroteShowsWhereItIsSeen) {
  for (const bool causal : {false, true}) {
    Array qkv{{1, 3, 1, 3, 2}, 1}, o{{1, 3, 1, 1, 2}, 1};
    std::fill(qkv.values.begin() + 12, qkv.values.end(), std::numeric_limits<float>::quiet_NaN());  // the last token
    attention(causal, qkv.view(), o.view());
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(o.values[i]), !causal || i >= 4) << i;
  }
}

// ---- Transposes -----------------------------------------------------------------------------------------------------------------------

TEST(Transpose, BringsTokensToTheOtherEndAndBack) {
  for (const Lengths& shape : {Lengths{5, 3}, Lengths{5, 2, 1, 3}}) {
    Array x{shape, 1}, there{shape, 2}, back{shape, 3};
    std::rotate(there.lengths.begin(), there.lengths.begin() + 1, there.lengths.end());
    transpose(false, x.view(), there.view()), transpose(true, there.view(), back.view());
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t f = 0, features = x.values.size() / 5; f < features; ++f) EXPECT_EQ(there.values[f * 5 + t], x.values[t * features + f]);
    EXPECT_EQ(back.values, x.values);
  }
  const auto alone = run_alone(local_of(LocalKind::transpose), {{4, 2, 3}}, {{2, 3, 4}}, DType::bf16);
  EXPECT_EQ(alone[1], transposed(alone[0], 4));
  Schedule schedule{"back", Mesh{}, {}, {}};
  Program program{every_device(schedule.mesh), {input("X", {2, 3, 4}, {{}, {}, {}}), output("Y", {4, 2, 3}, {{}, {}, {}})}, {}};
  add(program, "back", Local{LocalKind::transpose, {whole(program, 0)}, {whole(program, 1)}, 1, Unit::core, true});
  schedule.programs.push_back(program);
  const std::vector<std::vector<float>> buffers = results_of(schedule, {}).values[0];
  EXPECT_EQ(Values(buffers[1].begin(), buffers[1].end()), transposed(Values(buffers[0].begin(), buffers[0].end()), 6));
}

// ---- Of all kinds ---------------------------------------------------------------------------------------------------------------------

TEST(TransformerKernels, RoundWhatBf16BuffersStore) {
  const auto gelu_of = run_alone(local_of(LocalKind::gelu), {{9, 9}}, {{9, 9}}, DType::bf16);
  for (std::size_t i = 0; i < 81; ++i)
    EXPECT_EQ(gelu_of[1][i], static_cast<double>(round_to_bf16(static_cast<float>(reference_gelu(gelu_of[0][i])))));
  const AttentionExtents n{1, 4, 2, 2, 3};
  const auto attended = run_alone(local_of(LocalKind::attention, true), {n.qkv()}, {n.o()}, DType::bf16);
  const Values expected = reference_attention(n, false, attended[0]);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(attended[1][i], static_cast<double>(round_to_bf16(static_cast<float>(expected[i]))));
}

TEST(TransformerKernels, ReadAllBeforeTheyWriteWherever) {
  // dgate over up, dup over gate: each would spoil what the other needs. dqkv over a part of o's gradient, and of qkv.
  Schedule schedule{"in place", Mesh{}, {}, {}};
  Program program{every_device(schedule.mesh), {input("A", {200}, {{}}), output("apart", {200}, {{}}), output("over", {200}, {{}})}, {}};
  const auto part = [](int buffer, std::int64_t begin, std::int64_t length) { return Region{BufferId{buffer}, {span(begin, length)}}; };
  add(program, "copy", copy(whole(program, 0), whole(program, 2)));
  add(program, "apart", Local{LocalKind::swiglu_grad, {part(0, 0, 20), part(0, 20, 20), part(0, 40, 20)}, {part(1, 40, 20), part(1, 20, 20)}});
  add(program, "over", Local{LocalKind::swiglu_grad, {part(2, 0, 20), part(2, 20, 20), part(2, 40, 20)}, {part(2, 40, 20), part(2, 20, 20)}}, {0});
  add(program, "gelu apart", Local{LocalKind::gelu, {part(0, 60, 20)}, {part(1, 65, 20)}});
  add(program, "gelu over", Local{LocalKind::gelu, {part(2, 60, 20)}, {part(2, 65, 20)}}, {0});
  schedule.programs.push_back(program);
  const Tensors tensors = results_of(schedule, {.filling = Filling::uniform});
  const auto slice = [&](std::size_t buffer, std::ptrdiff_t begin, std::ptrdiff_t end) {
    const std::vector<float>& values = tensors.values[0][buffer];
    return std::vector<float>(values.begin() + begin, values.begin() + end);
  };
  EXPECT_EQ(slice(2, 20, 60), slice(1, 20, 60));
  EXPECT_EQ(slice(2, 65, 85), slice(1, 65, 85));

  const AttentionExtents n{1, 3, 2, 1, 2};
  Array qkv{n.qkv(), 1}, d_o{n.o(), 2}, dqkv{n.qkv(), 3};
  attention_grad(true, d_o.view(), qkv.view(), dqkv.view());
  attention_grad(true, d_o.view(), qkv.view(), qkv.view());
  EXPECT_EQ(qkv.values, dqkv.values);

  Array x{{3, 5}, 4}, y{{5, 3}, 5}, in_place = x;
  View turned = in_place.view();
  turned.layout = y.view().layout;
  transpose(false, x.view(), y.view()), transpose(false, in_place.view(), turned);
  EXPECT_EQ(in_place.values, y.values);
}

TEST(TransformerKernels, EachRoundsAPartialSumOnce) {
  EXPECT_EQ(stores_of_partial_sums(norm_of::schedule(1, 2, false)), 3) << "sums, sums of the gradient, dx";
}

}  // namespace
}  // namespace podsim
