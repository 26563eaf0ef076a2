// Elementwise operations and conversions against hand results.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

using test::array;
using test::Integers;
using test::Reals;
using test::result_of;
using test::run_error;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

double unary(const std::string& opcode, double x) { return result_of({array("f32[1]", {x})}, "ROOT r = f32[1] " + opcode + "(p0)").reals.at(0); }
double binary(const std::string& opcode, double a, double b) {
  return result_of({array("f32[1]", {a}), array("f32[1]", {b})}, "ROOT r = f32[1] " + opcode + "(p0, p1)").reals.at(0);
}
std::int64_t integer(const std::string& opcode, const std::string& type, std::int64_t x) {
  const HloArray operand = integer_array(test::shape_of(type + "[1]").type, {1}, {x});
  return result_of({operand}, "ROOT r = " + type + "[1] " + opcode + "(p0)").integers.at(0);
}
std::int64_t integer(const std::string& opcode, const std::string& type, std::int64_t a, std::int64_t b) {
  const HloType of = test::shape_of(type + "[1]").type;
  return result_of({integer_array(of, {1}, {a}), integer_array(of, {1}, {b})}, "ROOT r = " + type + "[1] " + opcode + "(p0, p1)").integers.at(0);
}

TEST(HloElementwise, RealFunctionsAreThoseOfTheMathsLibrary) {
  const std::vector<std::pair<std::string, double (*)(double)>> functions{{"exponential", std::exp}, {"exponential-minus-one", std::expm1},
                                                                          {"log", std::log},         {"log-plus-one", std::log1p},
                                                                          {"tanh", std::tanh},       {"tan", std::tan},
                                                                          {"sine", std::sin},        {"cosine", std::cos},
                                                                          {"sqrt", std::sqrt},       {"cbrt", std::cbrt},
                                                                          {"erf", std::erf},         {"floor", std::floor},
                                                                          {"ceil", std::ceil},       {"abs", std::fabs}};
  for (const auto& [opcode, function] : functions)
    for (const double x : {0.25, 0.75, 3.5}) EXPECT_EQ(unary(opcode, x), function(x)) << opcode;
  EXPECT_EQ(unary("abs", -2.5), 2.5);
  EXPECT_EQ(unary("negate", 2.5), -2.5);
  EXPECT_THAT(unary("logistic", 0.3), DoubleEq(1 / (1 + std::exp(-0.3))));
  EXPECT_EQ(unary("logistic", -1000), 0);
  EXPECT_EQ(unary("logistic", 1000), 1);
  EXPECT_EQ(unary("rsqrt", 0.25), 2);
  EXPECT_EQ(unary("reduce-precision", 0.1), 0.1);
}

TEST(HloElementwise, RoundingsDifferAtHalves) {
  EXPECT_EQ(unary("round-nearest-afz", 2.5), 3);
  EXPECT_EQ(unary("round-nearest-even", 2.5), 2);
  EXPECT_EQ(unary("round-nearest-afz", -0.5), -1);
  EXPECT_EQ(unary("round-nearest-even", -0.5), 0);
  EXPECT_EQ(unary("round-nearest-even", 3.5), 4);
}

TEST(HloElementwise, SignsOfZeroAndNanAreKept) {
  EXPECT_EQ(unary("sign", -3), -1);
  EXPECT_EQ(unary("sign", 0.1), 1);
  EXPECT_TRUE(std::signbit(unary("sign", -0.0)));
  EXPECT_TRUE(std::isnan(unary("sign", nan)));
}

TEST(HloElementwise, RealOperationsOfTwoOperands) {
  EXPECT_EQ(binary("add", 0.5, 2), 2.5);
  EXPECT_EQ(binary("subtract", 0.5, 2), -1.5);
  EXPECT_EQ(binary("multiply", 0.5, 3), 1.5);
  EXPECT_EQ(binary("divide", 1, 4), 0.25);
  EXPECT_EQ(binary("remainder", -7.5, 2), -1.5);  // the sign of the dividend
  EXPECT_EQ(binary("power", 2, -2), 0.25);
  EXPECT_EQ(binary("atan2", 1, -1), std::atan2(1.0, -1.0));
  EXPECT_EQ(binary("maximum", 1, 2), 2);
  EXPECT_EQ(binary("minimum", 1, 2), 1);
  for (const char* opcode : {"maximum", "minimum"}) {
    EXPECT_TRUE(std::isnan(binary(opcode, nan, 1))) << opcode;
    EXPECT_TRUE(std::isnan(binary(opcode, 1, nan))) << opcode;
  }
  EXPECT_EQ(binary("divide", 1, 0), inf);
}

TEST(HloElementwise, RealNumbersAreNotRoundedToTheirType) {
  const double third = 1.0 / 3.0;
  const HloArray half =
      result_of({array("f32[1]", {1}), array("f32[1]", {3})}, "d = f32[1] divide(p0, p1)\nb = bf16[1] convert(d)\nROOT r = f32[1] convert(b)");
  EXPECT_EQ(half.reals.at(0), third);
}

TEST(HloElementwise, IntegersWrapAroundAtTheirWidth) {
  EXPECT_EQ(integer("add", "s32", 2147483647, 1), -2147483648LL);
  EXPECT_EQ(integer("multiply", "s32", 65536, 65536), 0);
  EXPECT_EQ(integer("multiply", "s32", 123456789, 987654321), -67153019);  // 121932631112635269 mod 2^32
  EXPECT_EQ(integer("subtract", "u32", 0, 1), 4294967295LL);
  EXPECT_EQ(integer("add", "s8", 100, 100), -56);
  EXPECT_EQ(integer("add", "u4", 9, 9), 2);
  EXPECT_EQ(integer("add", "s4", 7, 1), -8);
  EXPECT_EQ(integer("add", "s64", std::numeric_limits<std::int64_t>::max(), 1), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integer("negate", "s8", -128), -128);
  EXPECT_EQ(integer("abs", "s8", -128), -128);
  EXPECT_EQ(integer("abs", "s32", -5), 5);
  EXPECT_EQ(integer("add", "pred", 1, 1), 1);
}

TEST(HloElementwise, DivisionsThatHaveNoResultHaveXlasOne) {
  EXPECT_EQ(integer("divide", "s32", -7, 2), -3);
  EXPECT_EQ(integer("remainder", "s32", -7, 2), -1);
  EXPECT_EQ(integer("divide", "s32", 7, 0), -1);
  EXPECT_EQ(integer("divide", "u32", 7, 0), 4294967295LL);
  EXPECT_EQ(integer("remainder", "s32", 7, 0), 7);
  EXPECT_EQ(integer("divide", "s32", -2147483648LL, -1), -2147483648LL);
  EXPECT_EQ(integer("remainder", "s32", -2147483648LL, -1), 0);
  EXPECT_EQ(integer("divide", "u64", -1, 2), std::numeric_limits<std::int64_t>::max());  // 2^64-1
  EXPECT_EQ(integer("power", "s32", 3, 5), 243);
  EXPECT_EQ(integer("power", "s32", 3, -1), 0);
  EXPECT_EQ(integer("power", "s32", -1, -3), -1);
}

TEST(HloElementwise, BitsAndShifts) {
  EXPECT_EQ(integer("not", "pred", 1), 0);
  EXPECT_EQ(integer("not", "s32", 5), -6);
  EXPECT_EQ(integer("not", "u8", 5), 250);
  EXPECT_EQ(integer("and", "s32", 12, 10), 8);
  EXPECT_EQ(integer("or", "s32", 12, 10), 14);
  EXPECT_EQ(integer("xor", "s32", 12, 10), 6);
  EXPECT_EQ(integer("popcnt", "s8", -1), 8);
  EXPECT_EQ(integer("count-leading-zeros", "u16", 1), 15);
  EXPECT_EQ(integer("count-leading-zeros", "s32", 0), 32);
  EXPECT_EQ(integer("shift-left", "s32", 1, 31), -2147483648LL);
  EXPECT_EQ(integer("shift-left", "s32", 1, 32), 0);
  EXPECT_EQ(integer("shift-left", "s32", 1, -1), 0);
  EXPECT_EQ(integer("shift-right-logical", "s32", -1, 28), 15);
  EXPECT_EQ(integer("shift-right-logical", "s32", -1, 40), 0);
  EXPECT_EQ(integer("shift-right-arithmetic", "s32", -16, 2), -4);
  EXPECT_EQ(integer("shift-right-arithmetic", "s32", -16, 40), -1);
  EXPECT_EQ(integer("shift-right-arithmetic", "s32", 16, 40), 0);
  EXPECT_EQ(integer("shift-right-arithmetic", "s64", -16, 2), -4);
  EXPECT_EQ(integer("sign", "s32", -9), -1);
  EXPECT_EQ(integer("maximum", "u64", -1, 1), -1);  // 2^64-1
  EXPECT_EQ(integer("maximum", "s64", -1, 1), 1);
}

TEST(HloElementwise, ConvertsTruncateAndSaturate) {
  const auto to = [](const std::string& type, double x) {
    return result_of({array("f32[1]", {x})}, "ROOT r = " + type + "[1] convert(p0)").integers.at(0);
  };
  EXPECT_EQ(to("s32", -2.9), -2);
  EXPECT_EQ(to("s32", 1e20), 2147483647);
  EXPECT_EQ(to("s32", -inf), -2147483648LL);
  EXPECT_EQ(to("s32", nan), 0);
  EXPECT_EQ(to("u8", 300), 255);
  EXPECT_EQ(to("u8", -3), 0);
  EXPECT_EQ(to("s64", 1e30), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(to("s64", -1e30), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(to("u64", 1e30), -1);
  EXPECT_EQ(to("pred", 0.5), 1);
  EXPECT_EQ(result_of({integer_scalar(HloType::s32, 257)}, "ROOT r = u8[] convert(p0)").integers.at(0), 1);
  EXPECT_EQ(result_of({integer_scalar(HloType::s32, -1)}, "ROOT r = u64[] convert(p0)").integers.at(0), -1);
  EXPECT_EQ(result_of({integer_scalar(HloType::u64, -1)}, "ROOT r = f32[] convert(p0)").reals.at(0), 18446744073709551615.0);
  EXPECT_EQ(result_of({integer_scalar(HloType::s32, 256)}, "ROOT r = pred[] convert(p0)").integers.at(0), 1);
}

TEST(HloElementwise, BitcastConvertsKeepTheBits) {
  EXPECT_EQ(result_of({integer_scalar(HloType::s32, -1)}, "ROOT r = u32[] bitcast-convert(p0)").integers.at(0), 4294967295LL);
  EXPECT_EQ(result_of({integer_scalar(HloType::u32, 0x3fc00000)}, "ROOT r = f32[] bitcast-convert(p0)").reals.at(0), 1.5);
  EXPECT_EQ(result_of({real_scalar(HloType::f32, -2.0)}, "ROOT r = u32[] bitcast-convert(p0)").integers.at(0), 0xc0000000LL);
  EXPECT_EQ(result_of({real_scalar(HloType::bf16, 1.0)}, "ROOT r = u16[] bitcast-convert(p0)").integers.at(0), 0x3f80);
  EXPECT_EQ(run_error({integer_scalar(HloType::u32, 1)}, "ROOT r = u16[2] bitcast-convert(p0)"),
            "m:4:1: r: bitcast-convert from u32 to u16 is not interpreted");
}

TEST(HloElementwise, ComparesByDirectionAndSign) {
  const auto compared = [](const HloArray& a, const HloArray& b, const std::string& direction) {
    return result_of({a, b}, fmt::format("ROOT r = pred[{}] compare(p0, p1), direction={}", a.dims[0], direction)).integers;
  };
  const HloArray a = array("s32[3]", {-1, 2, 3}), b = array("s32[3]", {1, 2, 2});
  EXPECT_THAT(compared(a, b, "LT"), ElementsAre(1, 0, 0));
  EXPECT_THAT(compared(a, b, "LE"), ElementsAre(1, 1, 0));
  EXPECT_THAT(compared(a, b, "EQ"), ElementsAre(0, 1, 0));
  EXPECT_THAT(compared(a, b, "NE"), ElementsAre(1, 0, 1));
  EXPECT_THAT(compared(a, b, "GE"), ElementsAre(0, 1, 1));
  EXPECT_THAT(compared(a, b, "GT"), ElementsAre(0, 0, 1));
  EXPECT_THAT(compared(integer_array(HloType::u64, {1}, {-1}), integer_array(HloType::u64, {1}, {1}), "GT"), ElementsAre(1));
  const HloArray x = array("f32[3]", {nan, -0.0, 1}), y = array("f32[3]", {1, 0, nan});
  EXPECT_THAT(compared(x, y, "LT"), ElementsAre(0, 0, 0));
  EXPECT_THAT(compared(x, y, "NE"), ElementsAre(1, 0, 1));
  EXPECT_THAT(compared(x, y, "LT, type=TOTALORDER"), ElementsAre(0, 1, 1));
}

TEST(HloElementwise, SelectClampAndIsFinite) {
  const HloArray a = array("f32[3]", {1, 2, 3}), b = array("f32[3]", {4, 5, 6});
  EXPECT_THAT(result_of({array("pred[3]", {1, 0, 1}), a, b}, "ROOT r = f32[3] select(p0, p1, p2)").reals, ElementsAre(1, 5, 3));
  EXPECT_THAT(result_of({array("pred[]", {0}), a, b}, "ROOT r = f32[3] select(p0, p1, p2)").reals, ElementsAre(4, 5, 6));
  EXPECT_THAT(result_of({array("f32[]", {1.5}), a, array("f32[]", {2.5})}, "ROOT r = f32[3] clamp(p0, p1, p2)").reals, ElementsAre(1.5, 2, 2.5));
  EXPECT_THAT(
      result_of({array("s32[3]", {0, 0, 3}), array("s32[3]", {-1, 1, 2}), array("s32[3]", {0, 0, 9})}, "ROOT r = s32[3] clamp(p0, p1, p2)").integers,
      ElementsAre(0, 0, 3));
  EXPECT_THAT(result_of({array("f32[3]", {1, inf, nan})}, "ROOT r = pred[3] is-finite(p0)").integers, ElementsAre(1, 0, 0));
}

TEST(HloElementwise, ErrorsNameTheInstruction) {
  const HloArray a = array("f32[2]", {1, 2});
  EXPECT_EQ(run_error({a}, "ROOT r = f32[2] real-thing(p0)"), "m:4:1: r: real-thing is not interpreted");
  EXPECT_EQ(run_error({a, array("f32[3]", {1, 2, 3})}, "ROOT r = f32[2] add(p0, p1)"),
            "m:5:1: expected operands of the dimensions of the result, f32[2], got f32[3]");
  EXPECT_EQ(run_error({a}, "ROOT r = f32[2] and(p0, p0)"), "m:4:1: r: and is not interpreted");
  EXPECT_EQ(run_error({a}, "ROOT r = f32[3] negate(p0)"), "m:4:1: expected operands of the dimensions of the result, f32[3], got f32[2]");
  EXPECT_THAT(run_error({}, "c = c64[] constant((1, 2))\nROOT r = c64[] cbrt(c)"), HasSubstr("r: cbrt is not interpreted"));
  EXPECT_THAT(run_error({}, "ROOT r = f32[4] constant({...})"), HasSubstr("r: the value of this constant is not in the text"));
}

TEST(HloElementwise, PerturbationIsOneRoundingUpOrDown) {
  const HloModule module = test::module_of(test::text_with({array("f32[64]", Reals(64, 3))}, "ROOT r = f32[64] multiply(p0, p0)"));
  HloRunOptions options;
  options.arithmetic.perturb_seed = 7;
  const auto run = interpret(module, {{{array("f32[64]", Reals(64, 3))}}}, options);
  ASSERT_TRUE(run);
  int up = 0;
  for (const double value : run->front()[0].reals) {
    EXPECT_EQ(std::fabs(value - 9), 9 * 0x1p-24);
    up += value > 9 ? 1 : 0;
  }
  EXPECT_GT(up, 16);
  EXPECT_LT(up, 48);
  EXPECT_FALSE(options.arithmetic.integral);
}

TEST(HloElementwise, PerturbedResultsBeyondFloat32AreInfiniteButTheMasksAtItsEndAreNot) {
  const std::string body = "n = f32[2] subtract(p0, p0)\nm = f32[2] add(p0, n)\nl = f32[2] multiply(p0, p0)\nROOT r = f32[4] concatenate(m, l), dimensions={0}";
  const HloArray ends = array("f32[2]", {-std::numeric_limits<float>::max(), std::numeric_limits<float>::max()});
  const HloModule module = test::module_of(test::text_with({ends}, body));
  HloRunOptions options;
  options.arithmetic.perturb_seed = 7;
  const auto run = interpret(module, {{{ends}}}, options);
  ASSERT_TRUE(run);
  const std::vector<double>& values = run->front()[0].reals;
  EXPECT_TRUE(std::isfinite(values[0]) && std::isfinite(values[1]));
  EXPECT_TRUE(std::isinf(values[2]) && std::isinf(values[3]));
}

TEST(HloElementwise, PerturbedInfinitiesStayWhatTheyAre) {
  const HloArray masked = array("f32[64]", Reals(64, -std::numeric_limits<double>::infinity()));
  const HloModule module = test::module_of(test::text_with({masked}, "ROOT r = f32[64] add(p0, p0)"));
  HloRunOptions options;
  options.arithmetic.perturb_seed = 7;
  const auto run = interpret(module, {{{masked}}}, options);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->front()[0].reals, masked.reals);
}

TEST(HloElementwise, ExactnessIsCollected) {
  const HloModule module = test::module_of(test::text_with({array("f32[2]", {3, -5})}, "a = f32[2] add(p0, p0)\nROOT r = f32[2] multiply(a, p0)"));
  HloRunOptions options;
  ASSERT_TRUE(interpret(module, {{{array("f32[2]", {3, -5})}}}, options));
  EXPECT_TRUE(options.arithmetic.integral);
  EXPECT_EQ(options.arithmetic.largest_sum, 50);
  ASSERT_TRUE(interpret(module, {{{array("f32[2]", {0.5, -5})}}}, options));
  EXPECT_FALSE(options.arithmetic.integral);
}

TEST(HloElementwise, CoarseTypesRoundWhereItIsAsked) {
  const auto converted = [](const std::string& type, double value) {
    HloRunOptions options;
    options.arithmetic.round_8_bits = true;
    const HloArrays given{array("f32[1]", {value})};
    const auto results = test::run(test::module_of(test::text_with(given, "ROOT r = " + type + "[1] convert(p0)")), {given}, options);
    EXPECT_TRUE(results) << to_text(results.error());
    return results ? results->front().front().reals.front() : 0.0;
  };
  EXPECT_EQ(converted("f8e4m3fn", 1.0625), 1.0);  // a tie, to even
  EXPECT_EQ(converted("f8e4m3fn", 1.07), 1.125);
  EXPECT_EQ(converted("f8e4m3fn", -460), -448);
  EXPECT_TRUE(std::isnan(converted("f8e4m3fn", 500)));
  EXPECT_EQ(converted("f8e4m3fn", 0x1.8p-9), 0x1p-8);  // below the normal numbers: steps of 2^-9
  EXPECT_EQ(converted("f8e5m2", 1.1), 1.0);
  EXPECT_EQ(converted("bf16", 1.07), 1.07);
}

}  // namespace
}  // namespace podsim
