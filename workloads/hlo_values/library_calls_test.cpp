// Calls of libraries, complex numbers, and memory as it is tiled: by their definition, computed plainly. Modules of compilers are in jax_numbers_test.cpp.
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "workloads/hlo_values/memory_places.hpp"
#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::array;
using test::counted;
using test::result_of;
using test::results_of;
using test::run_error;

using Complex = std::complex<double>;

HloArray complex_array(const std::string& shape, const std::vector<Complex>& values) {
  HloArray made = zeros(HloType::c64, test::shape_of(shape).dims);
  for (std::size_t i = 0; i < values.size(); ++i) made.reals[i] = values[i].real(), made.imaginaries[i] = values[i].imag();
  return made;
}
Complex at(const HloArray& made, std::size_t i) { return {made.reals[i], made.imaginaries[i]}; }

/// sum over j of x[j] w^(jk), by its definition.
std::vector<Complex> transformed(const std::vector<Complex>& x, double sign) {
  std::vector<Complex> y;
  for (std::size_t k = 0; k < x.size(); ++k) {
    Complex sum;
    for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(j * k) / static_cast<double>(x.size()));
    y.push_back(sum);
  }
  return y;
}

TEST(HloTransforms, AreThoseOfTheirDefinition) {
  for (const std::size_t n : {1U, 2U, 5U, 6U, 8U}) {
    SCOPED_TRACE(n);
    std::vector<Complex> x;
    for (std::size_t i = 0; i < n; ++i) x.emplace_back(std::cos(3.0 * static_cast<double>(i)), static_cast<double>(i) - 2.5);
    const std::string shape = fmt::format("c64[{}]", n), length = fmt::format("fft_length={{{}}}", n);
    const HloArray given = complex_array(shape, x), forward = result_of({given}, "ROOT r = " + shape + " fft(p0), fft_type=FFT, " + length),
                   backward = result_of({given}, "ROOT r = " + shape + " fft(p0), fft_type=IFFT, " + length);
    const auto wanted = transformed(x, -1), inverse = transformed(x, 1);
    for (std::size_t k = 0; k < n; ++k) {
      EXPECT_LT(std::abs(at(forward, k) - wanted[k]), 1e-12);
      EXPECT_LT(std::abs(at(backward, k) - inverse[k] / static_cast<double>(n)), 1e-12);
    }
    // Real numbers there and back, through the half that is kept.
    HloArray real = zeros(HloType::f32, {static_cast<std::int64_t>(n)});
    std::vector<Complex> as_complex;
    for (std::size_t i = 0; i < n; ++i) real.reals[i] = x[i].real(), as_complex.emplace_back(real.reals[i]);
    const std::string half = fmt::format("c64[{}]", n / 2 + 1);
    const HloArrays both = results_of({real}, fmt::format("h = {0} fft(p0), fft_type=RFFT, {2}\nb = f32[{1}] fft(h), fft_type=IRFFT, {2}\nROOT t = ({0}, f32[{1}]) tuple(h, b)", half, n, length));
    const auto spectrum = transformed(as_complex, -1);
    for (std::size_t k = 0; k < n / 2 + 1; ++k) EXPECT_LT(std::abs(at(both.at(0), k) - spectrum[k]), 1e-12);
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(both.at(1).reals[i], real.reals[i], 1e-12);
  }
}

TEST(HloTransforms, OfTwoDimensionsAreOneAfterTheOther) {
  const HloArray given = counted("f32[3,4,6]");
  const HloArray back = result_of({given}, "h = c64[3,4,4] fft(p0), fft_type=RFFT, fft_length={4,6}\nROOT b = f32[3,4,6] fft(h), fft_type=IRFFT, fft_length={4,6}");
  for (std::size_t i = 0; i < given.reals.size(); ++i) EXPECT_NEAR(back.reals[i], given.reals[i], 1e-12);
  const HloArrays made = results_of({given},
                                    "a = c64[3,4,6] convert(p0)\nb = c64[3,4,6] fft(a), fft_type=FFT, fft_length={4,6}\nc = c64[3,4,6] fft(a), fft_type=FFT, fft_length={6}\n"
                                    "d = c64[3,6,4] transpose(c), dimensions={0,2,1}\ne = c64[3,6,4] fft(d), fft_type=FFT, fft_length={4}\nf = c64[3,4,6] transpose(e), dimensions={0,2,1}\n"
                                    "ROOT t = (c64[3,4,6], c64[3,4,6]) tuple(b, f)");
  for (std::size_t i = 0; i < given.reals.size(); ++i) EXPECT_LT(std::abs(at(made.at(0), i) - at(made.at(1), i)), 1e-10);
  EXPECT_THAT(run_error({given}, "ROOT r = c64[3,4,6] fft(p0), fft_type=RFFT, fft_length={6}"), HasSubstr("expected a result of [3,4,4], got c64[3,4,6]"));
  EXPECT_THAT(run_error({given}, "ROOT r = f32[3,4,6] fft(p0), fft_type=FFT, fft_length={6}"), HasSubstr("expected FFT from complex to complex numbers, got f32[3,4,6] and f32[3,4,6]"));
}

TEST(HloComplex, ArithmeticIsThatOfComplexNumbers) {
  const std::vector<Complex> a{{1, 2}, {-3, 0.5}, {0, 0}, {0, -1}}, b{{2, -1}, {0.25, 4}, {1, 1}, {-2, 0}};
  const HloArrays given{complex_array("c64[4]", a), complex_array("c64[4]", b)};
  const auto expect = [&](const std::string& operation, auto wanted) {
    SCOPED_TRACE(operation);
    const HloArray made = result_of(given, "ROOT r = c64[4] " + operation);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_LT(std::abs(at(made, i) - wanted(a[i], b[i])), 1e-12) << i;
  };
  expect("add(p0, p1)", [](Complex x, Complex y) { return x + y; });
  expect("subtract(p0, p1)", [](Complex x, Complex y) { return x - y; });
  expect("multiply(p0, p1)", [](Complex x, Complex y) { return x * y; });
  expect("divide(p0, p1)", [](Complex x, Complex y) { return x / y; });
  expect("negate(p0)", [](Complex x, Complex) { return -x; });
  expect("exponential(p0)", [](Complex x, Complex) { return std::exp(x); });
  expect("exponential-minus-one(p0)", [](Complex x, Complex) { return std::exp(x) - 1.0; });
  expect("sqrt(p0)", [](Complex x, Complex) { return std::sqrt(x); });
  EXPECT_THAT(result_of(given, "ROOT r = f32[4] real(p0)").reals, ElementsAre(1, -3, 0, 0));
  EXPECT_THAT(result_of(given, "ROOT r = f32[4] imag(p0)").reals, ElementsAre(2, 0.5, 0, -1));
  EXPECT_THAT(result_of(given, "ROOT r = f32[4] abs(p1)").reals, ElementsAre(std::abs(b[0]), std::abs(b[1]), std::abs(b[2]), 2));
  EXPECT_THAT(result_of(given, "ROOT r = pred[4] compare(p0, p0), direction=EQ").integers, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(result_of(given, "x = f32[4] real(p0)\ny = f32[4] imag(p0)\nROOT r = c64[4] complex(x, y)"), given[0]);
}

TEST(HloComplex, ProductsAndMovesKeepBothParts) {
  const HloArray x = complex_array("c64[2,2]", {{1, 1}, {2, 0}, {0, 3}, {-1, 2}});
  const HloArray product = result_of({x, x}, "ROOT r = c64[2,2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  const std::vector<Complex> wanted{{0, 8}, {0, 6}, {-9, 0}, {-3, 2}};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(at(product, i), wanted[i]);
  const HloArray padded = result_of({x}, "z = c64[] constant((7, -7))\nt = c64[2,2] transpose(p0), dimensions={1,0}\nROOT r = c64[2,3] pad(t, z), padding=0_0x1_0");
  EXPECT_THAT(padded.reals, ElementsAre(7, 1, 0, 7, 2, -1));
  EXPECT_THAT(padded.imaginaries, ElementsAre(-7, 1, 3, -7, 0, 2));
  const HloArray sum = result_of({x}, "z = c64[] constant((0, 0))\nROOT r = c64[2] reduce(p0, z), dimensions={0}, to_apply=sum",
                                 "sum { a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT s = c64[] add(a, b) }\n");
  EXPECT_THAT(sum.reals, ElementsAre(1, 1));
  EXPECT_THAT(sum.imaginaries, ElementsAre(4, 2));
}

TEST(HloMemoryPlaces, AreThoseOfTheDocumentOnTiles) {
  const auto places = [](const std::string& shape) {
    const auto found = memory_places(test::shape_of(shape), 1 << 20);
    EXPECT_TRUE(found) << shape;
    return found ? *found : MemoryPlaces{};
  };
  // docs/tiled_layout.md: F32[3,5] with tiles of 2x2 takes 4 * 6 places; element (2, 3) stands in tile 1 of row 1 at (0, 1), behind 3 + 1 tiles.
  const MemoryPlaces small = places("f32[3,5]{1,0:T(2,2)}");
  EXPECT_EQ(small.size, 24);
  EXPECT_EQ(small.of[2 * 5 + 3], 17);
  // The last dimension of the layout is the minor one: rows and columns change places.
  EXPECT_EQ(places("f32[3,5]{0,1:T(2,2)}").of[2 * 5 + 3], (1 * 2 + 1) * 4 + 1 * 2 + 0);
  // Three dimensions, the first one minor: 3 times 3 tiles over the other two.
  const MemoryPlaces turned = places("f32[2,3,5]{0,2,1:T(2,2)}");
  EXPECT_EQ(turned.size, 36);
  EXPECT_EQ(turned.of[1 * 15 + 2 * 5 + 3], (2 * 3 + 1) * 4 + 1 * 2 + 1);
  // Two rows of bf16 lie side by side within a tile.
  const MemoryPlaces packed = places("bf16[8,128]{1,0:T(8,128)(2,1)}");
  EXPECT_EQ(packed.of[0 * 128 + 1], 2);
  EXPECT_EQ(packed.of[1 * 128 + 0], 1);
  EXPECT_EQ(packed.of[2 * 128 + 0], 256);
  // A dimension that is combined with the next one counts through both.
  const MemoryPlaces combined = places("f32[2,3,5]{2,1,0:T(2,*,128)}");
  EXPECT_EQ(combined.size, 2 * 128);
  EXPECT_EQ(combined.of[1 * 15 + 2 * 5 + 4], 128 + 14);
  EXPECT_EQ(places("f32[]{:T(128)}").size, 128);
  EXPECT_FALSE(memory_places(test::shape_of("f32[1024,1024]"), 1024));
}

TEST(HloBitcast, TakesElementsFromTheirTiles) {
  const HloArray x = counted("f32[16,256]");
  // Row i, tile j of 128 columns is row i of block j: what a reshape is not.
  const HloArray blocks = result_of({x}, "c = f32[16,256]{1,0:T(8,128)} copy(p0)\nROOT r = f32[2,2,8,128]{3,2,1,0:T(8,128)} bitcast(c)");
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t j = 0; j < 2; ++j)
      for (std::size_t s = 0; s < 8; ++s) EXPECT_EQ(blocks.reals[((t * 2 + j) * 8 + s) * 128 + 5], x.reals[(t * 8 + s) * 256 + j * 128 + 5]);
  EXPECT_EQ(result_of({x}, "c = f32[16,256]{1,0:T(8,128)} copy(p0)\nb = f32[2,2,8,128]{3,2,1,0:T(8,128)} bitcast(c)\nROOT r = f32[16,256]{1,0:T(8,128)} bitcast(b)"), x);
  // Rows that are padded to a tile: a reshape would not find them.
  const HloArray rows = counted("f32[2,3,128]");
  const HloArray padded = result_of({rows}, "c = f32[2,3,128]{2,1,0:T(8,128)} copy(p0)\nROOT r = f32[16,128]{1,0:T(8,128)} bitcast(c)");
  EXPECT_EQ(padded.reals[8 * 128], rows.reals[3 * 128]);
  EXPECT_TRUE(std::isnan(padded.reals[3 * 128])) << "nothing was written there";
}

TEST(HloLibraryCalls, TopKTakesTheFirstOfEqualsAndNaN) {
  const double nan = std::nan("");
  const HloArrays made = results_of({array("f32[2,5]", {1, 4, 2, 4, 3, -1, nan, 0, 7, -2})}, "ROOT r = (f32[2,3], s32[2,3]) custom-call(p0), custom_call_target=\"TopK\"");
  EXPECT_THAT(made.at(1).integers, ElementsAre(1, 3, 4, 1, 3, 2));
  EXPECT_THAT(std::vector<double>(made.at(0).reals.begin(), made.at(0).reals.begin() + 3), ElementsAre(4, 4, 3));
  EXPECT_THAT(run_error({counted("f32[2,5]")}, "ROOT r = (f32[2,7], s32[2,7]) custom-call(p0), custom_call_target=\"TopK\""), HasSubstr("m:4:1: expected the largest of each row of f32[2,5]"));
}

TEST(HloLibraryCalls, HalvesOf64BitsComeTogetherAgain) {
  const HloArray x = array("s64[2]", {-5, 4294967297.0});
  EXPECT_EQ(result_of({x}, "l = u32[2] custom-call(p0), custom_call_target=\"X64SplitLow\"\nh = u32[2] custom-call(p0), custom_call_target=\"X64SplitHigh\"\n"
                           "ROOT r = s64[2] custom-call(l, h), custom_call_target=\"X64Combine\""),
            x);
}

TEST(HloLibraryCalls, CudnnScalesAddsAndActivates) {
  const HloArray x = counted("f32[1,2,2,1]"), w = array("f32[1,1,1,2]", {1, -1}), bias = array("f32[2]", {-3, 0}), side = array("f32[1,2,2,2]", {1, 1, 1, 1, 1, 1, 1, 1});
  const auto call = [](const std::string& operands, const std::string& config) {
    return "r = (f32[1,2,2,2], u8[0]) custom-call(" + operands + "), window={size=1x1}, dim_labels=b01f_01io->b01f, custom_call_target=\"__cudnn$convBiasActivationForward\", backend_config=" + config +
           "\nROOT y = f32[1,2,2,2] get-tuple-element(r), index=0";
  };
  EXPECT_THAT(result_of({x, w, bias}, call("p0, p1, p2", R"({"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":2,"side_input_scale":0}})")).reals, ElementsAre(0, 0, 1, 0, 3, 0, 5, 0));
  EXPECT_THAT(result_of({x, w, bias, side}, call("p0, p1, p2, p3", R"({"cudnn_conv_backend_config":{"activation_mode":"kNone","conv_result_scale":1,"side_input_scale":0.5}})")).reals,
              ElementsAre(-1.5, -0.5, -0.5, -1.5, 0.5, -2.5, 1.5, -3.5));
  EXPECT_THAT(run_error({x, w, bias}, call("p0, p1, p2", R"({"cudnn_conv_backend_config":{"activation_mode":"kSwish"}})")), HasSubstr("r: the activation \"kSwish\" is not interpreted"));
}

TEST(HloLibraryCalls, CublasScalesAndAddsToItsThirdOperand) {
  const HloArray x = array("f32[1,2]", {1, 2}), w = array("f32[2,1]", {3, -4}), side = array("f32[1,1]", {10});
  const auto call = [](const std::string& operands, const std::string& config) {
    return "r = (f32[1,1], s8[8]) custom-call(" + operands +
           R"(), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]},)" + config +
           "}}\nROOT y = f32[1,1] get-tuple-element(r), index=0";
  };
  EXPECT_EQ(result_of({x, w}, call("p0, p1", R"("alpha_real":1,"alpha_imag":0,"beta":0,"epilogue":"DEFAULT")")), array("f32[1,1]", {-5}));
  EXPECT_EQ(result_of({x, w, side}, call("p0, p1, p2", R"("alpha_real":2,"alpha_imag":0,"beta":0.5,"epilogue":"DEFAULT")")), array("f32[1,1]", {-5}));
  EXPECT_THAT(run_error({x, w}, call("p0, p1", R"("alpha_real":1,"beta":0,"epilogue":"GELU_AUX")")), HasSubstr("r: a product of this library with the epilogue \"GELU_AUX\" is not interpreted"));
}

TEST(HloSelectAndScatter, GivesEachElementToTheOneThatItsWindowSelects) {
  const std::string functions =
      "ge { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE }\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n";
  // Windows side by side; of equal elements the first one is selected.
  const HloArray x = array("f32[4,4]", {7, 2, 5, 3, 3, 8, 9, 3, 1, 5, 7, 5, 0, 6, 2, 7}), source = array("f32[2,2]", {2, 6, 3, 1}), zero = array("f32[]", {0});
  EXPECT_EQ(result_of({x, source, zero}, "ROOT r = f32[4,4] select-and-scatter(p0, p1, p2), window={size=2x2 stride=2x2}, select=ge, scatter=sum", functions),
            array("f32[4,4]", {0, 0, 0, 0, 0, 2, 6, 0, 0, 0, 1, 0, 0, 3, 0, 0}));
  // Windows that overlap add up; what is padded is not selected.
  EXPECT_EQ(result_of({array("f32[3]", {1, 5, 2}), array("f32[4]", {10, 20, 30, 40}), zero}, "ROOT r = f32[3] select-and-scatter(p0, p1, p2), window={size=2 pad=1_1}, select=ge, scatter=sum", functions),
            array("f32[3]", {10, 50, 40}));
}

TEST(HloMixedWidths, ResultsHaveTheTypeOfTheirShape) {
  const HloArray x = array("bf16[2]", {4, 9});
  EXPECT_EQ(result_of({x}, "ROOT r = f32[2] sqrt(p0)"), array("f32[2]", {2, 3}));
  EXPECT_EQ(result_of({x}, "ROOT r = f32[2,2] broadcast(p0), dimensions={1}"), array("f32[2,2]", {4, 9, 4, 9}));
  EXPECT_EQ(result_of({x, array("f32[2]", {1, 2})}, "ROOT r = f32[2] add(p0, p1)"), array("f32[2]", {5, 11}));
  EXPECT_EQ(result_of({array("f32[2]", {1, 2})}, "ROOT r = bf16[2] copy(p0)"), array("bf16[2]", {1, 2}));
  EXPECT_EQ(result_of({x}, "ROOT r = f32[1] slice(p0), slice={[1:2]}"), array("f32[1]", {9}));
}

}  // namespace
}  // namespace podsim
