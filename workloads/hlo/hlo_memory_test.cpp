#include "workloads/hlo/hlo_memory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "workloads/hlo/buffer_heap.hpp"
#include "workloads/hlo/buffer_sharing.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

namespace memory_rules {

using test::module_of;

/// What a module with this text holds at most beside its parameter and its result, of 4 bytes each; what is no larger lies in the result's place.
Bytes between(const std::string& computations, const std::string& lines) {
  const auto memory = peak_memory_of(module_of("HloModule m, is_scheduled=true\n" + computations + "ENTRY e {\n x = f32[1] parameter(0)\n" + lines +
                                               " ROOT r = f32[1] custom-call(last), custom_call_target=\"end\"\n}\n"));
  return memory ? memory->hbm - Bytes{8} : Bytes{-1};
}

const std::string made = " a = f32[1024] custom-call(x), custom_call_target=\"make\"\n";
constexpr Bytes one{4096};

TEST(HloMemoryRules, WhatComesThroughATupleOrABitcastKeepsItsPlace) {
  EXPECT_EQ(between("", made + " last = f32[1024] negate(a)\n"), one);
  EXPECT_EQ(between("", made + " b = f32[32,32] bitcast(a)\n last = f32[32,32] negate(b)\n"), 2 * one);
  EXPECT_EQ(between("", " t = (f32[1024], f32[1]) custom-call(x), custom_call_target=\"make\"\n a = f32[1024] get-tuple-element(t), index=0\n"
                        " last = f32[1024] negate(a)\n"),
            2 * one);
  // But a result of the entry may lie there.
  const auto memory = peak_memory_of(module_of("HloModule m\nENTRY e { x = f32[1] parameter(0)\n" + made + " b = f32[32,32] bitcast(a)\n ROOT r = f32[32,32] negate(b) }\n"));
  EXPECT_EQ(memory->hbm, one + Bytes{4});
}

TEST(HloMemoryRules, SortsAndScattersWorkInPlace) {
  const std::string compare = "%l { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT c = pred[] compare(p, q), direction=LT }\n",
                    add = "%s { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT c = f32[] add(p, q) }\n";
  EXPECT_EQ(between(compare, made + " last = f32[1024] sort(a), dimensions={0}, to_apply=%l\n"), one);
  const std::string scatter = " i = s32[1] custom-call(x), custom_call_target=\"make\"\n last = f32[1024] scatter({}, i, x), update_window_dims={{0}}, "
                              "inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=0, to_apply=%s\n";
  EXPECT_EQ(between(add, made + fmt::format(fmt::runtime(scatter), "a")), one);
}

/// XLA reuses the place of an operand only where neither value is one of several that have to lie in one place.
TEST(HloMemoryRules, NothingIsWrittenOverWhatWasUpdatedInPlace) {
  const std::string update = made + " i = s32[] constant(0)\n u = f32[1024] dynamic-update-slice(a, x, i)\n";
  EXPECT_EQ(between("", update + " last = f32[1024] negate(u)\n"), 2 * one);
  EXPECT_EQ(between("", made + " n = f32[1024] negate(a)\n last = f32[1024] negate(n)\n"), one);
}

TEST(HloMemoryRules, AnAsynchronousUpdateIsMadeInPlace) {
  const auto memory = peak_memory_of(module_of(
      "HloModule m, is_scheduled=true\nENTRY e {\n x = f32[1,1024] parameter(0)\n i = s32[] constant(0)\n a = f32[4,1024]{1,0:S(5)} custom-call(), custom_call_target=\"AllocateBuffer\"\n"
      " s = ((f32[4,1024]{1,0:S(5)}, f32[1,1024], s32[], s32[]), f32[4,1024]{1,0:S(5)}, u32[]) dynamic-update-slice-start(a, x, i, i)\n"
      " d = f32[4,1024]{1,0:S(5)} dynamic-update-slice-done(s)\n ROOT r = f32[1] custom-call(d), custom_call_target=\"end\"\n}\n"));
  EXPECT_EQ(memory->host, 4 * one);
}

TEST(HloMemoryRules, AnAsynchronousFusionUpdatesInPlace) {
  const auto memory = peak_memory_of(module_of(
      "HloModule m, is_scheduled=true\n%u {\n a = f32[4,1024] parameter(0)\n x = f32[1024] parameter(1)\n b = f32[1,1024] bitcast(x)\n i = s32[] constant(0)\n"
      " ROOT d = f32[4,1024] dynamic-update-slice(a, b, i, i)\n}\nENTRY e {\n x = f32[1024] parameter(0)\n a = f32[4,1024] custom-call(), custom_call_target=\"make\"\n"
      " s = ((f32[4,1024], f32[1024]), f32[4,1024], u32[]) fusion-start(a, x), kind=kLoop, calls=%u\n d = f32[4,1024] fusion-done(s)\n"
      " ROOT r = f32[1] custom-call(d), custom_call_target=\"end\"\n}\n"));
  EXPECT_EQ(memory->hbm, 4 * one + one + Bytes{4}) << "the array, the parameter, and the context or the result";
}

/// As libtpu writes a scatter: a fusion with a fusion in it.
TEST(HloMemoryRules, AFusionInAFusionUpdatesInPlace) {
  const HloModule module = module_of(
      "HloModule m, is_scheduled=true\n%g { a = f32[4,1024] parameter(0)\n x = f32[1,1024] parameter(1)\n i = s32[] constant(0)\n ROOT d = f32[4,1024] dynamic-update-slice(a, x, i, i) }\n"
      "%f { x = f32[1,1024] parameter(0)\n a = f32[4,1024] parameter(1)\n e = f32[1,1024] negate(x)\n ROOT d = f32[4,1024] fusion(a, e), kind=kLoop, calls=%g }\n"
      "ENTRY e { x = f32[1,1024] parameter(0)\n a = f32[4,1024] parameter(1)\n ROOT r = f32[4,1024] fusion(x, a), kind=kLoop, calls=%f }\n");
  const auto fused = std::ranges::find(module.computations, "f", &HloComputation::name);
  ASSERT_NE(fused, module.computations.end());
  EXPECT_EQ(hlo_buffers::updated_parameters(module, *fused), std::vector<int>{1});
}

TEST(HloMemoryRules, AFusionWritesOverWhatItReadsInPlaceOrReducesBefore) {
  const auto overwritten = [](const std::string& body) {
    const HloModule module = module_of("HloModule m\n%s { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT c = f32[] add(p, q) }\n%f { p = f32[8,128] parameter(0)\n" + body +
                                       " }\nENTRY e { x = f32[8,128] parameter(0)\n ROOT r = f32[1] custom-call(x), custom_call_target=\"g\" }\n",
                                       true);
    for (const HloComputation& computation : module.computations)
      if (computation.name == "f") return hlo_buffers::overwrites_of_fused(computation);
    return std::vector<hlo_buffers::Overwrite>{{9, 9}};
  };
  using Overwrites = std::vector<hlo_buffers::Overwrite>;
  const std::string sum = " z = f32[] constant(0)\n e = f32[8,128] exponential(p)\n s = f32[8] reduce(e, z), dimensions={1}, to_apply=%s\n";
  EXPECT_EQ(overwritten(" ROOT e = f32[8,128] exponential(p)"), (Overwrites{{0, 0}}));
  EXPECT_EQ(overwritten(" i = s32[8,128] iota(), iota_dimension=1\n ROOT s = (f32[8,128], s32[8,128]) sort(p, i), dimensions={1}, to_apply=%l"), (Overwrites{{0, 0}})) << "in place";
  EXPECT_EQ(overwritten(" e = f32[8,128] exponential(p)\n ROOT t = f32[128,8] transpose(e), dimensions={1,0}"), Overwrites{});
  EXPECT_EQ(overwritten(sum + " ROOT t = (f32[8,128], f32[8]) tuple(e, s)"), (Overwrites{{0, 0}}));
  // A reduction whose sum the other result needs is not made first.
  EXPECT_EQ(overwritten(sum + " b = f32[8,128] broadcast(s), dimensions={0}\n ROOT d = f32[8,128] divide(e, b)"), Overwrites{});
}

TEST(HloMemoryRules, BesideATransposedResultAnotherWritesOverItsOwnLayoutOnly) {
  const auto overwritten = [](const std::string& layout, const std::string& other) {
    const HloModule module = module_of("HloModule m\n%f { p = f32[8,8]" + layout + " parameter(0)\n q = f32[8,8]{1,0} parameter(1)\n b = f32[8,8]{1,0} bitcast(p)\n e = f32[8,8]{1,0} negate(b)\n " + other +
                                           "\n ROOT t = (f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(e, o) }\nENTRY e { x = f32[8,8]{1,0} parameter(0)\n ROOT r = f32[1] custom-call(x), custom_call_target=\"g\" }\n",
                                       true);
    for (const HloComputation& computation : module.computations)
      if (computation.name == "f") return hlo_buffers::overwrites_of_fused(computation);
    return std::vector<hlo_buffers::Overwrite>{{9, 9}};
  };
  using Overwrites = std::vector<hlo_buffers::Overwrite>;
  const std::string transposed = "o = f32[8,8]{1,0} transpose(q), dimensions={1,0}";
  EXPECT_EQ(overwritten("{0,1}", transposed), Overwrites{});
  EXPECT_EQ(overwritten("{1,0}", transposed), (Overwrites{{0, 0}}));
  EXPECT_EQ(overwritten("{0,1}", "o = f32[8,8]{1,0} exponential(q)"), (Overwrites{{0, 0}, {1, 1}}));
}

TEST(HloMemoryRules, GapsCountOnTpusUnlessThereAreTooManyBuffersToPlace) {
  using namespace hlo_buffers;
  const auto lives = [](std::int64_t size, std::int64_t begin, std::int64_t end) { return Interval{{size}, begin, end}; };
  std::vector<Interval> intervals{lives(10, 0, 1), lives(1, 0, 3), lives(12, 2, 3)};  // the last fits in no gap: 23 of which 13 are live
  EXPECT_EQ(heap_of(intervals, Compiler::tpu), 2 * 23 - 13);
  EXPECT_EQ(heap_of(intervals, Compiler::gpu), 13) << "the larger ones first";
  intervals.insert(intervals.end(), 9000, lives(1, 0, 3));
  EXPECT_EQ(heap_of(intervals, Compiler::tpu), 9013);
  EXPECT_EQ(heap_of(intervals, Compiler::gpu), 9013);
}

TEST(HloMemoryRules, ValuesInVmemWriteOverNothing) {
  const auto memory = peak_memory_of(module_of("HloModule m\nENTRY e { x = f32[1] parameter(0)\n a = f32[1024]{0:S(1)} custom-call(x), custom_call_target=\"make\"\n"
                                               " b = f32[1024]{0:S(1)} negate(a)\n ROOT r = f32[1] custom-call(b), custom_call_target=\"end\" }\n"));
  EXPECT_EQ(memory->vmem, 2 * one);
}

TEST(HloMemoryRules, OnTpusWhatOtherDevicesWriteDoesNotLieInResults) {
  using namespace hlo_buffers;
  const Need before{{{{1024}, 0, 3, true}, {{1024}, 5, 9, false}}, 10, {}};
  Need tpu = before, gpu = before;
  reuse_results(tpu, Compiler::tpu);
  reuse_results(gpu, Compiler::gpu);
  EXPECT_EQ(tpu.intervals[0].sizes[hbm], 1024);
  EXPECT_EQ(gpu.intervals[0].sizes[hbm], 0);
}

TEST(HloMemoryRules, OnTpusWhatASparseCoreCollectsDoesNotLieInResults) {
  const auto peak = [](const std::string& work) {
    const std::string array = "f32[8,128]{1,0:T(8,128)}";
    return peak_memory_of(module_of("HloModule m, is_scheduled=true\n%s { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT c = f32[] add(p, q) }\n%c { p = " + array + " parameter(0)\n ROOT w = " + array + " " + work +
                                        " }\nENTRY e { x = " + array + " parameter(0)\n a = ((" + array + "), " + array + ") call-start(x), async_execution_thread=\"sparsecore\", to_apply=%c\n b = " + array +
                                        " call-done(a)\n y = f32[1]{0:T(128)} custom-call(b), custom_call_target=\"g\"\n ROOT r = " + array + " custom-call(y), custom_call_target=\"g\" }\n",
                                    true))
        ->hbm;
  };
  EXPECT_EQ(peak("all-reduce(p), replica_groups={}, to_apply=%s") - peak("negate(p)"), Bytes{8 * 128 * 4});
}

/// The layout's tiles say whose compiler it was. Allocated is more than the live set where gaps are left.
TEST(HloMemoryRules, TpusRequireTheLiveSetAndGpusWhatIsAllocated) {
  const auto memory = [](const std::string& layout) {
    const auto array = [&](int rows) { return fmt::format("f32[{},128]{}", rows, layout); };
    // a and b lie side by side, c needs both places and b is still there.
    return peak_memory_of(module_of("HloModule m\nENTRY e { x = " + array(8) + " parameter(0)\n a = " + array(32) + " custom-call(x), custom_call_target=\"g\"\n b = " +
                                        array(16) + " custom-call(a), custom_call_target=\"g\"\n c = " + array(48) + " custom-call(b), custom_call_target=\"g\"\n d = " +
                                        array(16) + " custom-call(b, c), custom_call_target=\"g\"\n ROOT r = f32[8,128]" + layout + " custom-call(d), custom_call_target=\"g\" }\n",
                                    true));
  };
  const auto tpu = memory("{1,0:T(8,128)}"), gpu = memory("{1,0}");
  EXPECT_GT(tpu->allocated, tpu->hbm);
  EXPECT_EQ(tpu->required, tpu->hbm);
  EXPECT_EQ(gpu->required, gpu->allocated);
}

/// The compiler of GPUs makes new weights beside the old ones and copies them there at the end (linen_resnet on an H100: copy.261 and 107 others).
TEST(HloMemoryRules, ThePlaceOfADonatedParameterIsFreeUntilItsOutputIsCopiedThere) {
  const auto peak = [](const std::string& donated, const std::string& last_use) {
    return peak_memory_of(module_of("HloModule m, is_scheduled=true" + donated + "\nENTRY e { x = f32[1024] parameter(0)\n" + made + " b = f32[1024] custom-call(a" + last_use +
                                    "), custom_call_target=\"make\"\n c = f32[1024] custom-call(b), custom_call_target=\"make\"\n ROOT r = f32[1024] copy(c) }\n"))
        ->hbm;
  };
  const std::string donated = ", input_output_alias={ {}: (0, {}, may-alias) }";
  EXPECT_EQ(peak(donated, ""), 2 * one) << "a and then c lie in the place of x or beside it, b in the other";
  EXPECT_EQ(peak(donated, ", x"), 3 * one) << "a and b beside x, which b reads";
  EXPECT_EQ(peak("", ""), 4 * one) << "x is the caller's: a lies in the place of the result, b and c beside";
}

TEST(HloMemoryRules, TpusPlaceInTheOrderOfTimeAndCountGapsTwice) {
  using namespace hlo_buffers;
  // The second lies above the first, and the third, too large for the place of the first, above both: 10 of 10 + 4 + 12 lie free at the peak.
  const std::vector<Interval> intervals{{{10}, 0, 1}, {{4}, 1, 3}, {{12}, 2, 3}};
  EXPECT_EQ(peaks_of(intervals)[hbm], 16);
  EXPECT_EQ(heap_of(intervals, Compiler::gpu), 16);
  EXPECT_EQ(heap_of(intervals, Compiler::tpu), 26 + 10);
}

}  // namespace memory_rules

}  // namespace
}  // namespace podsim
