#include "workloads/scenario/cut_bound.hpp"

#include <gtest/gtest.h>

#include "sim/base/test_cases.hpp"
#include "tools/command/test_command.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

double share(const std::string& line) {
  const auto found = test::json_of("run " + line)["share_of_cut_bound"];
  EXPECT_FALSE(found.is_null()) << line;
  return found.is_null() ? 0 : found.get<double>();
}

TEST(CutBound, IsReachedWhereAlgorithmsAreKnownToBeOptimal) {
  for (const std::string kind : {"all-gather", "reduce-scatter", "all-reduce"})
    EXPECT_NEAR(share("--machine ideal --slice 8 --bytes 64MiB --algorithm ring --collective " + kind), 1, 1e-6) << kind;
  EXPECT_NEAR(share("--machine ideal --slice 4x4 --wrap none --bytes 64MiB --collective all-gather"), 1, 1e-6) << "both links of a corner";
  EXPECT_NEAR(share("--machine dgx_h100 --slice 1x8 --bytes 1GiB --collective all-gather --set chip.own_block_bandwidth=unlimited"), 1, 0.01);
  EXPECT_GE(share("--machine dgx_h100 --slice 2x8 --bytes 1GiB --collective all-reduce --set link.in_switch_efficiency=0"), 0.9);
}

TEST(CutBound, IsNeverAboveAnyAlgorithm) {
  for (const std::string on : {"--machine ideal --slice 4x4", "--machine ideal --slice 2x3x4 --wrap none", "--machine dgx_h100 --slice 2x8", "--machine tpu_v3 --slice 2x4",
                               "--machine dgx_a100 --slice 3x4 --mesh a=12", "--machine tpu_v5e --slice 4x4 --pods 2"})
    for (const std::string kind : {"all-gather", "reduce-scatter", "all-reduce"})
      for (const bool all : {true, false}) {
        if (test::sanitized && (all || kind == "reduce-scatter")) continue;
        const std::string axis = on.find("mesh a=") != std::string::npos ? "a" : "row";
        const auto rows = test::json_of("compare " + on + " --bytes 8448KiB --collective " + kind + (all ? "" : " --axis " + axis));
        for (const auto& row : rows["rows"])
          EXPECT_LE(row["share_of_cut_bound"].is_null() ? 0 : row["share_of_cut_bound"].get<double>(), 1 + 1e-9) << on << " " << kind << " " << row["algorithm"];
      }
}

TEST(CutBound, SaysWhyThereIsNone) {
  const System system = testing::system_with({{"machine", "ideal"}, {"slice", "8"}});
  Collective collective;
  collective.kind = CollectiveKind::all_to_all;
  collective.axes = {system.mesh.whole(0)};
  EXPECT_EQ(cut_bound(system, collective, Bytes{64}).none, "known for all-gather, reduce-scatter and all-reduce");
  const System large = testing::system_with({{"machine", "ideal"}, {"slice", "128x64"}});
  collective.kind = CollectiveKind::all_gather;
  EXPECT_EQ(cut_bound(large, collective, Bytes{64}).none, "not computed for more than 4096 chips");
}

}  // namespace
}  // namespace podsim
