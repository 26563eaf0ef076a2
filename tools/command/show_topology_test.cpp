// What `show topology` says of large topologies, and that it can be told to end.
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::json_of;
using ::testing::HasSubstr;

TEST(ShowTopology, BoundsOfLargeTwistedToriAreComputed) {
  const auto large = json_of("show topology --machine tpu_v5p --slice 16x16x32 --topology twisted");
  const auto small = json_of("show topology --machine tpu_v5p --slice 8x8x16 --topology twisted");
  ASSERT_TRUE(large["all_to_all_bound_bytes_per_s"].is_number());
  EXPECT_FALSE(large.contains("all_to_all_bound_not_computed"));
  // Twice as long in every dimension: twice the distances and half the bound, but for ends: the chip itself, and displacements as long as others.
  EXPECT_NEAR(large["all_to_all_bound_bytes_per_s"].get<double>() / small["all_to_all_bound_bytes_per_s"].get<double>(), 0.5, 0.005);
  EXPECT_EQ(large["diameter"], 2 * small["diameter"].get<int>());
  EXPECT_EQ(large["links"], 8 * small["links"].get<int>());
}

TEST(ShowTopology, BoundsOfNetworksAreComputed) {
  const std::string ideal = "show topology --machine ideal --set link.bandwidth=10GB/s --slice 64x128 --topology ";
  const auto crossbar = json_of(ideal + "crossbar");
  EXPECT_DOUBLE_EQ(crossbar["all_to_all_bound_bytes_per_s"].get<double>(), 10e9);
  EXPECT_EQ(crossbar["diameter"], 2);
  EXPECT_EQ(crossbar["mean_distance"], 2);
  // Eight chips of a leaf share four links to the spines: half of what they send, but for what stays in the leaf.
  const auto tree = json_of(ideal + "fat-tree:8:2");
  EXPECT_NEAR(tree["all_to_all_bound_bytes_per_s"].get<double>(), 5e9 * 8191 / 8184, 1);
  EXPECT_EQ(tree["switches"], 1024 + 4);
  EXPECT_EQ(tree["diameter"], 4);
}

TEST(ShowTopology, WhatIsNotComputedSaysSo) {
  const std::string broken = "show topology --machine ideal --slice 64x65 --fail 0.0-0.1";
  const auto json = json_of(broken);
  EXPECT_TRUE(json["all_to_all_bound_bytes_per_s"].is_null());
  EXPECT_THAT(json["all_to_all_bound_not_computed"].get<std::string>(), HasSubstr("more than 2^24 routes"));
  EXPECT_TRUE(json["bisection_bandwidth_bytes_per_s"].is_number());
}

TEST(ShowTopology, EndsWhenTold) {
  std::ostringstream out, err;
  const std::atomic<bool> stop{true};
  Console console{out, err, false, &stop};
  EXPECT_EQ(run_command({"show", "topology", "--machine", "ideal", "--slice", "4x4", "--fail", "0.0-0.1"}, console), exit_interrupted);
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace podsim
