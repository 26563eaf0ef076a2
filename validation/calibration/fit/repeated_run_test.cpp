// A run that keeps its model gives the times of one that makes it anew.
#include "validation/calibration/fit/repeated_run.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "sim/base/units.hpp"
#include "validation/calibration/fit/predict.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::some_machine;

/// One device's product of 256 x 512 x 256, of which the rows come from all.
Observation gathered_product(int devices, ObservedSchedule schedule) {
  Observation o = observed(ObservedOp::all_gather, "", devices, 256 * 256 * 2);
  o.m = 256 * devices, o.n = 512, o.k = 256;
  o.schedule = schedule;
  return o;
}

TEST(RepeatedRun, IsTheSimulatedTimeToThePicosecond) {
  const std::vector<std::pair<std::string, Observation>> cases{{"8", observed(ObservedOp::broadcast, "row", 8, 1 << 20)},
                                                               {"4x2", observed(ObservedOp::reduce, "row", 4, 1 << 16)},
                                                               {"4", gathered_product(4, ObservedSchedule::plain)},
                                                               {"8", gathered_product(8, ObservedSchedule::bidirectional)},
                                                               {"512", observed(ObservedOp::broadcast, "row", 512, 1 << 20)}};
  Rng rng{1, stream_of("repeated run")};
  for (const auto& [slice, observation] : cases) {
    SCOPED_TRACE(slice + " " + std::string{name_of(observation.op)});
    const auto system = std::make_shared<const System>(pod_with(some_machine(), slice));
    const auto lowered = lowered_schedule_of(observation, *system);
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    RepeatedRun run{*lowered, system};
    for (int turn = 0; turn < 12; ++turn) {
      Machine machine = system->machine;
      const auto some = [&](double most) { return most * (0.1 + rng.uniform()); };
      machine.chip.peak.fill(FlopsPerSecond{some(100e12)});
      machine.link.fill({BytesPerSecond{some(50e9)}, Seconds{some(1e-6)}});
      machine.software.per_message = Seconds{some(1e-6)};
      machine.software.launch.fill(Seconds{some(5e-6)});
      machine.chip.hbm_bandwidth = BytesPerSecond{some(1e12)};
      if (turn % 4 == 1) machine.software.core_share.fill(0.3);
      if (turn % 4 == 2) machine.chip.injection_bandwidth = BytesPerSecond{some(40e9)};  // a link that the kept model lacks
      if (turn % 4 == 3) machine.link.fill({unlimited<BytesPerSecond>, Seconds{1e-6}});
      const auto turned = with_machine(*system, machine);
      ASSERT_TRUE(turned) << to_text(turned.error());
      const auto kept = run.time_on(*turned, {}), anew = simulated_time(*lowered, *turned);
      ASSERT_TRUE(kept && anew);
      EXPECT_EQ(kept->count(), anew->count()) << "turn " << turn;
    }
  }
}

TEST(RepeatedRun, TakesTheTimeOfAnEarlierRunOnlyWhereAllCostsAreItsOwn) {
  // One value at a time, and back, as a Jacobian turns them: those of this operation, and of another.
  const auto system = std::make_shared<const System>(pod_with(some_machine(), "8"));
  const auto lowered = lowered_schedule_of(observed(ObservedOp::broadcast, "row", 8, 1 << 20), *system);
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  RepeatedRun run{*lowered, system};
  using Turn = void (*)(Machine&);
  const std::vector<std::pair<Turn, bool>> turns{{[](Machine&) {}, true},
                                                 {[](Machine& m) { m.link[0].bandwidth = 0.9 * m.link[0].bandwidth; }, false},
                                                 {[](Machine& m) { m.software.launch[static_cast<std::size_t>(CostKind::all_to_all)] = Seconds{1e-3}; }, true},
                                                 {[](Machine& m) { m.link[0].latency = 2 * m.link[0].latency + Seconds{1e-6}; }, false},
                                                 {[](Machine& m) { m.software.per_message = m.software.per_message + Seconds{1e-6}; }, false},
                                                 {[](Machine&) {}, true}};
  std::optional<Seconds> first;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    SCOPED_TRACE(i);
    Machine machine = system->machine;
    turns[i].first(machine);
    const auto turned = with_machine(*system, machine);
    ASSERT_TRUE(turned) << to_text(turned.error());
    const auto kept = run.time_on(*turned, {}), anew = simulated_time(*lowered, *turned);
    ASSERT_TRUE(kept && anew);
    if (!first) first = *kept;
    EXPECT_EQ(kept->count(), anew->count());
    EXPECT_EQ(*kept == *first, turns[i].second);
  }
}

TEST(RepeatedRun, KnowsTheDimensionsWhoseLinksItCrosses) {
  const auto system = std::make_shared<const System>(testing::open_pod(some_machine(), {2, 2, 4}, {{"x", 4}, {"y", 4}}));  // in the order of JAX, which lays x along the last
  for (const auto& [axis, first] : {std::pair{"x", false}, {"y", true}}) {
    const auto lowered = lowered_schedule_of(observed(ObservedOp::reduce_scatter, axis, 4, 1 << 20), *system);
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    RepeatedRun run{*lowered, system};
    for (const int dimension : {0, 1, 2}) EXPECT_TRUE(run.crosses(dimension)) << "not known before it ran";
    ASSERT_TRUE(run.time_on(*system, {}));
    EXPECT_EQ(run.crosses(0), first) << axis;
    EXPECT_EQ(run.crosses(1), first) << axis;
    EXPECT_EQ(run.crosses(2), !first) << axis;
  }
}

}  // namespace
}  // namespace podsim
