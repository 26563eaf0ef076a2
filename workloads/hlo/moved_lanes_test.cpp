// What is moved to other lanes or sublanes of a TPU's vector registers; cycles are those of the code that libtpu makes (validation/aot/README.md, Lanes and sublanes).
#include <gtest/gtest.h>

#include "workloads/hlo/moved_lanes.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::module_of;

/// Of the root of an entry; a register of f32 is 8 x 128.
double moved(const std::string& instructions, bool is_fused = false) {
  const HloModule module = module_of("HloModule m, is_scheduled=true\nENTRY e { " + instructions + " }\n");
  const HloComputation& entry = module.entry_computation();
  return cycles_of_moved_lanes(entry, entry.instructions[static_cast<std::size_t>(entry.root)], is_fused);
}
std::string square(const std::string& more = "T(8,128)") { return "f32[512,512]{1,0:" + more + "}"; }
double of_square(const std::string& root) { return moved("a = " + square() + " parameter(0)\n ROOT r = " + root); }

TEST(MovedLanes, AReverseTakesMoreThanACopyWhereItTurnsRegisters) {
  EXPECT_EQ(of_square(square() + " reverse(a), dimensions={1}"), 5 * 256) << "code of v5e: 1276";
  EXPECT_EQ(of_square(square() + " reverse(a), dimensions={0}"), 4 * 256) << "code of v5e: 953";
  EXPECT_EQ(moved("a = f32[64,64,128]{2,1,0:T(8,128)} parameter(0)\n ROOT r = f32[64,64,128]{2,1,0:T(8,128)} reverse(a), dimensions={0}"), 0) << "whole registers: code of v5e 514 for 512 stores";
}

TEST(MovedLanes, LanesHold32Bits) {
  const auto reverse = [](const std::string& array) { return moved("a = " + array + " parameter(0)\n ROOT r = " + array + " reverse(a), dimensions={1}"); };
  EXPECT_EQ(reverse("bf16[512,512]{1,0:T(8,128)(2,1)}"), 5 * 256) << "code of v5e: 1452";
  EXPECT_EQ(reverse("c64[512,512]{1,0:T(8,128)}"), 5 * 512);
}

TEST(MovedLanes, AnotherDimensionInTheLanesIsATransposition) {
  EXPECT_EQ(of_square("f32[512,512]{0,1:T(8,128)} copy(a)"), 2 * 256) << "code of v5e: 558";
  EXPECT_EQ(of_square(square() + " copy(a)"), 0);
  EXPECT_EQ(of_square(square() + " transpose(a), dimensions={1,0}"), 2 * 256);
  EXPECT_EQ(of_square("f32[512,512]{0,1:T(8,128)} transpose(a), dimensions={1,0}"), 0) << "the same memory";
  EXPECT_EQ(moved("a = bf16[65536,8]{0,1:T(8,128)(2,1)} parameter(0)\n ROOT r = bf16[65536,8]{1,0:T(8,128)(2,1)} copy(a)"), 2 * 512) << "by the side that has no padding";
  EXPECT_EQ(of_square("f32[1024,256]{1,0:T(8,128)} reshape(a)"), 2 * 256) << "code of v5e: 514";
  EXPECT_EQ(of_square("f32[8,64,512]{2,1,0:T(8,128)} reshape(a)"), 0);
}

TEST(MovedLanes, PartsThatAreNoWholeRegistersAreShifted) {
  EXPECT_EQ(of_square("f32[512,128]{1,0:T(8,128)} slice(a), slice={[0:512], [384:512]}"), 0);
  EXPECT_EQ(of_square("f32[512,5]{1,0:T(8,128)} slice(a), slice={[0:512], [507:512]}"), 2 * 64) << "code of v5e: 178";
  EXPECT_EQ(of_square("f32[504,512]{1,0:T(8,128)} slice(a), slice={[3:507], [0:512]}"), 252) << "code of v5e: 258";
  EXPECT_EQ(of_square("f32[496,512]{1,0:T(8,128)} slice(a), slice={[8:504], [0:512]}"), 0);
  EXPECT_EQ(of_square("f32[256,512]{1,0:T(8,128)} slice(a), slice={[0:512:2], [0:512]}"), 128);
  const std::string zero = " z = f32[] constant(0)\n ROOT r = ";
  EXPECT_EQ(moved("a = f32[504,512]{1,0:T(8,128)} parameter(0)\n" + zero + square() + " pad(a, z), padding=3_5x0_0"), 252) << "code of v5e: 261";
  EXPECT_EQ(moved("a = f32[504,512]{1,0:T(8,128)} parameter(0)\n" + zero + square() + " pad(a, z), padding=0_8x0_0"), 0);
  const std::string two = "a = f32[512,128]{1,0:T(8,128)} parameter(0)\n b = f32[512,3]{1,0:T(8,128)} parameter(1)\n ROOT r = f32[512,131]{1,0:T(8,128)} ";
  EXPECT_EQ(moved(two + "concatenate(a, b), dimensions={1}"), 0);
  EXPECT_EQ(moved(two + "concatenate(b, a), dimensions={1}"), 2 * 64);
}

TEST(MovedLanes, LanesWithOthersBetweenThemMoveOneByOne) {
  EXPECT_EQ(of_square("f32[512,256]{1,0:T(8,128)} slice(a), slice={[0:512], [0:512:2]}"), 2 * 128 * 128) << "code of v5e: 5 times 7198";
  EXPECT_EQ(of_square("f32[512,128]{1,0:T(8,128)} slice(a), slice={[0:512], [0:512:4]}"), 2 * 128 * 64) << "code of v5e: 3 times 7418";
  EXPECT_EQ(moved("a = f32[512,512]{1,0:T(8,128)} parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[512,1023]{1,0:T(8,128)} pad(a, z), padding=0_0x0_0_1"), 2 * 128 * 256) << "code of v5e: 73712";
}

TEST(MovedLanes, ARowIsSpreadOverLanesOnce) {
  const std::string column = "a = f32[2048]{0:T(1024)} parameter(0)\n ROOT r = ";
  EXPECT_EQ(moved(column + "f32[2048,128]{1,0:T(8,128)} broadcast(a), dimensions={0}"), 2 * 256) << "code of v5e: 720";
  EXPECT_EQ(moved(column + "f32[2048,1024]{1,0:T(8,128)} broadcast(a), dimensions={0}"), 2 * 256) << "and stored several times";
  EXPECT_EQ(moved(column + "f32[128,2048]{1,0:T(8,128)} broadcast(a), dimensions={1}"), 0);
  EXPECT_EQ(moved("a = f32[] parameter(0)\n ROOT r = f32[2048,128]{1,0:T(8,128)} broadcast(a), dimensions={}"), 0);
  EXPECT_EQ(moved("p = f32[2048]{0} parameter(0)\n a = f32[2048]{0} negate(p)\n ROOT r = f32[2048,128]{1,0} broadcast(a), dimensions={0}", true), 0) << "made in the kernel";
}

TEST(MovedLanes, WithoutALayoutNothingIsKnown) {
  EXPECT_EQ(moved("a = f32[] parameter(0)\n ROOT r = f32[] copy(a)"), 0);
  EXPECT_EQ(moved("a = f32[1,1]{1,0} parameter(0)\n ROOT r = f32[1,1]{0,1} copy(a)"), 0);
}

}  // namespace
}  // namespace podsim
