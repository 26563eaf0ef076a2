#include "sim/schedule/unroll.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::neighbour;
using testing::part;
using testing::ring;
using testing::shift;
using testing::Writer;

std::vector<MeshAxis> open_line(int size) { return {{"x", size, false}}; }

/// "task@device" for a work, "task@sender>task@receiver" for a transfer.
std::string name(const Activity& a) {
  return a.kind == Activity::Kind::work ? fmt::format("{}@{}", a.task.value, a.device.value)
                                        : fmt::format("{}@{}>{}@{}", a.task.value, a.device.value, a.receiver_task.value, a.receiver.value);
}

std::vector<std::string> names(const ActivityGraph& graph) {
  std::vector<std::string> result;
  for (const Activity& activity : graph.activities) result.push_back(name(activity));
  return result;
}

/// What a gate of an activity waits for: names, with "!" where it waits for `received`.
std::vector<std::string> waits(const ActivityGraph& graph, std::string_view activity, Gate gate) {
  std::vector<std::string> result;
  for (std::size_t a = 0; a < graph.activities.size(); ++a) {
    if (name(graph.activities[a]) != activity) continue;
    for (const Dependency& wait : graph.waits_for(a, gate)) result.push_back(name(graph.activities[wait.activity]) + (wait.received ? "!" : ""));
    return result;
  }
  return {fmt::format("no activity {}", activity)};
}

ActivityGraph graph_of(const Schedule& schedule) {
  Unrolled unrolled = unroll(schedule);
  EXPECT_THAT(unrolled.problems, IsEmpty()) << to_text(unrolled.problems);
  return std::move(unrolled.graph);
}

std::vector<std::string> problems_of(const Schedule& schedule) {
  std::vector<std::string> texts;
  for (const Diagnostic& problem : unroll(schedule).problems) texts.push_back(to_text(problem));
  return texts;
}

// ---- What exists where ----------------------------------------------------------------------------------------------------------------

TEST(Unroll, WorkExistsWhereItsGuardHolds) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {2});
  w.add("everywhere", copy(part(a, 0, 1), part(a, 1, 1)));
  w.add("middle", copy(part(a, 0, 1), part(a, 1, 1)), {}, between(w.axis(0), 1, 3));
  EXPECT_THAT(names(graph_of(w.schedule)), ElementsAre("0@0", "0@1", "0@2", "0@3", "1@1", "1@2"));
}

TEST(Unroll, AShiftJoinsEveryDeviceToTheOneItNames) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {2});
  w.add("up", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)));
  w.add("down two", shift(w.axis(0), -2, part(a, 0, 1), part(a, 1, 1)));
  EXPECT_THAT(names(graph_of(w.schedule)), ElementsAre("0@0>0@1", "0@1>0@2", "0@2>0@3", "0@3>0@0", "1@0>1@2", "1@1>1@3", "1@2>1@0", "1@3>1@1"));
}

TEST(Unroll, TheGuardOfAShiftIsTheSenders) {
  // Devices 0 and 1 of an open line send: 1 and 2 receive, although the guard does not hold on 2.
  Writer w{open_line(4)};
  const BufferId a = w.scratch("a", {3});
  const TaskId move = w.add("move", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)), {}, between(w.axis(0), 0, 2));
  w.add("use", copy(part(a, 1, 1), part(a, 2, 1)), {after(move)});
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(names(graph), ElementsAre("0@0>0@1", "0@1>0@2", "1@0", "1@1", "1@2", "1@3"));
  EXPECT_THAT(waits(graph, "1@0", Gate::start), ElementsAre("0@0>0@1"));              // it only sends
  EXPECT_THAT(waits(graph, "1@1", Gate::start), ElementsAre("0@1>0@2", "0@0>0@1!"));  // both halves
  EXPECT_THAT(waits(graph, "1@2", Gate::start), ElementsAre("0@1>0@2!"));             // it only receives
  EXPECT_THAT(waits(graph, "1@3", Gate::start), IsEmpty());                           // neither half is there: the edge holds
}

TEST(Unroll, AShiftByNothingEmitsNothing) {
  Writer w{std::vector<MeshAxis>{{"x", 4, false}, {"one", 1, true}}};
  const BufferId a = w.scratch("a", {3});
  w.add("by 0", shift(w.axis(0), 0, part(a, 0, 1), part(a, 1, 1)));
  w.add("by a whole turn", shift(w.axis(0), 8, part(a, 0, 1), part(a, 1, 1)));
  const TaskId alone = w.add("alone", shift(w.axis(1), 1, part(a, 0, 1), part(a, 1, 1)));
  w.add("use", copy(part(a, 1, 1), part(a, 2, 1)), {after(alone)}, between(w.axis(0), 0, 1));
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(names(graph), ElementsAre("3@0"));
  EXPECT_THAT(waits(graph, "3@0", Gate::start), IsEmpty());
}

TEST(Unroll, TheDistanceMayDependOnTheOtherAxis) {
  // Cannon's skew: row r moves its blocks r to the left; row 0 stays.
  Writer w{std::vector<MeshAxis>{{"row", 3, true}, {"col", 3, true}}};
  const BufferId a = w.scratch("a", {2});
  w.add("skew", shift(w.axis(1), Affine{{{w.axis(0), -1}}}, part(a, 0, 1), part(a, 1, 1)));
  EXPECT_THAT(names(graph_of(w.schedule)), ElementsAre("0@3>0@5", "0@4>0@3", "0@5>0@4", "0@6>0@7", "0@7>0@8", "0@8>0@6"));
}

TEST(Unroll, AShiftOnAFactorStaysWithinIt) {
  Writer w{ring(8)};
  const BufferId a = w.scratch("a", {2});
  w.add("halves", shift(w.schedule.mesh.factor(0, {2, 2, 2}, 0), 1, part(a, 0, 1), part(a, 1, 1)), {}, between(w.axis(0), 0, 2));
  w.add("pairs", shift(w.schedule.mesh.factor(0, {2, 2, 2}, 2), -1, part(a, 0, 1), part(a, 1, 1)), {}, between(w.axis(0), 0, 2));
  EXPECT_THAT(names(graph_of(w.schedule)), ElementsAre("0@0>0@4", "0@1>0@5", "1@0>1@1", "1@1>1@0"));
}

TEST(Unroll, TwoDevicesWrapWhateverTheAxisSays) {
  Writer w{open_line(2)};
  const BufferId a = w.scratch("a", {2});
  w.add("swap", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)));
  EXPECT_THAT(names(graph_of(w.schedule)), ElementsAre("0@0>0@1", "0@1>0@0"));
}

TEST(Unroll, LeavingAnOpenAxisIsAnErrorNeverAWrap) {
  Writer w{open_line(3)};
  const BufferId a = w.scratch("a", {2});
  w.add("up", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)));
  EXPECT_THAT(problems_of(w.schedule),
              ElementsAre("task 0 \"up\" shifts device 2 (x=2) by 1 off the end of the open axis x; expected a guard or an axis that wraps"));
  // A factor of more than two is open even where its axis wraps.
  Writer f{ring(8)};
  const BufferId b = f.scratch("b", {2});
  f.add("down", shift(f.schedule.mesh.factor(0, {2, 4}, 1), -1, part(b, 0, 1), part(b, 1, 1)));
  EXPECT_THAT(problems_of(f.schedule),
              ElementsAre("task 0 \"down\" shifts device 0 (x=0) by -1 off the end of the open axis x/1:4; expected a guard or an axis that wraps",
                          "task 0 \"down\" shifts device 4 (x=4) by -1 off the end of the open axis x/1:4; expected a guard or an axis that wraps"));
}

TEST(Unroll, AShiftToADeviceOfAnotherProgramIsUnmatched) {
  Writer w{ring(4)};
  w.program(0, 2);
  const BufferId a = w.scratch("a", {2});
  w.add("up", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)));
  EXPECT_THAT(problems_of(w.schedule),
              ElementsAre("unmatched: task 0 \"up\" on device 1 (x=1) sends to device 2 (x=2), which does not run the same program"));
}

// ---- Edges ----------------------------------------------------------------------------------------------------------------------------

TEST(Unroll, AnEdgeToAnAbsentTaskHoldsAndDoesNotPassOn) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  const TaskId first = w.add("first", copy(part(a, 0, 1), part(a, 1, 1)));
  const TaskId second = w.add("second", copy(part(a, 1, 1), part(a, 2, 1)), {after(first)}, between(w.axis(0), 0, 1));
  w.add("third", copy(part(a, 2, 1), part(a, 3, 1)), {after(second)});
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(waits(graph, "2@0", Gate::start), ElementsAre("1@0"));
  EXPECT_THAT(waits(graph, "2@1", Gate::start), IsEmpty()) << "second is not there: third does not wait for first in its place";
}

TEST(Unroll, DoneNamesTheHalfThatIsWaitedFor) {
  for (const auto& [done, expected] : std::vector<std::pair<Half, std::vector<std::string>>>{
           {Half::send, {"0@0>0@1"}}, {Half::receive, {"0@1>0@0!"}}, {Half::both, {"0@0>0@1", "0@1>0@0!"}}}) {
    Writer w{ring(2)};
    const BufferId a = w.scratch("a", {4});
    const TaskId swap = w.add("swap", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)));
    w.add("then", copy(part(a, 2, 1), part(a, 3, 1)), {after(swap, done)}, between(w.axis(0), 0, 1));
    EXPECT_EQ(waits(graph_of(w.schedule), "1@0", Gate::start), expected);
  }
}

TEST(Unroll, GatesNamesTheHalfThatWaits) {
  using Names = std::vector<std::string>;
  // Device 0 sends to 1. Both have the work before; the sender's send half and the receiver's receive half may wait for their own.
  for (const auto& [gates, send, receive] :
       std::vector<std::tuple<Half, Names, Names>>{{Half::send, {"0@0"}, {}}, {Half::receive, {}, {"0@1"}}, {Half::both, {"0@0"}, {"0@1"}}}) {
    Writer w{open_line(2)};
    const BufferId a = w.scratch("a", {4});
    const TaskId before = w.add("before", copy(part(a, 2, 1), part(a, 3, 1)));
    w.add("move", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)), {after(before, Half::both, gates)}, between(w.axis(0), 0, 1));
    const ActivityGraph graph = graph_of(w.schedule);
    EXPECT_EQ(waits(graph, "1@0>1@1", Gate::send), send);
    EXPECT_EQ(waits(graph, "1@0>1@1", Gate::receive), receive);
  }
}

TEST(Unroll, HalvesOfOneTransferMayGateHalvesOfAnother) {
  Writer w{ring(3)};
  const BufferId a = w.scratch("a", {4});
  const TaskId one = w.add("one", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)));
  w.add("two", shift(w.axis(0), 1, part(a, 1, 1), part(a, 0, 1)), {after(one, Half::receive, Half::send), after(one, Half::send, Half::receive)});
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(waits(graph, "1@1>1@2", Gate::send), ElementsAre("0@0>0@1!"));    // what arrived at 1 is sent on
  EXPECT_THAT(waits(graph, "1@1>1@2", Gate::receive), ElementsAre("0@2>0@0"));  // 2 overwrites what it has sent
}

// ---- Send and Recv --------------------------------------------------------------------------------------------------------------------

TEST(Unroll, SendAndRecvMatchByChannelPeersAndUse) {
  // Two programs: 0 sends three messages to 2 and one to 3, on two channels, 2 receives in another order of channels.
  Writer w{ring(4)};
  w.program(0, 2);
  const BufferId a = w.scratch("a", {9});
  const auto send = [&](const char* label, int channel, int to) {
    w.add(label, Send{channel, {Affine{to}}, part(a, 0, 1), {}}, {}, between(w.axis(0), 0, 1));
  };
  send("s0 first", 7, 2);
  send("s1", 7, 3);
  send("s2 other channel", 8, 2);
  send("s3 second", 7, 2);
  w.program(2, 4);
  const BufferId b = w.scratch("b", {9});
  const auto receive = [&](const char* label, int channel, int only) {
    w.add(label, Recv{channel, {Affine{0}}, part(b, 0, 1), Combine::replace}, {}, between(w.axis(0), only, only + 1));
  };
  receive("r0 other channel", 8, 2);
  receive("r1", 7, 3);
  receive("r2 first", 7, 2);
  receive("r3 second", 7, 2);
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(names(graph), ElementsAre("0@0>2@2", "1@0>1@3", "2@0>0@2", "3@0>3@2"));
  EXPECT_EQ(graph.activities[0].program, 0u);
  EXPECT_EQ(graph.activities[0].receiver_program, 1u);
}

TEST(Unroll, RecvsOfOneChannelFromSeveralSendersStandInAnyOrder) {
  Writer w{ring(4)};
  w.program(0, 3);
  const BufferId a = w.scratch("a", {9});
  const auto send = [&](const char* label, int from) {
    w.add(label, Send{7, {Affine{3}}, part(a, 0, 1), {}}, {}, between(w.axis(0), from, from + 1));
  };
  send("s0", 0);
  send("s1 first", 2);
  send("s2 second", 2);
  w.program(3, 4);
  const BufferId b = w.scratch("b", {9});
  for (const int from : {2, 0, 2}) w.add("receive", Recv{7, {Affine{from}}, part(b, 0, 1), Combine::replace});
  EXPECT_THAT(names(graph_of(w.schedule)), ElementsAre("0@0>1@3", "1@2>0@3", "2@2>2@3"));
}

TEST(Unroll, EdgesOfSendAndRecvStayOnTheirSides) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  const TaskId before = w.add("before", copy(part(a, 0, 1), part(a, 1, 1)));
  const TaskId out = w.add("out", Send{0, neighbour(w.axis(0), 1), part(a, 1, 1), {}}, {after(before)});
  const TaskId in = w.add("in", Recv{0, neighbour(w.axis(0), 1), part(a, 2, 1), Combine::replace}, {after(before)});
  w.add("sent", copy(part(a, 0, 1), part(a, 1, 1)), {after(out)});
  w.add("received", copy(part(a, 2, 1), part(a, 3, 1)), {after(in)});
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(waits(graph, "1@0>2@1", Gate::send), ElementsAre("0@0"));
  EXPECT_THAT(waits(graph, "1@0>2@1", Gate::receive), ElementsAre("0@1"));
  EXPECT_THAT(waits(graph, "3@0", Gate::start), ElementsAre("1@0>2@1"));
  EXPECT_THAT(waits(graph, "4@1", Gate::start), ElementsAre("1@0>2@1!"));
}

TEST(Unroll, SidesThatDisagreeOnSizeAreNamed) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8}, DType::bf16);
  w.add("out", Send{0, neighbour(w.axis(0), 1), part(a, 0, 2), {}}, {}, between(w.axis(0), 0, 1));
  w.add("in", Recv{0, neighbour(w.axis(0), 1), part(a, 4, 3), Combine::replace}, {}, between(w.axis(0), 1, 2));
  EXPECT_THAT(problems_of(w.schedule), ElementsAre("task 0 \"out\" on device 0 (x=0) sends 2 elements of 8 bytes to task 1 \"in\" on device 1 (x=1), "
                                                   "which expects 3 of 12 bytes"));
  std::get<Recv>(w.task(TaskId{1}).op).target = part(b, 0, 2);  // as many elements, half as wide
  EXPECT_THAT(problems_of(w.schedule), ElementsAre("task 0 \"out\" on device 0 (x=0) sends 2 elements of 8 bytes to task 1 \"in\" on device 1 (x=1), "
                                                   "which expects 2 of 4 bytes"));
}

TEST(Unroll, PeersMustBeOtherDevicesOfTheMeshThatRunAProgram) {
  Writer w{open_line(4)};
  w.program(0, 3);
  const BufferId a = w.scratch("a", {2});
  w.add("beyond", Send{0, {own(w.axis(0), 3, false)}, part(a, 0, 1), {}}, {}, between(w.axis(0), 1, 2));
  w.add("below", Recv{0, {own(w.axis(0), -1, false)}, part(a, 0, 1), Combine::replace}, {}, between(w.axis(0), 0, 1));
  w.add("self", Send{0, {own(w.axis(0))}, part(a, 0, 1), {}}, {}, between(w.axis(0), 2, 3));
  w.add("idle", Send{0, {Affine{3}}, part(a, 0, 1), {}}, {}, between(w.axis(0), 0, 1));
  EXPECT_THAT(problems_of(w.schedule), ElementsAre("task 1 \"below\" on device 0 (x=0) names a peer at x=-1, outside the mesh",
                                                   "task 0 \"beyond\" on device 1 (x=1) names a peer at x=4, outside the mesh",
                                                   "task 2 \"self\" on device 2 (x=2) names device 2 (x=2) as its peer, which is itself",
                                                   "task 3 \"idle\" on device 0 (x=0) names device 3 (x=3) as its peer, which runs no program"));
}

// ---- Ranges ---------------------------------------------------------------------------------------------------------------------------

TEST(Unroll, RegionsAreHeldToTheirBuffersOnEveryDevice) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {8});
  w.add("fits", copy({a, {block(own(w.axis(0)), 2)}}, {a, {block(own(w.axis(0), 1), 2)}}));
  w.add("read leaves", copy({a, {block(own(w.axis(0), 1, false), 2)}}, part(a, 0, 2)));
  w.add("write leaves", copy(part(a, 0, 2), {a, {block(own(w.axis(0), -1, false), 2)}}));
  EXPECT_THAT(problems_of(w.schedule),
              ElementsAre("task 1 \"read leaves\" on device 3 (x=3) takes elements 8..10 of dimension 0 of buffer \"a\", which has 8",
                          "task 2 \"write leaves\" on device 0 (x=0) takes elements -2..0 of dimension 0 of buffer \"a\", which has 8"));
}

TEST(Unroll, BoundsHoldForTermsOfEitherSignAndNegativeStrides) {
  Writer w{std::vector<MeshAxis>{{"row", 3, true}, {"col", 3, true}}};
  const BufferId a = w.scratch("a", {8});
  const auto leaves = [&](Range range) {
    w.now().tasks = {{"copy", copy({a, {range}}, part(a, 0, range.length)), {}, {}, {}}};
    return unroll(w.schedule).problems.size();
  };
  const AxisView row = w.axis(0), col = w.axis(1);
  EXPECT_EQ(leaves({Affine{{{row, 2}, {col, -2}}, 4}, 1, 0, 1}), 1u) << "0 to 8: too far at row 2, col 0";
  EXPECT_EQ(leaves({Affine{{{row, 2}, {col, -2}}, 3}, 1, 0, 1}), 1u) << "-1 to 7: too low at row 0, col 2";
  EXPECT_EQ(leaves({Affine{{{row, 1}, {col, -2}}, 4}, 1, 0, 1}), 0u) << "0 to 6";
  EXPECT_EQ(leaves({Affine{{{row, 1}}}, -3, 6, 1}), 0u) << "6, 3, 0";
  EXPECT_EQ(leaves({Affine{{{row, 1}}}, -3, 5, 1}), 3u) << "-1 in row 2";
  EXPECT_EQ(leaves({Affine{{{row, 1}}}, -3, 7, 2}), 3u) << "7..9 in row 0";
  EXPECT_EQ(leaves({Affine{{{row, 1}, {col, 1}}, -2, 4}, 2, 0, 2}), 0u) << "any value modulo 4 fits";
  EXPECT_EQ(leaves({Affine{{{row, 1}}, -2, 5}, 2, 0, 2}), 3u) << "-1 modulo 5 is 4, in row 1";
  EXPECT_EQ(leaves({Affine{{{row, 1}}, -2, 5}, -1, 3, 1}), 3u) << "3 - 4 in row 1";
}

TEST(Unroll, ATransferReadsAtItsSenderAndWritesAtItsReceiver) {
  // Block own + 1 exists on every device but the last: as a source it must not be sent by the last, as a target not received by it.
  Writer w{open_line(3)};
  const BufferId a = w.scratch("a", {3});
  const Region next{a, {block(own(w.axis(0), 1, false), 1)}}, here{a, {block(own(w.axis(0)), 1)}};
  w.add("source", shift(w.axis(0), 1, next, here), {}, between(w.axis(0), 0, 2));  // 0 and 1 send: fits
  w.add("target", shift(w.axis(0), 1, here, next), {}, between(w.axis(0), 0, 2));  // 1 and 2 receive: 2 does not fit
  w.add("back", shift(w.axis(0), -1, here, next), {}, between(w.axis(0), 1, 3));   // 0 and 1 receive: fits
  EXPECT_THAT(problems_of(w.schedule),
              ElementsAre("task 1 \"target\" on device 2 (x=2) takes elements 3..4 of dimension 0 of buffer \"a\", which has 3"));
}

TEST(Unroll, AGuardKeepsARegionFromBeingJudgedWhereItIsAbsent) {
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {8});
  w.add("guarded", copy({a, {block(own(w.axis(0), 1, false), 2)}}, part(a, 0, 2)), {}, between(w.axis(0), 0, 3));
  EXPECT_THAT(problems_of(w.schedule), IsEmpty());
}

// ---- Order and refusals ---------------------------------------------------------------------------------------------------------------

TEST(Unroll, ActivitiesAreOrderedByProgramTaskAndDevice) {
  Writer w{ring(4)};
  w.program(2, 4);
  const BufferId a = w.scratch("a", {4});
  w.add("p0 t0", copy(part(a, 0, 1), part(a, 1, 1)));
  w.add("p0 t1", copy(part(a, 1, 1), part(a, 2, 1)));
  w.program(0, 2);
  const BufferId b = w.scratch("b", {4});
  w.add("p1 t0", copy(part(b, 0, 1), part(b, 1, 1)));
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(names(graph), ElementsAre("0@2", "0@3", "1@2", "1@3", "0@0", "0@1"));
  const auto order = graph.program_order(DeviceId{3});
  EXPECT_THAT(std::vector<std::uint32_t>(order.begin(), order.end()), ElementsAre(1u, 3u));
  EXPECT_THAT(graph.program_order(DeviceId{0}), ::testing::SizeIs(1));
}

TEST(Unroll, ATransferIsInTheProgramOrderOfItsSenderOnly) {
  Writer w{open_line(2)};
  const BufferId a = w.scratch("a", {2});
  w.add("move", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1)), {}, between(w.axis(0), 0, 1));
  const ActivityGraph graph = graph_of(w.schedule);
  EXPECT_THAT(graph.program_order(DeviceId{0}), ::testing::SizeIs(1));
  EXPECT_THAT(graph.program_order(DeviceId{1}), IsEmpty());
}

TEST(Unroll, CollectivesHaveToBeLoweredFirst) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  w.add("gather", Collective{CollectiveKind::all_gather, {w.axis(0)}, part(a, 0, 2), part(a, 0, 4), 0});
  EXPECT_THAT(problems_of(w.schedule), ElementsAre("task 0 \"gather\" is a Collective: lower() the schedule first"));
}

TEST(Unroll, AScheduleThatIsNotWellShapedIsNotWrittenOut) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  w.add("too long", copy(part(a, 0, 5), part(a, 0, 5)));
  EXPECT_THAT(problems_of(w.schedule), ElementsAre("task 0 \"too long\": read: dimension 0 of buffer \"a\" has 4 elements, the range takes 5"));
  EXPECT_TRUE(unroll(w.schedule).graph.activities.empty());
}

TEST(Unroll, EveryProblemIsReported) {
  Writer w{ring(3)};
  const BufferId a = w.scratch("a", {2});
  w.add("lost", Send{0, neighbour(w.axis(0), 1), part(a, 0, 1), {}});
  w.add("awaited", Recv{1, neighbour(w.axis(0), 1), part(a, 0, 1), Combine::replace});
  EXPECT_EQ(problems_of(w.schedule).size(), 6u);
}

}  // namespace
}  // namespace podsim
