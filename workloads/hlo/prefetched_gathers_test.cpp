// Gathers that begin a trip ahead gather the same.
#include "workloads/hlo/prefetched_gathers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sim/base/test_cases.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/hlo/test_valid.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

/// A stack of three layers, of which a trip gathers its own. `index`: of the layer, from the count of trips %i and what the trip before computed, %x.
HloModule layers(const std::string& index = "  %at = s32[] copy(%i)\n") {
  const auto module = parse_hlo(R"(HloModule layers, is_scheduled=true, num_partitions=4

%body (p: (s32[], f32[16,8], f32[3,4,8])) -> (s32[], f32[16,8], f32[3,4,8]) {
  %p = (s32[], f32[16,8], f32[3,4,8]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[16,8] get-tuple-element(%p), index=1
  %stack = f32[3,4,8] get-tuple-element(%p), index=2
  %zero = s32[] constant(0)
)" + index + R"(  %mine = f32[1,4,8] dynamic-slice(%stack, %at, %zero, %zero), dynamic_slice_sizes={1,4,8}
  %own = f32[4,8] bitcast(%mine)
  %w = f32[16,8] all-gather(%own), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  %sum = f32[16,8] add(%x, %w)
  %one = s32[] constant(1)
  %more = s32[] add(%i, %one)
  ROOT %t = (s32[], f32[16,8], f32[3,4,8]) tuple(%more, %sum, %stack)
}

%condition (q: (s32[], f32[16,8], f32[3,4,8])) -> pred[] {
  %q = (s32[], f32[16,8], f32[3,4,8]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%j, %three), direction=LT
}

ENTRY %main (given: f32[16,8], weights: f32[3,4,8]) -> f32[16,8] {
  %given = f32[16,8] parameter(0)
  %weights = f32[3,4,8] parameter(1)
  %none = s32[] constant(0)
  %begin = (s32[], f32[16,8], f32[3,4,8]) tuple(%none, %given, %weights)
  %loop = (s32[], f32[16,8], f32[3,4,8]) while(%begin), condition=%condition, body=%body
  ROOT %result = f32[16,8] get-tuple-element(%loop), index=1
}
)",
                                "m");
  EXPECT_TRUE(module) << to_text(module.error());
  return module ? *module : HloModule{};
}

const HloComputation& named(const HloModule& module, const std::string& name) { return *std::ranges::find(module.computations, name, &HloComputation::name); }

TEST(PrefetchGathers, TheNextTripsGatherIsInFlightThroughThisTrip) {
  const PrefetchedModule prefetched = prefetch_gathers(layers());
  EXPECT_EQ(prefetched.gathers, 1);
  EXPECT_EQ(prefetched.loops, 1);
  EXPECT_EQ(prefetched.others, 0);
  expect_valid(prefetched.module);
  const HloComputation& body = named(prefetched.module, "body");
  const auto place = [&](const std::string& name) { return std::ranges::find(body.instructions, name, &HloInstruction::name) - body.instructions.begin(); };
  EXPECT_LT(place("w-start.next"), place("sum"));
  EXPECT_GT(place("w-done.prefetched"), place("sum"));
  EXPECT_EQ(body.instructions[static_cast<std::size_t>(place("w"))].opcode, HloOpcode::get_tuple_element) << "what the trip before gathered";
  EXPECT_EQ(place("mine"), static_cast<std::ptrdiff_t>(body.instructions.size())) << "nothing needs this trip's own part any more";
  EXPECT_EQ(body.instructions[static_cast<std::size_t>(body.root)].operands.size(), 4U);
  EXPECT_EQ(std::ranges::count(named(prefetched.module, "main").instructions, "w-start.first", &HloInstruction::name), 1);
}

TEST(PrefetchGathers, WhatNeedsTheTripBeforeStays) {
  const HloModule module = layers("  %first = f32[1,1] slice(%x), slice={[0:1], [0:1]}\n  %single = f32[] bitcast(%first)\n  %at = s32[] convert(%single)\n");
  const PrefetchedModule prefetched = prefetch_gathers(module);
  EXPECT_EQ(prefetched.gathers, 0);
  EXPECT_EQ(prefetched.others, 1);
  EXPECT_EQ(prefetched.module, module);
}

TEST(PrefetchGathers, StoredModulesStayValid) {
  std::int64_t gathers = 0;
  each_stored_module([&](const HloModule& module) {
    const PrefetchedModule prefetched = prefetch_gathers(module);
    gathers += prefetched.gathers;
    expect_valid(prefetched.module, module);
  });
  EXPECT_GT(gathers, 0);
}

}  // namespace
}  // namespace podsim
