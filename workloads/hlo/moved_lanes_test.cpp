// What is moved to other lanes or sublanes of a TPU's vector registers; cycles are those of the code that libtpu makes (validation/aot/README.md, Lanes and sublanes).
#include <gtest/gtest.h>

#include <algorithm>

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
}

/// Stores of a reshape for each register.
double stores(const std::string& from, const std::string& to) {
  const HloModule module = module_of("HloModule m, is_scheduled=true\nENTRY e { a = " + from + " parameter(0)\n ROOT r = " + to + " reshape(a) }\n");
  const HloComputation& entry = module.entry_computation();
  const auto shape = [&](std::size_t i) { return *entry.instructions[i].shape; };
  return stores_of_reshape(shape(0), shape(1)) / 512;
}
std::string f32_of(const std::string& dims, int rows = 8) {
  const bool is_cube = std::ranges::count(dims, ',') == 2;
  return "f32[" + dims + "]{" + (is_cube ? "2,1,0" : "1,0") + ":T(" + std::to_string(rows) + ",128)}";
}

/// Of 512 registers; behind each the bundles of v5e's code, which has a store in all but a few.
TEST(MovedLanes, AReshapeBetweenTilesOfFewAndOfEightRowsIsStoredInParts) {
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("256,2,1024", 2)), 8) << "4171";
  EXPECT_EQ(stores(f32_of("256,2,1024", 2), f32_of("512,1024")), 8) << "4171";
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("128,4,1024", 4)), 4) << "2123";
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("2,262144", 2)), 12) << "6155";
  EXPECT_EQ(stores(f32_of("2,262144", 2), f32_of("512,1024")), 12) << "6155";
  EXPECT_EQ(stores(f32_of("4,131072", 4), f32_of("512,1024")), 10) << "5131";
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("512,2,512", 2)), 12) << "6219";
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("512,4,256", 4)), 6) << "3147";
  EXPECT_EQ(stores("bf16[512,1024]{1,0:T(8,128)(2,1)}", "bf16[256,2,1024]{2,1,0:T(2,128)(2,1)}"), 8) << "4223";
}

TEST(MovedLanes, AReshapeIntoRowsOfAnotherLengthMovesEachRowOfARegister) {
  EXPECT_EQ(stores(f32_of("1024,512"), f32_of("512,1024")), 5) << "2632";
  EXPECT_EQ(stores(f32_of("1024,512"), f32_of("256,2048")), 7) << "3656";
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("16,32768")), 8) << "4168";
  EXPECT_EQ(stores(f32_of("256,2048"), f32_of("512,1024")), 2) << "1096";
  EXPECT_EQ(stores(f32_of("256,2048"), f32_of("1024,512")), 4) << "2120";
  EXPECT_EQ(stores(f32_of("256,2048"), f32_of("2048,256")), 4) << "2120";
  EXPECT_EQ(stores(f32_of("128,4096"), f32_of("1024,512")), 8) << "4168";
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("4096,128")), 2) << "1096";
  EXPECT_EQ(stores(f32_of("1024,512"), f32_of("4096,128")), 1) << "584";
  EXPECT_EQ(stores("f32[524288]{0:T(1024)}", f32_of("512,1024")), 2) << "1096";
  EXPECT_EQ(stores(f32_of("512,896"), f32_of("896,512")), 7) << "8 for each of 448 registers: 3556";
  EXPECT_EQ(stores(f32_of("8192,64"), f32_of("1024,512")), 4) << "2085";
}

TEST(MovedLanes, AReshapeThatKeepsTilesStoresNothing) {
  EXPECT_EQ(stores(f32_of("512,1024"), f32_of("64,8,1024")), 0);
  EXPECT_EQ(stores(f32_of("42,12,1024"), f32_of("504,1024")), 2 * 504 / 512.0) << "846: rows of half a tile are put together";
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

/// Of a square, at computed places or at constants.
TEST(MovedLanes, APartAtAnIndexThatNoRegisterDividesIsShifted) {
  const auto part = [](const std::string& more, const std::string& root, bool is_fused = false) { return moved("a = " + square() + " parameter(0)\n i = s32[] parameter(1)\n z = s32[] constant(0)\n " + more + "ROOT r = " + root, is_fused); };
  const auto known = [](const std::string& first, const std::string& second) { return ", backend_config={\"indices_config\":{\"index_known_bits\":[{\"zeroes\":\"" + first + "\",\"ones\":\"0\",\"bitwidth\":\"32\"},{\"zeroes\":\"" + second + "\",\"ones\":\"0\",\"bitwidth\":\"32\"}]}}"; };
  const std::string all = "4294967295", ten_bits = "4294966272", by_128 = "4294966399";
  const std::string lanes = "f32[512,256]{1,0:T(8,128)} dynamic-slice(a, z, i), dynamic_slice_sizes={512,256}", rows = "f32[256,512]{1,0:T(8,128)} dynamic-slice(a, i, z), dynamic_slice_sizes={256,512}";
  EXPECT_EQ(part("", lanes), 2 * 128) << "code of v5e: 2.8 for each register";
  EXPECT_EQ(part("", lanes + known(all, ten_bits)), 2 * 128);
  EXPECT_EQ(part("", lanes + known(all, by_128)), 0) << "as the compiler knows";
  EXPECT_EQ(part("", rows), 128) << "code of v5e: 1.1";
  const std::string update = "u = f32[512,256]{1,0:T(8,128)} parameter(2)\n ", of_rows = "u = f32[256,512]{1,0:T(8,128)} parameter(2)\n ";
  const std::string constants = "c = s32[] constant(3)\n o = s32[] constant(128)\n ";
  EXPECT_EQ(part(update, square() + " dynamic-update-slice(a, u, z, i)"), 7 * 128) << "code of v5e: 13 for each register of f32[1024,2048], 6.9 of f32[512,1]";
  EXPECT_EQ(part(update, square() + " dynamic-update-slice(a, u, z, i)", true), 2 * 128);
  EXPECT_EQ(part(update + constants, square() + " dynamic-update-slice(a, u, z, c)"), 7 * 128);
  EXPECT_EQ(part(update + constants, square() + " dynamic-update-slice(a, u, z, o)"), 0);
  EXPECT_EQ(part(of_rows, square() + " dynamic-update-slice(a, u, i, z)"), 3 * 128) << "code of v5e: 3.4";
  EXPECT_EQ(part(of_rows + constants, square() + " dynamic-update-slice(a, u, o, z)"), 0);
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
