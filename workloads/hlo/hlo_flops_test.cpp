#include "workloads/hlo/hlo_flops.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "workloads/hlo/hlo_transform.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::error_of;
using test::instruction_named;
using test::module_of;
using test::shape_of;

HloProduct product_in(const std::string& left, const std::string& right, const std::string& line) {
  const auto parsed = parse_hlo_line("%p = " + line);
  EXPECT_TRUE(parsed) << to_text(parsed.error());
  const auto product = product_of(parsed->instruction, shape_of(left), shape_of(right), {});
  EXPECT_TRUE(product) << line << ": " << to_text(product.error());
  return product ? *product : HloProduct{};
}
std::string product_error(const std::string& left, const std::string& right, const std::string& line) {
  const auto product = product_of(parse_hlo_line("%p = " + line)->instruction, shape_of(left), shape_of(right), {"m", 2, 3});
  return product ? "" : to_text(product.error());
}

TEST(HloFlops, DotsAreBatchesOfMatrixProducts) {
  EXPECT_EQ(product_in("f32[64,128]", "f32[128,32]", "f32[64,32] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            (HloProduct{1, 64, 32, 128, 524288}));
  EXPECT_EQ(product_in("f32[4,8,32]", "f32[4,32,16]",
                       "f32[4,8,16] dot(%a, %b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"),
            (HloProduct{4, 8, 16, 32, 32768}));
  EXPECT_EQ(product_in("f32[2,3,5]", "f32[3,5,7]", "f32[2,7] dot(%a, %b), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"),
            (HloProduct{1, 2, 7, 15, 420}));
}

// The forms in which TPUs write products with a dimension of heads: one tap of the window is valid per position, not 32.
TEST(HloFlops, WindowsOfHeadsCountValidTapsOnly) {
  EXPECT_EQ(product_in("bf16[128,512,1]", "bf16[512,32,64]",
                       "bf16[128,32,64] convolution(%x, %w), window={size=32 pad=31_31 rhs_reversal=1}, dim_labels=bf0_i0o->b0f"),
            (HloProduct{1, 128 * 32, 64, 512, 2LL * 128 * 32 * 64 * 512}));
  EXPECT_EQ(product_in("bf16[128,32,64]", "bf16[32,64,512]", "bf16[128,512,1] convolution(%x, %w), window={size=32}, dim_labels=b0f_0io->bf0"),
            (HloProduct{1, 128, 512, 32 * 64, 2LL * 128 * 512 * 32 * 64}));
  EXPECT_EQ(product_in("bf16[128,512]", "bf16[512,64]", "bf16[128,64] convolution(%x, %w), dim_labels=bf_io->bf"),
            (HloProduct{1, 128, 64, 512, 2LL * 128 * 64 * 512}));
  EXPECT_EQ(product_in("bf16[128,512]", "bf16[64,512]", "bf16[128,64] convolution(%x, %w), dim_labels=bf_oi->bf").k, 512);
  EXPECT_EQ(product_in("bf16[128,512]", "bf16[128,64]", "bf16[512,64] convolution(%x, %w), dim_labels=fb_io->bf").k, 128);
}

TEST(HloFlops, GroupsOfFeaturesMultiplyApart) {
  // A depthwise convolution: one input feature per group.
  EXPECT_EQ(
      product_in("f32[1,8,16]", "f32[3,1,16]", "f32[1,6,16] convolution(%x, %w), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=16"),
      (HloProduct{16, 6, 1, 3, 2LL * 6 * 16 * 3}));
  EXPECT_EQ(
      product_in("f32[8,8,4]", "f32[3,4,6]", "f32[4,6,6] convolution(%x, %w), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2").flops,
      2LL * 4 * 6 * 6 * 3 * 4);
}

std::int64_t counted_taps(const HloWindowDimension& w, std::int64_t inputs, std::int64_t outputs) {
  std::int64_t pairs = 0;
  for (std::int64_t o = 0; o < outputs; ++o)
    for (std::int64_t t = 0; t < w.size; ++t) {
      const std::int64_t index = o * w.stride + t * w.rhs_dilate - w.pad_low;
      pairs += index >= 0 && index <= (inputs - 1) * w.lhs_dilate && index % w.lhs_dilate == 0 ? 1 : 0;
    }
  return pairs;
}

// 1000 seeded windows by counting every pair of position and tap.
TEST(HloFlops, ValidTapsAreThoseThatAreCounted) {
  Rng random{3};
  for (int round = 0; round < 1000; ++round) {
    const HloWindowDimension window{random.between(0, 24), random.between(1, 6), random.between(-8, 30), 0,
                                    random.between(1, 7),  random.between(1, 6), random.below(2) == 1};
    const std::int64_t inputs = random.between(0, 40), outputs = random.between(0, 40);
    ASSERT_EQ(valid_taps(window, inputs, outputs), counted_taps(window, inputs, outputs))
        << fmt::format("size {} stride {} low {} lhs {} rhs {} inputs {} outputs {}", window.size, window.stride, window.pad_low, window.lhs_dilate,
                       window.rhs_dilate, inputs, outputs);
  }
}

// 1000 seeded convolutions of one and two spatial dimensions: every position, tap, and feature that is multiplied.
TEST(HloFlops, ConvolutionsAreTheirBruteForceCount) {
  Rng random{5};
  for (int round = 0; round < 1000; ++round) {
    const int spatial = random.between(1, 2), batch = random.between(1, 3), in = random.between(1, 4), out = random.between(1, 4);
    std::string sizes, strides, pads, lhs, rhs, input_dims, kernel_dims, output_dims, digits;
    std::int64_t pairs = 1;
    for (int d = 0; d < spatial; ++d) {
      const HloWindowDimension w{random.between(1, 6), random.between(1, 3), random.between(-1, 6),
                                 random.between(0, 4), random.between(1, 3), random.between(1, 3)};
      const std::int64_t inputs = random.between(1, 9), outputs = random.between(1, 9);
      const std::string x = d > 0 ? "x" : "";
      sizes += fmt::format("{}{}", x, w.size);
      strides += fmt::format("{}{}", x, w.stride);
      pads += fmt::format("{}{}_{}", x, w.pad_low, w.pad_high);
      lhs += fmt::format("{}{}", x, w.lhs_dilate);
      rhs += fmt::format("{}{}", x, w.rhs_dilate);
      input_dims += fmt::format(",{}", inputs);
      kernel_dims += fmt::format("{},", w.size);
      output_dims += fmt::format(",{}", outputs);
      digits += std::to_string(d);
      pairs *= counted_taps(w, inputs, outputs);
    }
    const HloProduct product = product_in(
        fmt::format("f32[{}{},{}]", batch, input_dims, in), fmt::format("f32[{}{},{}]", kernel_dims, in, out),
        fmt::format("f32[{}{},{}] convolution(%x, %w), window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}, dim_labels=b{}f_{}io->b{}f",
                    batch, output_dims, out, sizes, strides, pads, lhs, rhs, digits, digits, digits));
    ASSERT_EQ(product.flops, 2 * batch * in * out * pairs) << "round " << round;
    ASSERT_EQ(product.flops, 2 * product.batch * product.m * product.n * product.k) << "round " << round;
  }
}

// Extents that no loop could walk: closed forms by hand.
TEST(HloFlops, ValidTapsOfHugeExtentsAreExact) {
  const std::int64_t n = std::int64_t{1} << 40;
  EXPECT_EQ(valid_taps({.size = 3}, n, n - 2), 3 * (n - 2));
  EXPECT_EQ(valid_taps({.size = 3, .pad_low = 1}, n, n), 3 * n - 2);
  EXPECT_EQ(valid_taps({.size = n, .pad_low = n - 1}, 1, n), n);
  EXPECT_EQ(valid_taps({.size = n}, n, 1), n);
  EXPECT_EQ(valid_taps({.size = 1, .lhs_dilate = 2}, n, 2 * n - 1), n);
  EXPECT_EQ(valid_taps({.size = n, .stride = 3, .lhs_dilate = n - 1}, n, n), std::nullopt);
}

TEST(HloFlops, TransformsCountAsBenchFftDoes) {
  const auto transform = [](const std::string& operand, const std::string& instruction) {
    const HloModule module = module_of("HloModule m\nENTRY e {\n  p = " + operand + " parameter(0)\n  ROOT f = " + instruction + "\n}\n");
    return transform_of(instruction_named(module, "f"));
  };
  EXPECT_EQ(transform("c64[3,64]", "c64[3,64] fft(p), fft_type=FFT, fft_length={64}"), (HloTransform{3, 64, false, 5.0 * 64 * 6 * 3}));
  EXPECT_EQ(transform("c64[3,8,64]", "c64[3,8,64] fft(p), fft_type=IFFT, fft_length={8,64}"), (HloTransform{3, 512, false, 5.0 * 512 * 9 * 3}));
  EXPECT_EQ(transform("f32[3,8,64]", "c64[3,8,33] fft(p), fft_type=RFFT, fft_length={8,64}"), (HloTransform{3, 512, true, 2.5 * 512 * 9 * 3}));
  EXPECT_EQ(transform("c64[3,33]", "f32[3,64] fft(p), fft_type=IRFFT, fft_length={64}"), (HloTransform{3, 64, true, 2.5 * 64 * 6 * 3}));
  EXPECT_EQ(transform("c64[3,1]", "c64[3,1] fft(p), fft_type=FFT, fft_length={1}").flops, 0);
}

TEST(HloFlops, ErrorsSayWhatDoesNotAgree) {
  EXPECT_EQ(product_error("f32[4,8]", "f32[9,2]", "f32[4,2] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "m:2:3: expected contracting and batch dimensions that both operands of the dot have, alike and once, got f32[4,8] and f32[9,2]");
  EXPECT_EQ(product_error("f32[4,8]", "f32[8,2]", "f32[4,3] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "m:2:3: expected a result of 8 elements of this dot, got f32[4,3]");
  EXPECT_EQ(product_error("f32[4,8]", "f32[8,2]", "f32[4,2] dot(%a, %b), lhs_contracting_dims={5}, rhs_contracting_dims={0}"),
            "m:2:3: expected contracting and batch dimensions that both operands of the dot have, alike and once, got f32[4,8] and f32[8,2]");
  EXPECT_EQ(product_error("f32[4,8]", "f32[8,2]", "f32[4,2] convolution(%a, %b)"), "m:2:3: expected dim_labels of a convolution");
  EXPECT_EQ(product_error("f32[4,8]", "f32[9,2]", "f32[4,2] convolution(%a, %b), dim_labels=bf_io->bf"),
            "m:2:3: expected features that agree, got f32[4,8] x f32[9,2] -> f32[4,2]");
}

}  // namespace
}  // namespace podsim
