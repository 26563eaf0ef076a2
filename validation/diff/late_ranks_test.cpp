#include "validation/diff/late_ranks.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

constexpr std::int64_t us = 1'000'000;  // in ps

ProfiledOperation operation(const std::string& name, const std::string& category, int group = 0) {
  ProfiledOperation made;
  made.name = name, made.category = category, made.group = group;
  return made;
}

/// Devices on clocks of their own: of each collective how long it lasts, one after the other.
ProfiledStep step_of(const std::vector<std::vector<std::int64_t>>& lasted, int group = 0) {
  ProfiledStep step;
  for (std::size_t d = 0; d < lasted.size(); ++d) {
    ProfiledDeviceStep device;
    device.device = "/device:GPU:" + std::to_string(d);
    device.step.operations = {operation("all-reduce.1", "all-reduce", group), operation("fusion.2", "elementwise")};
    std::int64_t at = static_cast<std::int64_t>(d) * 7 * us;
    for (std::size_t i = 0; i < lasted[d].size(); ++i) {
      device.events.push_back({at, at + 500 * us, 500 * us, 1, 1, static_cast<std::uint32_t>(i)});
      device.events.push_back({at + 500 * us, at + 500 * us + lasted[d][i] * us, lasted[d][i] * us, 0, 0, static_cast<std::uint32_t>(i)});
      at += 1000 * us;
    }
    step.devices.push_back(std::move(device));
  }
  return step;
}

TEST(LateRanks, TheRankWithTheShortestCollectiveIsTheOneThatTheOthersWaitFor) {
  const LateRanks late = late_ranks(step_of({{50, 30}, {10, 40}, {60, 10}}));
  ASSERT_EQ(late.ranks.size(), 3U);
  EXPECT_NEAR(late.ranks[0].waited.count(), 60e-6, 1e-12) << "40 us for rank 1, 20 for rank 2";
  EXPECT_NEAR(late.ranks[0].waited_for[1].count(), 40e-6, 1e-12);
  EXPECT_NEAR(late.ranks[0].waited_for[2].count(), 20e-6, 1e-12);
  EXPECT_EQ(late.ranks[1].times_last, 1);
  EXPECT_NEAR(late.ranks[1].others_waited.count(), 90e-6, 1e-12);
  EXPECT_EQ(late.ranks[0].times_last, 0);
  ASSERT_EQ(late.collectives.size(), 1U);
  EXPECT_EQ(late.collectives[0].count, 2);
  EXPECT_NEAR(late.collectives[0].longest.count(), 50e-6, 1e-12);
  EXPECT_NEAR(late.collectives[0].waited.count(), 140e-6, 1e-12);
  EXPECT_NEAR(late.collectives[0].lateness[1].count(), 50e-6, 1e-12) << "as late as rank 2 is early, then the first";
  EXPECT_TRUE(late.notes.empty());
}

TEST(LateRanks, NoiseIsNoWaitAndNobodyIsLast) {
  ProfiledStep step = step_of({{50}, {50}});
  step.devices[1].events.back().end_ps += us / 2;
  const LateRanks late = late_ranks(step);
  EXPECT_EQ(late.ranks[0].times_last + late.ranks[1].times_last, 0);
  EXPECT_EQ(late.collectives.at(0).waited, Seconds{});
}

TEST(LateRanks, AStartAndItsDoneAreOneCollective) {
  ProfiledStep step = step_of({{50}, {20}});
  for (ProfiledDeviceStep& device : step.devices) {
    ProfiledDeviceStep::Event done = device.events.back();
    device.events.back().end_ps = device.events.back().begin_ps + us;
    done.begin_ps = done.end_ps - us;
    device.events.push_back(done);
  }
  EXPECT_NEAR(late_ranks(step).ranks[0].waited.count(), 30e-6, 1e-12);
}

TEST(LateRanks, WhatCannotBeToldIsLeftOutWithANote) {
  const LateRanks grouped = late_ranks(step_of({{50}, {20}, {50}, {20}}, 2));
  EXPECT_TRUE(grouped.collectives.empty());
  ASSERT_EQ(grouped.notes.size(), 1U);
  EXPECT_EQ(late_ranks(step_of({{50, 20}, {20}})).notes.size(), 1U);
  EXPECT_TRUE(late_ranks(step_of({{50}})).collectives.empty()) << "nobody to wait for";
}

}  // namespace
}  // namespace podsim
