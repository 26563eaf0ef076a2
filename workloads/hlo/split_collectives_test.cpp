// Collectives that are split mean what they meant together.
#include "workloads/hlo/split_collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/hlo/combined_collectives.hpp"
#include "workloads/hlo/test_valid.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

TEST(SplitCollectives, EachArrayNeedsItsOwnOperandAlone) {
  const std::string body = std::string{"  %n = f32[4,8] negate(%y)\n  %c = (f32[16,8], f32[4,8]) all-reduce(%x, %n), "} + sums_of_four +
                           "\n  %a = f32[16,8] get-tuple-element(%c), index=0\n  %b = f32[4,8] get-tuple-element(%c), index=1\n  %e = f32[16,8] negate(%a)\n  ROOT %t = (f32[16,8], f32[4,8]) tuple(%e, %b)\n";
  const SplitModule split = split_collectives(on_four_devices(body));
  EXPECT_EQ(split.before, 1);
  EXPECT_EQ(split.after, 2);
  expect_valid(split.module);
  EXPECT_THAT(names_in_entry(split.module), ElementsAre("x", "y", "n", "c.0", "c.1", "e", "t"));
  EXPECT_EQ(combine_collectives(split.module, usual_combine_threshold).after, 1) << "and back";
}

TEST(SplitCollectives, StartsFollowTheirOperandsAndDonesComeBeforeTheFirstUser) {
  const std::string body = std::string{"  %n = f32[4,8] negate(%y)\n  %m = f32[4,8] negate(%n)\n  %s = (f32[16,8], f32[4,8]) all-reduce-start(%x, %m), "} + sums_of_four +
                           "\n  %d = (f32[16,8], f32[4,8]) all-reduce-done(%s)\n  %a = f32[16,8] get-tuple-element(%d), index=0\n  %b = f32[4,8] get-tuple-element(%d), index=1\n"
                           "  %f = f32[4,8] negate(%b)\n  %e = f32[16,8] negate(%a)\n  ROOT %t = (f32[16,8], f32[4,8]) tuple(%e, %f)\n";
  const SplitModule split = split_collectives(on_four_devices(body));
  expect_valid(split.module);
  EXPECT_THAT(names_in_entry(split.module), ElementsAre("x", "s.0", "y", "n", "m", "s.1", "d.1", "f", "d.0", "e", "t"));
}

TEST(SplitCollectives, ResultsThatAreTakenTogetherAreATuple) {
  const std::string body = std::string{"  ROOT %c = (f32[16,8], f32[4,8]) all-reduce(%x, %y), "} + sums_of_four + "\n";
  const SplitModule split = split_collectives(on_four_devices(body));
  expect_valid(split.module);
  EXPECT_THAT(names_in_entry(split.module), ElementsAre("x", "y", "c.0", "c.1", "c"));
}

TEST(SplitCollectives, OneOfOneArrayStaysAsItIs) {
  const HloModule module = on_four_devices(std::string{"  %r = f32[16,8] all-reduce(%x), "} + sums_of_four + "\n  ROOT %t = (f32[16,8], f32[4,8]) tuple(%r, %y)\n");
  EXPECT_EQ(split_collectives(module).module, module);
}

TEST(SplitCollectives, StoredModulesStayValid) {
  int split_ones = 0;
  each_stored_module([&](const HloModule& module) {
    const SplitModule split = split_collectives(module);
    split_ones += split.after > 0 ? 1 : 0;
    expect_valid(split.module, module);
  });
  EXPECT_GT(split_ones, 1);
}

}  // namespace
}  // namespace podsim
