// What single instructions cost, how far that is known, and that counting and simulating say the same.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/task_costs.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::module_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

/// 100 TFLOP/s of products, 1 TFLOP/s of the vector unit, 1 TB/s.
Machine plain_machine() {
  Machine machine;
  for (auto& peak : machine.chip.peak) peak = FlopsPerSecond{1e14};
  machine.chip.vector_peak = FlopsPerSecond{1e12};
  machine.chip.hbm_bandwidth = BytesPerSecond{1e12};
  return machine;
}

HloTaskCost cost_in(const HloModule& module, std::string_view name) {
  HloTaskCosts costs{module, {}};
  const HloComputation& entry = module.entry_computation();
  for (std::size_t i = 0; i < entry.instructions.size(); ++i)
    if (entry.instructions[i].name == name) {
      const auto cost = costs.of(entry, static_cast<int>(i));
      EXPECT_TRUE(cost) << to_text(cost.error());
      return cost ? *cost : HloTaskCost{};
    }
  ADD_FAILURE() << name;
  return {};
}
HloTaskCost cost_of(const std::string& entry, std::string_view name = "r") { return cost_in(module_of("HloModule m\n" + entry), name); }

double window_operations(const std::string& operand, const std::string& result, const std::string& window) {
  return cost_of("%max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] maximum(a, b) }\n"
                 "ENTRY e { p = " + operand + " parameter(0)\n z = f32[] constant(0)\n ROOT r = " + result + " reduce-window(p, z), window={" + window + "}, to_apply=%max }\n")
      .vector;
}

TEST(HloCost, WindowsOverWholeRowsAreAReduceAndABroadcast) {
  // As XLA writes the maximum of a row at every place of a softmax on v4 and v5p.
  EXPECT_EQ(window_operations("f32[8,100]", "f32[8,100]", "size=1x199 pad=0_0x99_99"), 8 * 100);
  EXPECT_EQ(window_operations("f32[8,100]", "f32[8,1]", "size=1x100"), 8 * 100) << "a reduce";
}

TEST(HloCost, WindowsAreReducedOneDimensionAfterTheOther) {
  EXPECT_EQ(window_operations("f32[16]", "f32[16]", "size=1"), 0);
  EXPECT_EQ(window_operations("f32[16]", "f32[8]", "size=2 stride=2"), 16);
  EXPECT_EQ(window_operations("f32[16]", "f32[16]", "size=2 pad=1_0"), 31) << "the first place has one tap that is not padding";
  EXPECT_EQ(window_operations("f32[1000]", "f32[1000]", "size=1000 pad=999_0"), 3000) << "a cumulative sum, and not n (n + 1) / 2";
  EXPECT_EQ(window_operations("f32[16,16]", "f32[8,8]", "size=2x2 stride=2x2"), 16 * 16 + 8 * 16) << "not 4 taps for each of 64";
}

/// As XLA counts a reduction and a scatter: every operation of the function for each two elements.
TEST(HloCost, AReductionTakesTheOperationsOfItsFunction) {
  const std::string norm = "%norm { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] multiply(a, a)\n d = f32[] multiply(b, b)\n e = f32[] add(c, d)\n ROOT f = f32[] sqrt(e) }\n";
  const std::string largest =
      "%largest { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n g = pred[] compare(a, b), direction=GE\n m = f32[] maximum(a, b)\n k = s32[] select(g, i, j)\n"
      " ROOT t = (f32[], s32[]) tuple(m, k) }\n";
  const std::string sum = "%sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] add(a, b) }\n", second = "%second { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\n";
  const std::string array = "ENTRY e { p = f32[8,100] parameter(0)\n z = f32[] constant(0)\n ", both = "q = s32[8,100] parameter(1)\n y = s32[] constant(0)\n ";
  EXPECT_EQ(cost_of(sum + array + "ROOT r = f32[8] reduce(p, z), dimensions={1}, to_apply=%sum }\n").vector, 8 * 99);
  EXPECT_EQ(cost_of(norm + array + "ROOT r = f32[8] reduce(p, z), dimensions={1}, to_apply=%norm }\n").vector, 4 * 8 * 99);
  EXPECT_EQ(cost_of(largest + array + both + "ROOT r = (f32[8], s32[8]) reduce(p, q, z, y), dimensions={1}, to_apply=%largest }\n").vector, 3 * 8 * 99);
  EXPECT_EQ(cost_of(norm + array + "ROOT r = f32[8,1] reduce-window(p, z), window={size=1x100}, to_apply=%norm }\n").vector, 4 * 8 * 100);
  EXPECT_EQ(cost_of(largest + array + both + "ROOT r = (f32[8,1], s32[8,1]) reduce-window(p, q, z, y), window={size=1x100}, to_apply=%largest }\n").vector, 3 * 8 * 100);
  const std::string rows = "i = s32[5,1] parameter(1)\n u = f32[5,100] parameter(2)\n ROOT r = f32[8,100] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
  EXPECT_EQ(cost_of(sum + array + rows + "%sum }\n").vector, 500);
  EXPECT_EQ(cost_of(second + array + rows + "%second }\n").vector, 0) << "writes over what was there";
}

TEST(HloCost, KernelsCostWhatTheirAuthorStates) {
  const std::string call =
      " a = bf16[64,128] parameter(0)\n b = bf16[128,32]{1,0:S(1)} parameter(1)\n ROOT r = bf16[64,32] custom-call(a, b), custom_call_target=\"tpu_custom_call\", backend_config=";
  const HloTaskCost cost = cost_of("ENTRY e {" + call + R"({"custom_call_config":{"cost_estimate":{"flops":"524288","transcendentals":"2048","bytes_accessed":"28672","remote_bytes_transferred":"0"}}} })");
  EXPECT_EQ(cost.matrix, 524288);
  EXPECT_EQ(cost.vector, 2048);
  EXPECT_EQ(cost.bytes, 28672 - 128 * 32 * 2) << "the second operand is on the chip";
  EXPECT_EQ(cost.evidence, HloEvidence::estimated);
  const HloTaskCost sends = cost_of("ENTRY e {" + call + R"({"custom_call_config":{"cost_estimate":{"flops":"524288","remote_bytes_transferred":"64"}}} })");
  EXPECT_EQ(sends.evidence, HloEvidence::unknown) << "what it sends is not simulated";
}

/// The gradient of a kernel has few batches and a window as large as the image: what is padded is the contraction as a whole, of all taps.
TEST(HloCost, TheGradientOfAKernelIsContractedOverTheWholeImage) {
  const HloTaskCost gradient = cost_of("ENTRY e { x = bf16[16,64,64,128] parameter(0)\n y = bf16[16,64,64,128] parameter(1)\n "
                                       "ROOT r = bf16[3,3,128,128] convolution(x, y), window={size=64x64 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf }");
  EXPECT_EQ(gradient.matrix, 2.0 * 190 * 190 * 16 * 128 * 128) << "of 64 taps at 3 places 190 are in the image";
  EXPECT_EQ(gradient.product, (HloProduct{1, 3 * 3 * 128, 128, 64178, 2LL * 190 * 190 * 16 * 128 * 128})) << "190 x 190 / 9 taps of 16 batches";
}

/// XLA writes products of several contracted dimensions as convolutions with a window as large as the further one.
TEST(HloCost, AProductWrittenAsAConvolutionIsContractedAsAWhole) {
  const HloTaskCost product = cost_of("ENTRY e { x = bf16[64,2,2,100] parameter(0)\n y = bf16[2,100,4096,1] parameter(1)\n "
                                      "ROOT r = bf16[2,64,4096,1] convolution(x, y), window={size=1x2}, dim_labels=b01f_1io0->0bf1 }");
  EXPECT_EQ(product.product, (HloProduct{1, 2 * 64, 4096, 200, 2LL * 2 * 64 * 4096 * 200}));
}

/// n and k of a pass of a convolution of an image of 16 x 32 x 32 x features, and how many passes it has.
struct Pass {
  std::int64_t n = 0, k = 0;
  double passes = 0;
  friend bool operator==(const Pass&, const Pass&) = default;
};
void PrintTo(const Pass& pass, std::ostream* out) { *out << pass.passes << " passes of " << pass.n << " x " << pass.k; }
Pass pass_of_convolution(int features, int kernel_features, int out, int window, int groups = 1, const std::string& lhs_dilate = "") {
  const int size = 32 - window + 1;
  const std::string text = fmt::format("ENTRY e {{ x = bf16[16,{0},{0},{1}] parameter(0)\n w = bf16[{2},{2},{3},{4}] parameter(1)\n ROOT r = bf16[16,{5},{5},{4}] convolution(x, w), "
                                       "window={{size={2}x{2}{7}}}, dim_labels=b01f_01io->b01f, feature_group_count={6} }}",
                                       lhs_dilate.empty() ? 32 : 16, features, window, kernel_features, out, lhs_dilate.empty() ? size : size - 1, groups, lhs_dilate);
  const HloTaskCost cost = cost_of(text);
  if (!cost.product) return {};
  const HloProduct& one = *cost.product;
  return {one.n, one.k, cost.matrix / (2.0 * static_cast<double>(one.m) * static_cast<double>(one.n) * static_cast<double>(one.k))};
}

TEST(HloCost, APassOfAConvolutionContractsTheFeaturesUnderATap) {
  EXPECT_EQ(pass_of_convolution(128, 128, 256, 3), (Pass{256, 128, 9}));
  EXPECT_EQ(pass_of_convolution(64, 64, 64, 3), (Pass{64, 64, 9})) << "two taps of 64 do not lie side by side";
  EXPECT_EQ(pass_of_convolution(64, 64, 64, 1), (Pass{64, 64, 1}));
}

TEST(HloCost, TapsOfFewFeaturesLieSideBySideByRowsOfTheWindow) {
  EXPECT_EQ(pass_of_convolution(3, 3, 64, 7), (Pass{64, 18, 147.0 / 18})) << "the first layer of a ResNet: 7 rows of 21, stored as fast as 8 passes";
  EXPECT_EQ(pass_of_convolution(3, 3, 768, 16), (Pass{768, 48, 16})) << "patches of a vision transformer";
  EXPECT_EQ(pass_of_convolution(40, 40, 128, 5), (Pass{128, 100, 10})) << "5 taps, 3 fit";
  // Of 4 taps that reach into an image with a hole behind each element 2 meet one.
  EXPECT_EQ(pass_of_convolution(40, 40, 128, 14, 1, " lhs_dilate=2x2").k, 94) << "7 that meet in each of 7 rows, in 3 passes of up to 3";
}

TEST(HloCost, OfFewFeaturesStoringTheResultsDecides) {
  EXPECT_EQ(pass_of_convolution(16, 16, 64, 3), (Pass{64, 18, 8})) << "3 rows of 48";
  EXPECT_EQ(pass_of_convolution(16, 16, 512, 3), (Pass{512, 18, 8}));
  EXPECT_EQ(pass_of_convolution(24, 24, 64, 1), (Pass{64, 24, 1})) << "no window: a product";
  EXPECT_EQ(pass_of_convolution(64, 64, 64, 2), (Pass{64, 32, 8})) << "4 taps";
  // Two or three positions of few results side by side.
  EXPECT_EQ(pass_of_convolution(16, 16, 16, 3).n, 24);
  EXPECT_EQ(pass_of_convolution(8, 8, 8, 3), (Pass{24, 9, 8}));
  EXPECT_EQ(pass_of_convolution(4, 4, 4, 3).n, 12);
  EXPECT_EQ(pass_of_convolution(64, 64, 8, 3), (Pass{8, 64, 9})) << "with many to contract the passes decide";
}

TEST(HloCost, GroupsOfFewFeaturesShareAPass) {
  EXPECT_EQ(pass_of_convolution(256, 1, 256, 3, 256), (Pass{128, 1, 2 * 9})) << "depthwise: 128 features, each alone";
  EXPECT_EQ(pass_of_convolution(64, 1, 64, 3, 64), (Pass{64, 1, 9}));
  EXPECT_EQ(pass_of_convolution(256, 8, 256, 3, 32), (Pass{128, 8, 2 * 9})) << "16 groups of 8";
  EXPECT_EQ(pass_of_convolution(400, 200, 400, 3, 2), (Pass{200, 200, 2 * 9}));
}

TEST(HloCost, ProductsOfLibrariesHaveTheDimensionsOfTheirConfiguration) {
  const HloTaskCost gemm = cost_of(
      "ENTRY e { a = bf16[4,64,128] parameter(0)\n b = bf16[4,32,128] parameter(1)\n ROOT r = (bf16[4,64,32], s8[33554432]) custom-call(a, b), custom_call_target=\"__cublas$lt$matmul\", "
      R"(backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["2"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]}}} })");
  EXPECT_EQ(gemm.matrix, 2 * 4 * 64 * 32 * 128);
  EXPECT_EQ(gemm.product, (HloProduct{4, 64, 32, 128, 2 * 4 * 64 * 32 * 128}));
  EXPECT_EQ(gemm.bytes, 2 * 4 * (64 * 128 + 32 * 128 + 64 * 32)) << "without its scratch memory";
  EXPECT_EQ(gemm.evidence, HloEvidence::known);
  const HloTaskCost f8 = cost_of(
      "ENTRY e { a = f8e4m3fn[64,128] parameter(0)\n b = f8e4m3fn[32,128] parameter(1)\n s = f32[] constant(1)\n ROOT r = (bf16[64,32], s8[4]) custom-call(a, b, s, s), "
      R"(custom_call_target="__cublas$lt$matmul$f8", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"]}}} })");
  EXPECT_EQ(f8.matrix, 2 * 64 * 32 * 128);
  EXPECT_EQ(f8.rate.operands, DType::f8e4m3fn);
  // Of a 3x3 window over 8x8 without padding 6x6 places; the gradients multiply the same pairs.
  const std::string parameters = "ENTRY e { x = bf16[2,16,8,8] parameter(0)\n w = bf16[32,16,3,3] parameter(1)\n y = bf16[2,32,6,6] parameter(2)\n ROOT r = ";
  const std::string dims = ", window={size=3x3}, dim_labels=bf01_oi01->bf01 }";
  const double pairs = 2.0 * 2 * 6 * 6 * 9 * 16 * 32;
  EXPECT_EQ(cost_of(parameters + "(bf16[2,32,6,6], u8[0]) custom-call(x, w), custom_call_target=\"__cudnn$convForward\"" + dims).matrix, pairs);
  EXPECT_EQ(cost_of(parameters + "(bf16[2,16,8,8], u8[0]) custom-call(y, w), custom_call_target=\"__cudnn$convBackwardInput\"" + dims).matrix, pairs);
  EXPECT_EQ(cost_of(parameters + "(bf16[32,16,3,3], u8[0]) custom-call(x, y), custom_call_target=\"__cudnn$convBackwardFilter\"" + dims).matrix, pairs);
}

TEST(HloCost, AttentionOfCudnnHasItsMaskAndTheOrderOfItsDimensions) {
  const auto call = [](const std::string& target, const std::string& config) {
    return cost_of("ENTRY e { q = bf16[2,64,8,16] parameter(0)\n k = bf16[2,64,4,16] parameter(1)\n ROOT r = (bf16[2,64,8,16], u8[99]) custom-call(q, k, k), custom_call_target=\"" + target +
                   "\", backend_config={\"cudnn_fmha_backend_config\":{" + config + "}} }");
  };
  const auto flops = [&](const std::string& target, const std::string& config) { return call(target, config).matrix; };
  const double scores = 2.0 * 2 * 8 * 64 * 64;
  EXPECT_TRUE(call("__cudnn$fmhaSoftmax", R"("mask_type":"NO_MASK")").rate.attention) << "chip.attention_efficiency is of it";
  EXPECT_EQ(flops("__cudnn$fmhaSoftmax", R"("mask_type":"NO_MASK")"), scores * 32);
  EXPECT_EQ(flops("__cudnn$fmhaSoftmax", R"("mask_type":"CAUSAL")"), scores * 16);
  EXPECT_EQ(flops("__cudnn$fmhaSoftmaxBackward", R"("mask_type":"PADDING_CAUSAL")"), scores * 40);
  EXPECT_EQ(flops("__cudnn$fmhaSoftmax", R"("bmm1_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"]})"), 2.0 * 2 * 64 * 8 * 4 * 32) << "64 heads of sequences of 8 and 4";
}

TEST(HloCost, AWindowLeavesEachQueryAsManyKeys) {
  const auto flops = [](const std::string& config) {
    return cost_of("ENTRY e { q = bf16[2,64,8,16] parameter(0)\n k = bf16[2,64,4,16] parameter(1)\n ROOT r = (bf16[2,64,8,16], u8[99]) custom-call(q, k, k), custom_call_target=\"__cudnn$fmhaSoftmax\", "
                   "backend_config={\"cudnn_fmha_backend_config\":{\"mask_type\":\"CAUSAL\"," + config + "}} }")
        .matrix;
  };
  EXPECT_EQ(flops(R"("sliding_window_length":0)"), 2.0 * 2 * 8 * 64 * 64 * 32 / 2) << "0: none";
  EXPECT_EQ(flops(R"("sliding_window_length":16)"), 2.0 * 2 * 8 * 64 * 16 * 32);
}

/// Splash attention as libtpu prints it: 8 heads of 4096 queries and keys of 128, in blocks of 128.
HloTaskCost splash(const std::string& phase, const std::string& grid, const std::string& results, const std::string& last_operand = "", const std::string& block = "block_kv") {
  const std::string name = "splash_mha_" + phase + "_no_residuals.1";
  return cost_of("ENTRY e { g = s8" + grid + " parameter(0)\n q = bf16[2,8,4096,128] parameter(1)\n l = s32[4096,128] parameter(2)\n t = s32[8,4096] parameter(3)\n ROOT " + name + " = " + results +
                     " custom-call(g, g, q, q, q" + last_operand + "), custom_call_target=\"tpu_custom_call\", frontend_attributes={kernel_metadata={\n\"xprof_metadata\":\"{\\\"block_q_dkv\\\": 128, \\\"" +
                     block + "\\\": 128, \\\"block_kv_compute\\\": 64}\"\n}} }",
                 name);
}

TEST(HloCost, SplashAttentionCountsTheBlocksOfItsGridAndHalfOfACausalMask) {
  const double pairs = 2.0 * 2 * 8 * 4096 * 4096;
  const std::string out = "bf16[2,8,4096,128]", two = "(" + out + ", " + out + ")", scratch = "f32[128,128]", six = "(" + scratch + ", " + scratch + ", " + scratch + ", " + out + ", " + out + ", " + out + ")";
  EXPECT_EQ(splash("fwd", "[1,32,32]", out).matrix, pairs * 256) << "a mask of which nothing is told";
  EXPECT_EQ(splash("fwd", "[1,32,32]", out, ", l").matrix, pairs * 128) << "a mask computed from positions";
  EXPECT_EQ(splash("fwd", "[1,32,4]", out, ", l").matrix, pairs * 256 / 8) << "4 of 32 blocks of keys";
  EXPECT_EQ(splash("dq", "[1,32,4]", out, ", l", "block_kv_dq").matrix, pairs * 384 / 8);
  EXPECT_EQ(splash("dkv", "[1,4,32]", two, ", t").matrix, pairs * 512 / 8) << "4 of 32 blocks of queries";
  EXPECT_EQ(splash("dkv", "[1,32,32]", two, ", t").matrix, pairs * 256);
  EXPECT_EQ(splash("dkv", "[1,32,32]", six, ", t").matrix, pairs * 320) << "fused: the queries' gradient, too";
  EXPECT_EQ(splash("fwd", "[1,32,32]", out, ", l").evidence, HloEvidence::estimated);
}

TEST(HloCost, KeysWithoutADimensionOfHeadsAreOfOneHead) {
  EXPECT_EQ(cost_of("ENTRY e { q = bf16[2,8,512,64] parameter(0)\n k = bf16[2,512,64] parameter(1)\n ROOT splash_mqa_fwd.1 = bf16[2,8,512,64] custom-call(q, k, k), custom_call_target=\"tpu_custom_call\" }", "splash_mqa_fwd.1").matrix,
            2.0 * 2 * 8 * 512 * 512 * 128);
}

TEST(HloCost, PagedAttentionReadsThePagesOfItsTables) {
  const HloTaskCost paged = cost_of(
      "ENTRY e { n = s32[32] parameter(0)\n t = s32[2048] parameter(1)\n q = f32[32,16,1,128] parameter(2)\n k = bf16[4,4096,32,128] parameter(3)\n"
      " ROOT paged_attention.1 = f32[32,16,1,128] custom-call(n, t, q, k, k), custom_call_target=\"tpu_custom_call\" }",
      "paged_attention.1");
  EXPECT_EQ(paged.matrix, 4.0 * 32 * 16 * (2048 / 32 * 32) * 128) << "2048 keys of each sequence";
  EXPECT_EQ(paged.bytes, 2.0 * 2048 * 32 * 4 * 128 * 2 + 2 * 4 * 32 * 16 * 128) << "half of the pages are in the table";
  EXPECT_EQ(paged.rate.operands, DType::bf16);
  const HloTaskCost ragged = cost_of(
      "ENTRY e { q = bf16[512,16,128] parameter(0)\n k = bf16[4096,16,8,128] parameter(1)\n t = s32[32,64] parameter(2)\n n = s32[33] parameter(3)\n"
      " ROOT ragged_paged_attention.1 = bf16[512,16,128] custom-call(n, t, q, k), custom_call_target=\"tpu_custom_call\" }",
      "ragged_paged_attention.1");
  EXPECT_EQ(ragged.matrix, 4.0 * 512 * 16 * 1024 * 128);
  EXPECT_EQ(ragged.bytes, 2048.0 * 16 * 8 * 128 * 2 + 2 * 2 * 512 * 16 * 128);
}

/// MaxText on two slices: what Megascale sends is an array with its padding, zeros.
TEST(HloCost, CallsOfModulesOfSeveralSlicesAreKnown) {
  const HloTaskCost id = cost_of("ENTRY e { ROOT r = u32[]{:T(128)} custom-call(), custom_call_target=\"SliceId\" }");
  EXPECT_EQ(id.evidence, HloEvidence::known);
  EXPECT_EQ(id.bytes, 0);
  const HloTaskCost crop = cost_of("ENTRY e { a = bf16[2,32]{1,0:T(2,128)(2,1)} parameter(0)\n ROOT r = bf16[2,128]{1,0:T(2,128)(2,1)} custom-call(a), custom_call_target=\"ZeroCrop\", "
                                   "output_to_operand_aliasing={{}: (0, {})} }");
  EXPECT_EQ(crop.evidence, HloEvidence::estimated);
  EXPECT_EQ(crop.vector, 64);
}

TEST(HloCost, KernelsOfTritonAreKnownByTheirNames) {
  const auto kernel = [](const std::string& name, const HloCustomCallCosts& given = {}) {
    const HloModule module = module_of("HloModule m\nENTRY e { q = bf16[2,2048,8,64] parameter(0)\n ROOT r = (bf16[2,2048,8,64], f32[2,8,2048]) custom-call(q, q, q), custom_call_target=\"__gpu$xla.gpu.triton\", "
                                       "api_version=API_VERSION_TYPED_FFI, metadata={op_name=\"jit(f)/jit(mha)/" + name + "/pallas_call\"}, "
                                       "backend_config={debug = false, grid_x = 32 : i32, ir = \"ML\\EFR\", name = \"" + name + "\", num_stages = 2 : i32} }");
    return HloTaskCosts{module, given}.of(module.entry_computation(), 1);
  };
  EXPECT_EQ(kernel("mha_forward")->matrix, 2.0 * 2 * 8 * 2048 * 2048 * 128);
  EXPECT_EQ(kernel("mha_backward")->matrix, 2.0 * 2 * 8 * 2048 * 2048 * 320);
  EXPECT_EQ(kernel("my_softmax")->not_known, "my_softmax");
  EXPECT_EQ(kernel("my_softmax", {{"my_softmax", {5, Bytes{7}}}})->matrix, 5);
  EXPECT_EQ(kernel("my_softmax", {{"my_softmax", {5, Bytes{7}}}, {"__gpu$xla.gpu.triton", {6, Bytes{7}}}})->matrix, 5) << "the name comes before the target";
  EXPECT_EQ(kernel("my_softmax", {{"__gpu$xla.gpu.triton", {6, Bytes{7}}}})->matrix, 6);
}

TEST(HloCost, AKernelWithoutANameIsKnownByTheFunctionAroundIt) {
  const auto name = [](const std::string& op_name) {
    return custom_call_name(module_of("HloModule m\nENTRY e { ROOT r = f32[4] custom-call(), custom_call_target=\"mosaic_gpu_v2\", metadata={op_name=\"" + op_name + "\"} }").entry_computation().instructions.front());
  };
  EXPECT_EQ(name("jit(f)/scale/pallas_call"), "scale");
  EXPECT_EQ(name("jit(f)/pallas_call"), "mosaic_gpu_v2");
  EXPECT_EQ(name("jit(f)/shard_map/pallas_call"), "mosaic_gpu_v2");
}

TEST(HloCost, ProductsOfTransformerEngineFollowFromTheirSizes) {
  const HloTaskCost gemm = cost_of(
      "ENTRY e { a = f8e4m3fn[4,256,512] parameter(0)\n s = f32[1] parameter(1)\n b = f8e4m3fn[512,128] parameter(2)\n"
      " ROOT r = (bf16[4,256,128], bf16[0], u8[1000]) custom-call(a, s, b, s), custom_call_target=\"te_gemm_ffi\" }");
  EXPECT_EQ(gemm.matrix, 2.0 * 1024 * 128 * 512);
  EXPECT_EQ(gemm.product, (HloProduct{1, 1024, 128, 512, 2 * 1024 * 128 * 512}));
  EXPECT_EQ(gemm.rate.operands, DType::f8e4m3fn);
  EXPECT_EQ(gemm.bytes, 1024 * 512 + 512 * 128 + 2 * 4 + 2 * 1024 * 128) << "without its scratch memory";
  const HloTaskCost norm = cost_of("ENTRY e { x = bf16[256,512] parameter(0)\n g = bf16[512] parameter(1)\n ROOT r = (bf16[256,512], f32[256]) custom-call(x, g), custom_call_target=\"te_norm_forward_ffi\" }");
  EXPECT_EQ(norm.vector, 256 * 512);
  EXPECT_EQ(norm.evidence, HloEvidence::estimated);
}

TEST(HloCost, GroupedProductsCountEachRowOnce) {
  EXPECT_EQ(cost_of("ENTRY e { a = bf16[8192,4096] parameter(0)\n b = bf16[8,4096,2048] parameter(1)\n g = s32[8] parameter(2)\n"
                    " ROOT r = bf16[8192,2048] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }")
                .matrix,
            2.0 * 8192 * 4096 * 2048);
  EXPECT_EQ(cost_of("ENTRY e { a = bf16[4096,8192] parameter(0)\n b = bf16[8192,2048] parameter(1)\n g = s32[8] parameter(2)\n"
                    " ROOT r = bf16[8,4096,2048] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1} }")
                .matrix,
            2.0 * 8192 * 4096 * 2048);
  const auto kernel = [](const std::string& name, const std::string& result, const std::string& operands) {
    return cost_of("ENTRY e { a = bf16[8192,4096] parameter(0)\n t = bf16[4096,8192] parameter(1)\n b = bf16[8,4096,2048] parameter(2)\n c = bf16[8192,2048] parameter(3)\n ROOT " + name + " = " + result +
                       " custom-call(" + operands + "), custom_call_target=\"tpu_custom_call\" }",
                   name)
        .matrix;
  };
  EXPECT_EQ(kernel("gmm.1", "bf16[8192,2048]", "a, b"), 2.0 * 8192 * 4096 * 2048);
  EXPECT_EQ(kernel("tgmm.1", "bf16[8,4096,2048]", "t, c"), 2.0 * 8192 * 4096 * 2048);
}

TEST(HloCost, FactorisationsAndSortsAreEstimated) {
  const HloTaskCost panel = cost_of("ENTRY e { a = f32[96,96] parameter(0)\n ROOT r = f32[96,96] custom-call(a), custom_call_target=\"Cholesky\" }");
  EXPECT_EQ(panel.vector, 96 * 96 * 96 / 3);
  EXPECT_EQ(panel.evidence, HloEvidence::lower_bound) << "its columns depend on each other";
  EXPECT_EQ(cost_of("ENTRY e { a = f32[1024,96] parameter(0)\n ROOT r = (f32[1024,96], s32[96]) custom-call(a), custom_call_target=\"LuDecompositionBlock\" }").vector, 1024 * 96 * 96 - 96 * 96 * 96 / 3);
  EXPECT_EQ(cost_of("ENTRY e { a = f32[2,96,96] parameter(0)\n ROOT r = f32[2,96,96] custom-call(a), custom_call_target=\"CompactWyHelper\" }").vector, 2 * 96 * 96 * 96 / 3) << "of reflections: a triangle's inverse";
  const HloTaskCost sort = cost_of("ENTRY e { k = u32[1000] parameter(0)\n v = f32[1000] parameter(1)\n ROOT r = (u32[1000], f32[1000], u8[9]) custom-call(k, v), custom_call_target=\"__cub$DeviceRadixSort\" }");
  EXPECT_EQ(sort.bytes, 4000 + 4 * 2 * 8000) << "a histogram of the keys, and four passes that read and write keys and values";
  EXPECT_EQ(cost_of("ENTRY e { a = f32[64,1024] parameter(0)\n ROOT r = f32[64,1024] sort(a), dimensions={1} }").vector, 64 * 1024 * 10) << "each row by itself";
}

TEST(HloCost, CallsOfGpuLibrariesOfLinearAlgebraAreEstimated) {
  const auto call = [](std::string_view parameters, std::string_view result, std::string_view operands, std::string_view target) {
    return cost_of("ENTRY e { " + std::string{parameters} + "\n ROOT r = " + std::string{result} + " custom-call(" + std::string{operands} + "), custom_call_target=\"" + std::string{target} + "\" }");
  };
  const HloTaskCost solve = call("a = f32[3,256,256] parameter(0)\n b = f32[3,256,8] parameter(1)", "(f32[3,256,8], s8[0])", "a, b", "__cublas$triangularSolve");
  EXPECT_EQ(solve.vector, 3 * 256 * 256 * 8);
  EXPECT_EQ(solve.evidence, HloEvidence::lower_bound);
  EXPECT_EQ(call("a = f32[96,96] parameter(0)", "(f32[96,96], f32[96], f32[95], f32[95], s32[])", "a", "cusolver_sytrd_ffi").vector, 4 * 96 * 96 * 96 / 3);
  const HloTaskCost top = call("a = f32[64,1024] parameter(0)", "(f32[64,8], s32[64,8])", "a", "__gpu$TopK");
  EXPECT_EQ(top.vector, 64 * 1024);
  EXPECT_EQ(top.evidence, HloEvidence::estimated);
  EXPECT_EQ(call("a = s32[256] parameter(0)", "s32[256]", "a", "cu_lu_pivots_to_permutation").vector, 256);
}

TEST(HloCost, FusionsAreAsUnknownAsWhatIsInThem) {
  const HloTaskCost cost = cost_of(
      "%f { x = f32[8] parameter(0)\n y = f32[8] odd(x)\n ROOT z = f32[8] sort(y), dimensions={0} }\n"
      "ENTRY e { x = f32[8] parameter(0)\n ROOT r = f32[8] fusion(x), kind=kLoop, calls=f }");
  EXPECT_EQ(cost.evidence, HloEvidence::unknown);
  EXPECT_EQ(cost.not_known, "odd");
  EXPECT_EQ(cost.vector, 24);
}

constexpr std::string_view branches =
    "HloModule m, is_scheduled=true\n"
    "%once { a = bf16[512,512] parameter(0)\n ROOT d = bf16[512,512] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n"
    "%condition { s = (s32[], bf16[512,64]) parameter(0)\n ROOT l = pred[] constant(true) }\n"
    "%body { s = (s32[], bf16[512,64]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = bf16[512,64] get-tuple-element(s), index=1\n"
    " y = bf16[512,64] negate(x)\n ROOT t = (s32[], bf16[512,64]) tuple(i, y) }\n"
    "%often { b = bf16[512,512] parameter(0)\n z = s32[] constant(0)\n x = bf16[512,64] slice(b), slice={[0:512], [0:64]}\n t = (s32[], bf16[512,64]) tuple(z, x)\n"
    " w = (s32[], bf16[512,64]) while(t), condition=condition, body=body, backend_config={\"known_trip_count\":{\"n\":\"100\"}}\n ROOT r = bf16[512,512] copy(b) }\n"
    "ENTRY e { p = s32[] parameter(0)\n a = bf16[512,512] parameter(1)\n ROOT c = bf16[512,512] conditional(p, a, a), branch_computations={once, often} }\n";

TEST(HloCost, CountingAndSimulatingTakeTheBranchThatIsLongestOnTheMachine) {
  const HloModule module = module_of(std::string{branches});
  const Mesh mesh = *Mesh::make({{"x", 1}});
  Machine slow_memory = plain_machine(), slow_units = plain_machine();
  slow_units.chip.peak.fill(FlopsPerSecond{1e11});
  for (const auto& [machine, longest] : {std::pair{&slow_memory, 1}, {&slow_units, 0}}) {
    const auto summary = summary_of(module, *machine);
    ASSERT_TRUE(summary);
    ASSERT_THAT(summary->branches, SizeIs(1));
    EXPECT_EQ(summary->branches[0].branch, longest);
    HloScheduleOptions options;
    options.machine = machine;
    const auto schedule = hlo_schedule(module, mesh, options);
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    EXPECT_THAT(schedule->notes, ElementsAre(fmt::format("c: branch {} of 2, the longest", longest)));
  }
}

TEST(HloCost, CountingFindsTheReduceScattersInWaitingThatSimulatingFinds) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true, num_partitions=4\n%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
      "ENTRY e { p = f32[64,8] parameter(0)\n id = u32[] partition-id()\n rows = u32[] constant(16)\n at = u32[] multiply(id, rows)\n zero = u32[] constant(0)\n"
      " a = f32[64,8] all-reduce(p), replica_groups=[1,4]<=[4], to_apply=add, channel_id=1, use_global_device_ids=true\n"
      " o = f32[64,8] all-reduce(p), replica_groups=[1,4]<=[4], to_apply=add, channel_id=2, use_global_device_ids=true\n"
      " d = f32[16,8] dynamic-slice(a, at, zero), dynamic_slice_sizes={16,8}\n f = f32[16,8] dynamic-slice(o, zero, zero), dynamic_slice_sizes={16,8}\n ROOT n = f32[16,8] add(d, f) }\n");
  const auto summary = summary_of(module, plain_machine());
  ASSERT_TRUE(summary);
  ASSERT_THAT(summary->waiting, SizeIs(1));
  EXPECT_EQ(module.entry_computation().instructions[static_cast<std::size_t>(summary->waiting[0].instruction)].name, "a") << "of o all devices take the same block";
  const auto schedule = hlo_schedule(module, *Mesh::make({{"x", 4}}));
  ASSERT_TRUE(schedule) << to_text(schedule.error());
  EXPECT_THAT(schedule->notes, ElementsAre(::testing::HasSubstr("of 1 all-reduces only the own block is used, of a first")));
}

/// "all-reduce wait", or "w trip 2".
std::string text_of(const HloTask& task) {
  constexpr std::array<const char*, 5> roles{"", " operand", " place", " wait", " trip"};
  const std::string name = task.instruction == nullptr ? "none" : task.instruction->name;
  return name + roles[static_cast<std::size_t>(task.role)] + (task.trip < 0 ? "" : fmt::format(" {}", task.trip));
}
std::vector<std::string> texts_of(const std::vector<HloTask>& tasks) {
  std::vector<std::string> texts;
  std::ranges::transform(tasks, std::back_inserter(texts), text_of);
  return texts;
}

TEST(HloSchedule, TasksSayWhatTheyStandForWhateverTheirInstructionsAreCalled) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true, num_partitions=4\n%condition { s = (f32[8]) parameter(0)\n ROOT l = pred[] constant(true) }\n"
      "%body { s = (f32[8]) parameter(0)\n x = f32[8] get-tuple-element(s), index=0\n place = f32[8] sort(x), dimensions={0}\n ROOT t = (f32[8]) tuple(place) }\n"
      "%inner { i = f32[8] parameter(0)\n ROOT n = f32[8] negate(i) }\n"
      "ENTRY e { p = f32[8] parameter(0)\n for = f32[32] all-gather(p), replica_groups={}, dimensions={0}\n"
      " n.start = ((f32[8]), f32[8], u32[]) async-start(p), calls=%inner\n n.done = f32[8] async-done(n.start)\n t0 = (f32[8]) tuple(n.done)\n"
      " w = (f32[8]) while(t0), condition=%condition, body=%body, backend_config={\"known_trip_count\":{\"n\":\"2\"}}\n"
      " y = f32[8] get-tuple-element(w), index=0\n ROOT r = (f32[32], f32[8]) tuple(for, y) }\n");
  const auto made = hlo_schedule(module, *Mesh::make({{"x", 4}}));
  ASSERT_TRUE(made) << to_text(made.error());
  ASSERT_EQ(made->tasks.program.size(), made->schedule.programs.front().tasks.size());
  EXPECT_THAT(texts_of(made->tasks.program), ElementsAre("for", "for wait", "n.start", "n.done wait", "w trip 0", "w trip 1"));
  ASSERT_THAT(made->tasks.functions, SizeIs(1));
  EXPECT_THAT(texts_of(made->tasks.functions.front()), ElementsAre("place"));
  EXPECT_EQ(made->schedule.programs.front().tasks[2].label, "n.start") << "its only work, as in profiles";
}

TEST(HloCost, CoverageCountsExecutions) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true\n"
      "%condition { s = (f32[1000]) parameter(0)\n ROOT l = pred[] constant(true) }\n"
      "%body { s = (f32[1000]) parameter(0)\n x = f32[1000] get-tuple-element(s), index=0\n"
      " y = f32[1000] custom-call(x), custom_call_target=\"pfft3d\"\n z = f32[1000] sort(y), dimensions={0}\n ROOT t = (f32[1000]) tuple(z) }\n"
      "ENTRY e { p = f32[1000] parameter(0)\n n = f32[1000] negate(p)\n t = (f32[1000]) tuple(n)\n"
      " w = (f32[1000]) while(t), condition=condition, body=body, backend_config={\"known_trip_count\":{\"n\":\"7\"}}\n x = f32[1000] get-tuple-element(w), index=0\n ROOT r = f32[1000] odd(x) }\n");
  const HloTrust trust = trust_of(module, plain_machine());
  const HloCoverage& coverage = trust.coverage;
  EXPECT_EQ(coverage.known.instructions, 1);
  EXPECT_EQ(coverage.known.bytes, 8000);
  EXPECT_DOUBLE_EQ(coverage.known.time.count(), 8000 / 1e12);
  EXPECT_EQ(coverage.estimated.instructions, 7);
  EXPECT_DOUBLE_EQ(coverage.estimated.time.count(), 7 * 10000 / 1e12);
  EXPECT_EQ(coverage.unknown.instructions, 8);
  EXPECT_EQ(coverage.unknown.bytes, 8 * 8000);
  EXPECT_THAT(coverage.unknown_names, ElementsAre(Pair("odd", 1), Pair("pfft3d", 7)));
  EXPECT_EQ(why_at_least(coverage), "8 of 16 instructions, unknown: pfft3d x 7, odd");
  HloCountOptions given;
  given.custom_calls = {{"pfft3d", {1000, std::nullopt}}};
  EXPECT_EQ(why_at_least(trust_of(module, plain_machine(), given).coverage), "1 of 16 instructions, unknown: odd");
}

/// A column waits for the one before it, so that no unit reaches its rate: times are lower bounds, but where the machine knows what a pivot takes.
TEST(HloCost, FactorisationsAreLowerBoundsButWherePivotsAreKnown) {
  const auto trust = [](const std::string& call, const Machine& machine) {
    return trust_of(module_of("HloModule m, is_scheduled=true\nENTRY e { a = f32[8,96,96] parameter(0)\n b = f32[8,96,4] parameter(1)\n u = f32[8,96,96] custom-call(a), custom_call_target=\"odd\"\n ROOT r = " + call + " }\n"), machine).coverage;
  };
  Machine gpu = plain_machine();
  const std::string lu = "(f32[8,96,96], s32[8,96], s32[8]) custom-call(a), custom_call_target=\"cusolver_getrf_ffi\"";
  EXPECT_EQ(why_at_least(trust(lu, gpu)), "1 of 2 instructions, unknown: odd; 1, a lower bound: cusolver_getrf_ffi");
  gpu.chip.pivot_latency = Seconds{2e-6};
  const HloCoverage known = trust(lu, gpu);
  EXPECT_EQ(why_at_least(known), "1 of 2 instructions, unknown: odd");
  EXPECT_GE(known.estimated.time.count(), 96 * 2e-6) << "all matrices side by side";
  EXPECT_LT(known.estimated.time.count(), 96 * 3e-6);
  for (const auto& [call, name] : std::vector<std::pair<std::string, std::string>>{
           {"(f32[8,96,96], f32[8,96], s32[8]) custom-call(a), custom_call_target=\"cusolver_syevd_ffi\"", "cusolver_syevd_ffi"},
           {"f32[8,96,96] cholesky(a), lower=true", "cholesky"},
           {"f32[8,96,4] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE", "triangular-solve"}})
    EXPECT_EQ(why_at_least(trust(call, gpu)), "1 of 2 instructions, unknown: odd; 1, a lower bound: " + name);
}

TEST(HloCost, WhatTheCompilerEstimatesOtherwiseIsNamed) {
  Machine v5e = plain_machine();
  for (auto& peak : v5e.chip.peak) peak = FlopsPerSecond{1.97e14};
  v5e.chip.cycle = Seconds{1 / 1.503e9};
  const auto others = [&](const std::string& cycles, const Machine& machine) {
    return trust_of(module_of("HloModule m, is_scheduled=true\nENTRY e { a = bf16[4096,4096] parameter(0)\n ROOT d = bf16[4096,4096] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                              "backend_config={\"window_config\":{\"estimated_cycles\":\"" + cycles + "\"}} }\n"),
                    machine)
        .other_estimates;
  };
  EXPECT_THAT(others("1083000", v5e), IsEmpty()) << "4096^3 of 126,898 FLOPs a cycle";
  const auto far = others("10830000", v5e);
  ASSERT_THAT(far, SizeIs(1));
  EXPECT_EQ(far[0].first, "d");
  EXPECT_NEAR(far[0].second.compiler.count(), 10830000 / 1.503e9, 1e-5);
  EXPECT_THAT(others("10830000", plain_machine()), IsEmpty()) << "a machine whose clock is not known";
}

}  // namespace
}  // namespace podsim
