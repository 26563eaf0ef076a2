#include "sim/analysis/operations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/analysis/metrics.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

constexpr Picoseconds ps(std::int64_t count) { return Picoseconds{count}; }
constexpr Interval at(std::int64_t begin, std::int64_t end) { return {ps(begin), ps(end)}; }

TEST(ExposedBy, AMomentCountsToWhatTheCoreWaitsFor) {
  // Idle from 10 to 30; 1 ends as the core goes on, 0 goes on beyond it though it began first.
  EXPECT_THAT(exposed_by({at(0, 10), at(30, 40)}, {{at(5, 50), 0}, {at(12, 30), 1}}, 2), ElementsAre(ps(10 + 2), ps(18)));
}

TEST(ExposedBy, OfThoseThatEndInTimeTheLastCountsAndOfOthersTheFirstToBegin) {
  EXPECT_THAT(exposed_by({at(0, 10), at(30, 40)}, {{at(0, 20), 0}, {at(0, 28), 1}}, 2), ElementsAre(ps(0), ps(18)));
  EXPECT_THAT(exposed_by({at(0, 10), at(30, 90)}, {{at(8, 60), 0}, {at(2, 70), 1}}, 2), ElementsAre(ps(0), ps(20)));
}

TEST(ExposedBy, FlightsInPiecesAndBehindTheLastWorkCount) {
  EXPECT_THAT(exposed_by({at(10, 20)}, {{at(0, 5), 0}, {at(7, 12), 0}, {at(15, 33), 1}, {at(40, 40), 1}}, 2), ElementsAre(ps(5 + 3), ps(13)));
  EXPECT_THAT(exposed_by({}, {}, 1), ElementsAre(ps(0)));
}

TEST(WithoutSlice, DropsOnlyTheNumberOfASlice) {
  EXPECT_EQ(without_slice("ff1: gather W s12 launch"), "ff1: gather W launch");
  EXPECT_EQ(without_slice("s1 sum s2x"), "sum s2x");
  EXPECT_EQ(without_slice(""), "");
}

TEST(MeasureOperations, SumsToTheSplitOfEveryDeviceOnRandomPrograms) {
  int exposed = 0, overlapped = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    if (!topological_order(unroll(schedule).graph, schedule, true).cycle.empty()) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    Machine machine = testing::ideal_machine(3e8, 1e-8);
    machine.chip.hbm_bandwidth = BytesPerSecond{5e8};
    machine.software.launch.fill(Seconds{2e-8});
    std::vector<int> extents;
    std::vector<std::pair<std::string, int>> sizes;
    for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
    const testing::SmallSystem pod = testing::small_system(machine, extents, true, sizes);
    const auto model = testing::model_of(pod, schedule);
    const auto timeline = testing::run(pod, schedule, "des");
    ASSERT_TRUE(model && timeline);
    for (const DeviceMetrics& device : measure_devices(*model, *timeline)) {
      TimeSplit split{{}, {}, device.split.waiting};
      for (const OperationMetrics& operation : measure_operations(*model, *timeline, device.device)) {
        split.compute += operation.busy;
        split.exposed_communication += operation.exposed;
        exposed += operation.exposed > Picoseconds{} ? 1 : 0;
        overlapped += operation.overlapped > Picoseconds{} ? 1 : 0;
      }
      ASSERT_EQ(split, device.split);
    }
  }
  EXPECT_GT(exposed, 100);
  EXPECT_GT(overlapped, 100);
}

}  // namespace
}  // namespace podsim
