#include <gtest/gtest.h>

#include <string>

#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::module_of;

TEST(HloLiveRanges, AReshapeOfAScheduledModuleHasAPlaceOfItsOwn) {
  const auto text = [](const std::string& scheduled) {
    return "HloModule m" + scheduled + "\nENTRY e { x = f32[64] parameter(0)\n a = f32[1024] custom-call(x), custom_call_target=\"g\"\n"
           " b = f32[2,512] reshape(a)\n ROOT r = f32[64] custom-call(b), custom_call_target=\"h\" }\n";
  };
  EXPECT_EQ(peak_memory_of(module_of(text(", is_scheduled=true")))->hbm, Bytes{256 + 256 + 2 * 4096});
  EXPECT_EQ(peak_memory_of(module_of(text("")))->hbm, Bytes{256 + 256 + 4096}) << "the compiler will make it a bitcast";
}

TEST(HloLiveRanges, ARaggedAllToAllWritesIntoItsSecondOperand) {
  const auto memory = peak_memory_of(module_of(
      "HloModule m\nENTRY e { x = f32[64] parameter(0)\n n = s32[4] parameter(1)\n a = f32[256] custom-call(x), custom_call_target=\"g\"\n"
      " b = f32[1024] custom-call(x), custom_call_target=\"g\"\n c = f32[1024] ragged-all-to-all(a, b, n, n, n, n), replica_groups={{0,1,2,3}}\n"
      " ROOT r = f32[64] custom-call(c), custom_call_target=\"h\" }\n"));
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->hbm, Bytes{256 + 16 + 256 + 1024 + 4096});
}

}  // namespace
}  // namespace podsim
