#include "sim/schedule/lower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::part;
using testing::shift;
using testing::Writer;

/// A collective algorithm that returns this, whatever it is asked for.
CollectiveChooser always(Expansion expansion) {
  return [expansion](const Schedule&, const Program&, const Collective&) -> Expected<CollectiveAlgorithm> {
    return CollectiveAlgorithm{[expansion](const Mesh&, const Program&, const Collective&) -> Expected<Expansion> { return expansion; }};
  };
}

Task step(std::string label, Op op, std::vector<Edge> edges = {}, Guard where = {}) {
  return {std::move(label), std::move(op), std::move(edges), std::move(where), {}};
}

/// Two axes; buffer a is gathered into b.
struct Fixture {
  Writer w{std::vector<MeshAxis>{{"row", 4, true}, {"col", 2, true}}};
  AxisView row = w.axis(0), col = w.axis(1);
  BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});

  Collective gather(std::vector<AxisView> axes) const {
    std::int64_t devices = 1;
    for (const AxisView& view : axes) devices *= view.size;
    Collective collective;
    collective.kind = CollectiveKind::all_gather;
    collective.axes = std::move(axes);
    collective.input = part(a, 0, 8 / devices);
    collective.output = part(b, 0, 8 / devices * devices);
    return collective;
  }
  /// One unguarded shift on an axis.
  Expansion one_step(const AxisView& axis) const { return {{step("go", shift(axis, 1, part(a, 0, 1), part(b, 0, 1)))}, {}}; }
  Schedule lowered(const Expansion& expansion) const {
    const auto result = lower(w.schedule, always(expansion));
    EXPECT_TRUE(result) << to_text(result.error());
    return result ? *result : Schedule{};
  }
};

/// "label: position, position" of a program's edges.
std::vector<std::string> edges(const Schedule& schedule) {
  std::vector<std::string> lines;
  for (const Task& task : schedule.programs[0].tasks) {
    std::string line = task.label + ":";
    for (const Edge& edge : task.after) {
      line += " " + std::to_string(edge.task.value);
      if (edge.done != Half::both) line += edge.done == Half::send ? ".sent" : ".received";
      if (edge.gates != Half::both) line += edge.gates == Half::send ? ">send" : ">receive";
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(Lower, LeavesAScheduleWithoutCollectivesAsItIs) {
  Fixture f;
  const TaskId one = f.w.add("one", copy(part(f.a, 0, 1), part(f.b, 0, 1)));
  f.w.add("two", shift(f.row, 1, part(f.a, 0, 1), part(f.b, 1, 1)), {after(one, Half::both, Half::receive)}, between(f.col, 0, 1));
  EXPECT_EQ(f.lowered({}), f.w.schedule);
}

TEST(Lower, IsPure) {
  Fixture f;
  f.w.add("gather", f.gather({f.row}));
  const Schedule before = f.w.schedule;
  const Schedule first = f.lowered(f.one_step(f.row)), second = f.lowered(f.one_step(f.row));
  EXPECT_EQ(first, second);
  EXPECT_EQ(f.w.schedule, before);
  EXPECT_EQ(first.computes, before.computes);
  EXPECT_EQ(first.name, before.name);
}

TEST(Lower, TheLaunchWaitsForTheCollectivesEdgesAndEverythingStartsWithIt) {
  Fixture f;
  const TaskId make = f.w.add("make", copy(part(f.a, 0, 1), part(f.a, 1, 1)));
  const TaskId gather = f.w.add("gather", f.gather({f.row}), {after(make)});
  f.w.add("use", copy(part(f.b, 0, 1), part(f.a, 2, 1)), {after(gather)});
  const Shift move = shift(f.row, 1, part(f.a, 0, 1), part(f.b, 0, 1));
  const Schedule lowered = f.lowered({{step("first", move), step("also first", move), step("then", move, {after(TaskId{0})}),
                                       step("guarded", move, {after(TaskId{1})}, between(f.col, 0, 1))},
                                      {}});
  EXPECT_THAT(edges(lowered), ElementsAre("make:", "gather launch: 0", "gather first: 1", "gather also first: 1", "gather then: 2",
                                          "gather guarded: 1 3", "use: 3 4 5"))
      << "also first is followed by a guarded task only, so it counts as a last one";
  const Local& launch = std::get<Local>(lowered.programs[0].tasks[1].op);
  EXPECT_EQ(launch.kind, LocalKind::launch);
  EXPECT_EQ(launch.unit, Unit::dma);
}

TEST(Lower, WhoFollowsWithOneHalfDoesNotHideTheOther) {
  Fixture f;
  const TaskId gather = f.w.add("gather", f.gather({f.row}));
  f.w.add("use", copy(part(f.b, 0, 1), part(f.a, 2, 1)), {after(gather)});
  const Shift move = shift(f.row, 1, part(f.a, 0, 1), part(f.b, 0, 1));
  for (const auto& [edge, use] : std::vector<std::pair<Edge, std::string>>{
           {after(TaskId{0}, Half::receive), "use: 1 2"}, {after(TaskId{0}, Half::both, Half::send), "use: 1 2"}, {after(TaskId{0}), "use: 2"}})
    EXPECT_EQ(edges(f.lowered({{step("one", move), step("two", move, {edge})}, {}})).back(), use);
}

TEST(Lower, WhatFollowsGuardedTasksOnlyWaitsForTheLaunchToo) {
  // On a device where the guarded one is absent nothing else would hold it back.
  Fixture f;
  f.w.add("gather", f.gather({f.row}));
  const Shift move = shift(f.row, 1, part(f.a, 0, 1), part(f.b, 0, 1));
  EXPECT_THAT(edges(f.lowered({{step("guarded", move, {}, between(f.col, 0, 1)), step("free", move), step("after guarded", move, {after(TaskId{0})}),
                                step("after both", move, {after(TaskId{0}), after(TaskId{1})}), step("after that", move, {after(TaskId{2})})},
                               {}})),
              ElementsAre("gather launch:", "gather guarded: 0", "gather free: 0", "gather after guarded: 0 1", "gather after both: 1 2",
                          "gather after that: 3"));
}

TEST(Lower, CollectivesOnOneAxisQueueUpOthersDoNot) {
  Fixture f;
  f.w.add("row 0", f.gather({f.row}));
  f.w.add("col 0", f.gather({f.col}));
  f.w.add("row 1", f.gather({f.row}));
  f.w.add("both", f.gather({f.row, f.col}));
  f.w.add("col 1", f.gather({f.col}));
  EXPECT_THAT(edges(f.lowered(f.one_step(f.row))), ElementsAre("row 0 launch:", "row 0 go: 0",    //
                                                               "col 0 launch:", "col 0 go: 2",    //
                                                               "row 1 launch: 1", "row 1 go: 4",  //
                                                               "both launch: 5 3", "both go: 6",  //
                                                               "col 1 launch: 7", "col 1 go: 8"));
}

TEST(Lower, FactorsOfOneAxisShareItsQueue) {
  Fixture f;
  f.w.add("first half", f.gather({f.w.schedule.mesh.factor(0, {2, 2}, 0)}));
  f.w.add("second half", f.gather({f.w.schedule.mesh.factor(0, {2, 2}, 1)}));
  EXPECT_THAT(edges(f.lowered(f.one_step(f.row))),
              ElementsAre("first half launch:", "first half go: 0", "second half launch: 1", "second half go: 2"));
}

TEST(Lower, AnEdgeIsNotWrittenTwice) {
  // The queue and the own edge lead to the same task.
  Fixture f;
  const TaskId first = f.w.add("first", f.gather({f.row}));
  f.w.add("second", f.gather({f.row}), {after(first)});
  EXPECT_THAT(edges(f.lowered(f.one_step(f.row))), ElementsAre("first launch:", "first go: 0", "second launch: 1", "second go: 2"));
}

TEST(Lower, HalvesOfOrdinaryTasksKeepTheirMeaning) {
  Fixture f;
  const TaskId gather = f.w.add("gather", f.gather({f.row}));
  const TaskId move = f.w.add("move", shift(f.row, 1, part(f.a, 0, 1), part(f.a, 1, 1)), {after(gather, Half::both, Half::receive)});
  f.w.add("again", shift(f.row, 1, part(f.a, 1, 1), part(f.a, 2, 1)), {after(move, Half::receive, Half::send)});
  f.w.add("gather again", f.gather({f.col}), {after(move, Half::send)});
  EXPECT_THAT(edges(f.lowered(f.one_step(f.row))), ElementsAre("gather launch:", "gather go: 0", "move: 1>receive", "again: 2.received>send",
                                                               "gather again launch: 2.sent", "gather again go: 4"));
}

TEST(Lower, ACollectiveOfNothingPassesOnWhatItWaitsFor) {
  Fixture f;
  const TaskId move = f.w.add("move", shift(f.row, 1, part(f.a, 0, 1), part(f.a, 1, 1)));
  const TaskId other = f.w.add("other", copy(part(f.a, 4, 1), part(f.a, 5, 1)));
  const TaskId gather = f.w.add("gather", f.gather({f.row}), {after(move, Half::receive), after(other)});
  f.w.add("use", shift(f.row, 1, part(f.a, 1, 1), part(f.a, 2, 1)), {after(gather, Half::both, Half::send)});
  EXPECT_THAT(edges(f.lowered({})), ElementsAre("move:", "other:", "use: 0.received>send 1>send"));
}

TEST(Lower, OneDeviceIsNotLaunched) {
  Writer w{std::vector<MeshAxis>{{"row", 4, true}, {"one", 1, true}}};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});
  const auto alone = [&] { return Collective{CollectiveKind::all_gather, {w.axis(1)}, part(a, 0, 8), part(b, 0, 8), 0}; };
  const TaskId make = w.add("make", copy(part(a, 0, 1), part(a, 1, 1)));
  const TaskId gather = w.add("gather", alone(), {after(make)});
  w.add("use", copy(part(b, 0, 1), part(b, 1, 1)), {after(gather)});
  const auto lowered = lower(w.schedule, always({{step("place", testing::alias(part(a, 0, 8), part(b, 0, 8)))}, {}}));
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  EXPECT_THAT(edges(*lowered), ElementsAre("make:", "gather place: 0", "use: 1"));
}

TEST(Lower, ACollectiveOverOneDeviceOfALongAxisDoesNotBreakItsQueue) {
  Fixture f;
  f.w.add("first", f.gather({f.row}));
  f.w.add("alone", f.gather({AxisView{0, 1, 1}}));
  f.w.add("second", f.gather({f.row}));
  EXPECT_THAT(edges(f.lowered(f.one_step(f.row))), ElementsAre("first launch:", "first go: 0", "alone go:", "second launch: 1", "second go: 3"));
}

TEST(Lower, LoweredTasksKeepTheirOrigin) {
  Fixture f;
  f.w.add("plain", copy(part(f.a, 0, 1), part(f.a, 1, 1)));
  f.w.add("gather", f.gather({f.row, f.col}));
  f.w.add("again", f.gather({f.col}));
  const auto tasks = f.lowered(f.one_step(f.col)).programs[0].tasks;
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(tasks[0].origin, std::nullopt);
  EXPECT_EQ(tasks[1].origin, (Origin{0, CollectiveKind::all_gather, f.row, Bytes{4}, Bytes{4}})) << "the launch: the first axis; one element of four bytes";
  EXPECT_EQ(tasks[2].origin, (Origin{0, CollectiveKind::all_gather, f.col, Bytes{4}, Bytes{4}})) << "the shift: its own axis";
  EXPECT_EQ(tasks[3].origin, (Origin{1, CollectiveKind::all_gather, f.col, Bytes{16}, Bytes{16}}));
}

TEST(Lower, ScratchOfTwoCollectivesIsTheirOwn) {
  Fixture f;
  f.w.add("gather", f.gather({f.row}));
  f.w.add("again", f.gather({f.col}));
  // Two scratch buffers each: numbers 2 and 3 as the expansion counts.
  const BufferId c{2}, d{3};
  const Schedule lowered =
      f.lowered({{step("in", shift(f.row, 1, part(f.a, 0, 1), part(c, 0, 1))), step("on", copy(part(c, 0, 1), part(d, 0, 1)), {after(TaskId{0})}),
                  step("out", copy(part(d, 0, 1), part(f.b, 0, 1)), {after(TaskId{1})})},
                 {{"c", {1}, DType::f32, Role::scratch, {}, {}}, {"d", {2}, DType::f32, Role::scratch, {}, {}}}});
  const Program& program = lowered.programs[0];
  std::vector<std::string> names;
  for (const Buffer& buffer : program.buffers) names.push_back(buffer.name);
  EXPECT_THAT(names, ElementsAre("a", "b", "c 0", "d 0", "c 1", "d 1"));
  EXPECT_EQ(program.buffers[5].extents, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(std::get<Shift>(program.tasks[1].op), shift(f.row, 1, part(f.a, 0, 1), part(BufferId{2}, 0, 1)));
  EXPECT_EQ(std::get<Local>(program.tasks[2].op), copy(part(BufferId{2}, 0, 1), part(BufferId{3}, 0, 1)));
  EXPECT_EQ(std::get<Shift>(program.tasks[5].op), shift(f.row, 1, part(f.a, 0, 1), part(BufferId{4}, 0, 1)));
  EXPECT_EQ(std::get<Local>(program.tasks[6].op), copy(part(BufferId{4}, 0, 1), part(BufferId{5}, 0, 1)));
  EXPECT_EQ(std::get<Local>(program.tasks[7].op), copy(part(BufferId{5}, 0, 1), part(f.b, 0, 1)));
}

TEST(Lower, EveryOperationsScratchIsRenumbered) {
  Fixture f;
  f.w.add("gather", f.gather({f.row}));
  f.w.add("again", f.gather({f.col}));
  const BufferId c{2};
  const Region x{c, {all(1)}};
  const Matmul dot{x, x, x, 0, 1, 1, false, false, false};
  const Schedule lowered = f.lowered({{step("matmul", dot), step("send", Send{0, {own(f.row, 1), own(f.col)}, x, {}}),
                                       step("recv", Recv{0, {own(f.row, -1), own(f.col)}, x, Combine::replace})},
                                      {{"c", {1}, DType::f32, Role::scratch, {}, {}}}});
  const auto& tasks = lowered.programs[0].tasks;
  const BufferId second{3};
  EXPECT_EQ(std::get<Matmul>(tasks[5].op).left.buffer, second);
  EXPECT_EQ(std::get<Matmul>(tasks[5].op).right.buffer, second);
  EXPECT_EQ(std::get<Matmul>(tasks[5].op).out.buffer, second);
  EXPECT_EQ(std::get<Send>(tasks[6].op).source.buffer, second);
  EXPECT_EQ(std::get<Recv>(tasks[7].op).target.buffer, second);
}

/// Slices in the same two slots, now and then something else; the algorithm writes two tasks and a scratch buffer.
TEST(Lower, EqualCollectivesAreExpandedOnceAndLoweredAsIfEachHadBeen) {
  Fixture f;
  const auto in_slot = [&](int slot) {
    Collective gather = f.gather({f.row});
    gather.input = part(f.a, slot, 1), gather.output = part(f.b, 4 * slot, 4);
    return gather;
  };
  for (int s = 0; s < 5; ++s) f.w.add("gather " + std::to_string(s), in_slot(s % 2));
  f.w.add("other", f.gather({f.col}));
  int expanded = 0;
  const auto expand = [&](const Mesh&, const Program& program, const Collective& collective) -> Expected<Expansion> {
    ++expanded;
    const BufferId c{program.buffers.size()};
    return Expansion{{step("in", shift(f.row, 1, collective.input, part(c, 0, 1))), step("out", copy(part(c, 0, 1), part(f.b, 0, 1)), {after(TaskId{0})})},
                     {{"c", {1}, DType::f32, Role::scratch, {}, {}}}};
  };
  const auto lowered = lower(f.w.schedule, [&](const Schedule&, const Program&, const Collective& collective) -> Expected<CollectiveAlgorithm> {
    if (collective.axes.front() == f.col)
      return CollectiveAlgorithm{[&](const Mesh&, const Program&, const Collective&) -> Expected<Expansion> { return f.one_step(f.col); }};
    return CollectiveAlgorithm{expand};
  });
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  EXPECT_EQ(expanded, 2);
  EXPECT_THAT(edges(*lowered), ElementsAre("gather 0 launch:", "gather 0 in: 0", "gather 0 out: 1",    //
                                           "gather 1 launch: 2", "gather 1 in: 3", "gather 1 out: 4",  //
                                           "gather 2 launch: 5", "gather 2 in: 6", "gather 2 out: 7",  //
                                           "gather 3 launch: 8", "gather 3 in: 9", "gather 3 out: 10",
                                           "gather 4 launch: 11", "gather 4 in: 12", "gather 4 out: 13", "other launch:", "other go: 15"));
  const Program& program = lowered->programs[0];
  for (int s = 0; s < 5; ++s) {
    EXPECT_EQ(program.buffers[static_cast<std::size_t>(2 + s)].name, "c " + std::to_string(s));
    EXPECT_EQ(std::get<Shift>(program.tasks[static_cast<std::size_t>(3 * s + 1)].op), shift(f.row, 1, part(f.a, s % 2, 1), part(BufferId{2 + s}, 0, 1)));
    EXPECT_EQ(program.tasks[static_cast<std::size_t>(3 * s + 1)].origin->collective, s);
  }
}

TEST(Lower, EachProgramCountsItsOwnCollectivesAndQueues) {
  Writer w{std::vector<MeshAxis>{{"stage", 2, false}, {"x", 2, true}}};
  for (int stage = 0; stage < 2; ++stage) {
    w.program(2 * stage, 2 * stage + 2);
    const BufferId a = w.scratch("a", {2}), b = w.scratch("b", {2});
    w.add("gather", Collective{CollectiveKind::all_gather, {w.axis(1)}, part(a, 0, 1), part(b, 0, 2), 0});
  }
  const auto lowered = lower(w.schedule, always({{step("go", shift(w.axis(1), 1, part(BufferId{0}, 0, 1), part(BufferId{1}, 0, 1)))}, {}}));
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  ASSERT_EQ(lowered->programs.size(), 2u);
  for (const Program& program : lowered->programs) {
    EXPECT_THAT(program.tasks[0].after, IsEmpty());
    EXPECT_EQ(program.tasks[1].origin->collective, 0);
  }
}

TEST(Lower, ErrorsNameTheTask) {
  Fixture f;
  f.w.add("gather", f.gather({f.row}));
  const auto none = [](const Schedule&, const Program&, const Collective&) -> Expected<CollectiveAlgorithm> { return Diagnostic{{}, "nothing fits"}; };
  EXPECT_EQ(to_text(lower(f.w.schedule, none).error()), "task 0 \"gather\": nothing fits");
  const auto fails = [](const Schedule&, const Program&, const Collective&) -> Expected<CollectiveAlgorithm> {
    return CollectiveAlgorithm{[](const Mesh&, const Program&, const Collective&) -> Expected<Expansion> { return Diagnostic{{}, "too open"}; }};
  };
  EXPECT_EQ(to_text(lower(f.w.schedule, fails).error()), "task 0 \"gather\": too open");
}

TEST(Lower, RefusesAGuardThatSplitsAGroup) {
  for (const AxisView& split : {Fixture{}.row, AxisView{0, 2, 2}, AxisView{0, 1, 2}}) {  // the axis, and parts of it
    Fixture f;
    f.w.add("gather", f.gather({f.row}), {}, between(split, 0, 1));
    EXPECT_EQ(to_text(lower(f.w.schedule, always({})).error()),
              "task 0 \"gather\": the guard of a Collective mentions its own mesh axis " + f.w.schedule.mesh.name(split) +
                  "; expected one that holds for all devices along it or for none");
  }
  Fixture f;
  f.w.add("gather", f.gather({f.row, f.col}), {}, between(f.col, 0, 1));
  EXPECT_FALSE(lower(f.w.schedule, always({})));
}

TEST(Lower, AGuardOfGroupsIsThatOfEachOfTheirTasks) {
  Fixture f;
  const Guard first = between(f.col, 0, 1), step_guard = between(f.row, 0, 3);
  const TaskId gather = f.w.add("gather", f.gather({f.row}), {}, first);
  f.w.add("use", copy(part(f.b, 0, 1), part(f.a, 2, 1)), {after(gather)});
  const Shift move = shift(f.row, 1, part(f.a, 0, 1), part(f.b, 0, 1));
  const Schedule lowered = f.lowered({{step("all", move), step("some", move, {after(TaskId{0})}, step_guard)}, {}});
  EXPECT_THAT(edges(lowered), ElementsAre("gather launch:", "gather all: 0", "gather some: 0 1", "use: 1 2"));
  const auto& tasks = lowered.programs[0].tasks;
  EXPECT_EQ(tasks[0].where, first);
  EXPECT_EQ(tasks[1].where, first);
  EXPECT_THAT(tasks[2].where, ::testing::UnorderedElementsAre(first[0], step_guard[0]));
  EXPECT_THAT(tasks[3].where, IsEmpty()) << "others do not wait for a gather that they have no part in";
}

/// Collectives of one axis follow each other on every device, whichever of them it has.
TEST(Lower, OnAnAxisGuardedCollectivesWaitForTheLastOnesThatADeviceMayHave) {
  Fixture f;
  const Guard left = between(f.col, 0, 1), right = between(f.col, 1, 2);
  f.w.add("all", f.gather({f.row}));
  f.w.add("left", f.gather({f.row}), {}, left);
  f.w.add("left again", f.gather({f.row}), {}, left);
  f.w.add("right", f.gather({f.row}), {}, right);
  f.w.add("then", f.gather({f.row}));
  f.w.add("last", f.gather({f.row}), {}, right);
  EXPECT_THAT(edges(f.lowered(f.one_step(f.row))),
              ElementsAre("all launch:", "all go: 0", "left launch: 1", "left go: 2", "left again launch: 1 3", "left again go: 4",
                          "right launch: 1 5", "right go: 6",  // on its devices the one of the others is absent
                          "then launch: 1 5 7", "then go: 8", "last launch: 9", "last go: 10"));
}

}  // namespace
}  // namespace podsim
