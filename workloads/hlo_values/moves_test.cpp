// Moves, products and reductions against hand results and formulas by brute force.
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>

#include "sim/base/rng.hpp"
#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

using test::array;
using test::counted;
using test::Integers;
using test::Reals;
using test::result_of;
using test::results_of;
using test::run_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string add_of_two = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n";

Reals random_reals(Rng& random, std::size_t count) {
  Reals values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(random.between(-9, 9));
  return values;
}

TEST(HloMoves, ConstantsAndIotas) {
  EXPECT_EQ(result_of({}, "ROOT r = s32[2,2] constant({{1, -2}, {3, 4}})"), array("s32[2,2]", {1, -2, 3, 4}));
  EXPECT_EQ(result_of({}, "ROOT r = u64[] constant(18446744073709551615)").integers.at(0), -1);
  EXPECT_EQ(result_of({}, "ROOT r = f32[2] constant({1.5, -inf})").reals.at(0), 1.5);
  EXPECT_EQ(result_of({}, "ROOT r = s32[2,3] iota(), iota_dimension=1"), array("s32[2,3]", {0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(result_of({}, "ROOT r = f32[2,3] iota(), iota_dimension=0"), array("f32[2,3]", {0, 0, 0, 1, 1, 1}));
}

TEST(HloMoves, BroadcastsReshapesAndTransposes) {
  EXPECT_EQ(result_of({counted("f32[2]")}, "ROOT r = f32[2,3] broadcast(p0), dimensions={0}"), array("f32[2,3]", {1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(result_of({counted("f32[2]")}, "ROOT r = f32[3,2] broadcast(p0), dimensions={1}"), array("f32[3,2]", {1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "ROOT r = f32[3,2] broadcast(p0), dimensions={1,0}"), array("f32[3,2]", {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "ROOT r = f32[6]{0} reshape(p0)"), counted("f32[6]"));
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "ROOT r = f32[3,2] transpose(p0), dimensions={1,0}"), array("f32[3,2]", {1, 4, 2, 5, 3, 6}));
  const HloArray rotated = result_of({counted("s32[2,3,4]")}, "ROOT r = s32[4,2,3] transpose(p0), dimensions={2,0,1}");
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      for (std::int64_t k = 0; k < 3; ++k) EXPECT_EQ(rotated.integers[to_size(i * 6 + j * 3 + k)], j * 12 + k * 4 + i + 1);
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "ROOT r = f32[2,3] reverse(p0), dimensions={1}"), array("f32[2,3]", {3, 2, 1, 6, 5, 4}));
  EXPECT_THAT(run_error({counted("f32[2,3]")}, "ROOT r = f32[5] reshape(p0)"), HasSubstr("expected as many elements as its operand has, f32[2,3], got f32[5]"));
}

TEST(HloMoves, ABitcastKeepsTheOrderInMemory) {
  // Row-major to column-major of the same dimensions: what was at (i, j) in memory order 3 i + j is read at j + 2 i.
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "c = f32[2,3]{1,0} copy(p0)\nROOT r = f32[3,2]{0,1} bitcast(c)"), array("f32[3,2]", {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "c = f32[2,3]{0,1} copy(p0)\nROOT r = f32[3,2]{1,0} bitcast(c)"), array("f32[3,2]", {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "c = f32[2,3]{0,1} copy(p0)\nROOT r = f32[6]{0} bitcast(c)"), array("f32[6]", {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "ROOT r = f32[1,6,1]{1,0,2} bitcast(p0)"), counted("f32[1,6,1]"));
  EXPECT_EQ(result_of({counted("f32[2,3]")}, "c = f32[2,3]{0,1} copy(p0)\nROOT r = f32[2,3]{1,0} copy(c)"), counted("f32[2,3]"));
}

TEST(HloMoves, SlicesTakeStridesAndDynamicOnesAreClamped) {
  EXPECT_EQ(result_of({counted("f32[4,4]")}, "ROOT r = f32[2,2] slice(p0), slice={[1:4:2], [0:2]}"), array("f32[2,2]", {5, 6, 13, 14}));
  const auto at = [](std::int64_t i, std::int64_t j) {
    return result_of({counted("f32[4,4]"), integer_scalar(HloType::s32, i), integer_scalar(HloType::s32, j)},
                     "ROOT r = f32[2,2] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,2}")
        .reals;
  };
  EXPECT_THAT(at(1, 1), ElementsAre(6, 7, 10, 11));
  EXPECT_THAT(at(3, -5), ElementsAre(9, 10, 13, 14));
  EXPECT_THAT(at(-1, 100), ElementsAre(3, 4, 7, 8));
  // u32 beyond 2^31 is no negative number.
  EXPECT_THAT(
      result_of({counted("f32[4]"), integer_scalar(HloType::u32, -1)}, "ROOT r = f32[2] dynamic-slice(p0, p1), dynamic_slice_sizes={2}").reals,
      ElementsAre(3, 4));
  EXPECT_THAT(
      result_of({counted("f32[4]"), integer_scalar(HloType::u64, -1)}, "ROOT r = f32[2] dynamic-slice(p0, p1), dynamic_slice_sizes={2}").reals,
      ElementsAre(3, 4));
}

TEST(HloMoves, DynamicUpdatesAreClamped) {
  const auto at = [](std::int64_t i) {
    return result_of({counted("f32[4]"), array("f32[2]", {-1, -2}), integer_scalar(HloType::s32, i)},
                     "ROOT r = f32[4] dynamic-update-slice(p0, p1, p2)")
        .reals;
  };
  EXPECT_THAT(at(1), ElementsAre(1, -1, -2, 4));
  EXPECT_THAT(at(3), ElementsAre(1, 2, -1, -2));
  EXPECT_THAT(at(-3), ElementsAre(-1, -2, 3, 4));
}

TEST(HloMoves, ConcatenatesAlongOneDimension) {
  EXPECT_EQ(result_of({counted("f32[2,1]"), array("f32[2,2]", {7, 8, 9, 10})}, "ROOT r = f32[2,3] concatenate(p0, p1), dimensions={1}"),
            array("f32[2,3]", {1, 7, 8, 2, 9, 10}));
}

TEST(HloMoves, PaddingMayBeInsideAndNegative) {
  const auto padded = [](const std::string& padding, std::int64_t size) {
    return result_of({counted("s32[3]"), array("s32[]", {0})}, fmt::format("ROOT r = s32[{}] pad(p0, p1), padding={}", size, padding)).integers;
  };
  EXPECT_THAT(padded("1_2", 6), ElementsAre(0, 1, 2, 3, 0, 0));
  EXPECT_THAT(padded("0_0_1", 5), ElementsAre(1, 0, 2, 0, 3));
  EXPECT_THAT(padded("-1_0_1", 4), ElementsAre(0, 2, 0, 3));
  EXPECT_THAT(padded("1_-2_1", 4), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(padded("-3_4", 4), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(padded("-2_-1", 0), ElementsAre());
  // All paddings of up to three dimensions against the definition.
  for (int low = -4; low <= 3; ++low)
    for (int high = -4; high <= 3; ++high)
      for (int interior = 0; interior <= 2; ++interior) {
        const int spread = 2 * (interior + 1) + 1, size = low + spread + high;
        if (size < 0) continue;
        Integers expected(static_cast<std::size_t>(size), 0);
        for (int i = 0; i < 3; ++i)
          if (const int to = low + i * (interior + 1); to >= 0 && to < size) expected[static_cast<std::size_t>(to)] = i + 1;
        EXPECT_EQ(padded(fmt::format("{}_{}_{}", low, high, interior), size), expected) << low << " " << high << " " << interior;
      }
}

TEST(HloProducts, ADotSumsOverContractedDimensionsOfEachBatch) {
  Rng random{1};
  const HloArray a = array("f32[3,2,5,4]", random_reals(random, 120)), b = array("f32[5,6,3,2]", random_reals(random, 180));
  // Batch 3 and 2 (in either order), contracted 5.
  const HloArray c = result_of({a, b},
                               "ROOT r = f32[2,3,4,6] dot(p0, p1), lhs_batch_dims={1,0}, rhs_batch_dims={3,2}, lhs_contracting_dims={2}, "
                               "rhs_contracting_dims={0}");
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 3; ++x)
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 6; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < 5; ++k) sum += a.reals[((x * 2 + y) * 5 + k) * 4 + i] * b.reals[((k * 6 + j) * 3 + x) * 2 + y];
          EXPECT_EQ(c.reals[((y * 3 + x) * 4 + i) * 6 + j], sum);
        }
  EXPECT_EQ(result_of({array("s8[1,2]", {100, 100}), array("s8[2,1]", {100, 100})},
                      "ROOT r = s32[1,1] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
                .integers.at(0),
            20000);
  EXPECT_THAT(
      run_error({counted("f32[2,3]"), counted("f32[2,3]")}, "ROOT r = f32[2,3] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
      HasSubstr("expected operands that agree on what is contracted"));
}

TEST(HloProducts, OfTruthsAndOfWholeNumbersWithRealOnes) {
  const std::string contracts = " dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", convolves = " convolution(p0, p1), dim_labels=bf_io->bf";
  for (const std::string& product : {contracts, convolves}) {
    // A truth: whether any pair is true.
    const HloArray truths = array("pred[2,2]", {1, 0, 0, 0}), others = array("pred[2,2]", {1, 0, 1, 1});
    EXPECT_THAT(result_of({truths, others}, "ROOT r = pred[2,2]" + product).integers, ElementsAre(1, 0, 0, 0)) << product;
    EXPECT_THAT(result_of({array("pred[1,2]", {1, 1}), others}, "ROOT r = s32[1,2]" + product).integers, ElementsAre(2, 1)) << product;
    EXPECT_THAT(result_of({array("s4[1,2]", {-8, 7}), array("bf16[2,1]", {0.5, 2})}, "ROOT r = f32[1,1]" + product).reals, ElementsAre(10)) << product;
    EXPECT_THAT(result_of({array("s4[1,2]", {-8, 7}), array("s4[2,1]", {7, 7})}, "ROOT r = s32[1,1]" + product).integers, ElementsAre(-7)) << product;
    EXPECT_THAT(result_of({array("s8[1,2]", {100, 100}), array("s8[2,1]", {100, 100})}, "ROOT r = bf16[1,1]" + product).reals, ElementsAre(20000)) << product;
    EXPECT_THAT(result_of({array("f32[1,2]", {0.5, 3}), array("pred[2,1]", {1, 0})}, "ROOT r = f32[1,1]" + product).reals, ElementsAre(0.5)) << product;
  }
}

TEST(HloProducts, LargestSumIsThatOfAbsoluteValues) {
  const HloModule module = test::module_of(test::text_with({array("f32[1,3]", {1, -2, 3}), array("f32[3,1]", {4, 5, 6})},
                                                           "ROOT r = f32[1,1] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  HloRunOptions options;
  ASSERT_TRUE(interpret(module, {{{array("f32[1,3]", {1, -2, 3})}, {array("f32[3,1]", {4, 5, 6})}}}, options));
  EXPECT_EQ(options.arithmetic.largest_sum, 4 + 10 + 18);
  EXPECT_TRUE(options.arithmetic.integral);
}

TEST(HloProducts, PerturbedSumsAreOffByAFewRoundings) {
  // 64 terms of 1: the sum of their absolute values is 64, so partial sums and the result are off by at most 64 * 2^-24 each.
  const HloModule module = test::module_of(test::text_with({array("f32[8,64]", Reals(512, 1)), array("f32[64,1]", Reals(64, 1))},
                                                           "ROOT r = f32[8,1] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  std::vector<Reals> results;
  for (const std::uint64_t seed : {1, 2}) {
    HloRunOptions options;
    options.arithmetic.perturb_seed = seed;
    const auto run = interpret(module, {{{array("f32[8,64]", Reals(512, 1))}, {array("f32[64,1]", Reals(64, 1))}}}, options);
    ASSERT_TRUE(run);
    results.push_back(run->front()[0].reals);
    for (const double result : results.back()) EXPECT_LE(std::fabs(result - 64), 2 * 64 * 0x1.001p-24);
    EXPECT_NE(results.back(), Reals(8, 64));
  }
  EXPECT_NE(results[0], results[1]);
}

/// A convolution by the definition: every element of the result, every tap, every feature.
struct Window {
  std::int64_t size, stride, low, high, base, dilation;
  bool reversal;
};
std::int64_t positions(const Window& w, std::int64_t input) {
  const std::int64_t padded = w.low + (input - 1) * w.base + 1 + w.high, reach = (w.size - 1) * w.dilation + 1;
  return padded < reach ? 0 : (padded - reach) / w.stride + 1;
}

TEST(HloProducts, ConvolutionsMeetTheirDefinitionOnRandomWindows) {
  Rng random{5};
  int checked = 0;
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(trial);
    const auto window = [&] {
      return Window{random.between(1, 3), random.between(1, 2), random.between(-1, 3),    random.between(-1, 3),
                    random.between(1, 2), random.between(1, 2), random.between(0, 1) == 1};
    };
    const Window wx = window(), wy = window();
    const std::int64_t ix = random.between(1, 5), iy = random.between(1, 5), ox = positions(wx, ix), oy = positions(wy, iy);
    if (ox < 1 || oy < 1) continue;
    const int kind = random.between(0, 2);  // plain, feature groups, batch groups
    const std::int64_t groups = kind == 0 ? 1 : 2, feature_groups = kind == 1 ? 2 : 1, batch_groups = kind == 2 ? 2 : 1;
    const std::int64_t inner = random.between(1, 3), columns = 2 * random.between(1, 2), rows = random.between(1, 2), batch = rows * batch_groups,
                       features = inner * feature_groups;
    const HloArray x = array(fmt::format("f32[{},{},{},{}]", batch, ix, iy, features), random_reals(random, to_size(batch * ix * iy * features))),
                   w = array(fmt::format("f32[{},{},{},{}]", columns, wx.size, inner, wy.size),
                             random_reals(random, to_size(columns * wx.size * inner * wy.size)));
    const auto both = [](auto a, auto b) { return fmt::format("{}x{}", a, b); };
    const std::string text = fmt::format(
        "ROOT r = f32[{},{},{},{}] convolution(p0, p1), window={{size={} stride={} pad={}_{}x{}_{} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}, "
        "dim_labels=b01f_o0i1->f10b{}{}",
        columns, oy, ox, rows, both(wx.size, wy.size), both(wx.stride, wy.stride), wx.low, wx.high, wy.low, wy.high, both(wx.base, wy.base),
        both(wx.dilation, wy.dilation), both(wx.reversal ? 1 : 0, wy.reversal ? 1 : 0), kind == 1 ? ", feature_group_count=2" : "",
        kind == 2 ? ", batch_group_count=2" : "");
    const HloArray out = result_of({x, w}, text);
    ++checked;
    for (std::int64_t b = 0; b < rows; ++b)
      for (std::int64_t f = 0; f < columns; ++f)
        for (std::int64_t px = 0; px < ox; ++px)
          for (std::int64_t py = 0; py < oy; ++py) {
            const std::int64_t group = f / (columns / groups);
            double sum = 0;
            for (std::int64_t tx = 0; tx < wx.size; ++tx)
              for (std::int64_t ty = 0; ty < wy.size; ++ty)
                for (std::int64_t i = 0; i < inner; ++i) {
                  const std::int64_t qx = px * wx.stride + tx * wx.dilation - wx.low, qy = py * wy.stride + ty * wy.dilation - wy.low;
                  if (qx < 0 || qy < 0 || qx % wx.base != 0 || qy % wy.base != 0 || qx / wx.base >= ix || qy / wy.base >= iy) continue;
                  const std::int64_t kx = wx.reversal ? wx.size - 1 - tx : tx, ky = wy.reversal ? wy.size - 1 - ty : ty;
                  const std::int64_t from = kind == 2 ? group * rows + b : b, feature = kind == 1 ? group * inner + i : i;
                  sum += x.reals[to_size(((from * ix + qx / wx.base) * iy + qy / wy.base) * features + feature)] *
                         w.reals[to_size(((f * wx.size + kx) * inner + i) * wy.size + ky)];
                }
            EXPECT_EQ(out.reals[to_size(((f * oy + py) * ox + px) * rows + b)], sum) << text;
          }
  }
  EXPECT_GT(checked, 150);
}

TEST(HloReductions, SumsAndOthersOverAnyDimensions) {
  const HloArray x = counted("f32[2,3,4]");
  EXPECT_THAT(result_of({x, array("f32[]", {100})}, "ROOT r = f32[3] reduce(p0, p1), dimensions={0,2}, to_apply=add", add_of_two).reals,
              ElementsAre(100 + 10 + 58, 100 + 26 + 74, 100 + 42 + 90));
  EXPECT_EQ(result_of({x, array("f32[]", {0})}, "ROOT r = f32[] reduce(p0, p1), dimensions={0,1,2}, to_apply=add", add_of_two).reals.at(0), 300);
  const std::string larger = "f { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT s = s32[] maximum(b, a) }\n";
  EXPECT_THAT(result_of({counted("s32[2,2]"), array("s32[]", {-9})}, "ROOT r = s32[2] reduce(p0, p1), dimensions={1}, to_apply=f", larger).integers,
              ElementsAre(2, 4));
  const std::string apart = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] subtract(b, a) }\n";
  EXPECT_EQ(result_of({counted("f32[3]"), array("f32[]", {0})}, "ROOT r = f32[] reduce(p0, p1), dimensions={0}, to_apply=f", apart).reals.at(0),
            2);  // 3-(2-(1-0))
  const std::string other = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] multiply(b, b)\n ROOT s = f32[] add(a, c) }\n";
  EXPECT_EQ(result_of({counted("f32[3]"), array("f32[]", {0})}, "ROOT r = f32[] reduce(p0, p1), dimensions={0}, to_apply=f", other).reals.at(0), 14);
}

TEST(HloReductions, SeveralOperandsAreReducedTogether) {
  const std::string best =
      "f { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n ge = pred[] compare(a, b), "
      "direction=GE\n"
      " m = f32[] select(ge, a, b)\n k = s32[] select(ge, i, j)\n ROOT t = (f32[], s32[]) tuple(m, k) }\n";
  const HloArrays results =
      results_of({array("f32[2,3]", {1, 5, 2, 7, 7, 3}), array("f32[]", {-1e9}), array("s32[]", {0})},
                 "i = s32[2,3] iota(), iota_dimension=1\nROOT r = (f32[2], s32[2]) reduce(p0, i, p1, p2), dimensions={1}, to_apply=f", best);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(results[0].reals, ElementsAre(5, 7));
  EXPECT_THAT(results[1].integers, ElementsAre(1, 0));
}

TEST(HloReductions, WindowsMeetTheirDefinition) {
  // A running sum as XLA writes it.
  EXPECT_THAT(
      result_of({counted("f32[5]"), array("f32[]", {0})}, "ROOT r = f32[5] reduce-window(p0, p1), window={size=5 pad=4_0}, to_apply=add", add_of_two)
          .reals,
      ElementsAre(1, 3, 6, 10, 15));
  EXPECT_THAT(result_of({counted("f32[2,4]"), array("f32[]", {0})},
                        "ROOT r = f32[1,2] reduce-window(p0, p1), window={size=2x2 stride=1x2}, to_apply=add", add_of_two)
                  .reals,
              ElementsAre(1 + 2 + 5 + 6, 3 + 4 + 7 + 8));
  EXPECT_THAT(result_of({counted("f32[3]"), array("f32[]", {0})},
                        "ROOT r = f32[5] reduce-window(p0, p1), window={size=2 lhs_dilate=2 pad=1_0}, to_apply=add", add_of_two)
                  .reals,
              ElementsAre(1, 1, 2, 2, 3));
  EXPECT_THAT(result_of({counted("f32[5]"), array("f32[]", {0})}, "ROOT r = f32[3] reduce-window(p0, p1), window={size=2 rhs_dilate=2}, to_apply=add",
                        add_of_two)
                  .reals,
              ElementsAre(4, 6, 8));
}

TEST(HloReductions, MapAndSortRunTheirComputations) {
  const std::string square = "f { a = f32[] parameter(0)\n ROOT s = f32[] multiply(a, a) }\n";
  EXPECT_THAT(result_of({counted("f32[3]")}, "ROOT r = f32[3] map(p0), dimensions={0}, to_apply=f", square).reals, ElementsAre(1, 4, 9));
  const std::string less =
      "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n ROOT s = pred[] compare(a, b), "
      "direction=LT }\n";
  const HloArrays sorted = results_of({array("f32[3,2]", {3, 1, 1, 2, 3, 0}), counted("s32[3,2]")},
                                      "ROOT r = (f32[3,2], s32[3,2]) sort(p0, p1), dimensions={0}, is_stable=true, to_apply=f", less);
  EXPECT_THAT(sorted[0].reals, ElementsAre(1, 0, 3, 1, 3, 2));
  EXPECT_THAT(sorted[1].integers, ElementsAre(3, 6, 1, 2, 5, 4));
}

TEST(HloGather, TakesClampedWindows) {
  // Rows of a table, as jnp.take makes them; the index 9 is clamped to the last row.
  EXPECT_THAT(
      result_of(
          {counted("f32[4,2]"), array("s32[3]", {2, 0, 9})},
          "ROOT r = f32[3,2] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}")
          .reals,
      ElementsAre(5, 6, 1, 2, 7, 8));
  // Windows of 2x2 at (row, column).
  EXPECT_THAT(result_of({counted("f32[3,3]"), array("s32[2,2]", {0, 1, 5, -1})},
                        "ROOT r = f32[2,2,2] gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, "
                        "slice_sizes={2,2}")
                  .reals,
              ElementsAre(2, 3, 5, 6, 4, 5, 7, 8));
  // Batching dimensions: element i of row i's own index.
  EXPECT_THAT(result_of({counted("f32[2,3]"), array("s32[2,1]", {2, 1})},
                        "ROOT r = f32[2] gather(p0, p1), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
                        "start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}")
                  .reals,
              ElementsAre(3, 5));
}

TEST(HloGather, ScatterFoldsUpdatesAndLeavesOutThoseBeyond) {
  EXPECT_THAT(result_of({counted("f32[3,2]"), array("s32[4,1]", {0, 2, 0, 7}), array("f32[4,2]", {10, 20, 30, 40, 50, 60, 70, 80})},
                        "ROOT r = f32[3,2] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                        "index_vector_dim=1, to_apply=add",
                        add_of_two)
                  .reals,
              ElementsAre(1 + 10 + 50, 2 + 20 + 60, 3, 4, 5 + 30, 6 + 40));
}

}  // namespace
}  // namespace podsim
