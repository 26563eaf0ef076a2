// Collectives that are combined mean what they meant apart.
#include "workloads/hlo/combined_collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/hlo/test_valid.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

TEST(CombineCollectives, SumsThatDoNotNeedEachOtherAreOne) {
  const std::string body = std::string{"  %r = f32[16,8] all-reduce(%x), "} + sums_of_four + "\n  %n = f32[16,8] negate(%r)\n  %z = f32[4,8] negate(%y)\n  %q = f32[4,8] all-reduce(%z), " + sums_of_four +
                           "\n  ROOT %t = (f32[16,8], f32[4,8]) tuple(%n, %q)\n";
  const CombinedModule combined = combine_collectives(on_four_devices(body), usual_combine_threshold);
  EXPECT_EQ(combined.before, 2);
  EXPECT_EQ(combined.after, 1);
  expect_valid(combined.module);
  EXPECT_THAT(names_in_entry(combined.module), ElementsAre("x", "y", "z", "r.combined", "r", "n", "q", "t")) << "where the last of them was; what needs the first comes later";
  EXPECT_EQ(combine_collectives(on_four_devices(body), Bytes{639}).after, 0) << "512 and 128 bytes";
  EXPECT_EQ(combine_collectives(on_four_devices(body), Bytes{640}).after, 1);
}

TEST(CombineCollectives, WhatNeedsAnotherOrDiffersStaysApart) {
  for (const char* const second : {"  %q = f32[16,8] all-reduce(%r), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add\n",   // needs it
                                   "  %q = f32[16,8] all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add\n"}) {  // other groups
    const std::string body = std::string{"  %r = f32[16,8] all-reduce(%x), "} + sums_of_four + "\n" + second + "  ROOT %t = (f32[16,8], f32[4,8]) tuple(%q, %y)\n";
    const HloModule module = on_four_devices(body);
    const CombinedModule combined = combine_collectives(module, usual_combine_threshold);
    EXPECT_EQ(combined.after, 0) << second;
    EXPECT_EQ(combined.module, module);
  }
}

TEST(CombineCollectives, StartsBecomeOneStartAndDonesOneDone) {
  const std::string gather = "channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true";
  const std::string body = "  %s = (f32[4,8], f32[16,8]) all-gather-start(%y), " + gather + "\n  %d = f32[16,8] all-gather-done(%s)\n  %n = f32[4,8] negate(%y)\n  %u = (f32[4,8], f32[16,8]) all-gather-start(%n), " + gather +
                           "\n  %m = f32[16,8] negate(%x)\n  %e = f32[16,8] all-gather-done(%u)\n  %a = f32[16,8] add(%d, %e)\n  %b = f32[16,8] add(%a, %m)\n  ROOT %t = (f32[16,8], f32[4,8]) tuple(%b, %y)\n";
  const CombinedModule combined = combine_collectives(on_four_devices(body), usual_combine_threshold);
  expect_valid(combined.module);
  EXPECT_THAT(names_in_entry(combined.module), ElementsAre("x", "y", "n", "s.combined", "m", "d.combined", "d", "e", "a", "b", "t"));
}

TEST(CombineCollectives, StoredModulesStayValid) {
  int combined_ones = 0;
  each_stored_module([&](const HloModule& module) {
    const CombinedModule combined = combine_collectives(module, Bytes{std::int64_t{1} << 28});
    combined_ones += combined.after > 0 ? 1 : 0;
    expect_valid(combined.module, module);
  });
  EXPECT_GT(combined_ones, 1);
}

}  // namespace
}  // namespace podsim
