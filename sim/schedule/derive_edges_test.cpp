#include "sim/schedule/derive_edges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "sim/schedule/submesh.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/touches.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::part;
using testing::ring;
using testing::shift;
using testing::texts;
using testing::Writer;

std::vector<Edge> derived(const Schedule& schedule, TaskId task) {
  const auto edges = derive_edges(schedule);
  EXPECT_TRUE(edges) << to_text(edges.error());
  return edges ? edges->schedule.programs[0].tasks[task.index()].after : std::vector<Edge>{};
}

Schedule without_edges(Schedule schedule) {
  for (Program& program : schedule.programs)
    for (Task& task : program.tasks) task.after.clear();
  return schedule;
}

/// With an edge from every task to every later one.
Schedule in_sequence(Schedule schedule) {
  for (Program& program : schedule.programs)
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      program.tasks[t].after.clear();
      for (std::size_t earlier = 0; earlier < t; ++earlier) program.tasks[t].after.push_back(after(TaskId{earlier}));
    }
  return schedule;
}

TEST(DeriveEdges, AReaderWaitsForItsWriterAndTheNextWriterForTheReader) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4}), c = w.scratch("c", {4});
  w.add("write b", copy(part(a, 0, 4), part(b, 0, 4)));
  const TaskId read = w.add("read b", copy(part(b, 0, 2), part(c, 0, 2)));
  const TaskId again = w.add("write b again", copy(part(a, 0, 4), part(b, 0, 4)));
  EXPECT_THAT(derived(w.schedule, read), ElementsAre(after(TaskId{0})));
  EXPECT_THAT(derived(w.schedule, again), ElementsAre(after(read)));  // that it follows task 0 is implied
}

TEST(DeriveEdges, TasksThatShareNoElementOrOnlyReadAreFree) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  w.add("first half", copy(part(a, 0, 2), part(b, 0, 2)));
  const TaskId other = w.add("second half", copy(part(a, 0, 2), part(b, 2, 2)));
  EXPECT_THAT(derived(w.schedule, other), IsEmpty());
}

TEST(DeriveEdges, TasksOfDifferentDevicesAreFree) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  w.add("low", copy(part(a, 0, 4), part(b, 0, 4)), {}, between(w.axis(0), 0, 2));
  const TaskId high = w.add("high", copy(part(a, 0, 4), part(b, 0, 4)), {}, between(w.axis(0), 2, 4));
  const TaskId all = w.add("all", copy(part(b, 0, 4), part(a, 0, 4)));
  EXPECT_THAT(derived(w.schedule, high), IsEmpty());
  EXPECT_THAT(derived(w.schedule, all), ElementsAre(after(TaskId{0}), after(high)));
}

TEST(DeriveEdges, AnAbsentTaskImpliesNothing) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  const TaskId first = w.add("first", copy(part(a, 0, 4), part(b, 0, 4)));
  const TaskId some = w.add("some", copy(part(a, 0, 4), part(b, 0, 4)), {}, between(w.axis(0), 0, 2));
  const TaskId last = w.add("last", copy(part(a, 0, 4), part(b, 0, 4)));
  EXPECT_THAT(derived(w.schedule, some), ElementsAre(after(first)));
  EXPECT_THAT(derived(w.schedule, last), ElementsAre(after(first), after(some)));
}

TEST(DeriveEdges, TheHalvesOfAShiftWaitForThemselves) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4}), c = w.scratch("c", {4});
  const TaskId one = w.add("one", shift(w.axis(0), 1, part(a, 0, 4), part(b, 0, 4)));
  const TaskId read = w.add("read", copy(part(b, 0, 4), part(c, 0, 4)));
  const TaskId two = w.add("two", shift(w.axis(0), 1, part(a, 0, 4), part(b, 0, 4)));
  const TaskId onwards = w.add("onwards", shift(w.axis(0), 1, part(b, 0, 4), part(a, 0, 4)));
  EXPECT_THAT(derived(w.schedule, read), ElementsAre(after(one, Half::receive)));
  EXPECT_THAT(derived(w.schedule, two), ElementsAre(after(read, Half::both, Half::receive)));
  EXPECT_THAT(derived(w.schedule, onwards),
              ElementsAre(after(two, Half::receive, Half::send), after(one, Half::send, Half::receive), after(two, Half::send, Half::receive)));
}

TEST(DeriveEdges, OnlyDevicesThatACollectiveReadsOrWritesConflict) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  const auto reduce = [&](std::int64_t root) {
    return Collective{CollectiveKind::reduce, {w.axis(0)}, part(a, 0, 4), part(b, 0, 4), 0, 0, root, {}};
  };
  const TaskId first = w.add("to 0", reduce(0)), second = w.add("to 1", reduce(1)), third = w.add("to 0 again", reduce(0));
  EXPECT_THAT(derived(w.schedule, second), IsEmpty());
  EXPECT_THAT(derived(w.schedule, third), ElementsAre(after(first)));
}

TEST(DeriveEdges, ExplicitEdgesStayAndWhatTheyImplyIsNotAdded) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4}), c = w.scratch("c", {4});
  const TaskId write = w.add("write", copy(part(a, 0, 4), part(b, 0, 4)));
  const TaskId between = w.add("between", copy(part(a, 0, 4), part(c, 0, 4)), {after(write)});
  const TaskId read = w.add("read", copy(part(b, 0, 4), part(b, 0, 4)), {after(between)});
  EXPECT_THAT(derived(w.schedule, between), ElementsAre(after(write)));
  EXPECT_THAT(derived(w.schedule, read), ElementsAre(after(between)));
}

TEST(DeriveEdges, EachEdgeNamesTheConflictThatNeedsIt) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4}), b = w.scratch("b", {4});
  w.add("write", copy(part(a, 0, 4), part(b, 0, 4)));
  w.add("read", copy(part(b, 1, 2), part(a, 1, 2)));
  const auto edges = derive_edges(w.schedule);
  ASSERT_TRUE(edges);
  ASSERT_EQ(edges->edges.size(), 1U);
  EXPECT_EQ(name_of(edges->edges[0].hazard), "read after write");
  EXPECT_EQ(edges->edges[0].earlier, part(b, 0, 4));
  EXPECT_EQ(edges->edges[0].later, part(b, 1, 2));
}

TEST(DeriveEdges, AnUnmatchedTransferIsAnError) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  w.add("out", Send{5, testing::neighbour(w.axis(0), 1), part(a, 0, 1), {}});
  const auto edges = derive_edges(w.schedule);
  ASSERT_FALSE(edges);
  EXPECT_THAT(edges.error().message, ::testing::HasSubstr("which has no receive for it"));
}

/// Whether the halves that an edge names touch overlapping elements on some device, and one of them writes. Device by device, from the definition.
bool conflict(const Schedule& schedule, const Deployment& deployment, std::uint32_t p, TaskId later, const Edge& edge) {
  const Program& program = schedule.programs[p];
  const auto boxes = [&](TaskId task, Half half, std::size_t local) {
    std::vector<std::pair<Box, bool>> result;
    const Participants& who = deployment.who(p, task.index());
    const Coordinates at = schedule.mesh.coordinates(DeviceId{static_cast<int>(deployment.programs[p].devices[local])});
    for_each_touch(program.tasks[task.index()].op, [&](const Touch& touch) {
      const bool receives = touch.side == Side::target;
      if (half != Half::both && (half == Half::receive) != receives) return;
      if (receives ? who.receives(local) : who.does(local)) result.emplace_back(evaluate(touch.region, at), touch.write);
    });
    return result;
  };
  for (std::size_t local = 0; local < deployment.programs[p].devices.size(); ++local)
    for (const auto& [first, first_writes] : boxes(edge.task, edge.done, local))
      for (const auto& [second, second_writes] : boxes(later, edge.gates, local))
        if ((first_writes || second_writes) && first.buffer == second.buffer && overlap(first, second)) return true;
  return false;
}

TEST(DeriveEdges, OnRandomProgramsNoneIsMissingAndNoneIsBetweenTasksWithoutConflict) {
  int derived_edges = 0, schedules = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RandomScheduleOptions options;
    options.careless = false;
    options.every_kind = seed % 2 == 1;
    options.far = seed % 3 == 0;
    const Schedule random = testing::random_schedule(seed, options);
    if (!validate(in_sequence(random)).ok()) continue;  // tasks overwrite their own operands, or receives wait for sends behind them
    ++schedules;
    const auto edges = derive_edges(without_edges(random));
    ASSERT_TRUE(edges) << to_text(edges.error());
    EXPECT_THAT(texts(validate(edges->schedule).all()), IsEmpty());
    const Deployed deployed = deploy(edges->schedule);
    for (const DerivedEdge& edge : edges->edges) {
      EXPECT_TRUE(conflict(random, deployed.deployment, static_cast<std::uint32_t>(edge.program), edge.task, edge.edge))
          << "task " << edge.task.value << " after " << edge.edge.task.value;
      ++derived_edges;
    }
  }
  EXPECT_GT(schedules, 800);
  EXPECT_GT(derived_edges, 1000);
}

TEST(DeriveEdges, OnRandomProgramsEveryEdgeIsNeeded) {
  int needed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RandomScheduleOptions options;
    options.careless = options.exchanges = false;
    options.axes = {{"x", 1, true}};  // on one device no transfer implies an order
    const auto edges = derive_edges(without_edges(testing::random_schedule(seed, options)));
    ASSERT_TRUE(edges) << to_text(edges.error());
    if (!validate(edges->schedule).ok()) continue;
    const auto audit = audit_edges(edges->schedule);
    ASSERT_TRUE(audit);
    for (const EdgeAudit& edge : *audit) {
      EXPECT_EQ(edge.purpose, EdgePurpose::ordering) << "task " << edge.task.value << " edge " << edge.edge;
      ++needed;
    }
  }
  EXPECT_GT(needed, 100);
}

TEST(DeriveEdges, WithSomeEdgesGivenTheRestIsDerived) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::RandomScheduleOptions options;
    options.careless = false;
    options.edge_chance = 0.2;
    const Schedule random = testing::random_schedule(seed, options);
    if (!validate(in_sequence(random)).ok() || !validate(random).deadlocks.empty()) continue;
    const auto edges = derive_edges(random);
    ASSERT_TRUE(edges) << to_text(edges.error());
    EXPECT_THAT(texts(validate(edges->schedule).races), IsEmpty());
    const auto again = derive_edges(edges->schedule);
    ASSERT_TRUE(again);
    EXPECT_THAT(again->edges, IsEmpty());
  }
}

}  // namespace
}  // namespace podsim
