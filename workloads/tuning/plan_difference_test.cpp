#include "workloads/tuning/plan_difference.hpp"

#include <gtest/gtest.h>

#include "workloads/tuning/test_tuning.hpp"

namespace podsim {
namespace {

/// Two plans for one block on 8 chips: features over 2 or over 4 of them.
struct Race {
  TuningRequest request;
  Tuning tuning;
};
Race race() {
  Race race;
  TransformerBlock block = testing::small_gated_block();
  block.heads = 8, block.kv_heads = 8, block.hidden = 512, block.head_dim = 64, block.ff = 2048, block.batch = 8, block.sequence = 512;
  race.request.workload = *workload_of(block, 8);
  for (const auto& [R, C] : {std::pair{2, 4}, {4, 2}, {1, 8}})
    race.request.systems.push_back(testing::slice_pod(*find_machine("tpu_v4"), {R, C}, R, C, Wrap::Rule::all));
  race.request.algorithms = {"collective", "meshslice"};
  race.request.engine = testing::des();
  race.request.threads = 1;
  auto tuning = tune(race.request);
  EXPECT_TRUE(tuning) << to_text(tuning.error());
  if (tuning) race.tuning = *std::move(tuning);
  return race;
}

TEST(Differences, AddUpToWhatAPlanLosesTheLargestFirst) {
  const Race r = race();
  ASSERT_GE(r.tuning.plans.size(), 2U);
  for (std::size_t p = 1; p < r.tuning.plans.size(); ++p) {
    const TunedPlan &best = r.tuning.plans[0], &other = r.tuning.plans[p];
    Picoseconds sum;
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (const PartDifference& difference : differences(best, other)) {
      const std::int64_t size = std::abs((difference.second - difference.first).count());
      EXPECT_NE(size, 0) << difference.name;
      EXPECT_LE(size, before) << difference.name;
      before = size;
      sum += difference.second - difference.first;
    }
    EXPECT_EQ(sum, other.time - best.time);
  }
  EXPECT_TRUE(differences(r.tuning.plans[0], r.tuning.plans[0]).empty());
}

TEST(Differences, CountARelayoutToTheStageBehindIt) {
  const auto part = [](const char* name, std::int64_t time) {
    WorkloadPart p;
    p.name = name;
    return TunedPart{p, {Picoseconds{time}, {}, {}}};
  };
  TunedPlan plain, turned;
  plain.parts = {part("ff2", 100)};
  turned.parts = {part("ff2 re-layout", 30), part("ff2", 90)};
  const auto found = differences(plain, turned);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "ff2");
  EXPECT_EQ(found[0].second - found[0].first, Picoseconds{20});
}

TEST(SplitOf, APlanIsItsTime) {
  const Race r = race();
  for (const TunedPlan& plan : r.tuning.plans) {
    const auto split = split_of(r.request, plan);
    ASSERT_TRUE(split);
    EXPECT_EQ(split->compute + split->exposed_communication + split->waiting, plan.time);
  }
}

/// What a plan takes with every link that many times as fast.
Picoseconds with_links(const Race& r, const TunedPlan& plan, double factor) {
  Machine machine = r.request.systems[plan.system].machine;
  for (LinkParameters& link : machine.link) link.bandwidth = factor * link.bandwidth;
  const auto system = with_machine(r.request.systems[plan.system], machine);
  EXPECT_TRUE(system) << to_text(system.error());
  return evaluate_plan(*system, r.request.workload, plan.plan, r.request.pass, *r.request.engine, 1)->time;
}

TEST(WhatFlips, TheOtherPlanIsFasterFromThereOnAndNotBefore) {
  const Race r = race();
  int flipped = 0;
  for (std::size_t p = 1; p < r.tuning.plans.size(); ++p) {
    const auto flips = what_flips(r.request, r.tuning.plans[0], r.tuning.plans[p]);
    ASSERT_TRUE(flips);
    for (const Flip& flip : *flips) {
      if (flip.parameter != "link bandwidth") continue;
      ++flipped;
      const double before = flip.factor < 1 ? flip.factor * 1.04 : flip.factor / 1.04;
      EXPECT_LT(with_links(r, r.tuning.plans[p], flip.factor), with_links(r, r.tuning.plans[0], flip.factor));
      EXPECT_GE(with_links(r, r.tuning.plans[p], before), with_links(r, r.tuning.plans[0], before));
    }
  }
  EXPECT_GT(flipped, 0) << "no plan of the race changes places with link bandwidth: choose another race";
}

}  // namespace
}  // namespace podsim
