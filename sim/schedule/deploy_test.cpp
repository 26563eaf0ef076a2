// Who does what with whom. (What waits for what once it is written out: unroll_test.cpp.)
#include "sim/schedule/deploy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/unroll.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::neighbour;
using testing::part;
using testing::shift;
using testing::Writer;

Deployment deployed(const Schedule& schedule) {
  Deployed result = deploy(schedule);
  EXPECT_THAT(result.problems, IsEmpty()) << to_text(result.problems);
  return std::move(result.deployment);
}

/// On a ring of devices, a buffer of 10 elements.
struct Ring {
  explicit Ring(int devices, bool wraps = true) : w{std::vector<MeshAxis>{{"x", devices, wraps}}}, x{w.axis(0)}, a{w.scratch("a", {10})} {}
  Op work(int at = 0) { return copy(part(a, at, 1), part(a, at, 1)); }
  Op move(std::int64_t by, int at = 0) { return shift(x, by, part(a, at, 1), part(a, at, 1)); }
  Writer w;
  AxisView x;
  BufferId a;
};

TEST(Deploy, WorksAndShiftsWithTheSameAnswerShareIt) {
  Ring r{4};
  for (int at = 0; at < 3; ++at) {
    r.w.add("work", r.work(at));
    r.w.add("shift", r.move(1, at));
    r.w.add("back", r.move(-1, at));
    r.w.add("guarded", r.work(at), {}, between(r.x, 0, 2));
  }
  const Deployment d = deployed(r.w.schedule);
  EXPECT_EQ(d.participants.size(), 4U) << "for twelve tasks";
  for (std::size_t t = 4; t < 12; ++t) EXPECT_EQ(d.programs[0].participants[t], d.programs[0].participants[t - 4]);
}

TEST(Deploy, AShiftNamesItsReceiversAndSenders) {
  Ring r{5, false};
  r.w.add("two ahead", r.move(2), {}, between(r.x, 1, 3));
  const Participants who = deployed(r.w.schedule).who(0, 0);
  EXPECT_THAT(who.to, ElementsAre(no_device, 3, 4, no_device, no_device));
  EXPECT_THAT(who.from, ElementsAre(no_device, no_device, no_device, 1, 2));
  EXPECT_THAT(who.rank, ElementsAre(no_device, 0, 1, no_device, no_device));
  EXPECT_THAT(who.to_task, IsEmpty());
  EXPECT_THAT(who.from_task, IsEmpty());
  EXPECT_EQ(who.doers, 2U);
  EXPECT_EQ(who.receivers, 2U);
  EXPECT_TRUE(who.does(1) && !who.does(0) && who.receives(4) && !who.receives(1));
}

TEST(Deploy, AShiftByNothingIsAbsent) {
  Ring r{4};
  r.w.add("none", r.move(0));
  r.w.add("round", r.move(-8));
  const Deployment d = deployed(r.w.schedule);
  for (const std::size_t task : {0U, 1U}) {
    EXPECT_EQ(d.who(0, task).doers, 0U);
    EXPECT_EQ(d.who(0, task).receivers, 0U);
  }
  EXPECT_EQ(d.activities(), 0U);
}

TEST(Deploy, SendsMeetTheRecvsOfTheirChannelInOrderAcrossPrograms) {
  // Devices 0, 1 send twice two ahead to the other program, which receives the second one's channel first.
  Ring r{4};
  r.w.program(0, 2);
  r.w.add("work", r.work());
  r.w.add("first", Send{7, neighbour(r.x, 2), part(r.a, 0, 1), {}});
  r.w.add("second", Send{8, neighbour(r.x, 2), part(r.a, 0, 1), {}});
  r.w.add("third", Send{7, neighbour(r.x, 2), part(r.a, 0, 1), {}});
  r.w.program(2, 4);
  r.w.scratch("b", {10});
  r.w.add("of 8", Recv{8, neighbour(r.x, -2), part(r.a, 0, 1), Combine::replace});
  r.w.add("of 7", Recv{7, neighbour(r.x, -2), part(r.a, 0, 1), Combine::replace});
  r.w.add("of 7 again", Recv{7, neighbour(r.x, -2), part(r.a, 0, 1), Combine::replace});
  const Deployment d = deployed(r.w.schedule);
  const std::vector<std::uint32_t> receiving{1, 0, 2};
  for (std::uint32_t send = 0; send < 3; ++send) {
    const Participants& sender = d.who(0, send + 1);
    const Participants& receiver = d.who(1, receiving[send]);
    EXPECT_THAT(sender.to, ElementsAre(2, 3));
    EXPECT_THAT(sender.to_task, Each(receiving[send]));
    EXPECT_THAT(sender.from, IsEmpty());
    EXPECT_THAT(receiver.to, IsEmpty()) << "a Recv has no activity of its own";
    EXPECT_THAT(receiver.from, ElementsAre(0, 1));
    EXPECT_THAT(receiver.from_task, Each(send + 1));
    EXPECT_EQ(receiver.receivers, 2U);
    EXPECT_EQ(receiver.doers, 0U);
  }
  EXPECT_THAT(d.programs[0].first_activity, ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(d.programs[1].first_activity, ElementsAre(8, 8, 8, 8));
  EXPECT_EQ(d.activities(), 8U);
  EXPECT_EQ(d.activity(0, 3, 1), 7U);
  EXPECT_EQ(d.places[3].program, 1U);
  EXPECT_EQ(d.places[3].local, 1U);
}

TEST(Deploy, DevicesWithoutAProgramHaveNoPlace) {
  Ring r{4};
  r.w.program(1, 3);
  r.w.add("work", r.work());
  const Deployment d = deployed(r.w.schedule);
  EXPECT_EQ(d.places[0].program, no_device);
  EXPECT_EQ(d.places[3].program, no_device);
  EXPECT_THAT(d.programs[0].devices, ElementsAre(1, 2));
  EXPECT_THAT(d.who(0, 0).to, ElementsAre(1, 2));
}

TEST(Deploy, WhatCouldNotBeMatchedIsLeftOutAndSaid) {
  Ring r{3};
  r.w.add("recv", Recv{0, neighbour(r.x, -1), part(r.a, 0, 1), Combine::replace});
  r.w.add("send", Send{0, neighbour(r.x, 1), part(r.a, 0, 1), {}}, {}, between(r.x, 0, 1));
  const Deployed result = deploy(r.w.schedule);
  EXPECT_EQ(result.problems.size(), 2U) << to_text(result.problems);
  EXPECT_THAT(result.deployment.who(0, 0).from, ElementsAre(no_device, 0, no_device));
  EXPECT_EQ(result.deployment.who(0, 0).receivers, 1U);
  EXPECT_EQ(result.deployment.activities(), 1U);
}

std::string text_of(const std::vector<Wait>& waits) {
  std::string text;
  for (const Wait& wait : waits) text += std::to_string(wait.task.value) + (wait.received ? "r " : "s ");
  return text;
}

TEST(Deploy, WaitsAreTheHalvesThatAnEdgeNamesAtTheGatesThatItNames) {
  Ring r{4};
  const TaskId move = r.w.add("move", r.move(1)), work = r.w.add("work", r.work());
  const std::vector<Edge> edges{after(move), after(move, Half::send, Half::send), after(move, Half::receive, Half::receive),
                                after(move, Half::send, Half::receive), after(work)};
  const TaskId next = r.w.add("next", r.move(1), edges);
  EXPECT_EQ(text_of(waits_of(r.w.now(), next, false)), "0s 0r 0s 1s 1r ");
  EXPECT_EQ(text_of(waits_of(r.w.now(), next, true)), "0s 0r 0r 0s 1s 1r ");
  const TaskId last = r.w.add("last", r.work(), {after(move, Half::receive)});
  EXPECT_EQ(text_of(waits_of(r.w.now(), last, false)), "0r ");
}

TEST(Deploy, NumbersActivitiesAsUnrollDoes) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.careless = false, .far = seed % 2 == 0});
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    const Deployed result = deploy(schedule);
    if (!result.problems.empty()) continue;
    const Deployment& d = result.deployment;
    const ActivityGraph graph = unroll(schedule, d);
    ASSERT_EQ(graph.activities.size(), d.activities());
    for (std::uint32_t a = 0; a < graph.activities.size(); ++a) {
      const Activity& activity = graph.activities[a];
      const auto& [program, local] = d.places[activity.device.index()];
      const Participants& who = d.who(program, activity.task.index());
      ASSERT_EQ(d.activity(program, activity.task.index(), local), a);
      ASSERT_TRUE(who.does(local));
      ASSERT_EQ(who.to[local], static_cast<std::uint32_t>(activity.receiver.value));
      if (activity.kind == Activity::Kind::work) continue;
      // The receiver knows its sender and that one's task.
      const auto& [program_there, local_there] = d.places[activity.receiver.index()];
      const Participants& there = d.who(program_there, activity.receiver_task.index());
      ASSERT_EQ(there.from[local_there], static_cast<std::uint32_t>(activity.device.value));
      ASSERT_EQ(there.from_task.empty() ? activity.receiver_task.value : static_cast<int>(there.from_task[local_there]), activity.task.value);
    }
    ++compared;
  }
  EXPECT_GE(compared, 200);
}

TEST(Deploy, MayLeaveIsTrueWhereverAnIndexDoesLeave) {
  int left = 0, stayed = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng{seed};
    Writer w{std::vector<MeshAxis>{{"x", rng.between(1, 4), true}, {"y", rng.between(1, 3), true}}};
    const BufferId a = w.scratch("a", {rng.between(1, 9)});
    const auto random_term = [&](int axis) { return AxisTerm{w.axis(axis), rng.between(-2, 2), rng.between(0, 2)}; };
    const Affine index{{random_term(0), random_term(1)}, rng.between(-1, 2), rng.below(2) == 0 ? 0 : rng.between(1, 4)};
    const Region region{a, {{index, rng.between(-1, 2), rng.between(0, 3), rng.between(1, 2)}}};
    bool leaves = false;
    for (int d = 0; d < w.schedule.mesh.devices(); ++d) {
      const Box box = evaluate(region, w.schedule.mesh.coordinates(DeviceId{d}));
      leaves |= box.begin[0] < 0 || box.begin[0] + box.length[0] > w.now().buffers[0].extents[0];
    }
    if (leaves) {
      EXPECT_TRUE(may_leave(w.now(), region)) << "seed " << seed;
    }
    left += leaves ? 1 : 0;
    stayed += may_leave(w.now(), region) ? 0 : 1;
  }
  EXPECT_GE(left, 300);
  EXPECT_GE(stayed, 100) << "and it is not always true";
}

}  // namespace
}  // namespace podsim
