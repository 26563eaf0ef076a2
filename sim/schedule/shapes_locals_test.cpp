// What check_shapes() says of norms, activations and attention, word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "sim/schedule/testing.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Writer;
using Lengths = std::vector<std::int64_t>;

/// What is said of one Local whose operands are buffers of these extents, reads before writes; `bf16` of them by position.
std::vector<std::string> said_of(LocalKind kind, const std::vector<Lengths>& operands, double factor = 1, bool features_first = false,
                                 const std::vector<std::size_t>& bf16 = {}) {
  Writer w{std::vector<MeshAxis>{{"x", 1, false}}};
  Local local{kind, {}, {}, factor, Unit::core, features_first};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Region region{w.scratch("operand", operands[i], std::count(bf16.begin(), bf16.end(), i) > 0 ? DType::bf16 : DType::f32), {}};
    for (const std::int64_t length : operands[i]) region.dims.push_back(all(length));
    (i < static_cast<std::size_t>(traits_of(kind).reads) ? local.reads : local.writes).push_back(region);
  }
  w.add("t", local);
  std::vector<std::string> texts;
  for (const Diagnostic& problem : check_shapes(w.schedule)) texts.push_back(to_text(problem));
  return texts;
}

TEST(LocalShapes, NormsAreOverTokensAndAPartOfTheFeatures) {
  const Lengths x{4, 6}, one{4, 1}, two{4, 2};
  for (const double N : {6.0, 24.0})
    for (const Lengths& sums : {one, two}) {
      EXPECT_THAT(said_of(LocalKind::norm_sums, {x, sums}, N), IsEmpty());
      EXPECT_THAT(said_of(LocalKind::norm, {x, sums, x}, N), IsEmpty());
      EXPECT_THAT(said_of(LocalKind::norm_grad_sums, {x, x, sums, sums}, N), IsEmpty());
      EXPECT_THAT(said_of(LocalKind::norm_grad, {x, x, sums, sums, x}, N), IsEmpty());
    }
  const Lengths turned{6, 4}, one_turned{1, 4}, two_turned{2, 4};
  for (const Lengths& sums : {one_turned, two_turned}) {
    EXPECT_THAT(said_of(LocalKind::norm_sums, {turned, sums}, 6, true), IsEmpty());
    EXPECT_THAT(said_of(LocalKind::norm_grad, {turned, turned, sums, sums, turned}, 6, true), IsEmpty());
  }
}

TEST(LocalShapes, BlocksOfADimensionComeFirst) {
  EXPECT_THAT(said_of(LocalKind::pack_blocks, {{6, 4}, {3, 2, 4}}), IsEmpty());  // dimension 0
  EXPECT_THAT(said_of(LocalKind::unpack_blocks, {{3, 2, 4}, {6, 4}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::pack_blocks, {{6, 4}, {3, 4, 2}}), ElementsAre(R"(task 0 "t": the blocks of [6,4] are [3,4,2]; expected [3,2,4])"));
  EXPECT_THAT(said_of(LocalKind::unpack_blocks, {{4, 2, 4}, {6, 4}}),
              ElementsAre(R"(task 0 "t": dimension 0 of the array [6,4] does not divide into 4 blocks)"));
  EXPECT_THAT(said_of(LocalKind::pack_blocks, {{}, {1}}), ElementsAre(R"(task 0 "t": the array has 0 dimensions, no dimension 0)"));
}

TEST(LocalShapes, SumsAndBroadcastsKeepTheRank) {
  EXPECT_THAT(said_of(LocalKind::sum_along, {{4, 6, 2}, {4, 1, 2}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::sum_along, {{4, 6}, {4, 6}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::sum_along, {{4, 6}, {1, 1}}),
              ElementsAre(R"(task 0 "t": the sum of [4,6] is [1,1]; expected the same lengths with 1 in the place of one of them)"));
  EXPECT_THAT(said_of(LocalKind::sum_along, {{4, 6}, {4}}),
              ElementsAre(R"(task 0 "t": the sum of [4,6] is [4]; expected the same lengths with 1 in the place of one of them)"));
  EXPECT_THAT(said_of(LocalKind::sum_along, {{4, 6}, {4, 2}}),
              ElementsAre(R"(task 0 "t": the sum of [4,6] is [4,2]; expected the same lengths with 1 in the place of one of them)"));
  EXPECT_THAT(said_of(LocalKind::broadcast_in_dim, {{1, 6}, {4, 6}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::broadcast_in_dim, {{2, 6}, {4, 6}}),
              ElementsAre(R"(task 0 "t": [2,6] is broadcast to [4,6]; expected equally many dimensions, each of length 1 or as written)"));
  EXPECT_THAT(said_of(LocalKind::broadcast_in_dim, {{6}, {4, 6}}, 1, false, {0}),
              ElementsAre(R"(task 0 "t": [6] is broadcast to [4,6]; expected equally many dimensions, each of length 1 or as written)",
                          R"(task 0 "t": the read region is bf16, the written region is f32)"));
  EXPECT_THAT(said_of(LocalKind::divide, {{4, 6}, {4, 5}, {4, 6}}), ElementsAre(R"(task 0 "t": the read region has 20 elements, the written region has 24)"));
}

TEST(LocalShapes, OfNormsAreToldExactly) {
  const Lengths x{4, 6}, sums{4, 2};
  EXPECT_THAT(said_of(LocalKind::norm_sums, {{24}, sums}, 6), ElementsAre(R"(task 0 "t": x has 1 dimensions; expected [tokens,features])"));
  EXPECT_THAT(said_of(LocalKind::norm, {{2, 2, 6}, sums, {2, 2, 6}}, 6, true),
              ElementsAre(R"(task 0 "t": x has 3 dimensions; expected [features,tokens])"));
  EXPECT_THAT(said_of(LocalKind::norm_sums, {x, {4, 3}}, 6), ElementsAre(R"(task 0 "t": sums is [4,3]; expected [4,1] or [4,2])"));
  EXPECT_THAT(said_of(LocalKind::norm_sums, {x, {4}}, 6), ElementsAre(R"(task 0 "t": sums is [4]; expected [4,1] or [4,2])"));
  EXPECT_THAT(said_of(LocalKind::norm_sums, {x, sums}, 6, true), ElementsAre(R"(task 0 "t": sums is [4,2]; expected [1,6] or [2,6])"));
  EXPECT_THAT(said_of(LocalKind::norm, {x, {2, 4}, {6, 4}}, 6),
              ElementsAre(R"(task 0 "t": sums is [2,4]; expected [4,1] or [4,2])", R"(task 0 "t": the result is [6,4], x is [4,6])"));
  EXPECT_THAT(said_of(LocalKind::norm_grad_sums, {{4, 5}, x, sums, {4, 1}}, 6),
              ElementsAre(R"(task 0 "t": dy is [4,5], x is [4,6])", R"(task 0 "t": the sums of the gradient are [4,1], sums is [4,2])"));
  EXPECT_THAT(said_of(LocalKind::norm_grad, {x, x, sums, {4, 1}, {3, 6}}, 6),
              ElementsAre(R"(task 0 "t": the sums of the gradient are [4,1], sums is [4,2])", R"(task 0 "t": dx is [3,6], x is [4,6])"));
}

TEST(LocalShapes, ANormIsOverAtLeastTheFeaturesThatItHas) {
  const auto said = [](double N) { return said_of(LocalKind::norm, {{4, 6}, {4, 1}, {4, 6}}, N); };
  EXPECT_THAT(said(5), ElementsAre(R"(task 0 "t": a norm over 5 features; expected at least 6)"));
  EXPECT_THAT(said(-8), ElementsAre(R"(task 0 "t": a norm over -8 features; expected at least 6)"));
  EXPECT_THAT(said(std::numeric_limits<double>::infinity()), ElementsAre(R"(task 0 "t": a norm over inf features; expected at least 6)"));
  EXPECT_THAT(said(std::numeric_limits<double>::quiet_NaN()), ElementsAre(R"(task 0 "t": a norm over nan features; expected at least 6)"));
}

TEST(LocalShapes, SumsDoNotDependOnTheFeaturesInAll) {
  EXPECT_THAT(said_of(LocalKind::norm_sums, {{4, 6}, {4, 1}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::norm_sums, {{4, 6}, {4, 1}}, 0), ElementsAre(R"(task 0 "t": a norm over 0 features; expected at least 1)"));
}

TEST(LocalShapes, SumsMayBeOfAnotherTypeThanX) {
  const Lengths x{4, 6}, sums{4, 2};
  EXPECT_THAT(said_of(LocalKind::norm_sums, {x, sums}, 6, false, {0}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::norm, {x, sums, x}, 6, false, {0, 2}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::norm_grad, {x, x, sums, sums, x}, 6, false, {0, 1, 4}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::norm, {x, sums, x}, 6, false, {0}), ElementsAre(R"(task 0 "t": the result is f32, x is bf16)"));
  EXPECT_THAT(said_of(LocalKind::norm_grad, {x, x, sums, sums, x}, 6, false, {0}), ElementsAre(R"(task 0 "t": dy is bf16, x is f32)"));
}

TEST(LocalShapes, ActivationsTakeEqualCountsInAnyShape) {
  EXPECT_THAT(said_of(LocalKind::gelu, {{4, 6}, {24}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::gelu_grad, {{4, 6}, {24}, {2, 3, 4}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::swiglu, {{4, 6}, {24}, {2, 3, 4}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::swiglu_grad, {{4, 6}, {24}, {2, 3, 4}, {24}, {12, 2}}), IsEmpty());

  EXPECT_THAT(said_of(LocalKind::gelu, {{4, 6}, {23}}), ElementsAre(R"(task 0 "t": x has 24 elements, the result has 23)"));
  EXPECT_THAT(
      said_of(LocalKind::gelu_grad, {{4}, {3}, {5}}, 1, false, {2}),
      ElementsAre(R"(task 0 "t": dy has 4 elements, x has 3)", R"(task 0 "t": dy has 4 elements, dx has 5)", R"(task 0 "t": dy is f32, dx is bf16)"));
  EXPECT_THAT(said_of(LocalKind::swiglu, {{4}, {3}, {4}}, 1, false, {2}),
              ElementsAre(R"(task 0 "t": gate has 4 elements, up has 3)", R"(task 0 "t": gate is f32, the result is bf16)"));
  EXPECT_THAT(said_of(LocalKind::swiglu_grad, {{4}, {1}, {2}, {3}, {5}}),
              ElementsAre(R"(task 0 "t": dy has 4 elements, gate has 1)", R"(task 0 "t": dy has 4 elements, up has 2)",
                          R"(task 0 "t": dy has 4 elements, dgate has 3)", R"(task 0 "t": dy has 4 elements, dup has 5)"));
}

TEST(LocalShapes, AttentionHasTwoMoreRowsOfHeadsThanItsResult) {
  const Lengths qkv{2, 8, 3, 6, 16}, o{2, 8, 3, 4, 16}, qkv_turned{3, 6, 16, 2, 8}, o_turned{3, 4, 16, 2, 8};
  EXPECT_THAT(said_of(LocalKind::attention, {qkv, o}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::attention_grad, {o, qkv, qkv}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::attention, {qkv_turned, o_turned}, 1, true), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::attention_grad, {o_turned, qkv_turned, qkv_turned}, 1, true), IsEmpty());

  EXPECT_THAT(said_of(LocalKind::attention, {qkv, qkv}), ElementsAre(R"(task 0 "t": o is [2,8,3,6,16]; expected [2,8,3,4,16])"));
  EXPECT_THAT(said_of(LocalKind::attention, {qkv_turned, o_turned}),
              ElementsAre(R"(task 0 "t": dimension 3 of qkv has 2 elements; expected queries, keys and values)"));
  EXPECT_THAT(said_of(LocalKind::attention, {qkv, o}, 1, true), ElementsAre(R"(task 0 "t": o is [2,8,3,4,16]; expected [2,6,3,6,16])"));
  EXPECT_THAT(said_of(LocalKind::attention, {{16, 18}, o}),
              ElementsAre(R"(task 0 "t": qkv has 2 dimensions; expected [sequences,sequence,groups,q+2,head])"));
  EXPECT_THAT(said_of(LocalKind::attention, {{16, 18}, o}, 1, true),
              ElementsAre(R"(task 0 "t": qkv has 2 dimensions; expected [groups,q+2,head,sequences,sequence])"));
  EXPECT_THAT(said_of(LocalKind::attention, {qkv, {48, 64}}), ElementsAre(R"(task 0 "t": o is [48,64]; expected [2,8,3,4,16])"));
  EXPECT_THAT(said_of(LocalKind::attention, {qkv, o}, 1, false, {1}), ElementsAre(R"(task 0 "t": o is bf16, qkv is f32)"));
  EXPECT_THAT(said_of(LocalKind::attention_grad, {{2, 8, 3, 3, 16}, qkv, o}, 1, false, {2}),
              ElementsAre(R"(task 0 "t": do is [2,8,3,3,16]; expected [2,8,3,4,16])", R"(task 0 "t": dqkv is [2,8,3,4,16], qkv is [2,8,3,6,16])",
                          R"(task 0 "t": dqkv is bf16, qkv is f32)"));
}

TEST(LocalShapes, ATransposeMovesTokensToTheOtherEnd) {
  EXPECT_THAT(said_of(LocalKind::transpose, {{8, 2, 3, 4}, {2, 3, 4, 8}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::transpose, {{2, 3, 4, 8}, {8, 2, 3, 4}}, 1, true), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::transpose, {{8, 6}, {6, 8}}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::transpose, {{8, 2, 3}, {3, 8, 2}}),
              ElementsAre(R"(task 0 "t": the transpose of [8,2,3] is [3,8,2]; expected [2,3,8])"));
  EXPECT_THAT(said_of(LocalKind::transpose, {{8, 2, 3}, {2, 3, 8}}, 1, true),
              ElementsAre(R"(task 0 "t": the transpose of [8,2,3] is [2,3,8]; expected [3,8,2])"));
  EXPECT_THAT(said_of(LocalKind::transpose, {{8, 6}, {48}}, 1, false, {0}),
              ElementsAre(R"(task 0 "t": the transpose of [8,6] is [48]; expected [6,8])",
                          R"(task 0 "t": the read region is bf16, the written region is f32)"));
  for (const Lengths& no_features : {Lengths{8}, Lengths{}})
    EXPECT_THAT(said_of(LocalKind::transpose, {no_features, no_features}),
                ElementsAre("task 0 \"t\": the read region has " + std::to_string(no_features.size()) + " dimensions; expected tokens and features"));
}

TEST(LocalShapes, TokensAndExpertsAreBalanced) {
  const Lengths logits{6, 4}, gates{6, 2}, y{4, 3, 5}, x{6, 5};  // T 6, E 4, k 2, C 3, N 5
  EXPECT_THAT(said_of(LocalKind::expert_gates, {logits, gates}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::expert_gates_grad, {gates, gates, logits}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::expert_combine, {y, gates, x}), IsEmpty());
  EXPECT_THAT(said_of(LocalKind::expert_combine_grad, {x, y, gates, y, gates}), IsEmpty());
  for (const std::int64_t each : {1, 2, 4}) EXPECT_THAT(said_of(LocalKind::expert_gates, {{4, 4}, {4, each}}), IsEmpty());

  const auto unbalanced = [](const char* found) {
    return std::string{"task 0 \"t\": "} + found + "; expected experts that are a multiple of those of a token, and tokens that are a multiple of their quotient";
  };
  EXPECT_THAT(said_of(LocalKind::expert_gates, {logits, {6, 3}}), ElementsAre(unbalanced("6 tokens, 4 experts, 3 for each token")));
  EXPECT_THAT(said_of(LocalKind::expert_gates, {logits, {6, 8}}), ElementsAre(unbalanced("6 tokens, 4 experts, 8 for each token")));
  EXPECT_THAT(said_of(LocalKind::expert_gates, {{5, 4}, {5, 2}}), ElementsAre(unbalanced("5 tokens, 4 experts, 2 for each token")));
  EXPECT_THAT(said_of(LocalKind::expert_combine, {{4, 3, 5}, {4, 3}, {4, 5}}), ElementsAre(unbalanced("4 tokens, 4 experts, 3 for each token")));

  EXPECT_THAT(said_of(LocalKind::expert_gates, {logits, {4, 2}}),
              ElementsAre(R"(task 0 "t": logits are [6,4], gates [4,2]; expected [tokens,experts] and [tokens,experts of a token])"));
  EXPECT_THAT(said_of(LocalKind::expert_gates, {logits, {12}}),
              ElementsAre(R"(task 0 "t": logits are [6,4], gates [12]; expected [tokens,experts] and [tokens,experts of a token])"));
  EXPECT_THAT(said_of(LocalKind::expert_gates, {logits, gates}, 1, false, {0}), ElementsAre(R"(task 0 "t": logits is bf16, gates is f32)"));
  EXPECT_THAT(said_of(LocalKind::expert_gates_grad, {{6, 1}, gates, logits}), ElementsAre(R"(task 0 "t": dgates is [6,1], gates is [6,2])"));
  EXPECT_THAT(said_of(LocalKind::expert_gates_grad, {gates, gates, {4, 6}}),
              ElementsAre(R"(task 0 "t": logits are [4,6], gates [6,2]; expected [tokens,experts] and [tokens,experts of a token])"));

  EXPECT_THAT(said_of(LocalKind::expert_combine, {{4, 2, 5}, gates, x}),
              ElementsAre(R"(task 0 "t": y is [4,2,5], gates [6,2], their sum [6,5]; expected [E,C,N], [T,k] and [T,N] with E C = T k)"));
  EXPECT_THAT(said_of(LocalKind::expert_combine, {y, gates, {6, 4}}),
              ElementsAre(R"(task 0 "t": y is [4,3,5], gates [6,2], their sum [6,4]; expected [E,C,N], [T,k] and [T,N] with E C = T k)"));
  EXPECT_THAT(said_of(LocalKind::expert_combine, {{12, 5}, gates, x}),
              ElementsAre(R"(task 0 "t": y is [12,5], gates [6,2], their sum [6,5]; expected [E,C,N], [T,k] and [T,N] with E C = T k)"));
  EXPECT_THAT(said_of(LocalKind::expert_combine, {y, {12}, x}),
              ElementsAre(R"(task 0 "t": y is [4,3,5], gates [12], their sum [6,5]; expected [E,C,N], [T,k] and [T,N] with E C = T k)"));
  EXPECT_THAT(said_of(LocalKind::expert_combine, {y, gates, x}, 1, false, {1}), ElementsAre(R"(task 0 "t": y is f32, gates is bf16)"));
  EXPECT_THAT(said_of(LocalKind::expert_combine_grad, {{6, 4}, y, gates, y, gates}),
              ElementsAre(R"(task 0 "t": y is [4,3,5], gates [6,2], their sum [6,4]; expected [E,C,N], [T,k] and [T,N] with E C = T k)"));
  EXPECT_THAT(said_of(LocalKind::expert_combine_grad, {x, y, gates, {4, 3, 4}, {6, 1}}),
              ElementsAre(R"(task 0 "t": dy is [4,3,4], y is [4,3,5])", R"(task 0 "t": dgates is [6,1], gates is [6,2])"));
}

TEST(LocalShapes, AnOpaqueOperationTakesAnyOperandsAndNoNegativeCost) {
  Writer w{std::vector<MeshAxis>{{"x", 1, false}}};
  const Region four{w.scratch("four", {4}, DType::f32), {all(4)}}, six{w.scratch("six", {2, 3}, DType::s32), {all(2), all(3)}};
  w.add("none", Local{LocalKind::opaque, {}, {}});
  w.add("several", Local{LocalKind::opaque, {four, six, four, six, four, six}, {six, four}});
  Local launched{LocalKind::opaque, {four}, {six}};
  launched.opaque.launch = Seconds{1};  // before whatever the rest takes
  w.add("launched", launched);
  EXPECT_THAT(check_shapes(w.schedule), IsEmpty());
  Local wrong{LocalKind::opaque, {four}, {six}};
  wrong.opaque = {Flops{-1}, Flops{2}, DType::c64, Bytes{-3}, Seconds{1}, Seconds{0.75}, Seconds{0.5}};
  w.add("wrong", wrong);
  std::vector<std::string> texts;
  for (const Diagnostic& problem : check_shapes(w.schedule)) texts.push_back(problem.message);
  EXPECT_THAT(texts, ElementsAre(R"(task 3 "wrong": matrix flops of c64; expected f32, bf16, f8e4m3fn, f8e5m2 or s8)", R"(task 3 "wrong": flops -1 and 2; expected none below 0)",
                                 R"(task 3 "wrong": -3 bytes; expected none below 0)", R"(task 3 "wrong": a time of 1 s with 0.75 s at its beginning and 0.5 s at its end; expected parts of it, none below 0)"));
}

TEST(LocalShapes, OperandsAreCountedBeforeTheyAreLookedAt) {
  EXPECT_THAT(said_of(LocalKind::attention_grad, {{4}}), ElementsAre(R"(task 0 "t": attention-grad takes 2 reads and 1 writes, found 1 and 0)"));
  EXPECT_THAT(said_of(LocalKind::swiglu_grad, {{4}, {4}, {4}, {4}}),
              ElementsAre(R"(task 0 "t": swiglu-grad takes 3 reads and 2 writes, found 3 and 1)"));
}

}  // namespace
}  // namespace podsim
