#include "workloads/hlo/hlo_summary.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_traffic.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::instruction_named;
using test::module_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// 100 TFLOP/s whatever the extents, memory for free: machine `ideal` as far as summaries look.
Machine fast_machine() {
  Machine machine;
  for (auto& peak : machine.chip.peak) peak = FlopsPerSecond{1e14};
  return machine;
}

HloSummary summarised(const HloModule& module, const HloCountOptions& options = {}) {
  static const Machine machine = fast_machine();
  const auto summary = summary_of(module, machine, options);
  EXPECT_TRUE(summary) << to_text(summary.error());
  return summary ? *summary : HloSummary{};
}
std::string summary_error(const HloModule& module, const HloCountOptions& options = {}) {
  const auto summary = summary_of(module, Machine{}, options);
  return summary ? "" : to_text(summary.error());
}

const HloInstruction& at(const HloModule& module, const HloPlace& place) {
  return module.computations[static_cast<std::size_t>(place.computation)].instructions[static_cast<std::size_t>(place.instruction)];
}

/// "kind input->result xCOUNT asynchronous"
std::vector<std::string> collectives_of(const HloModule& module, const HloSummary& summary) {
  std::vector<std::string> rows;
  for (const HloCollectiveCount& row : summary.collectives)
    rows.push_back(fmt::format("{} {} {}->{} x{}{}", name_of(row.kind), at(module, row.runs_as).name, row.bytes.count(), row.result_bytes.count(),
                               row.count, row.asynchronous ? " asynchronous" : ""));
  return rows;
}

HloModule tpu_layers() { return *read_hlo_file(PODSIM_SOURCE_DIR "/workloads/hlo/testdata/tpu_layers.hlo"); }

TEST(HloSummary, CountsTheCompiledFormOfTpus) {
  const HloModule module = tpu_layers();
  const HloSummary summary = summarised(module);
  // The all-reduce in the fusion of which only a slice leaves is a reduce-scatter; the loop runs three times.
  EXPECT_THAT(collectives_of(module, summary),
              ElementsAre("reduce-scatter all-reduce-scatter.2 131072->32768 x3", "all-gather all-gather-start.1 32768->131072 x3 asynchronous",
                          "all-gather all-gather.2 262144->524288 x3", "all-gather all-gather.3 262144->524288 x3",
                          "all-gather all-gather.4 32768->131072 x1"));
  ASSERT_EQ(summary.products.size(), 3u);
  EXPECT_EQ(at(module, summary.products[0].runs_as).name, "fusion.1");
  EXPECT_EQ(summary.products[0].product, (HloProduct{1, 128, 512, 512, 2LL * 128 * 512 * 512}));
  EXPECT_EQ(summary.products[0].count, 3);
  EXPECT_EQ(summary.products[2].product.flops, 2LL * 128 * 4 * 64 * 512);
  ASSERT_EQ(summary.copies.size(), 2u);
  EXPECT_EQ(at(module, summary.copies[0].runs_as).name, "slice-start.1");
  EXPECT_EQ(summary.copies[0].to, HloMemory::vmem);
  EXPECT_TRUE(summary.copies[0].asynchronous);
  EXPECT_EQ(summary.copies[0].bytes, Bytes{256 * 512 * 2});
  EXPECT_EQ(summary.copies[0].count, 3);
  EXPECT_THAT(summary.opaque, IsEmpty());
  EXPECT_THAT(summary.unknown_attributes, IsEmpty());
}

TEST(HloSummary, TellsAxesByTheMeshOrByTheGroupsThemselves) {
  const HloModule module = tpu_layers();
  const Mesh mesh = *Mesh::make({{"data", 2}, {"model", 4}}), other = *Mesh::make({{"x", 4}, {"y", 2}});
  const auto along = [&](std::string_view name, const Mesh* on) { return collective_axes(module, instruction_named(module, name), on)->axes; };
  EXPECT_THAT(*along("all-gather-start.1", &mesh), ElementsAre("model"));
  EXPECT_THAT(*along("all-gather.2", &mesh), ElementsAre("data"));
  EXPECT_THAT(*along("all-gather.3", &mesh), ElementsAre("data"));
  EXPECT_EQ(along("all-gather-start.1", &other), std::nullopt);
  EXPECT_THAT(*along("all-gather-start.1", nullptr), ElementsAre("model"));
  EXPECT_EQ(along("all-gather.2", nullptr), std::nullopt);
}

TEST(HloSummary, WindowsHoldTheCoresWorkBetweenStartAndDone) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true, num_partitions=4\n"
      "%f { a = f32[64,128] parameter(0)\n b = f32[128,32] parameter(1)\n ROOT d = f32[64,32] dot(a, b), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0} }\n"
      "ENTRY e {\n  x = f32[64,128] parameter(0)\n  y = f32[128,32] parameter(1)\n"
      "  s = (f32[64,128], f32[256,128]) all-gather-start(x), replica_groups=[1,4]<=[4], dimensions={0}, channel_id=1, use_global_device_ids=true\n"
      "  k = f32[64,128] all-reduce-start(x), to_apply={ z = f32[] parameter(0)\n ROOT w = f32[] parameter(1) }, backend_config={\"is_sync\":true}\n"
      "  p = f32[64,32] fusion(x, y), kind=kOutput, calls=f\n  q = f32[64,32] negate(p)\n  d = f32[256,128] all-gather-done(s)\n  l = f32[64,128] "
      "all-reduce-done(k)\n"
      "  ROOT t = (f32[64,32], f32[256,128], f32[64,128]) tuple(q, d, l)\n}\n");
  const HloSummary summary = summarised(module);
  ASSERT_EQ(summary.windows.size(), 1u);
  const HloWindow& window = summary.windows[0];
  EXPECT_EQ(window.between.flops, 524288);
  EXPECT_DOUBLE_EQ(window.between.time.count(), 524288 / 1e14);
  // The fusion reads x and y and writes p, which negate reads, to write q.
  EXPECT_EQ(window.between.bytes, 4.0 * (64 * 128 + 128 * 32 + 3 * 64 * 32));
  ASSERT_EQ(summary.collectives.size(), 2u);
  EXPECT_TRUE(summary.collectives[0].asynchronous);
  EXPECT_EQ(summary.collectives[0].window, 0u);
  EXPECT_FALSE(summary.collectives[1].asynchronous) << "is_sync blocks";
  EXPECT_DOUBLE_EQ(received_bytes(HloOpcode::all_gather, {Bytes{32768}, Bytes{131072}}, 4), 98304);
}

TEST(HloSummary, CollectivesAreFoundAtAnyDepth) {
  const HloModule module = module_of(
      "HloModule m, num_partitions=2\n%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
      "%inner { x = f32[8] parameter(0)\n ROOT r = f32[8] all-reduce(x), replica_groups={}, to_apply=%add }\n"
      "%middle { x = f32[8] parameter(0)\n ROOT f = f32[8] fusion(x), kind=kCustom, calls=%inner }\n"
      "%wrapped { x = f32[8] parameter(0)\n ROOT f = f32[8] fusion(x), kind=kCustom, calls=%middle }\n"
      "ENTRY e { x = f32[8] parameter(0)\n s = ((f32[8]), f32[8], u32[]) async-start(x), calls=%wrapped\n d = f32[8] async-done(s)\n"
      " ROOT f = f32[8] fusion(d), kind=kCustom, calls=%inner }\n");
  // Once asynchronously, through three computations, and once in a fusion by itself; no slice leaves it, so that it stays an all-reduce.
  const HloSummary summary = summarised(module);
  ASSERT_EQ(summary.collectives.size(), 2u);
  EXPECT_EQ(summary.collectives[0].count, 1);
  EXPECT_TRUE(summary.collectives[0].asynchronous);
  EXPECT_EQ(at(module, summary.collectives[0].runs_as).opcode, HloOpcode::async);
  EXPECT_EQ(summary.collectives[1].count, 1);
  EXPECT_FALSE(summary.collectives[1].asynchronous);
  EXPECT_EQ(summary.collectives[1].kind, HloOpcode::all_reduce);
}

/// A loop that begins with `first`, adds `step` and runs while `element direction bound`.
std::string loop(std::int64_t first, const std::string& add, std::int64_t step, const std::string& compare, std::int64_t bound,
                 const std::string& direction) {
  return fmt::format(
      "HloModule m\n%b {{ t = (s32[], s32[]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n n = s32[] get-tuple-element(t), index=1\n k = "
      "s32[] constant({})\n"
      " c = s32[] copy(i)\n j = s32[] {}\n ROOT r = (s32[], s32[]) tuple(j, n) }}\n"
      "%compare {{ u = s32[] parameter(0)\n v = s32[] parameter(1)\n ROOT lt = pred[] compare({}), direction={} }}\n"
      "%c {{ t = (s32[], s32[]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n n = s32[] get-tuple-element(t), index=1\n"
      " ROOT f = pred[] fusion(i, n), kind=kLoop, calls=%compare }}\n"
      "ENTRY e {{ a = s32[] constant({})\n z = s32[] constant({})\n t = (s32[], s32[]) tuple(a, z)\n"
      " ROOT w = (s32[], s32[]) while(t), condition=%c, body=%b }}\n",
      step, add, compare, direction, first, bound);
}
std::optional<std::int64_t> trips(const std::string& text, const HloTripCounts& given = {}) {
  const HloModule module = module_of(text);
  const auto count = trip_count_of(module, module.entry_computation(), instruction_named(module, "w"), given);
  return count ? std::optional{count->count} : std::nullopt;
}

// The bound is an element that the loop hands on, the comparison in a fusion; against the loop run step by step.
TEST(HloSummary, TripCountsFollowFromConditions) {
  for (const std::int64_t first : {-3, 0, 5})
    for (const std::int64_t step : {1, 2, 3, -1, -2})
      for (const std::int64_t bound : {-7, 0, 1, 6, 7})
        for (const std::string direction : {"LT", "LE", "GT", "GE", "NE"}) {
          std::int64_t expected = 0, i = first;
          const auto holds = [&] {
            return direction == "LT"   ? i < bound
                   : direction == "LE" ? i <= bound
                   : direction == "GT" ? i > bound
                   : direction == "GE" ? i >= bound
                                       : i != bound;
          };
          for (; holds() && expected < 100; i += step) ++expected;
          const auto expectation = expected < 100 ? std::optional{expected} : std::nullopt;
          const std::string mirrored = direction == "LT"   ? "GT"
                                       : direction == "LE" ? "GE"
                                       : direction == "GT" ? "LT"
                                       : direction == "GE" ? "LE"
                                                           : "NE";
          ASSERT_EQ(trips(loop(first, "add(c, k)", step, "u, v", bound, direction)), expectation)
              << first << " " << step << " " << direction << " " << bound;
          ASSERT_EQ(trips(loop(first, "subtract(c, k)", -step, "v, u", bound, mirrored)), expectation)
              << first << " " << step << " " << direction << " " << bound;
        }
  EXPECT_EQ(trips(loop(0, "multiply(c, k)", 2, "u, v", 8, "LT")), std::nullopt);
  EXPECT_EQ(trips(loop(0, "multiply(c, k)", 2, "u, v", 8, "LT"), {{"w", 9}}), 9);
  EXPECT_EQ(trips(loop(0, "add(c, k)", 1, "u, v", std::int64_t{1} << 62, "LT")), std::int64_t{1} << 62);
  EXPECT_EQ(summary_error(module_of(loop(0, "add(c, k)", 1, "u, v", std::int64_t{1} << 62, "LT"))),
            "m:19:2: expected at most 2^53 executions of an instruction, got more of \"w\"");
}

TEST(HloSummary, UnknownTripCountsAreErrorsThatNameTheLoop) {
  const HloModule module = module_of(loop(0, "multiply(c, k)", 2, "u, v", 8, "LT"));
  EXPECT_EQ(summary_error(module),
            "m:19:2: how often does the loop \"w\" run? Neither its backend_config nor its condition tells; `trip_count` w=N does");
  HloCountOptions options;
  options.tolerant = true;
  const HloSummary summary = summarised(module, options);
  ASSERT_EQ(summary.loops.size(), 1u);
  EXPECT_EQ(summary.loops[0].trips, (HloTripCount{1, HloTripCount::Source::assumed}));
  ASSERT_EQ(summary.warnings.size(), 1u);
  EXPECT_EQ(summary.warnings[0].message, "loops of unknown trip count, counted once");
  options.trip_counts = {{"ww", 3}};
  EXPECT_EQ(summary_error(module, options), "trip_count: expected the name of a loop of the module, got \"ww\", did you mean \"w\"?");
}

TEST(HloSummary, ATripCountThatTheConditionContradictsIsTold) {
  const auto told = [](const std::string& count) {
    std::string text = loop(0, "add(c, k)", 2, "u, v", 7, "LT");
    return module_of(text.replace(text.find(", body="), 0, ", backend_config={\"known_trip_count\":{\"n\":\"" + count + "\"}}"));
  };
  const HloModule wrong = told("5"), right = told("4");
  const auto count = trip_count_of(wrong, wrong.entry_computation(), instruction_named(wrong, "w"));
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, (HloTripCount{5, HloTripCount::Source::told, 4}));
  const auto summary = summary_of(wrong, Machine{});
  ASSERT_TRUE(summary);
  ASSERT_EQ(summary->warnings.size(), 1U);
  EXPECT_EQ(summary->warnings[0].message, "loops whose known_trip_count is not what their condition gives");
  EXPECT_TRUE(summary_of(right, Machine{})->warnings.empty());
  EXPECT_EQ(trip_count_of(wrong, wrong.entry_computation(), instruction_named(wrong, "w"), {{"w", 9}})->by_condition, std::nullopt) << "what is given decides";
}

// As XLA for CPUs writes loops: the tuple that one begins with is handed in.
TEST(HloSummary, ALoopInACalledComputationBeginsWithWhatItsCallHandsIn) {
  std::string text = loop(0, "add(c, k)", 2, "u, v", 7, "LT");
  const std::string tuple = "(s32[], s32[])";
  text.replace(text.find("ENTRY e"), std::string::npos,
               "%apart { t = " + tuple + " parameter(0)\n ROOT w = " + tuple + " while(t), condition=%c, body=%b }\n");
  const auto entry = [&](const std::string& lines) { return module_of(text + "ENTRY e { a = s32[] constant(0)\n z = s32[] constant(7)\n t = " + tuple + " tuple(a, z)\n" + lines + " }\n"); };
  const auto count = [](const HloModule& module) {
    for (const HloComputation& computation : module.computations)
      if (computation.name == "apart") return trip_count_of(module, computation, instruction_named(module, "w"));
    return Expected<HloTripCount>{HloTripCount{}};
  };
  const auto once = count(entry(" ROOT r = " + tuple + " call(t), to_apply=%apart"));
  ASSERT_TRUE(once);
  EXPECT_EQ(*once, (HloTripCount{4, HloTripCount::Source::condition, {}}));
  EXPECT_FALSE(count(entry(" q = " + tuple + " call(t), to_apply=%apart\n ROOT r = " + tuple + " call(q), to_apply=%apart"))) << "the second one runs from another beginning";
}

TEST(HloSummary, NestedLoopsMultiply) {
  const HloModule module = module_of(
      "HloModule m, num_partitions=2\n%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
      "%c1 { t = (f32[8]) parameter(0)\n ROOT r = pred[] constant(true) }\n"
      "%b1 { t = (f32[8]) parameter(0)\n x = f32[8] get-tuple-element(t), index=0\n y = f32[8] all-reduce(x), replica_groups={{0,1}}, "
      "to_apply=%add\n ROOT r = (f32[8]) tuple(y) }\n"
      "%b2 { t = (f32[8]) parameter(0)\n ROOT v = (f32[8]) while(t), condition=%c1, body=%b1, backend_config={\"known_trip_count\":{\"n\":\"5\"}} }\n"
      "ENTRY e { x = f32[8] parameter(0)\n t = (f32[8]) tuple(x)\n ROOT w = (f32[8]) while(t), condition=%c1, body=%b2, "
      "backend_config={\"known_trip_count\":{\"n\":\"7\"}} }\n");
  EXPECT_THAT(collectives_of(module, summarised(module)), ElementsAre("all-reduce y 32->32 x35"));
  HloCountOptions options;
  options.trip_counts = {{"v", 0}};
  EXPECT_THAT(summarised(module, options).collectives, IsEmpty());
}

TEST(HloSummary, ConditionalsTakeTheGivenBranchOrTheLongest) {
  const HloModule module = module_of(
      "HloModule m\n%small { x = f32[4,4] parameter(0)\n ROOT d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n"
      "%large { x = f32[4,4] parameter(0)\n y = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " ROOT d = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n"
      "ENTRY e { f = pred[] parameter(0)\n x = f32[4,4] parameter(1)\n ROOT c = f32[4,4] conditional(f, x, x), false_computation=%large, "
      "true_computation=%small }\n");
  const HloSummary longest = summarised(module);
  EXPECT_EQ(longest.products.size(), 2u);
  ASSERT_EQ(longest.branches.size(), 1u);
  EXPECT_EQ(longest.branches[0].branch, 1) << "the branch that is taken if the predicate is true is branch 0";
  HloCountOptions options;
  options.branches = {{"c", 0}};
  EXPECT_EQ(summarised(module, options).products.size(), 1u);
  options.branches = {{"c", 2}};
  EXPECT_EQ(summary_error(module, options), "branch: expected a branch of \"c\" from 0 to 1, got 2");
}

TEST(HloSummary, CustomCallsCostWhatIsKnownOfThem) {
  const HloModule module = module_of(
      "HloModule m\nENTRY e { q = bf16[2,64,8,16] parameter(0)\n k = bf16[2,64,4,16] parameter(1)\n"
      " a = bf16[2,64,8,16] custom-call(q, k, k), custom_call_target=\"te_fused_attn_forward_ffi\", backend_config={mask_type = 0 : i64}\n"
      " b = bf16[2,64,8,16] custom-call(q, k, k), custom_call_target=\"te_fused_attn_forward_ffi\", backend_config={mask_type = 2 : i64}\n"
      " c = bf16[2,64,8,16] custom-call(q, k, k, a), custom_call_target=\"te_fused_attn_backward_ffi\"\n"
      " splash_mha_fwd.1 = bf16[8,64,16] custom-call(x, y, z), custom_call_target=\"tpu_custom_call\"\n"
      " d = bf16[2,64,8,16] custom-call(q), custom_call_target=\"AssumeGatherIndicesInBound\"\n"
      " h = bf16[2,64,8,16] custom-call(q), custom_call_target=\"MoveToHost\"\n"
      " u = bf16[2,64,8,16] custom-call(q), custom_call_target=\"mine\"\n"
      " ROOT v = bf16[2,64,8,16] weird(u) }\n",
      true);
  const HloSummary summary = summarised(module);
  const std::int64_t scores = 2LL * 2 * 8 * 64 * 64;
  ASSERT_EQ(summary.custom_calls.size(), 3u);
  EXPECT_EQ(summary.custom_calls[0].cost.flops, scores * 32);
  EXPECT_EQ(summary.custom_calls[1].cost.flops, scores * 16) << "causal";
  EXPECT_EQ(summary.custom_calls[2].cost.flops, scores * 80);
  std::vector<std::string> opaque;
  for (const HloOpaqueCount& call : summary.opaque) opaque.push_back(call.target + " " + std::to_string(call.bytes.count()));
  EXPECT_THAT(opaque, ElementsAre("tpu_custom_call 16384", "mine 65536", "weird 65536"));
  ASSERT_EQ(summary.copies.size(), 1u);
  EXPECT_EQ(summary.copies[0].to, HloMemory::host);
  HloCountOptions options;
  options.custom_calls = {{"mine", {1000, Bytes{64}}}};
  EXPECT_EQ(summarised(module, options).custom_calls.back().cost.flops, 1000);
  EXPECT_EQ(summarised(module, options).opaque.size(), 2u);
}

/// Calls as libtpu has them of a product of complex arrays, on v5e: each half is a transfer of half of the words into VMEM.
TEST(HloSummary, HalvesOfWordsOf64BitsAreCopied) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true\nENTRY e { p = c64[1024,1024]{1,0:T(8,128)} parameter(0)\n"
      " a.2 = f32[1024,1024]{1,0:T(8,128)S(1)} custom-call(p), custom_call_target=\"X64SplitHigh\"\n"
      " a.0 = f32[1024,1024]{1,0:T(8,128)} custom-call(p), custom_call_target=\"X64SplitLow\"\n"
      " ROOT c = c64[1024,1024]{1,0:T(8,128)} custom-call(a.0, a.2), custom_call_target=\"X64Combine\" }\n");
  const HloSummary summary = summarised(module);
  constexpr double half = 1024 * 1024 * 4;
  EXPECT_EQ(summary.coverage.known.bytes, half + (half + half) + (half + 2 * half)) << "read; read and written; one read, both written";
}

TEST(HloSummary, UnknownAttributesAreCounted) {
  const std::string text = "HloModule m\nENTRY e { x = f32[] parameter(0), odd=1\n y = f32[] negate(x), api_version=API_VERSION_TYPED_FFI, odd=2\n ROOT z = f32[] negate(y), new=3 }\n";
  const HloModule module = module_of(text);
  const HloSummary summary = summarised(module);
  ASSERT_EQ(summary.unknown_attributes.size(), 2u);
  EXPECT_EQ(summary.unknown_attributes[0].name, "odd");
  EXPECT_EQ(summary.unknown_attributes[0].count, 2);
}

TEST(HloTraffic, SlicesAndUpdatesAreCountedForThemselves) {
  const HloModule module = module_of(
      "HloModule m\n%f { a = f32[100,8] parameter(0)\n i = s32[] parameter(1)\n b = f32[1,8] parameter(2)\n ROOT fuu = f32[100,8] "
      "dynamic-update-slice(a, b, i, i) }\n"
      "%g { a = f32[100,8] parameter(0)\n i = s32[] parameter(1)\n s = f32[1,8] dynamic-slice(a, i, i), dynamic_slice_sizes={1,8}\n ROOT gn = "
      "f32[1,8] negate(s) }\n"
      "ENTRY e { x = f32[100,8] parameter(0)\n i = s32[] parameter(1)\n b = f32[1,8] parameter(2)\n v = f32[100,8]{1,0:S(1)} parameter(3)\n"
      " s = f32[1,8] dynamic-slice(x, i, i), dynamic_slice_sizes={1,8}\n u = f32[100,8] dynamic-update-slice(x, b, i, i)\n"
      " fu = f32[100,8] fusion(x, i, b), kind=kLoop, calls=%f\n fg = f32[1,8] fusion(x, i), kind=kLoop, calls=%g\n n = f32[100,8] negate(x)\n m = "
      "f32[100,8] negate(v)\n"
      " ROOT t = (f32[100,8]) tuple(u) }\n");
  HloTraffic traffic{module};
  const auto of = [&](std::string_view name) {
    const HloTraffic::Amount amount = traffic.of(module.entry_computation(), instruction_named(module, name));
    return std::pair{amount.read.count(), amount.written.count()};
  };
  EXPECT_EQ(of("s"), (std::pair<std::int64_t, std::int64_t>{32, 32}));
  EXPECT_EQ(of("u"), (std::pair<std::int64_t, std::int64_t>{32, 32}));
  EXPECT_EQ(of("fu"), (std::pair<std::int64_t, std::int64_t>{4 + 32, 32}));
  EXPECT_EQ(of("fg"), (std::pair<std::int64_t, std::int64_t>{32 + 4, 32}));
  EXPECT_EQ(of("n"), (std::pair<std::int64_t, std::int64_t>{3200, 3200}));
  EXPECT_EQ(of("m"), (std::pair<std::int64_t, std::int64_t>{0, 3200})) << "VMEM is another memory";
  EXPECT_EQ(of("t"), (std::pair<std::int64_t, std::int64_t>{0, 0}));
  const HloTraffic::Amount in_vmem = HloTraffic{module, HloTraffic::Memory::on_chip}.of(module.entry_computation(), instruction_named(module, "m"));
  EXPECT_EQ(in_vmem, (HloTraffic::Amount{Bytes{3200}, Bytes{0}}));
}

// A loop over 32 layers whose stacked weights are donated and updated in place, with one gathered copy: by hand.
TEST(HloMemory, PeakOfALoopOverDonatedWeightsIsTheHandCount) {
  const auto text = [](const std::string& header) {
    return "HloModule m, is_scheduled=true, num_partitions=4" + header +
           "\n%b { t = (s32[], f32[32,1024]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n w = f32[32,1024] get-tuple-element(t), "
           "index=1\n o = s32[] constant(1)\n"
           " s = f32[1,1024] dynamic-slice(w, i, o), dynamic_slice_sizes={1,1024}\n"
           " g = f32[4,1024] all-gather(s), replica_groups=[1,4]<=[4], dimensions={0}, channel_id=1, use_global_device_ids=true\n"
           " r = f32[1,1024] slice(g), slice={[0:1], [0:1024]}\n"
           " u = f32[32,1024] dynamic-update-slice(w, r, i, o)\n n = s32[] add(i, o)\n ROOT z = (s32[], f32[32,1024]) tuple(n, u) }\n"
           "%c { t = (s32[], f32[32,1024]) parameter(0)\n i = s32[] get-tuple-element(t), index=0\n k = s32[] constant(32)\n ROOT l = pred[] "
           "compare(i, k), direction=LT }\n"
           "ENTRY e { w = f32[32,1024] parameter(0)\n i = s32[] constant(0)\n t = (s32[], f32[32,1024]) tuple(i, w)\n"
           " l = (s32[], f32[32,1024]) while(t), condition=%c, body=%b\n ROOT r = f32[32,1024] get-tuple-element(l), index=1 }\n";
  };
  const std::int64_t layer = 1024 * 4, weights = 32 * layer;
  // In the loop live at once: the slice and its gathered copy, or that copy and the new slice; beside them the constants 0 and 1.
  const auto donated = peak_memory_of(module_of(text(", input_output_alias={ {}: (0, {}, may-alias) }")));
  ASSERT_TRUE(donated);
  EXPECT_EQ(donated->parameters, Bytes{weights});
  EXPECT_EQ(donated->hbm, Bytes{weights + layer + 4 * layer + 2 * 4});
  // Weights that the caller keeps are copied before the loop.
  EXPECT_EQ(peak_memory_of(module_of(text("")))->hbm, Bytes{2 * weights + layer + 4 * layer + 2 * 4});
}

TEST(HloMemory, ValuesInVmemAreCountedApart) {
  const auto memory = peak_memory_of(module_of(
      "HloModule m\nENTRY e { x = f32[8] parameter(0)\n s = (f32[8]{0:S(1)}, f32[8], u32[]{:S(2)}) copy-start(x)\n d = f32[8]{0:S(1)} copy-done(s)\n"
      " a = f32[8]{0:S(1)} reverse(d), dimensions={0}\n ROOT b = f32[8] negate(a) }\n"));
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->vmem, Bytes{64});
  EXPECT_EQ(memory->hbm, Bytes{64});
}

TEST(HloMemory, AnOutputThatAliasesAnOperandTakesNoPlaceOfItsOwn) {
  const auto text = [](const std::string& alias) {
    return "HloModule m\n%f { p = f32[256] parameter(0)\n ROOT c = f32[256] custom-call(p), custom_call_target=\"g\" }\n"
           "ENTRY e { x = f32[64] parameter(0)\n a = f32[256] custom-call(x), custom_call_target=\"start\"\n"
           " b = f32[256] fusion(a), kind=kCustom, calls=%f" + alias + "\n ROOT r = f32[64] custom-call(b), custom_call_target=\"end\" }\n";
  };
  EXPECT_EQ(peak_memory_of(module_of(text("")))->hbm, Bytes{256 + 256 + 1024 + 1024});
  EXPECT_EQ(peak_memory_of(module_of(text(", output_to_operand_aliasing={{}: (0, {})}")))->hbm, Bytes{256 + 256 + 1024});
}

TEST(HloMemory, ElementwiseWorkWritesOverAnOperandThatNothingUsesLater) {
  const auto text = [](const std::string& second) {
    return "HloModule m\nENTRY e { x = f32[64] parameter(0)\n a = f32[1024] custom-call(x), custom_call_target=\"g\"\n b = f32[1024] " + second +
           "(a)\n ROOT r = f32[64] custom-call(b), custom_call_target=\"h\" }\n";
  };
  EXPECT_EQ(peak_memory_of(module_of(text("negate")))->hbm, Bytes{256 + 256 + 4096});
  EXPECT_EQ(peak_memory_of(module_of(text("copy")))->hbm, Bytes{256 + 256 + 2 * 4096});
}

TEST(HloMemory, PartsOfAConcatBitcastLiveAsLongAsIt) {
  const auto memory = peak_memory_of(module_of(
      "HloModule m\nENTRY e { x = f32[64] parameter(0)\n a = f32[256] custom-call(x), custom_call_target=\"g\"\n b = f32[256] custom-call(x), "
      "custom_call_target=\"g\"\n c = f32[512] custom-call(a, b), custom_call_target=\"ConcatBitcast\"\n d = f32[128] custom-call(x), "
      "custom_call_target=\"g\"\n ROOT r = f32[64] custom-call(c, d), custom_call_target=\"h\" }\n"));
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->hbm, Bytes{256 + 256 + 1024 + 1024 + 512});
}

TEST(HloMemory, SmallBuffersLieInThePlaceOfTheResultUntilItIsMade) {
  const auto memory = peak_memory_of(module_of(
      "HloModule m\nENTRY e { x = f32[64] parameter(0)\n a = f32[256] custom-call(x), custom_call_target=\"g\"\n b = f32[32] custom-call(a), "
      "custom_call_target=\"g\"\n ROOT r = f32[256] custom-call(b), custom_call_target=\"h\" }\n"));
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->allocated, Bytes{256 + 1024 + 128});
  EXPECT_EQ(memory->temporary, Bytes{128});
}

TEST(HloMemory, CmemAndTheHostAreApart) {
  const auto memory = peak_memory_of(module_of("HloModule m\nENTRY e { x = f32[64] parameter(0)\n a = f32[256]{0:S(3)} custom-call(x), custom_call_target=\"g\"\n"
                                               " ROOT b = f32[512]{0:S(5)} custom-call(a), custom_call_target=\"g\" }\n"));
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->hbm, Bytes{256});
  EXPECT_EQ(memory->cmem, Bytes{1024});
  EXPECT_EQ(memory->host, Bytes{2048});
}

}  // namespace
}  // namespace podsim
