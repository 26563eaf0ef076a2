// What stands above the tasks of a device.
#include "tools/report/trace_levels.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"
#include "tools/report/testing.hpp"

namespace podsim {
namespace {

using testing::copy;
using ::testing::ElementsAre;
using testing::part;
using testing::Writer;

/// Each task a nanosecond on one core, one after the other: the levels as "depth name begin-end".
std::vector<std::string> levels_above(const std::vector<std::string>& labels) {
  Writer w({{"x", 1, true}});
  const BufferId a = w.scratch("a", {1}), b = w.scratch("b", {1});
  for (const std::string& label : labels) w.add(label, copy(part(a, 0, 1), part(b, 0, 1)));
  const Program& program = w.schedule.programs.front();
  DeviceEvents events{{"compute"}, {}};
  for (std::size_t t = 0; t < labels.size(); ++t) {
    const auto at = static_cast<std::int64_t>(t);
    TraceEvent event{Picoseconds{1000 * at}, Picoseconds{1000 * at + 1000}, TaskId{t}, {}};
    event.on_core = true;
    events.events.push_back(event);
  }
  const ProgramLevels levels = levels_of(program);
  std::vector<std::string> lines;
  for (const LevelSpan& span : levels_of(levels, program, events, Picoseconds{100'000}).steps)
    lines.push_back(fmt::format("{} {}{} {}-{}", levels.levels[span.of].depth, levels.levels[span.of].name,
                                span.number > 0 ? fmt::format(" {}", span.number) : "", span.begin.count() / 1000, span.end.count() / 1000));
  return lines;
}

TEST(TraceLevels, ABlockHasPassesAndLayers) {
  EXPECT_THAT(levels_above({"norm: norm", "ff1: cut W s0", "ff1: matmul s0", "ff1 backward: dX: matmul", "ff1 backward: dW: matmul",
                            "norm backward: norm-grad"}),
              ElementsAre("0 step 0-100", "1 forward 0-3", "2 norm 0-1", "2 ff1 1-3", "1 backward 3-6", "2 ff1 backward 3-5", "3 dX 3-4", "3 dW 4-5",
                          "2 norm backward 5-6"));
}

TEST(TraceLevels, WithoutABackwardPassThereAreOnlyLayers) {
  EXPECT_THAT(levels_above({"C: @", "C: relu", "D: @"}), ElementsAre("0 step 0-100", "1 C 0-2", "1 D 2-3"));
}

TEST(TraceLevels, APipelineHasItsMicrobatches) {
  EXPECT_THAT(levels_above({"fwd_0__0 layer 0", "fwd_0__0 layer 1", "fwd_0__1 layer 0", "bwd_0__0 layer 1", "bwd_0__0 layer 0", "fwd_0__2 layer 0",
                            "update layer 0"}),
              ElementsAre("0 step 0-100", "1 forward 0-3", "2 microbatch 0 0-2", "3 layer 0 0-1", "3 layer 1 1-2", "2 microbatch 1 2-3",
                          "3 layer 0 2-3", "1 backward 3-5", "2 microbatch 0 3-5", "3 layer 1 3-4", "3 layer 0 4-5", "1 forward 5-6",
                          "2 microbatch 2 5-6", "3 layer 0 5-6", "1 optimiser 6-7", "2 layer 0 6-7"));
}

TEST(TraceLevels, AfterTheOptimiserTheNextStepBegins) {
  EXPECT_THAT(levels_above({"fwd_0__0", "update layer 0", "update layer 1", "gather weights of fwd_0__0", "fwd_0__0", "update layer 0"}),
              ElementsAre("0 step 1 0-3", "1 forward 0-1", "2 microbatch 0 0-1", "1 optimiser 1-3", "2 layer 0 1-2", "2 layer 1 2-3",
                          "0 step 2 3-100", "1 forward 3-5", "2 microbatch 0 3-5", "1 optimiser 5-6", "2 layer 0 5-6"));
}

TEST(TraceLevels, StagesOfARankAreToldApart) {
  EXPECT_THAT(levels_above({"fwd_0__0", "fwd_4__0"}), ElementsAre("0 step 0-100", "1 forward 0-2", "2 microbatch 0 0-1", "2 microbatch 0 1-2"));
}

TEST(TraceLevels, ACollectiveIsNamedByWhatItsTasksAreAllCalled) {
  Writer w({{"x", 4, true}});
  const BufferId a = w.scratch("a", {1}), b = w.scratch("b", {1});
  const auto add = [&](const std::string& label, int collective) {
    const TaskId task = w.add(label, copy(part(a, 0, 1), part(b, 0, 1), Unit::dma));
    w.schedule.programs.front().tasks[task.index()].origin = Origin{collective, CollectiveKind::all_gather, w.axis(0), {}};
  };
  for (const char* label : {"ff1: gather W s1 launch", "ff1: gather W s1 +0", "ff1: gather W s1 -0", "ff1: gather W s1 place"}) add(label, 0);
  for (const char* label : {"exchange +0", "exchange +1", "exchange +10"}) add(label, 1);
  for (const char* label : {"alone +0", "alone +0"}) add(label, 2);
  for (const char* label : {"a", "b"}) add(label, 3);
  std::vector<std::string> names;
  for (const ProgramLevels::Operation& operation : levels_of(w.schedule.programs.front()).operations) names.push_back(operation.name);
  EXPECT_THAT(names, ElementsAre("ff1: gather W s1", "exchange", "alone +0", ""));
}

}  // namespace
}  // namespace podsim
