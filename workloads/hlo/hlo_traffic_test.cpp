// The bytes of scatters, which are in place.
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

}  // namespace
}  // namespace podsim
