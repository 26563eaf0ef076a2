// Control flow, bounds, and whole modules on several devices.
#include "workloads/hlo_values/interpret.hpp"

#include <atomic>

#include <cmath>

#include <gmock/gmock.h>

#include "sim/base/rng.hpp"
#include "sim/base/test_files.hpp"
#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

using test::array;
using test::counted;
using test::instruction_named;
using test::module_of;
using test::Reals;
using test::result_of;
using test::run_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A matrix product whose left operand, sharded by rows, goes around the ring while each block is multiplied: C = A @ B on every device's columns of
// B.
constexpr std::string_view ring_matmul = R"(HloModule ring, is_scheduled=true, num_partitions=4

body {
  t = (s32[], f32[2,3], f32[3,2], f32[8,2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[2,3] get-tuple-element(t), index=1
  b = f32[3,2] get-tuple-element(t), index=2
  c = f32[8,2] get-tuple-element(t), index=3
  start = (f32[2,3], f32[2,3], u32[], u32[]) collective-permute-start(a), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  d = f32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  id = u32[] partition-id()
  me = s32[] convert(id)
  distance = s32[] subtract(me, i)
  four = s32[] constant(4)
  sum = s32[] add(distance, four)
  owner = s32[] remainder(sum, four)
  two = s32[] constant(2)
  row = s32[] multiply(owner, two)
  zero = s32[] constant(0)
  c2 = f32[8,2] dynamic-update-slice(c, d, row, zero)
  a2 = f32[2,3] collective-permute-done(start)
  one = s32[] constant(1)
  i2 = s32[] add(i, one)
  ROOT next = (s32[], f32[2,3], f32[3,2], f32[8,2]) tuple(i2, a2, b, c2)
}

condition {
  t = (s32[], f32[2,3], f32[3,2], f32[8,2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  four = s32[] constant(4)
  ROOT less = pred[] compare(i, four), direction=LT
}

ENTRY main {
  a = f32[2,3] parameter(0)
  b = f32[3,2] parameter(1)
  zero = s32[] constant(0)
  none = f32[] constant(0)
  c = f32[8,2] broadcast(none), dimensions={}
  t = (s32[], f32[2,3], f32[3,2], f32[8,2]) tuple(zero, a, b, c)
  loop = (s32[], f32[2,3], f32[3,2], f32[8,2]) while(t), condition=condition, body=body
  ROOT out = f32[8,2] get-tuple-element(loop), index=3
}
)";

TEST(HloInterpret, ARingThatMultipliesWhileItGathersComputesTheProduct) {
  Rng random{3};
  Reals a, b;  // [8,3], [3,8]
  for (int i = 0; i < 24; ++i) {
    a.push_back(random.between(-9, 9));
    b.push_back(random.between(-9, 9));
  }
  std::vector<HloArrays> parameters;
  for (std::size_t device = 0; device < 4; ++device) {
    HloArray mine = array("f32[3,2]", Reals(6, 0));
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t j = 0; j < 2; ++j) mine.reals[k * 2 + j] = b[k * 8 + device * 2 + j];
    const auto rows = a.begin() + static_cast<std::ptrdiff_t>(device * 6);
    parameters.push_back({array("f32[2,3]", Reals(rows, rows + 6)), mine});
  }
  const auto results = test::run(module_of(ring_matmul), parameters);
  ASSERT_TRUE(results) << to_text(results.error());
  for (std::size_t device = 0; device < 4; ++device)
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < 3; ++k) sum += a[i * 3 + k] * b[k * 8 + device * 2 + j];
        EXPECT_EQ((*results)[device][0].reals[i * 2 + j], sum);
      }
}

TEST(HloInterpret, TheOracleSeesAWrongIndex) {
  // The update at the loop counter's row, as some kernels that only show timing have it: other rows on three devices.
  std::string wrong{ring_matmul};
  wrong.replace(wrong.find("multiply(owner, two)"), 20, "multiply(i, two)");
  std::vector<HloArrays> parameters;
  for (int device = 0; device < 4; ++device) parameters.push_back({array("f32[2,3]", Reals(6, device + 1)), counted("f32[3,2]")});
  const auto right = test::run(module_of(ring_matmul), parameters), other = test::run(module_of(wrong), parameters);
  ASSERT_TRUE(right && other);
  int differ = 0;
  for (std::size_t device = 0; device < 4; ++device) differ += (*right)[device] != (*other)[device] ? 1 : 0;
  EXPECT_EQ(differ, 4);
}

TEST(HloInterpret, ConditionalsTakeBranchesByIndex) {
  const std::string branches =
      "zero { a = s32[] parameter(0)\n ROOT r = s32[] constant(10) }\none { a = s32[] parameter(0)\n ROOT r = s32[] add(a, a) }\n"
      "two { ROOT a = s32[] parameter(0) }\n";
  const auto by_index = [&](std::int64_t index) {
    return result_of({integer_scalar(HloType::s32, index), integer_scalar(HloType::s32, 7)},
                     "ROOT r = s32[] conditional(p0, p1, p1, p1), branch_computations={zero, one, two}", branches)
        .integers.at(0);
  };
  EXPECT_EQ(by_index(0), 10);
  EXPECT_EQ(by_index(1), 14);
  EXPECT_EQ(by_index(2), 7);
  EXPECT_EQ(by_index(3), 7);  // beyond: the last one
  EXPECT_EQ(by_index(-1), 7);
  for (const bool yes : {false, true})
    EXPECT_EQ(result_of({integer_scalar(HloType::pred, yes ? 1 : 0), integer_scalar(HloType::s32, 7)},
                        "ROOT r = s32[] conditional(p0, p1, p1), true_computation=zero, false_computation=one", branches)
                  .integers.at(0),
              yes ? 10 : 14);
}

constexpr std::string_view by_device = R"(HloModule m, num_partitions=4
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }
left { x = f32[2] parameter(0)
 ROOT r = f32[2] LEFT }
right { x = f32[2] parameter(0)
 ROOT r = f32[2] negate(x) }
ENTRY e { x = f32[2] parameter(0)
 i = u32[] partition-id()
 k = u32[] constant(2)
 less = pred[] compare(i, k), direction=LT
 ROOT c = f32[2] conditional(less, x, x), true_computation=left, false_computation=right }
)";

TEST(HloInterpret, BranchesMayDifferBetweenDevicesButNotWithinAGroupThatCommunicates) {
  std::vector<HloArrays> parameters(4, {array("f32[2]", {1, 2})});
  std::string text{by_device};
  text.replace(text.find("LEFT"), 4, "add(x, x)");
  const auto results = test::run(module_of(text), parameters);
  ASSERT_TRUE(results) << to_text(results.error());
  EXPECT_THAT((*results)[1][0].reals, ElementsAre(2, 4));
  EXPECT_THAT((*results)[2][0].reals, ElementsAre(-1, -2));
  text = by_device;
  text.replace(text.find("LEFT"), 4, "all-reduce(x), replica_groups={}, to_apply=add");
  const auto failed = test::run(module_of(text), parameters);
  ASSERT_FALSE(failed);
  EXPECT_EQ(to_text(failed.error()), "m:6:2: r: expected all devices of a group to come to it, got 2 of 4");
  text.replace(text.find("replica_groups={}"), 17, "replica_groups={{0,1},{2,3}}");
  const auto by_group = test::run(module_of(text), parameters);
  ASSERT_TRUE(by_group) << to_text(by_group.error());
  EXPECT_THAT((*by_group)[0][0].reals, ElementsAre(2, 4));
  EXPECT_THAT((*by_group)[3][0].reals, ElementsAre(-1, -2));
  text = by_device;
  text.replace(text.find("LEFT"), 4, "collective-permute(x), source_target_pairs={{0,1},{1,2}}");
  const auto apart = test::run(module_of(text), parameters);
  ASSERT_FALSE(apart);
  EXPECT_EQ(to_text(apart.error()), "m:6:2: r: expected 1 and 2 both to come to it");
}

TEST(HloInterpret, LoopsThatDifferBetweenDevicesAreAnError) {
  const auto results = test::run(module_of("HloModule m, num_partitions=2\n"
                                           "c { i = u32[] parameter(0)\n me = u32[] partition-id()\n ROOT l = pred[] compare(i, me), direction=LT }\n"
                                           "b { i = u32[] parameter(0)\n one = u32[] constant(1)\n ROOT n = u32[] add(i, one) }\n"
                                           "ENTRY e { z = u32[] constant(0)\n ROOT w = u32[] while(z), condition=c, body=b }\n"),
                                 std::vector<HloArrays>(2));
  ASSERT_FALSE(results);
  EXPECT_EQ(to_text(results.error()), "m:9:2: w: expected a condition that is the same on all devices, got true on 1 of 2");
}

TEST(HloInterpret, EndlessLoopsEndAtTheBound) {
  const HloModule module = module_of(
      "HloModule m\nc { i = u32[] parameter(0)\n ROOT l = pred[] constant(true) }\nb { ROOT i = u32[] parameter(0) }\n"
      "ENTRY e { z = u32[] constant(0)\n ROOT w = u32[] while(z), condition=c, body=b }\n");
  HloRunOptions options;
  options.most_steps = 10000;
  const auto results = interpret(module, {{}}, options);
  ASSERT_FALSE(results);
  EXPECT_THAT(to_text(results.error()), HasSubstr("expected the module to take fewer steps"));
  const std::atomic<bool> stop{true};
  options.stop = Cancellation{&stop};
  const auto stopped = interpret(module, {{}}, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().cause, Cause::cancelled);
}

TEST(HloInterpret, ArraysBeyondMemoryAreRefused) {
  EXPECT_EQ(run_error({array("f32[]", {1})}, "ROOT r = f32[1073741824] broadcast(p0), dimensions={}"),
            "m:4:1: r: expected at most 67108864 elements at one time on all devices, got f32[1073741824] beside 0 others on each of 1");
  // What nothing uses any more is free: 200 arrays of 2^20 elements, two at a time.
  std::string lines = "b0 = f32[1048576] broadcast(p0), dimensions={}\n";
  for (int i = 1; i < 200; ++i) lines += fmt::format("b{} = f32[1048576] negate(b{})\n", i, i - 1);
  HloRunOptions options;
  options.most_elements = std::int64_t{1} << 22;
  const HloModule module = module_of(test::text_with({array("f32[]", {1})}, lines + "ROOT r = f32[1] slice(b199), slice={[0:1]}"));
  const auto results = interpret(module, {{{array("f32[]", {1})}}}, options);
  ASSERT_TRUE(results) << to_text(results.error());
  EXPECT_EQ(results->front()[0].reals.at(0), -1);
}

TEST(HloInterpret, TuplesBarriersAndCallsPassValuesOn) {
  const HloArrays results =
      test::results_of({counted("f32[2]"), counted("s32[1]")},
                       "u = (f32[2], s32[1]) tuple(p0, p1)\nt = ((f32[2], s32[1]), f32[2]) tuple(u, p0)\n"
                       "o = ((f32[2], s32[1]), f32[2]) opt-barrier(t)\n"
                       "g = (f32[2], s32[1]) get-tuple-element(o), index=0\n"
                       "c = (s32[1], f32[2]) call(g), to_apply=swap\n"
                       "tok = token[] after-all()\nd = f32[2] add-dependency(p0, tok)\n"
                       "m = f32[2] custom-call(d), custom_call_target=\"MoveToHost\"\n"
                       "ROOT r = ((s32[1], f32[2]), f32[2]) tuple(c, m)",
                       "swap { t = (f32[2], s32[1]) parameter(0)\n a = f32[2] get-tuple-element(t), index=0\n b = s32[1] get-tuple-element(t), "
                       "index=1\n ROOT r = (s32[1], f32[2]) tuple(b, a) }\n");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0], counted("s32[1]"));
  EXPECT_EQ(results[1], counted("f32[2]"));
  EXPECT_EQ(results[2], counted("f32[2]"));
}

TEST(HloInterpret, CustomCallsAreNamed) {
  // Kernels: a quarter of the sum of an element of both operands stands in; the rest is computed as it is.
  const std::string kernel = "k = (f32[3], s32[]) custom-call(p0, p1), custom_call_target=\"tpu_custom_call\"\n", rest = "x = f32[3] get-tuple-element(k), index=0\nROOT r = f32[3] add(x, x)";
  EXPECT_EQ(result_of({counted("f32[2]"), array("f32[3]", {10, 20, 30})}, kernel + rest), array("f32[3]", {5.5, 11, 15.5}));
  const HloModule module = module_of(test::text_with({counted("f32[2]"), counted("f32[3]")}, kernel + rest));
  EXPECT_THAT(calls_without_values(module), ElementsAre(&instruction_named(module, "k")));
  // Bytes of an unwritten buffer show where they are used.
  const HloArray room = result_of({}, "ROOT r = f32[2] custom-call(), custom_call_target=\"AllocateBuffer\"");
  EXPECT_TRUE(std::isnan(room.reals.at(0)) && std::isnan(room.reals.at(1)));
  EXPECT_EQ(
      result_of(
          {counted("f32[2]")},
          "b = f32[2] custom-call(), custom_call_target=\"AllocateBuffer\"\n z = s32[] constant(0)\n ROOT r = f32[2] dynamic-update-slice(b, p0, z)"),
      array("f32[2]", {1, 2}));
}

TEST(HloInterpret, ArraysSideBySideInMemoryAreOne) {
  const std::string concat = " custom-call(p0, p1), custom_call_target=\"ConcatBitcast\"";
  EXPECT_EQ(result_of({counted("f32[1,2]"), counted("f32[2,2]")}, "ROOT r = f32[3,2]" + concat), array("f32[3,2]", {1, 2, 1, 2, 3, 4}));
  // Their layouts say in which order the elements stand.
  EXPECT_EQ(result_of({counted("f32[2,1]"), counted("f32[2,2]")},
                      "a = f32[2,1]{0,1} bitcast(p0)\n b = f32[2,2]{0,1} transpose(p1), dimensions={0,1}\n"
                      "ROOT r = f32[2,3]{0,1} custom-call(a, b), custom_call_target=\"ConcatBitcast\""),
            array("f32[2,3]", {1, 1, 2, 2, 3, 4}));
  // In bytes, and back: slices of them put together again are the array.
  const std::string bytes =
      "b = s8[24] bitcast(p0)\n first = s8[16] slice(b), slice={[0:16]}\n second = s8[8] slice(b), slice={[16:24]}\n"
      "ROOT r = f32[2,3]{0,1} custom-call(first, second), custom_call_target=\"ConcatBitcast\"";
  EXPECT_EQ(result_of({array("f32[6]", {1, 0.5, -3, 0x1p70, 5, 6})}, bytes), array("f32[2,3]", {1, -3, 5, 0.5, 0x1p70, 6}));
  EXPECT_EQ(run_error({counted("f32[2]"), counted("f32[2]")}, "ROOT r = f32[5]" + concat),
            "m:5:1: expected as many bytes as its operands have, 16, got f32[5]");
}

TEST(HloInterpret, RowsOfRaggedProductsHaveTheMatrixOfTheirGroup) {
  const std::string attributes = ", lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}";
  const HloArray rows = counted("f32[4,2]"), matrices = array("f32[3,2,1]", {1, 10, 2, 20, 3, 30});
  EXPECT_EQ(result_of({rows, matrices, array("s32[3]", {1, 0, 2})}, "ROOT r = f32[4,1] ragged-dot(p0, p1, p2)" + attributes),
            array("f32[4,1]", {21, 3 * 43, 3 * 65, 0}));
  EXPECT_EQ(run_error({rows, matrices, array("s32[2]", {1, 2})}, "ROOT r = f32[4,1] ragged-dot(p0, p1, p2)" + attributes),
            "m:6:1: r: expected groups and a contracting dimension that agree in f32[4,2], f32[3,2,1] and s32[2]");
}

TEST(HloInterpret, ParametersAreCompared) {
  const HloModule module = module_of(test::text_with({counted("f32[2]")}, "ROOT r = f32[2] negate(p0)"));
  HloRunOptions options;
  const auto message = [&](const std::vector<std::vector<HloArrays>>& parameters) {
    const auto results = interpret(module, parameters, options);
    return results ? "" : to_text(results.error());
  };
  EXPECT_EQ(message({{{counted("f32[3]")}}}), "m:3:1: p0: expected a result of f32[2], got f32[3]");
  EXPECT_EQ(message({{}}), "m: expected 1 parameters of device 0, got 0");
  EXPECT_EQ(message({}), "m: expected parameters of 1 devices, got 0");
  HloArray short_of = counted("f32[2]");
  short_of.reals.pop_back();
  EXPECT_EQ(message({{{short_of}}}), "m:3:1: p0: expected a result of f32[2], got f32[2]");
}

TEST(HloEvaluate, OneInstructionAlone) {
  const HloModule module = module_of(
      test::text_with({counted("f32[4]")},
                      "f = f32[4] fusion(p0), kind=kLoop, calls={ q = f32[4] parameter(0)\n ROOT n = f32[4] negate(q) }\n"
                      "i = u32[] partition-id()\nw = f32[4] all-reduce-start(p0), replica_groups={}, to_apply={ a = f32[] parameter(0)\n "
                      "b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nROOT v = f32[4] all-reduce-done(w)"));
  const HloComputation& entry = module.entry_computation();
  HloArithmetic arithmetic;
  const HloArrays x{counted("f32[4]")};
  const auto fused = evaluate(module, entry, test::instruction_named(module, "f"), {&x}, {}, arithmetic);
  ASSERT_TRUE(fused) << to_text(fused.error());
  EXPECT_THAT((*fused)[0].reals, ElementsAre(-1, -2, -3, -4));
  const auto id = evaluate(module, entry, test::instruction_named(module, "i"), {}, {5, 0}, arithmetic);
  ASSERT_TRUE(id);
  EXPECT_EQ((*id)[0].integers.at(0), 5);
  const auto started = evaluate(module, entry, test::instruction_named(module, "w"), {&x}, {}, arithmetic);
  ASSERT_FALSE(started);
  EXPECT_THAT(to_text(started.error()), HasSubstr("w: all-reduce-start is not interpreted"));
}

/// A compiler writes as few digits as tell a number from its neighbours: it means the number of the type, in a fusion or out of one.
TEST(HloEvaluate, AConstantIsANumberOfItsType) {
  const HloModule module = module_of(test::text_with({}, "a = f32[3] constant({-1e+30, 0.1, 3.40282347e+38})\nb = bf16[2] constant({0.1, -1e+30})\n"
                                                         "c = f16[3] constant({0.1, 65504, 1e-7})\nd = f64[1] constant({0.1})\ne = c64[1] constant({(0.1, -1e+30)})\n"
                                                         "ROOT f = f8e4m3fn[2] constant({0.1, 300})"));
  HloArithmetic arithmetic;
  const auto value = [&](std::string_view name) { return evaluate(module, module.entry_computation(), test::instruction_named(module, name), {}, {}, arithmetic)->front(); };
  EXPECT_THAT(value("a").reals, ElementsAre(-1e30F, 0.1F, std::numeric_limits<float>::max()));
  EXPECT_THAT(value("b").reals, ElementsAre(0x1.9ap-4, -0x1.94p99));
  EXPECT_THAT(value("c").reals, ElementsAre(0x1.998p-4, 65504, 0x1p-23));  // the last below the normal numbers, whose unit is 2^-24
  EXPECT_THAT(value("d").reals, ElementsAre(0.1));
  EXPECT_THAT(value("e").reals, ElementsAre(0.1F));
  EXPECT_THAT(value("e").imaginaries, ElementsAre(-1e30F));
  EXPECT_THAT(value("f").reals, ElementsAre(0x1.ap-4, 288));
}

/// What float64 tells apart and float32 does not: a router that takes the largest of a softmax takes others.
TEST(HloEvaluate, RoundingsMakeZeroOfWhatIsBelowTheNormalNumbersOfFloat32) {
  const HloModule module = module_of(test::text_with({array("f32[3]", {-87, -88, -200}), array("f64[1]", {-200})},
                                                     "a = f32[3] exponential(p0)\nb = f64[1] exponential(p1)\nROOT d = f32[3] negate(a)"));
  const HloArrays p0{array("f32[3]", {-87, -88, -200})}, p1{array("f64[1]", {-200})};
  HloArithmetic exact, rounded;
  rounded.perturb_seed = 1;
  const auto value = [&](std::string_view name, const HloArrays& of, HloArithmetic& arithmetic) {
    return evaluate(module, module.entry_computation(), test::instruction_named(module, name), {&of}, {}, arithmetic)->front().reals;
  };
  EXPECT_THAT(value("a", p0, exact), ElementsAre(std::exp(-87.0), std::exp(-88.0), std::exp(-200.0)));
  EXPECT_THAT(value("a", p0, rounded), ElementsAre(::testing::DoubleNear(std::exp(-87.0), 1e-44), 0, 0));
  EXPECT_THAT(value("b", p1, rounded), ElementsAre(::testing::DoubleNear(std::exp(-200.0), 1e-100)));
}

/// [rows, inner] @ [inner, columns]
Reals product(const Reals& a, const Reals& b, std::size_t rows, std::size_t inner, std::size_t columns) {
  Reals c(rows * columns, 0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return c;
}

TEST(HloInterpret, AModuleInTheCompilersFormComputesItsLayers) {
  // The layers of testdata/tpu_layers.hlo at 24 instead of 512 features: tiles, asynchronous pairs, all-reduce-scatter fusions, a loop over stacked
  // weights, a convolution that is a product with heads.
  std::string text = test::bytes_of_file(PODSIM_SOURCE_DIR "/workloads/hlo/testdata/tpu_layers.hlo");
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"512", "24"}, {"256", "12"}})
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) text.replace(at, 3, to);
  const HloModule module = module_of(text);
  constexpr std::size_t devices = 8, layers = 3, features = 24, rows = 128, heads = 4, width = 64;
  Rng random{11};
  const auto small = [&](std::size_t count) {
    Reals values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(random.between(-1, 1));
    return values;
  };
  std::vector<HloArrays> parameters;
  const Reals w3 = small(features * heads * width);
  for (std::size_t device = 0; device < devices; ++device)
    parameters.push_back({array("bf16[32,24]", small(32 * 24)), array("bf16[3,12,24]", small(3 * 12 * 24)),
                          array("bf16[3,24,12]", small(3 * 24 * 12)), array("bf16[24,4,64]", w3)});
  const auto results = test::run(module, parameters);
  ASSERT_TRUE(results) << to_text(results.error());

  std::vector<Reals> x;  // of each device, its 32 rows
  for (const HloArrays& mine : parameters) x.push_back(mine[0].reals);
  const auto gathered = [&](std::size_t device) {
    Reals all;
    for (std::size_t k = 0; k < 4; ++k) all.insert(all.end(), x[device / 4 * 4 + k].begin(), x[device / 4 * 4 + k].end());
    return all;
  };
  for (std::size_t layer = 0; layer < layers; ++layer) {
    std::vector<Reals> partial;
    for (std::size_t device = 0; device < devices; ++device) {
      Reals w1(features * features), w2(features * features);
      for (std::size_t i = 0; i < features; ++i)
        for (std::size_t j = 0; j < features; ++j) {
          w1[i * features + j] = parameters[i / 12 * 4 + device % 4][1].reals[(layer * 12 + i % 12) * features + j];
          w2[i * features + j] = parameters[j / 12 * 4 + device % 4][2].reals[(layer * features + i) * 12 + j % 12];
        }
      Reals h = product(gathered(device), w1, rows, features, features);
      for (double& value : h) value = std::max(value, 0.0);
      partial.push_back(product(h, w2, rows, features, features));
    }
    for (std::size_t device = 0; device < devices; ++device)
      for (std::size_t i = 0; i < x[device].size(); ++i) {
        x[device][i] = 0;
        for (std::size_t k = 0; k < 4; ++k) x[device][i] += partial[device / 4 * 4 + k][device % 4 * 32 * features + i];
      }
  }
  for (std::size_t device = 0; device < devices; ++device) {
    EXPECT_EQ((*results)[device][0].reals, product(gathered(device), w3, rows, features, heads * width)) << device;
    EXPECT_EQ((*results)[device][1], parameters[device][1]) << device;
  }
}

}  // namespace
}  // namespace podsim
