// Tangents of simulated times: equal to these where the same transfers decide, and cheap.
#include "validation/calibration/fit/tangent_time.hpp"

#include <gtest/gtest.h>

#include "validation/calibration/fit/predict.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::some_machine;

Machine random_machine(Rng& rng) {
  Machine machine = some_machine();
  const auto between = [&](double low, double high) { return low * std::pow(high / low, rng.uniform()); };
  machine.link.fill({BytesPerSecond{between(1e10, 1e11)}, Seconds{between(1e-7, 3e-6)}});
  machine.software.per_message = Seconds{between(1e-8, 3e-6)};
  machine.software.launch.fill(Seconds{between(1e-6, 1e-5)});
  machine.chip.reduce_bandwidth = BytesPerSecond{between(1e11, 1e12)};
  if (rng.below(2) == 0) machine.chip.injection_bandwidth = BytesPerSecond{between(1e10, 1e11)};
  for (auto& curve : machine.software.efficiency) curve = {{Bytes{1024}, between(0.3, 1)}, {Bytes{1 << 24}, between(0.7, 1)}};
  return machine;
}

/// Everything takes `times` as long.
Machine slower(Machine machine, double times) {
  for (LinkParameters& link : machine.link) link = {BytesPerSecond{link.bandwidth.count() / times}, times * link.latency};
  machine.software.per_message = times * machine.software.per_message;
  for (Seconds& launch : machine.software.launch) launch = times * launch;
  for (BytesPerSecond* rate : {&machine.chip.reduce_bandwidth, &machine.chip.injection_bandwidth, &machine.chip.hbm_bandwidth})
    *rate = BytesPerSecond{rate->count() / times};
  return machine;
}

System square_and_line(const Machine& machine) { return testing::open_pod(machine, {2, 2, 4}, {{"x", 4}, {"y", 4}}); }

struct Watched {
  std::shared_ptr<const System> system;
  std::shared_ptr<TangentTime> tangent;
  int runs = 0;
  System on{};

  TangentTime::OnMachine on_machine() {
    return [this](const System& from, const Machine& machine) -> const System& {
      ++runs;
      on = *with_machine(from, machine);
      return on;
    };
  }
  double simulated(const Machine& machine) { return tangent->simulated(machine, on_machine(), {})->count(); }
  double touch(const Machine& machine) { return *tangent->touch(machine, on_machine(), {}); }
  double at(const Machine& machine) { return tangent->at(machine).count(); }
};

Watched watched(const Observation& o, const System& system) {
  Watched result{std::make_shared<const System>(system), nullptr};
  const auto schedule = schedule_of(o, *result.system);
  const auto lowered = lowered_schedule_of(o, *result.system);
  EXPECT_TRUE(schedule && lowered);
  const auto& collective = std::get<Collective>(schedule->computes);
  result.tangent = std::make_shared<TangentTime>(std::make_shared<RepeatedRun>(*lowered, result.system), cost_kind_of(collective.kind),
                                                 bytes_of(schedule->programs.front(), collective.input));
  return result;
}

const std::vector<Observation> simulated_rows{observed(ObservedOp::reduce_scatter, "x", 4, 1 << 22),
                                              observed(ObservedOp::all_gather, "y", 4, 1 << 18),
                                              observed(ObservedOp::reduce_scatter, "y", 4, 1 << 20), observed(ObservedOp::permute, "y", 4, 1 << 24),
                                              observed(ObservedOp::broadcast, "x", 4, 1 << 20)};

TEST(TangentTime, IsTheSimulatedTimeWhereTheSameTransfersDecide) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Rng rng{seed, 5};
    const Machine machine = random_machine(rng);
    const System system = square_and_line(machine);
    for (const Observation& row : simulated_rows) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " " + std::string{name_of(row.op)} + " " + row.axis);
      Watched run = watched(row, system);
      run.touch(machine);
      EXPECT_DOUBLE_EQ(run.at(machine), run.simulated(machine));
      // What takes three times as long in every part takes that as a whole, by the same path. Slopes are of thousandths of values and whole
      // picoseconds.
      const Machine slow = slower(machine, 3);
      EXPECT_NEAR(run.at(slow) / run.simulated(slow), 1, 1e-4);
      // A launch is added, whatever it is.
      Machine launched = machine;
      launched.software.launch.fill(Seconds{5e-4});
      launched.software.launch.at(static_cast<std::size_t>(CostKind::local)) = machine.software.launch.at(static_cast<std::size_t>(CostKind::local));
      EXPECT_NEAR(run.at(launched) / run.simulated(launched), 1, 1e-4);
    }
  }
}

TEST(TangentTime, SaysHowFarItWasAndMeetsTheTimeThen) {
  Rng rng{3, 5};
  const Machine machine = random_machine(rng);
  Machine other = machine;  // where others decide: what is short waits for what is far
  for (LinkParameters& link : other.link) link = {20 * link.bandwidth, 20 * link.latency};
  int far = 0;
  for (const Observation& row : simulated_rows) {
    Watched run = watched(row, square_and_line(machine));
    EXPECT_EQ(run.touch(machine), 1) << "there was none";
    EXPECT_EQ(run.touch(machine), 0);
    const double before = run.at(other), missed = run.touch(other);
    EXPECT_NEAR(missed, std::abs(before - run.simulated(other)) / run.simulated(other), 1e-6);
    EXPECT_DOUBLE_EQ(run.at(other), run.simulated(other));
    far += missed > 1e-3;
  }
  EXPECT_GT(far, 0) << "where the same transfers decide everywhere, there was nothing to find";
}

TEST(TangentTime, SimulatesOncePerPlaceAndOncePerValue) {
  Rng rng{1, 5};
  const Machine machine = random_machine(rng);
  Watched run = watched(simulated_rows.front(), square_and_line(machine));
  run.touch(machine);
  const int first = run.runs;
  EXPECT_LE(first, 1 + static_cast<int>(unit_costs));
  for (int i = 0; i < 1000; ++i) run.at(slower(machine, 1 + 1e-4 * i));
  run.touch(machine);
  EXPECT_EQ(run.runs, first) << "known, and a sum";
  const Machine slow = slower(machine, 1.5);
  run.touch(slow);
  EXPECT_EQ(run.runs, first + 1) << "the tangent meets this time too";
}

}  // namespace
}  // namespace podsim
