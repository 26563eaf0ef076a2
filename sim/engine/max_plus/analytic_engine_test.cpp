// Closed forms of tiny schedules, to the picosecond.
#include "sim/engine/max_plus/analytic_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/table/test_line.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after, testing::between, testing::copy, testing::ideal_machine, testing::Line;
using testing::part, testing::plain_machine, testing::shift, testing::small_system, testing::SmallSystem, testing::Writer;

struct Times {
  std::int64_t start, sent, received;  // ns
  friend bool operator==(const Times&, const Times&) = default;
  friend void PrintTo(const Times& t, std::ostream* out) { *out << t.start << ".." << t.sent << "," << t.received; }
};

/// The times of every activity in ns. All of them must be whole.
std::vector<Times> run(const SmallSystem& pod, const Schedule& schedule) {
  const auto timeline = testing::run(pod, schedule, "analytic");
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  std::vector<Times> result;
  if (!timeline) return result;
  for (const ActivityTimes& t : testing::times_of(*timeline)) {
    for (const Picoseconds time : {t.start, t.sent, t.received}) EXPECT_EQ(time.count() % 1000, 0);
    result.push_back({t.start.count() / 1000, t.sent.count() / 1000, t.received.count() / 1000});
  }
  return result;
}

Times work(std::int64_t start, std::int64_t end) { return {start, end, end}; }
Times move(std::int64_t start, std::int64_t end) { return {start, end, end}; }

using ::testing::ElementsAre;

// ---- The core -------------------------------------------------------------------------------------------------------------------------

TEST(Analytic, TheCoreRunsInProgramOrderWithoutEdges) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  s.work(100, 0), s.work(50, 0), s.work(30, 1);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 100), work(100, 150), work(0, 30)));
}

TEST(Analytic, TheCoreWaitsForItsNextTaskEvenIfALaterOneIsReady) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  const TaskId dma = s.work(300, 0, {}, Unit::dma);
  s.work(10, 0, {after(dma)});
  s.work(20, 0);  // ready at once, but behind
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 300), work(300, 310), work(310, 330)));
}

TEST(Analytic, DmaWorkAndTransfersGoBesideTheCoreAndEachOther) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  s.work(100, 0), s.work(200, 0, {}, Unit::dma), s.work(150, 0, {}, Unit::dma), s.move(120, 0), s.work(10, 0);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 100), work(0, 200), work(0, 150), move(0, 120), work(100, 110)));
}

TEST(Analytic, DurationsAreRoundedUpEach) {
  Machine machine = ideal_machine();
  machine.chip.hbm_bandwidth = BytesPerSecond{24e12};  // 8 bytes: a third of a picosecond
  const SmallSystem pod = small_system(machine, {1});
  Line s{pod};
  s.work(1, 0), s.work(1, 0), s.work(4, 0);
  const auto timeline = testing::run(pod, s.w.schedule, "analytic");
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->makespan, Picoseconds{1 + 1 + 2});
  EXPECT_EQ(timeline->events, 3);
}

TEST(Analytic, DelayFlowAndReductionAreRoundedUpEach) {
  Machine machine = ideal_machine(10e12, 0.4e-12);  // 4 bytes: 0.4 ps
  machine.chip.reduce_bandwidth = BytesPerSecond{10e12};
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.move(1, 0, {}, Combine::add);
  const auto timeline = testing::run(pod, s.w.schedule, "analytic");
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->at(0).sent, Picoseconds{2});
  EXPECT_EQ(timeline->at(0).received, Picoseconds{3});
}

// ---- Transfers ------------------------------------------------------------------------------------------------------------------------

TEST(Analytic, ATransferStartsWhenBothSidesAreReady) {
  for (const auto& [sender, receiver] : std::vector<std::pair<int, int>>{{100, 300}, {300, 100}, {200, 200}}) {
    const SmallSystem pod = small_system(plain_machine(), {2});
    Line s{pod};
    const TaskId make = s.work(sender, 0), free = s.work(receiver, 1);
    s.move(50, 0, {after(make), after(free)});
    EXPECT_THAT(run(pod, s.w.schedule),
                ElementsAre(work(0, sender), work(0, receiver), move(std::max(sender, receiver), std::max(sender, receiver) + 50)));
  }
}

TEST(Analytic, ASendAndItsRecvMeet) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Line s{pod};
  const TaskId free = s.work(80, 1);
  s.w.add("in", Recv{0, {Affine{0}}, part(s.a, 0, 40), Combine::replace}, {after(free)}, between(s.x, 1, 2));
  const TaskId make = s.work(30, 0);
  s.w.add("out", Send{0, {Affine{1}}, part(s.a, 0, 40), {}}, {after(make)}, between(s.x, 0, 1));
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 80), work(0, 30), move(80, 120)));
}

TEST(Analytic, SentAndReceivedPartWhereTheReceiverAdds) {
  Machine machine = plain_machine();
  machine.chip.reduce_bandwidth = BytesPerSecond{8e9};  // half the time of the link
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  const TaskId sum = s.move(100, 0, {}, Combine::add);
  s.work(10, 0, {after(sum)});
  s.work(10, 1, {after(sum)});
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(Times{0, 100, 150}, work(100, 110), work(150, 160))) << "off the core, at the receiver";
}

TEST(Analytic, ALineOfHopsCutsThrough) {
  Machine machine = plain_machine();
  machine.link.fill({BytesPerSecond{4e9}, Seconds{7e-9}});
  machine.software.per_message = Seconds{11e-9};
  machine.software.launch[static_cast<std::size_t>(CostKind::permute)] = Seconds{13e-9};
  const SmallSystem pod = small_system(machine, {8});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  w.add("far", shift(w.axis(0), 3, part(a, 0, 100), part(a, 0, 100)), {}, between(w.axis(0), 0, 1));
  EXPECT_THAT(run(pod, w.schedule), ElementsAre(move(0, 13 + 11 + 3 * 7 + 100))) << "the bytes once, not once per hop";
}

TEST(Analytic, ARingPassesOnStepByStep) {
  // P - 1 steps of 100 elements, each after what arrived: (P - 1) (alpha + n beta).
  Machine machine = plain_machine();
  machine.link.fill({BytesPerSecond{4e9}, Seconds{5e-9}});
  const SmallSystem pod = small_system(machine, {5});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {500});
  const auto block_at = [&](std::int64_t add) { return Region{a, {block(own(w.axis(0), add), 100)}}; };
  for (int i = 0; i < 4; ++i)
    w.add("step", shift(w.axis(0), 1, block_at(-i), block_at(-i - 1)), i == 0 ? std::vector<Edge>{} : std::vector<Edge>{after(TaskId{i - 1})});
  const auto times = run(pod, w.schedule);
  ASSERT_EQ(times.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(times[i], move(105 * static_cast<std::int64_t>(i / 5), 105 * static_cast<std::int64_t>(i / 5 + 1)));
}

TEST(Analytic, NobodySharesALink) {
  // Three transfers over one link: each as if uncontended.
  const SmallSystem pod = small_system(plain_machine(), {2}, false);
  Line s{pod};
  s.move(100, 0), s.move(70, 0), s.move(40, 0);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(move(0, 100), move(0, 70), move(0, 40)));
}

TEST(Analytic, InjectionLimitsEvenASingleFlow) {
  Machine machine = plain_machine();
  machine.chip.injection_bandwidth = BytesPerSecond{2e9};
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.move(100, 0);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(move(0, 200)));
}

TEST(Analytic, AnInefficientFlowTakesLonger) {
  Machine machine = plain_machine();
  machine.software.efficiency[static_cast<std::size_t>(CostKind::permute)] = {{Bytes{1}, 0.25}};
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.move(100, 0);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(move(0, 400)));
}

TEST(Analytic, UnlimitedLinksTakeTheirLatencyOnly) {
  Machine machine = plain_machine();
  machine.link.fill({unlimited<BytesPerSecond>, Seconds{3e-9}});
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.move(100, 0);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(move(0, 3)));
}

// ---- Core shares ----------------------------------------------------------------------------------------------------------------------

Machine with_share(CostKind kind, double share) {
  Machine machine = plain_machine();
  machine.software.core_share[static_cast<std::size_t>(kind)] = share;
  return machine;
}

TEST(Analytic, ATransferDoesNotWaitForTheCoreOfWhichItTakesAShare) {
  const SmallSystem pod = small_system(with_share(CostKind::permute, 0.6), {2});
  Line s{pod};
  s.work(30, 0), s.move(100, 0), s.work(20, 0), s.work(5, 1);
  // 60 ns in three pieces: behind the first work, and behind each of the two others; on device 0 the last of them is absent.
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 30), move(0, 100), work(50, 70), work(0, 5))) << "the receiver's core is free";
}

TEST(Analytic, TheCoreWorksOffItsShareWhileTheTransferWaits) {
  const SmallSystem pod = small_system(with_share(CostKind::permute, 0.5), {2});
  Line s{pod};
  const TaskId dma = s.work(200, 0, {}, Unit::dma);
  s.move(100, 0, {after(dma)}), s.work(20, 0);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 200), move(200, 300), work(25, 45)));
}

TEST(Analytic, DmaWorkGoesOnBesideTheCoresShareOfIt) {
  const SmallSystem pod = small_system(with_share(CostKind::local, 0.25), {2});
  Line s{pod};
  s.work(40, 0);
  const TaskId dma = s.work(200, 0, {}, Unit::dma);
  s.work(10, 0);
  s.work(10, 0, {after(dma)});  // waits, so the pieces are two
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 40), work(0, 200), work(65, 75), work(200, 210)));
}

TEST(Analytic, ACollectivesShareBeginsAtItsLaunch) {
  // Two steps of 100 ns and a launch of 60: a tenth of 260 on the core, half of it before and half behind the work.
  Machine machine = with_share(CostKind::all_gather, 0.1);
  machine.software.launch[static_cast<std::size_t>(CostKind::all_gather)] = Seconds{60e-9};
  const SmallSystem pod = small_system(machine, {2});
  Line s{pod};
  s.work(30, 0);
  const TaskId launch = s.w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma}, {}, between(s.x, 0, 1));
  const TaskId one = s.move(100, 0, {after(launch)}), two = s.move(100, 0, {after(one)});
  for (const TaskId id : {launch, one, two}) s.w.task(id).origin = Origin{0, CollectiveKind::all_gather, s.x, Bytes{400}};
  s.work(10, 0);
  EXPECT_THAT(run(pod, s.w.schedule), ElementsAre(work(0, 30), work(0, 60), move(60, 160), move(160, 260), work(43, 53)));
}

// ---- Refusals -------------------------------------------------------------------------------------------------------------------------

TEST(Analytic, SaysWhoWaitsForWhomInADeadlock) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4});
  const TaskId in = w.add("in", Recv{0, testing::neighbour(w.axis(0), 1), part(a, 0, 1), Combine::replace});
  w.add("out", Send{0, testing::neighbour(w.axis(0), 1), part(a, 1, 1), {}}, {after(in)});
  w.add("free", copy(part(a, 2, 1), part(a, 3, 1)));
  const auto timeline = testing::run(pod, w.schedule, "analytic");
  ASSERT_FALSE(timeline);
  EXPECT_EQ(to_text(timeline.error()),
            "deadlock: task 1 \"out\" on device 0 (row=0) waits for task 1 \"out\" on device 1 (row=1), which "
            "waits for task 1 \"out\" on device 0 (row=0); 2 of 4 task instances never ran");
}

TEST(Analytic, ASendToItsOwnPredecessorNeverStarts) {
  // The receive side waits for what the transfer itself brings about: only the receive gate is left, and it never opens.
  const SmallSystem pod = small_system(plain_machine(), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4});
  const AxisView x = w.axis(0);
  const TaskId answer = w.add("answer", Recv{0, {Affine{0}}, part(a, 0, 1), Combine::replace}, {}, between(x, 1, 2));
  w.add("slot", Recv{1, {Affine{0}}, part(a, 1, 1), Combine::replace}, {after(answer)}, between(x, 1, 2));
  const TaskId first = w.add("first", Send{1, {Affine{1}}, part(a, 0, 1), {}}, {}, between(x, 0, 1));
  w.add("second", Send{0, {Affine{1}}, part(a, 0, 1), {}}, {after(first)}, between(x, 0, 1));
  const auto timeline = testing::run(pod, w.schedule, "analytic");
  ASSERT_FALSE(timeline);
  EXPECT_EQ(to_text(timeline.error()),
            "deadlock: task 2 \"first\" on device 0 (row=0) waits for task 3 \"second\" on device 0 (row=0), "
            "which waits for task 2 \"first\" on device 0 (row=0); 2 of 2 task instances never ran");
}

TEST(Analytic, RefusesWhatDoesNotUnroll) {
  const SmallSystem pod = small_system(plain_machine(), {2}, false);
  Writer w{pod.mesh};
  w.add("gather", Collective{CollectiveKind::all_gather, {w.axis(0)}, part(w.scratch("a", {4}), 0, 2), part(BufferId{0}, 0, 4), 0});
  const auto timeline = testing::run(pod, w.schedule, "analytic");
  ASSERT_FALSE(timeline);
  EXPECT_EQ(to_text(timeline.error()), "task 0 \"gather\" is a Collective: lower() the schedule first");
}

TEST(Analytic, AnEmptyScheduleTakesNoTime) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  const Writer w{pod.mesh};
  const auto timeline = testing::run(pod, w.schedule, "analytic");
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->makespan, Picoseconds{0});
}

}  // namespace
}  // namespace podsim
