// Joins between the phases of a collective: they change how many edges there are, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "algorithms/collectives/testing.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::lowered_collective;
using testing::small_system;
using testing::SmallSystem;

bool is_join(const Task& task) {
  const auto* local = std::get_if<Local>(&task.op);
  return local != nullptr && local->kind == LocalKind::join;
}

std::size_t joins_in(const Schedule& schedule) {
  return static_cast<std::size_t>(std::ranges::count_if(schedule.programs[0].tasks, is_join));
}

/// The same schedule with an edge to all that a join waits for in place of each edge to the join. `place` becomes the new number of each task.
Schedule without_joins(const Schedule& schedule, std::map<std::size_t, std::size_t>& place) {
  Schedule result = schedule;
  Program& program = result.programs[0];
  program.tasks.clear();
  std::map<std::size_t, std::vector<Edge>> waits;  // of joins, by their numbers in `schedule`, numbered as in the result
  for (std::size_t t = 0; t < schedule.programs[0].tasks.size(); ++t) {
    Task task = schedule.programs[0].tasks[t];
    std::vector<Edge> after;
    for (const Edge& edge : task.after) {
      const auto join = waits.find(edge.task.index());
      if (join == waits.end()) {
        after.push_back({TaskId{place.at(edge.task.index())}, edge.done, edge.gates});
        continue;
      }
      for (const Edge& waited : join->second) after.push_back({waited.task, waited.done, edge.gates});
    }
    if (is_join(task)) {
      waits[t] = std::move(after);
      continue;
    }
    task.after = std::move(after);
    place[t] = program.tasks.size();
    program.tasks.push_back(std::move(task));
  }
  return result;
}

/// By task and device.
using Times = std::map<std::pair<std::size_t, std::size_t>, ActivityTimes>;
Times times_of(const Model& model, const Timeline& timeline, const std::map<std::size_t, std::size_t>& place) {
  Times times;
  for (const auto& [task, number] : place)
    for (std::size_t d = 0; d < model.deployment.places.size(); ++d)
      if (model.deployment.who(0, task).does(d)) times[{number, d}] = timeline.at(model.deployment.activity(0, task, d));
  return times;
}

struct JoinCase {
  std::vector<int> extents;
  CollectiveKind kind;
  std::vector<std::string> axes;
  std::string algorithm;
};

class Joins : public ::testing::TestWithParam<JoinCase> {};
INSTANTIATE_TEST_SUITE_P(OpenMeshes, Joins,
                         ::testing::Values(JoinCase{{8, 9}, CollectiveKind::all_reduce, {"row", "col"}, "line"},
                                           JoinCase{{9, 8}, CollectiveKind::all_gather, {"col", "row"}, "line"},
                                           JoinCase{{8, 8}, CollectiveKind::reduce_scatter, {"row", "col"}, "rotations"},
                                           JoinCase{{9, 8}, CollectiveKind::all_to_all, {"row", "col"}, "pairwise"},
                                           JoinCase{{3, 4, 5}, CollectiveKind::all_reduce, {"row", "col", "depth"}, "line"}));

TEST_P(Joins, ChangeNoTimeInAnyEngine) {
  const JoinCase& c = GetParam();
  Machine machine = testing::overhead_machine();
  machine.chip.reduce_bandwidth = BytesPerSecond{20e9};
  const SmallSystem pod = small_system(machine, c.extents, false);
  const auto group = static_cast<std::int64_t>(pod.mesh.devices());
  const Schedule with = lowered_collective(pod, c.kind, c.axes, Bytes{group * 4 * 12}, c.algorithm);
  std::map<std::size_t, std::size_t> place, same;
  const Schedule without = without_joins(with, place);
  for (std::size_t t = 0; t < without.programs[0].tasks.size(); ++t) same[t] = t;
  if (c.extents.size() == 2) {
    EXPECT_GT(joins_in(with), 0U);
    EXPECT_LT(testing::edges_of(with), testing::edges_of(without));
  }
  EXPECT_TRUE(validate(with).ok());
  for (const std::string_view engine : {"des", "analytic", "simgrid"}) {
    SCOPED_TRACE(engine);
    const Model model = *testing::model_of(pod, with), plain = *testing::model_of(pod, without);
    const auto joined = (*timing_engine(engine))->run(model, {}), direct = (*timing_engine(engine))->run(plain, {});
    ASSERT_TRUE(joined && direct);
    if (engine != "simgrid") {
      EXPECT_EQ(joined->makespan, direct->makespan);
      EXPECT_EQ(times_of(model, *joined, place), times_of(plain, *direct, same));
      continue;
    }
    EXPECT_NEAR(to_seconds(joined->makespan).count(), to_seconds(direct->makespan).count(), 1e-9 * to_seconds(direct->makespan).count() + 1e-12);
  }
}

TEST_P(Joins, LeaveTheNumbersRight) {
  const JoinCase& c = GetParam();
  const SmallSystem pod = small_system(testing::ideal_machine(), c.extents, false);
  const auto group = static_cast<std::int64_t>(pod.mesh.devices());
  const Schedule schedule = lowered_collective(pod, c.kind, c.axes, Bytes{group * 4}, c.algorithm);
  const auto checked = check(schedule, CheckOptions{.threads = 1});
  ASSERT_TRUE(checked) << to_text(checked.error());
  EXPECT_TRUE(checked->ok) << to_text(checked->problems);
}

TEST(Joins, MakeTheEdgesOfAnOpenMeshAsManyAsItsTasks) {
  // 508 tasks along two open axes of 64; each of a phase waits for all of the phase before: 97,000 edges, if each has its own.
  const SmallSystem pod = small_system(testing::ideal_machine(), {64, 64}, false);
  const Schedule schedule = lowered_collective(pod, CollectiveKind::all_reduce, {"row", "col"}, Bytes{1 << 24}, "line");
  const std::size_t tasks = schedule.programs[0].tasks.size();
  EXPECT_EQ(joins_in(schedule), 3U) << "between four phases";
  EXPECT_LE(testing::edges_of(schedule), 6 * tasks);
}

TEST(Joins, AreNotWrittenWhereEdgesAreFew) {
  const SmallSystem ring = small_system(testing::ideal_machine(), {64, 64}), small = small_system(testing::ideal_machine(), {4, 4}, false);
  EXPECT_EQ(joins_in(lowered_collective(ring, CollectiveKind::all_reduce, {"row", "col"}, Bytes{1 << 24}, "ring")), 0U);
  EXPECT_EQ(joins_in(lowered_collective(small, CollectiveKind::all_reduce, {"row", "col"}, Bytes{1 << 12}, "line")), 0U);
}

}  // namespace
}  // namespace podsim
