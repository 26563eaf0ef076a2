// The bytes of scatters, which are in place, and of fusions inside fusions.
#include <gtest/gtest.h>

#include "workloads/hlo/hlo_traffic.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

using test::module_of;

constexpr std::int64_t whole = 4096 * 128 * 4, updates = 8 * 128 * 4, indices = 8 * 4;
constexpr const char* places = ", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
constexpr const char* functions =
    "%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n%set { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\n";
constexpr const char* parameters = "t = f32[4096,128] parameter(0)\n i = s32[8,1] parameter(1)\n u = f32[8,128] parameter(2)\n ";

/// Of the instruction r of an entry.
HloTraffic::Amount amount_of(const std::string& entry, const std::string& fused = "") {
  const HloModule module = module_of(std::string{"HloModule m, is_scheduled=true\n"} + functions + fused + "ENTRY e { " + parameters + entry + " }\n");
  for (const HloInstruction& instruction : module.entry_computation().instructions)
    if (instruction.name == "r") return HloTraffic{module}.of(module.entry_computation(), instruction);
  ADD_FAILURE() << "no r";
  return {};
}
std::string scatter(const std::string& function) { return std::string{"ROOT r = f32[4096,128] scatter(t, i, u)"} + places + function; }
std::string in_fusion(const std::string& function) {
  return std::string{"%fused { "} + parameters + "n = f32[8,128] negate(u)\n ROOT s = f32[4096,128] scatter(t, i, n)" + places + function + " }\n";
}
constexpr const char* fusion = "ROOT r = f32[4096,128] fusion(t, i, u), kind=kInput, calls=%fused";

TEST(HloTraffic, AScatterInPlaceTouchesTheRowsOfItsUpdates) {
  EXPECT_EQ(amount_of(scatter("%set")), (HloTraffic::Amount{Bytes{indices + updates}, Bytes{updates}}));
  EXPECT_EQ(amount_of(scatter("%add")), (HloTraffic::Amount{Bytes{indices + 2 * updates}, Bytes{updates}})) << "it adds to what is there";
}

TEST(HloTraffic, AScatterInAFusionIsInPlaceToo) {
  EXPECT_EQ(amount_of(fusion, in_fusion("%set")), (HloTraffic::Amount{Bytes{indices + updates}, Bytes{updates}}));
  EXPECT_EQ(amount_of(fusion, in_fusion("%add")), (HloTraffic::Amount{Bytes{indices + 2 * updates}, Bytes{updates}}));
}

TEST(HloTraffic, AScatterIntoWhatTheFusionMakesWritesAllOfIt) {
  const std::string zeros = std::string{"%fused { "} + parameters + "z = f32[] constant(0)\n b = f32[4096,128] broadcast(z), dimensions={}\n ROOT s = f32[4096,128] scatter(b, i, u)" + places + "%add }\n";
  EXPECT_EQ(amount_of(fusion, zeros).written, Bytes{whole});
}

/// libtpu takes a layer out of stacked weights in a fusion inside the one of the product (a scan over 16 layers on v6e: 1.34 ms before, 142 us by libtpu's cycles).
TEST(HloTraffic, AFusionInsideAFusionReadsTheRowsThatItSlices) {
  const std::string sliced =
      "%inner { t = f32[4096,128] parameter(0)\n o = s32[] parameter(1)\n z = s32[] constant(0)\n ROOT d = f32[8,128] dynamic-slice(t, o, z), dynamic_slice_sizes={8,128} }\n"
      "%fused { t = f32[4096,128] parameter(0)\n o = s32[] parameter(1)\n c = f32[4096,128] bitcast(t)\n w = f32[8,128] fusion(c, o), kind=kLoop, calls=%inner\n ROOT n = f32[8,128] negate(w) }\n";
  const std::string entry = "o = s32[] parameter(3)\n ROOT r = f32[8,128] fusion(t, o), kind=kLoop, calls=%fused";
  EXPECT_EQ(amount_of(entry, sliced), (HloTraffic::Amount{Bytes{updates + 4}, Bytes{updates}}));
  std::string also_whole = sliced;
  also_whole.replace(also_whole.find("ROOT n = f32[8,128] negate(w)"), 29, "x = f32[4096,128] negate(t)\n ROOT n = f32[8,128] negate(w)");
  EXPECT_EQ(amount_of(entry, also_whole).read, Bytes{whole + 4}) << "the outer one reads all of it too";
}

TEST(HloTraffic, AFusionInsideAFusionWritesTheRowsThatItUpdates) {
  const auto updated = [](const std::string& made) {
    return "%inner { t = f32[4096,128] parameter(0)\n u = f32[8,128] parameter(1)\n z = s32[] constant(0)\n ROOT d = f32[4096,128] dynamic-update-slice(t, u, z, z) }\n"
           "%fused { t = f32[4096,128] parameter(0)\n u = f32[8,128] parameter(1)\n " + made + " n = f32[8,128] negate(u)\n w = f32[4096,128] fusion(c, n), kind=kLoop, calls=%inner\n ROOT b = f32[4096,128] bitcast(w) }\n";
  };
  const std::string entry = "ROOT r = f32[4096,128] fusion(t, u), kind=kLoop, calls=%fused";
  EXPECT_EQ(amount_of(entry, updated("c = f32[4096,128] bitcast(t)\n")), (HloTraffic::Amount{Bytes{updates}, Bytes{updates}}));
  EXPECT_EQ(amount_of(entry, updated("c = f32[4096,128] negate(t)\n")), (HloTraffic::Amount{Bytes{whole + updates}, Bytes{whole}})) << "the old array is made inside";
}

}  // namespace
}  // namespace podsim
