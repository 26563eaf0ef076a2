#include "workloads/hlo/hlo_shape.hpp"

#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::shape_of;

std::string shape_error(std::string_view text) {
  const auto shape = parse_hlo_shape(text, {"s", 1, 1});
  return shape ? "" : to_text(shape.error());
}

// docs/tiled_layout.md of XLA: dimensions are rounded up to the tile.
TEST(HloShape, TilesRoundUpTheMostMinorDimensions) {
  EXPECT_EQ(device_bytes(shape_of("f32[3,100]{1,0:T(8,128)}")), Bytes{8 * 128 * 4});
  EXPECT_EQ(device_bytes(shape_of("f32[3,100]{0,1:T(8,128)}")), Bytes{104 * 128 * 4});
  EXPECT_EQ(device_bytes(shape_of("bf16[5,9,300]{2,1,0:T(8,128)(2,1)}")), Bytes{5 * 16 * 384 * 2});
  EXPECT_EQ(device_bytes(shape_of("f32[]{:T(128)}")), Bytes{512});
  EXPECT_EQ(device_bytes(shape_of("s8[1000]{0:T(1024)(128)(4,1)}")), Bytes{1024});
  EXPECT_EQ(device_bytes(shape_of("f32[2,3,5]{2,1,0:T(2,*,128)}")), Bytes{2 * 128 * 4});
  EXPECT_EQ(device_bytes(shape_of("f32[0,7]{1,0:T(8,128)}")), Bytes{});
  EXPECT_EQ(logical_bytes(shape_of("f32[3,100]{1,0:T(8,128)}")), Bytes{1200});
}

TEST(HloShape, TypesBelowAByteArePackedWhereTheLayoutSaysSo) {
  EXPECT_EQ(logical_bytes(shape_of("s4[3,3]")), Bytes{5});
  EXPECT_EQ(device_bytes(shape_of("s4[3,3]")), Bytes{9});
  EXPECT_EQ(device_bytes(shape_of("s4[3,3]{1,0:E(4)}")), Bytes{5});
  EXPECT_EQ(logical_bytes(shape_of("pred[10]")), Bytes{10});
  EXPECT_EQ(logical_bytes(shape_of("(f32[2], token[], (c64[3], u8[1]))")), Bytes{8 + 24 + 1});
}

TEST(HloShape, BytesAreToldByMemorySpace) {
  const HloShape tuple = shape_of("(f32[8]{0:S(1)}, f32[4]{0}, f32[2]{0:S(5)})");
  EXPECT_EQ(device_bytes_in(tuple, HloMemory::vmem), Bytes{32});
  EXPECT_EQ(device_bytes_in(tuple, HloMemory::hbm), Bytes{16});
  EXPECT_EQ(device_bytes_in(tuple, HloMemory::host), Bytes{8});
}

TEST(HloShape, PrintsWhatItReads) {
  for (const char* text : {"f32[]", "bf16[512,1024]{1,0:T(8,128)(2,1)}", "(s32[]{:T(128)}, (), (f8e4m3fn[<=4,?]))", "token[]",
                           "s8[8]{0:T(1024)(128)(4,1)S(1)}", "f32[4,4]{1,0:D(D,C)}", "f32[4]{0:T(128)L(1024)E(32)S(5)}", "u32[3]{0:#(u32)*(u64)}"}) {
    const HloShape shape = shape_of(text);
    EXPECT_EQ(to_text(shape), text);
    EXPECT_EQ(shape_of(to_text(shape)), shape);
  }
  EXPECT_EQ(short_text(shape_of("(bf16[2,3]{1,0:T(8,128)}, f32[])")), "(bf16[2,3], f32[])");
}

TEST(HloShape, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(shape_error("f33[2]"), "s:1:1: expected a shape such as f32[8,128], got \"f33[2]\"");
  EXPECT_EQ(shape_error("f32[2,x]"), "s:1:7: expected a dimension from 0 to 2^53, got \"x]\"");
  EXPECT_EQ(shape_error("f32[2"), "s:1:6: expected \",\" and the next dimension, or \"]\", got the end");
  EXPECT_EQ(shape_error("f32[2,2]{1,1}"), "s:1:12: expected each of the 2 dimensions once in a layout, got \"1}\"");
  EXPECT_EQ(shape_error("f32[8,128]{1,0:T(99999999999,128)}"), "s:1:18: expected a tile of at most 1048576 elements, got \"99999999999,128)}\"");
  EXPECT_EQ(shape_error("f32[8,128]{1,0:T(8192,256)}"), "s:1:23: expected a tile of at most 1048576 elements, got \"256)}\"");
  EXPECT_EQ(shape_error("f32[2]{0:S(8)}"), "");
  EXPECT_EQ(shape_error("f32[2]{0:S(999)}"), "s:1:12: expected a memory space from 0 to 31, got \"999)}\"");
  EXPECT_EQ(shape_error("f32[2]{0:T(0)}"), "s:1:12: expected the extent of a tile, got \"0)}\"");
  EXPECT_EQ(shape_error("(f32[2], f32[9007199254740992,9007199254740992])"),
            "s:1:10: expected a shape of at most 2^60 bytes, got \"f32[9007199254740992,9007199254740992])\"");
  EXPECT_NE(shape_error(std::string(1000, '(')), "");
}

// Seeded: random layouts against the rounding done dimension by dimension.
TEST(HloShape, PaddedBytesAreThoseOfTheDefinition) {
  Rng random{7};
  for (int round = 0; round < 1000; ++round) {
    const auto rank = static_cast<std::size_t>(random.below(5));
    HloShape shape{HloType::bf16};
    std::vector<std::int64_t> physical;  // minor first
    for (std::size_t d = 0; d < rank; ++d) {
      shape.dims.push_back(1 + static_cast<std::int64_t>(random.below(40)));
      shape.layout.minor_to_major.push_back(static_cast<std::int64_t>(d));
    }
    for (std::size_t d = rank; d > 1; --d) std::swap(shape.layout.minor_to_major[d - 1], shape.layout.minor_to_major[random.below(d)]);
    for (const std::int64_t d : shape.layout.minor_to_major) physical.push_back(shape.dims[static_cast<std::size_t>(d)]);
    std::vector<std::int64_t> tile;
    for (std::uint64_t d = random.below(4); d > 0; --d) tile.push_back(1 + static_cast<std::int64_t>(random.below(16)));
    if (!tile.empty()) shape.layout.tiles.push_back(tile);
    std::int64_t expected = 2;
    for (std::size_t d = 0; d < std::max(rank, tile.size()); ++d) {
      const std::int64_t extent = d < rank ? physical[d] : 1, at = d < tile.size() ? tile[tile.size() - 1 - d] : 1;
      std::int64_t padded = extent;
      while (padded % at != 0) ++padded;
      expected *= padded;
    }
    ASSERT_EQ(device_bytes(shape).count(), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace podsim
