#include "sim/schedule/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "sim/base/rng.hpp"
#include "sim/schedule/happens_before.hpp"
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
using testing::texts;
using testing::Writer;

// ---- Unmatched ------------------------------------------------------------------------------------------------------------------------

/// Every device sends to the next and receives from the one before it.
Schedule neighbours_exchange(int devices) {
  Writer w{ring(devices)};
  const BufferId a = w.scratch("a", {2});
  w.add("out", Send{5, neighbour(w.axis(0), 1), part(a, 0, 1), {}});
  w.add("in", Recv{5, neighbour(w.axis(0), -1), part(a, 1, 1), Combine::replace});
  return w.schedule;
}

TEST(Validate, MatchedHalvesAreFine) { EXPECT_THAT(validate(neighbours_exchange(3)).all(), IsEmpty()); }

TEST(Validate, ARemovedHalfIsUnmatchedOnEveryDeviceByName) {
  Schedule no_receive = neighbours_exchange(3), no_send = neighbours_exchange(3);
  no_receive.programs[0].tasks.pop_back();
  const Validation without_receive = validate(no_receive);
  EXPECT_FALSE(without_receive.ok());
  EXPECT_THAT(texts(without_receive.unmatched),
              ElementsAre("unmatched: task 0 \"out\" on device 0 (x=0) sends to device 1 (x=1) on channel 5, which has no receive for it",
                          "unmatched: task 0 \"out\" on device 1 (x=1) sends to device 2 (x=2) on channel 5, which has no receive for it",
                          "unmatched: task 0 \"out\" on device 2 (x=2) sends to device 0 (x=0) on channel 5, which has no receive for it"));
  no_send.programs[0].tasks.erase(no_send.programs[0].tasks.begin());
  EXPECT_THAT(texts(validate(no_send).unmatched),
              ElementsAre("unmatched: task 0 \"in\" on device 1 (x=1) receives from device 0 (x=0) on channel 5, which has no send for it",
                          "unmatched: task 0 \"in\" on device 2 (x=2) receives from device 1 (x=1) on channel 5, which has no send for it",
                          "unmatched: task 0 \"in\" on device 0 (x=0) receives from device 2 (x=2) on channel 5, which has no send for it"));
}

TEST(Validate, GuardsThatDisagreeAreUnmatchedOnBothSides) {
  Schedule schedule = neighbours_exchange(4);
  const AxisView x = schedule.mesh.whole(0);
  schedule.programs[0].tasks[0].where = between(x, 0, 2);  // 0 and 1 send, so 1 and 2 would have to receive
  schedule.programs[0].tasks[1].where = between(x, 2, 4);
  EXPECT_THAT(texts(validate(schedule).unmatched),
              ElementsAre("unmatched: task 0 \"out\" on device 0 (x=0) sends to device 1 (x=1) on channel 5, which has no receive for it",
                          "unmatched: task 1 \"in\" on device 3 (x=3) receives from device 2 (x=2) on channel 5, which has no send for it"));
  schedule.programs[0].tasks[1].where = between(x, 1, 3);
  EXPECT_TRUE(validate(schedule).ok());
}

TEST(Validate, AChannelTooManyIsUnmatched) {
  Schedule schedule = neighbours_exchange(2);
  std::get<Recv>(schedule.programs[0].tasks[1].op).channel = 6;
  EXPECT_EQ(validate(schedule).unmatched.size(), 4u);
}

TEST(Validate, TheFirstTwentyAreNamedTheOthersCounted) {
  Schedule schedule = neighbours_exchange(64);
  schedule.programs[0].tasks.pop_back();
  const Validation validation = validate(schedule);
  ASSERT_EQ(validation.unmatched.size(), 21u);
  EXPECT_EQ(to_text(validation.unmatched.back()), "... and 44 more problems");
}

// ---- Deadlocks ------------------------------------------------------------------------------------------------------------------------

TEST(Validate, AWaitAcrossDevicesThatClosesIsADeadlockThatNamesThem) {
  // Each waits to receive from the other before it sends.
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {2});
  const TaskId in = w.add("in", Recv{0, neighbour(w.axis(0), 1), part(a, 1, 1), Combine::replace});
  w.add("out", Send{0, neighbour(w.axis(0), 1), part(a, 0, 1), {}}, {after(in)});
  const Validation validation = validate(w.schedule);
  EXPECT_FALSE(validation.ok());
  EXPECT_THAT(texts(validation.deadlocks),
              ElementsAre("deadlock: task 1 \"out\" on device 0 (x=0) to device 1 (x=1) waits for task 1 \"out\" on device 1 (x=1) to device 0 (x=0) "
                          "waits for the first"));
  EXPECT_THAT(validation.unmatched, IsEmpty());
}

TEST(Validate, ALongCycleNamesItsBeginning) {
  Writer w{ring(12)};
  const BufferId a = w.scratch("a", {2});
  const TaskId in = w.add("in", Recv{0, neighbour(w.axis(0), -1), part(a, 1, 1), Combine::replace});
  w.add("out", Send{0, neighbour(w.axis(0), 1), part(a, 0, 1), {}}, {after(in)});
  const Validation validation = validate(w.schedule);
  ASSERT_EQ(validation.deadlocks.size(), 1u);
  const std::string text = to_text(validation.deadlocks[0]);
  EXPECT_THAT(text, ::testing::StartsWith("deadlock: task 1 \"out\" on device 0 (x=0) to device 1 (x=1) waits for "
                                          "task 1 \"out\" on device 11 (x=11) to device 0 (x=0) waits for task 1 \"out\" on device 10"));
  EXPECT_THAT(text, ::testing::EndsWith(" waits for 4 more, which wait for the first"));
}

/// Device 0 computes on what device 1 sends after its computation, and the other way round: no cycle of edges, but each core comes to the
/// task that waits first.
Schedule crossed_cores() {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8});
  const AxisView x = w.axis(0);
  const TaskId in = w.add("in", Recv{0, neighbour(x, 1), part(a, 0, 1), Combine::replace});
  w.add("use", copy(part(a, 0, 1), part(a, 1, 1)), {after(in)});
  const TaskId make = w.add("make", copy(part(a, 2, 1), part(a, 3, 1)));
  w.add("out", Send{0, neighbour(x, 1), part(a, 3, 1), {}}, {after(make)});
  return w.schedule;
}

TEST(Validate, CoreProgramOrderAloneCanDeadlock) {
  const Validation validation = validate(crossed_cores());
  EXPECT_THAT(texts(validation.deadlocks),
              ElementsAre("deadlock (core work runs in program order): "
                          "task 1 \"use\" on device 0 (x=0) waits for task 3 \"out\" on device 1 (x=1) to device 0 (x=0) waits for "
                          "task 2 \"make\" on device 1 (x=1) waits for task 1 \"use\" on device 1 (x=1) waits for "
                          "task 3 \"out\" on device 0 (x=0) to device 1 (x=1) waits for task 2 \"make\" on device 0 (x=0) waits for the first"));
  EXPECT_THAT(validation.races, IsEmpty());
}

TEST(Validate, DmaWorkHasNoOrder) {
  Schedule schedule = crossed_cores();
  std::get<Local>(schedule.programs[0].tasks[2].op).unit = Unit::dma;
  EXPECT_THAT(validate(schedule).all(), IsEmpty());
}

TEST(Validate, TransfersAreNotInTheCoresOrder) {
  // The send stands behind work that waits for what it brings about: fine, it is not on the core.
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8});
  const TaskId in = w.add("in", Recv{0, neighbour(w.axis(0), 1), part(a, 0, 1), Combine::replace});
  w.add("use", copy(part(a, 0, 1), part(a, 1, 1)), {after(in)});
  w.add("out", Send{0, neighbour(w.axis(0), 1), part(a, 3, 1), {}});
  EXPECT_THAT(validate(w.schedule).all(), IsEmpty());
}

TEST(TopologicalOrder, IsProgramOrderWhereThatIsLegal) {
  Writer w{ring(3)};
  const BufferId a = w.scratch("a", {4});
  const TaskId make = w.add("make", copy(part(a, 0, 1), part(a, 1, 1)));
  w.add("move", shift(w.axis(0), 1, part(a, 1, 1), part(a, 2, 1)), {after(make)});
  const ActivityGraph graph = unroll(w.schedule).graph;
  EXPECT_THAT(topological_order(graph, w.schedule, false).order, ElementsAre(0u, 1u, 2u, 3u, 4u, 5u));
  EXPECT_THAT(topological_order(graph, w.schedule, true).cycle, IsEmpty());
}

TEST(TopologicalOrder, StopsBeforeACycleAndNamesIt) {
  const Schedule schedule = crossed_cores();
  const ActivityGraph graph = unroll(schedule).graph;
  EXPECT_EQ(topological_order(graph, schedule, false).order.size(), graph.activities.size());
  const TopologicalOrder with_core = topological_order(graph, schedule, true);
  EXPECT_EQ(with_core.cycle.size(), 6u);
  EXPECT_THAT(with_core.order, IsEmpty());
}

// ---- Races ----------------------------------------------------------------------------------------------------------------------------

TEST(Validate, ARaceNamesBothTasksTheDeviceAndTheBuffer) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});
  w.add("write", copy(part(a, 0, 4), part(b, 0, 4)), {}, between(w.axis(0), 1, 2));
  w.add("read", copy(part(b, 3, 4), part(a, 4, 4)), {}, between(w.axis(0), 1, 2));
  EXPECT_THAT(texts(validate(w.schedule).races), ElementsAre("race on device 1 (x=1): task 0 \"write\" writes and task 1 \"read\" reads overlapping "
                                                             "parts of buffer \"b\", and neither happens before the other"));
  w.task(TaskId{1}).after = {after(TaskId{0})};
  EXPECT_TRUE(validate(w.schedule).ok());
}

TEST(Validate, CoreOrderDoesNotOrderARace) {
  // The two copies run on one core, one after the other: a timing engine would never see them overlap, an edge is still required.
  Writer w{ring(1)};
  const BufferId a = w.scratch("a", {2});
  w.add("one", copy(part(a, 0, 1), part(a, 1, 1)));
  w.add("two", copy(part(a, 0, 1), part(a, 1, 1)));
  EXPECT_EQ(validate(w.schedule).races.size(), 1u);
}

TEST(Validate, ReadersDoNotRaceNorDoNeighbours) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});
  w.add("read", copy(part(a, 0, 4), part(b, 0, 4)));
  w.add("read too", copy(part(a, 0, 4), part(b, 4, 4)));
  EXPECT_TRUE(validate(w.schedule).ok());
}

TEST(Validate, AffineRegionsRaceOnlyWhereTheyMeet) {
  // Block of the own coordinate against block 2: they meet on device 2 alone.
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {2});
  w.add("own", copy(part(b, 0, 2), {a, {block(own(w.axis(0)), 2)}}));
  w.add("fixed", copy(part(a, 4, 2), part(b, 0, 2)));
  const auto races = texts(validate(w.schedule).races);
  EXPECT_EQ(std::count_if(races.begin(), races.end(), [](const std::string& text) { return text.find("buffer \"a\"") != std::string::npos; }), 1);
  EXPECT_THAT(races, ::testing::Contains(::testing::HasSubstr("race on device 2 (x=2): task 0 \"own\" writes and task 1 \"fixed\" reads")));
}

TEST(Validate, SentFreesTheSourceButDoesNotOrderTheReceiversWrite) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});
  const AxisView x = w.axis(0);
  const TaskId swap = w.add("swap", shift(x, 1, part(a, 0, 1), part(b, 0, 1)));
  w.add("overwrite source", copy(part(a, 4, 1), part(a, 0, 1)), {after(swap, Half::send)});
  EXPECT_TRUE(validate(w.schedule).ok()) << to_text(validate(w.schedule).all());
  w.add("read target", copy(part(b, 0, 1), part(b, 1, 1)), {after(swap, Half::send)});
  EXPECT_THAT(texts(validate(w.schedule).races),
              ::testing::Each(::testing::HasSubstr("task 0 \"swap\" writes and task 2 \"read target\" reads overlapping parts of buffer \"b\"")));
  EXPECT_EQ(validate(w.schedule).races.size(), 2u);
  w.task(TaskId{2}).after = {after(swap, Half::receive)};
  EXPECT_TRUE(validate(w.schedule).ok());
  // And the other way round: received says nothing of the own send.
  w.task(TaskId{1}).after = {after(swap, Half::receive)};
  EXPECT_THAT(
      texts(validate(w.schedule).races),
      ::testing::Each(::testing::HasSubstr("task 0 \"swap\" reads and task 1 \"overwrite source\" writes overlapping parts of buffer \"a\"")));
}

TEST(Validate, ASentHalfOnTheWayIsEnoughForWhatCameBefore) {
  // make -> move (waits for make at its sender) -> after its sent half: make is over by then.
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8});
  const TaskId make = w.add("make", copy(part(a, 0, 1), part(a, 1, 1)));
  const TaskId move = w.add("move", shift(w.axis(0), 1, part(a, 1, 1), part(a, 2, 1)), {after(make)});
  w.add("again", copy(part(a, 0, 1), part(a, 1, 1)), {after(move, Half::send)});
  EXPECT_TRUE(validate(w.schedule).ok()) << to_text(validate(w.schedule).all());
}

TEST(Validate, AReceivedHalfCarriesTheSendersPast) {
  // Device 1 overwrites what device 0 read, after two transfers: ordered across devices.
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  const AxisView x = w.axis(0);
  const TaskId there = w.add("there", shift(x, 1, part(a, 0, 1), part(a, 1, 1)), {}, between(x, 0, 1));
  const TaskId back = w.add("back", shift(x, 1, part(a, 1, 1), part(a, 2, 1)), {after(there, Half::receive, Half::send)}, between(x, 1, 2));
  w.add("overwrite", copy(part(a, 2, 1), part(a, 0, 1)), {after(back, Half::receive)}, between(x, 0, 1));
  EXPECT_TRUE(validate(w.schedule).ok()) << to_text(validate(w.schedule).all());
  w.task(back).after.clear();  // now `there` may still be reading
  EXPECT_FALSE(validate(w.schedule).ok());
}

TEST(Validate, TwoSumsIntoOnePlaceRace) {
  Writer w{ring(3)};
  const BufferId a = w.scratch("a", {4});
  const TaskId up = w.add("up", shift(w.axis(0), 1, part(a, 0, 1), part(a, 1, 1), Combine::add));
  const TaskId down = w.add("down", shift(w.axis(0), -1, part(a, 0, 1), part(a, 1, 1), Combine::add));
  EXPECT_EQ(validate(w.schedule).races.size(), 3u) << "floating-point sums depend on their order";
  w.task(down).after = {after(up, Half::receive, Half::receive)};
  EXPECT_TRUE(validate(w.schedule).ok()) << to_text(validate(w.schedule).all());
}

TEST(Validate, TwoResultsOfOneTaskRace) {
  Writer w{ring(1)};
  const BufferId a = w.scratch("a", {9}), b = w.scratch("b", {9});
  w.add("both", Local{LocalKind::swiglu_grad, {part(a, 0, 3), part(a, 3, 3), part(a, 6, 3)}, {part(b, 0, 3), part(b, 2, 3)}});
  EXPECT_THAT(texts(validate(w.schedule).races),
              ElementsAre(::testing::HasSubstr("task 0 \"both\" writes and task 0 \"both\" writes overlapping parts of buffer \"b\"")));
  std::get<Local>(w.task(TaskId{0}).op).writes = {part(a, 3, 3), part(a, 6, 3)};
  EXPECT_TRUE(validate(w.schedule).ok()) << "over what it reads";
}

TEST(Validate, AnEarlierAccessIsNotForgottenWhenAPartOfItIsOverwritten) {
  // `late` meets `first` beyond the part that `cover` wrote.
  Writer w{ring(1)};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});
  const TaskId first = w.add("first", copy(part(b, 0, 4), part(a, 0, 4)));
  const TaskId cover = w.add("cover", copy(part(b, 4, 2), part(a, 0, 2)), {after(first)});
  w.add("late", copy(part(a, 0, 4), part(b, 4, 4)), {after(cover, Half::both)});
  EXPECT_TRUE(validate(w.schedule).ok());
  w.task(TaskId{1}).after.clear();
  const auto races = texts(validate(w.schedule).races);
  EXPECT_THAT(races, ::testing::Contains(::testing::HasSubstr("task 0 \"first\" writes and task 1 \"cover\" writes")));
  EXPECT_THAT(races, ::testing::Contains(::testing::HasSubstr("task 0 \"first\" writes and task 2 \"late\" reads")));
}

TEST(Validate, AWriteIsNotForgottenWhenItIsRead) {
  Writer w{ring(1)};
  const BufferId a = w.scratch("a", {8}), b = w.scratch("b", {8});
  const TaskId write = w.add("write", copy(part(b, 0, 1), part(a, 0, 1)));
  w.add("read", copy(part(a, 0, 2), part(b, 2, 2)), {after(write)});
  w.add("read too", copy(part(a, 0, 1), part(b, 4, 1)));
  EXPECT_THAT(texts(validate(w.schedule).races), ElementsAre(::testing::HasSubstr("task 0 \"write\" writes and task 2 \"read too\" reads")));
}

/// Races found by comparing every two accesses with reachability over all pairs: slow and plain.
std::set<std::tuple<int, int, int>> plain_races(const Schedule& schedule) {
  const ActivityGraph graph = unroll(schedule).graph;
  const std::size_t n = graph.activities.size();
  // over[i][half]: what must be over before activity i starts, by direct waits, closed over all paths.
  std::vector<std::vector<std::array<bool, 2>>> over(n, std::vector<std::array<bool, 2>>(n, {false, false}));
  for (bool grew = true; grew;) {
    grew = false;
    const auto set = [&](bool& place) { grew = grew || !place, place = true; };
    for (std::size_t i = 0; i < n; ++i)
      for (const Gate gate : {Gate::start, Gate::receive})
        for (const Dependency& wait : graph.waits_for(i, gate)) {
          set(over[i][wait.activity][0]);
          if (wait.received) set(over[i][wait.activity][1]);
          for (std::size_t j = 0; j < n; ++j)
            for (const std::size_t half : {0u, 1u})
              if (over[wait.activity][j][half]) set(over[i][j][half]);
        }
  }
  struct Access {
    std::size_t activity;
    int device, task;
    bool write, received;
    Box box;
  };
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < n; ++i) {
    const Activity& a = graph.activities[i];
    const auto note = [&](DeviceId device, TaskId task, const Region& region, bool write, bool received) {
      accesses.push_back({i, device.value, task.value, write, received, evaluate(region, schedule.mesh.coordinates(device))});
    };
    const Op& op = schedule.programs[0].tasks[a.task.index()].op;
    if (const auto* local = std::get_if<Local>(&op)) {
      for (const Region& region : local->reads) note(a.device, a.task, region, false, false);
      for (const Region& region : local->writes) note(a.device, a.task, region, true, false);
    } else if (const auto* move = std::get_if<Shift>(&op)) {
      note(a.device, a.task, move->source, false, false);
      note(a.receiver, a.receiver_task, move->target, true, true);
    }
  }
  std::set<std::tuple<int, int, int>> races;
  for (const Access& a : accesses)
    for (const Access& b : accesses)
      if (a.activity < b.activity && a.device == b.device && (a.write || b.write) && overlap(a.box, b.box) &&
          !over[b.activity][a.activity][a.received] && !over[a.activity][b.activity][b.received])
        races.insert({a.device, std::min(a.task, b.task), std::max(a.task, b.task)});
  // A copy onto a part of what it reads.
  for (const Access& a : accesses)
    for (const Access& b : accesses)
      if (a.activity == b.activity && a.device == b.device && !a.write && b.write && overlap(a.box, b.box) && a.box != b.box)
        races.insert({a.device, a.task, a.task});
  return races;
}

TEST(Validate, FindsARaceExactlyWhereComparingEveryPairDoes) {
  int with = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Rng rng{seed, stream_of("races")};
    Writer w{ring(rng.between(2, 4))};
    const AxisView x = w.axis(0);
    const BufferId a = w.scratch("a", {12});
    const auto place = [&](std::int64_t length) { return Region{a, {Range{rng.below(2) == 0 ? own(x) : Affine{}, 2, rng.between(0, 4), length}}}; };
    for (int t = 0, tasks = rng.between(2, 6); t < tasks; ++t) {
      std::vector<Edge> edges;
      for (int e = 0; e < t; ++e) {
        if (rng.below(3) == 0) continue;
        const bool from_shift = std::holds_alternative<Shift>(w.now().tasks[static_cast<std::size_t>(e)].op);
        edges.push_back(after(TaskId{e}, from_shift ? static_cast<Half>(rng.below(3)) : Half::both));
      }
      const std::int64_t length = rng.between(1, 2);
      if (rng.below(2) == 0) {
        w.add("copy", copy(place(length), place(length)), edges);
      } else {
        for (Edge& edge : edges) edge.gates = static_cast<Half>(rng.below(3));
        w.add("shift", shift(x, rng.between(-2, 2), place(length), place(length)), edges);
      }
    }
    const Validation validation = validate(w.schedule);
    ASSERT_THAT(validation.shapes, IsEmpty()) << to_text(validation.all());
    ASSERT_THAT(validation.unmatched, IsEmpty()) << to_text(validation.all());
    if (!validation.deadlocks.empty()) continue;
    const auto plain = plain_races(w.schedule);
    (plain.empty() ? without : with) += 1;
    ASSERT_EQ(validation.races.empty(), plain.empty()) << "seed " << seed << "\n" << to_text(validation.races);
  }
  EXPECT_GT(with, 50);
  EXPECT_GT(without, 50);
}

// ---- What an edge is for --------------------------------------------------------------------------------------------------------------

TEST(AuditEdges, TellsEachPurpose) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  const TaskId make = w.add("make", copy(part(a, 0, 1), part(a, 1, 1)));
  const TaskId use = w.add("use", copy(part(a, 1, 1), part(a, 2, 1)), {after(make)});      // ordering
  w.add("use again", copy(part(a, 2, 1), part(a, 3, 1)), {after(use), after(make)});       // ordering, implied
  w.add("elsewhere", copy(part(a, 0, 1), part(w.scratch("b", {1}), 0, 1)), {after(use)});  // timing
  std::vector<std::string> found;
  const auto audits = audit_edges(w.schedule);
  for (const EdgeAudit& audit : *audits)
    found.push_back(std::to_string(audit.task.value) + "." + std::to_string(audit.edge) + " " +
                    (audit.purpose == EdgePurpose::implied    ? "implied"
                     : audit.purpose == EdgePurpose::ordering ? to_text(audit.race)
                                                              : "timing"));
  EXPECT_THAT(found,
              ElementsAre("1.0 race on device 0 (x=0): task 0 \"make\" writes and task 1 \"use\" reads overlapping parts of buffer \"a\", "
                          "and neither happens before the other",
                          "2.0 race on device 0 (x=0): task 1 \"use\" writes and task 2 \"use again\" reads overlapping parts of buffer \"a\", "
                          "and neither happens before the other",
                          "2.1 implied", "3.0 timing"));
}

TEST(AuditEdges, AHalfThatAnotherEdgeOrdersOnOneSideOnlyIsNotImplied) {
  // Both edges lead to the shift; the second gates the send only, so the first is still needed at the receiver.
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {8});
  const TaskId before = w.add("before", copy(part(a, 0, 1), part(a, 1, 1)));
  w.add("move", shift(w.axis(0), 1, part(a, 2, 1), part(a, 1, 1)), {after(before), after(before, Half::both, Half::send)});
  const auto audits = *audit_edges(w.schedule);
  ASSERT_EQ(audits.size(), 2u);
  EXPECT_EQ(audits[0].purpose, EdgePurpose::ordering);
  EXPECT_EQ(audits[1].purpose, EdgePurpose::implied);
}

TEST(AuditEdges, AnEdgeOfOneHalfIsImpliedByThatHalfAlone) {
  Writer w{ring(3)};
  const BufferId a = w.scratch("a", {9});
  const AxisView x = w.axis(0);
  const auto purposes = [&] {
    std::vector<EdgePurpose> result;
    const auto audits = audit_edges(w.schedule);
    for (const EdgeAudit& audit : *audits) result.push_back(audit.purpose);
    return result;
  };
  // `last` waits for what arrived, directly and through `use`; of the own send it knows nothing.
  const TaskId move = w.add("move", shift(x, 1, part(a, 0, 1), part(a, 1, 1)));
  const TaskId use = w.add("use", copy(part(a, 1, 1), part(a, 2, 1)), {after(move, Half::receive)});
  w.add("last", copy(part(a, 2, 1), part(a, 3, 1)), {after(use), after(move, Half::receive)});
  EXPECT_THAT(purposes(), ElementsAre(EdgePurpose::ordering, EdgePurpose::ordering, EdgePurpose::implied));
  // The send waits for `make` through `use`; the receive does not wait at all.
  w.now().tasks.clear();
  const TaskId make = w.add("make", copy(part(a, 0, 1), part(a, 1, 1)));
  const TaskId then = w.add("then", copy(part(a, 1, 1), part(a, 2, 1)), {after(make)});
  w.add("send it", shift(x, 1, part(a, 2, 1), part(a, 4, 1)), {after(then, Half::both, Half::send), after(make, Half::both, Half::send)});
  EXPECT_THAT(purposes(), ElementsAre(EdgePurpose::ordering, EdgePurpose::ordering, EdgePurpose::implied));
}

// ---- Hostile input --------------------------------------------------------------------------------------------------------------------

TEST(Validate, ShapesComeFirstAndAlone) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {4});
  w.add("bad", copy(part(a, 0, 9), part(a, 0, 9)));
  w.add("lost", Send{0, neighbour(w.axis(0), 1), part(a, 0, 1), {}});
  const Validation validation = validate(w.schedule);
  EXPECT_EQ(validation.shapes.size(), 1u);
  EXPECT_THAT(validation.unmatched, IsEmpty());
  EXPECT_EQ(validation.all().size(), 1u);
}

TEST(Validate, LargeIndicesAreComparedNotWrapped) {
  constexpr std::int64_t far = (std::int64_t{1} << 56) - 1;
  Writer w{ring(4)};
  const BufferId a = w.scratch("a", {8});
  w.add("far", copy(part(a, far, 1), part(a, -far, 1)));
  w.add("far on one device", copy({a, {Range{own(w.axis(0), 0, false), far / 4, 0, 1}}}, part(a, 0, 1)));
  w.add("guarded away", copy(part(a, far, 1), part(a, 0, 1)), {}, {{Affine{std::numeric_limits<std::int64_t>::min() / 256}, 0, 1}});
  const auto unmatched = texts(validate(w.schedule).unmatched);
  EXPECT_EQ(unmatched.size(), 11u);  // twice four, and three
  EXPECT_THAT(unmatched,
              ::testing::Contains("task 0 \"far\" on device 0 (x=0) takes elements 72057594037927935..72057594037927936 of dimension 0 of buffer "
                                  "\"a\", which has 8"));
}

TEST(Validate, AnEmptyScheduleIsFine) {
  EXPECT_TRUE(validate(Schedule{}).ok());
  Writer idle{ring(4)};
  EXPECT_TRUE(validate(idle.schedule).ok());
}

}  // namespace
}  // namespace podsim
