// Collectives that are combined mean what they meant apart.
#include "workloads/hlo/combined_collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sim/base/test_cases.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/hlo/test_valid.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

HloModule parsed(const std::string& body) {
  const auto module = parse_hlo("HloModule m, is_scheduled=true, num_partitions=4\n\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %s = f32[] add(%a, %b)\n}\n\n"
                                "ENTRY %main (x: f32[16,8], y: f32[4,8]) -> (f32[16,8], f32[4,8]) {\n  %x = f32[16,8] parameter(0)\n  %y = f32[4,8] parameter(1)\n" +
                                    body + "}\n",
                                "m");
  EXPECT_TRUE(module) << to_text(module.error());
  return module ? *module : HloModule{};
}
constexpr const char* sums = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add";

std::vector<std::string> names_of(const HloModule& module) {
  std::vector<std::string> names;
  for (const HloInstruction& instruction : module.entry_computation().instructions) names.push_back(instruction.name);
  return names;
}

TEST(CombineCollectives, SumsThatDoNotNeedEachOtherAreOne) {
  const std::string body = std::string{"  %r = f32[16,8] all-reduce(%x), "} + sums + "\n  %n = f32[16,8] negate(%r)\n  %z = f32[4,8] negate(%y)\n  %q = f32[4,8] all-reduce(%z), " + sums +
                           "\n  ROOT %t = (f32[16,8], f32[4,8]) tuple(%n, %q)\n";
  const CombinedModule combined = combine_collectives(parsed(body), usual_combine_threshold);
  EXPECT_EQ(combined.before, 2);
  EXPECT_EQ(combined.after, 1);
  expect_valid(combined.module);
  EXPECT_THAT(names_of(combined.module), ElementsAre("x", "y", "z", "r.combined", "r", "n", "q", "t")) << "where the last of them was; what needs the first comes later";
  EXPECT_EQ(combine_collectives(parsed(body), Bytes{639}).after, 0) << "512 and 128 bytes";
  EXPECT_EQ(combine_collectives(parsed(body), Bytes{640}).after, 1);
}

TEST(CombineCollectives, WhatNeedsAnotherOrDiffersStaysApart) {
  for (const char* const second : {"  %q = f32[16,8] all-reduce(%r), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add\n",   // needs it
                                   "  %q = f32[16,8] all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add\n"}) {  // other groups
    const std::string body = std::string{"  %r = f32[16,8] all-reduce(%x), "} + sums + "\n" + second + "  ROOT %t = (f32[16,8], f32[4,8]) tuple(%q, %y)\n";
    const HloModule module = parsed(body);
    const CombinedModule combined = combine_collectives(module, usual_combine_threshold);
    EXPECT_EQ(combined.after, 0) << second;
    EXPECT_EQ(combined.module, module);
  }
}

TEST(CombineCollectives, StartsBecomeOneStartAndDonesOneDone) {
  const std::string gather = "channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true";
  const std::string body = "  %s = (f32[4,8], f32[16,8]) all-gather-start(%y), " + gather + "\n  %d = f32[16,8] all-gather-done(%s)\n  %n = f32[4,8] negate(%y)\n  %u = (f32[4,8], f32[16,8]) all-gather-start(%n), " + gather +
                           "\n  %m = f32[16,8] negate(%x)\n  %e = f32[16,8] all-gather-done(%u)\n  %a = f32[16,8] add(%d, %e)\n  %b = f32[16,8] add(%a, %m)\n  ROOT %t = (f32[16,8], f32[4,8]) tuple(%b, %y)\n";
  const CombinedModule combined = combine_collectives(parsed(body), usual_combine_threshold);
  expect_valid(combined.module);
  EXPECT_THAT(names_of(combined.module), ElementsAre("x", "y", "n", "s.combined", "m", "d.combined", "d", "e", "a", "b", "t"));
}

TEST(CombineCollectives, StoredModulesStayValid) {
  int combined_ones = 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{PODSIM_SOURCE_DIR "/validation/aot/modules"})
    if (entry.path().string().ends_with(".hlo.gz")) files.push_back(entry.path());
  std::ranges::sort(files);
  for (std::size_t f = 0; f < files.size(); f += test::cases<std::size_t>(1, 6)) {
    SCOPED_TRACE(files[f]);
    const auto module = read_hlo_file(files[f]);
    ASSERT_TRUE(module);
    const CombinedModule combined = combine_collectives(*module, Bytes{std::int64_t{1} << 28});
    combined_ones += combined.after > 0 ? 1 : 0;
    expect_valid(combined.module, *module);
  }
  EXPECT_GT(combined_ones, 1);
}

}  // namespace
}  // namespace podsim
