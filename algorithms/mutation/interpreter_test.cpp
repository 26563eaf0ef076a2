// The interpreter that judges check() is judged by hand: what it says of schedules of a few tasks.
#include "algorithms/mutation/interpreter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"

namespace podsim::mutation {
namespace {

using podsim::testing::after;
using podsim::testing::neighbour;
using podsim::testing::Writer;
using ::testing::HasSubstr;

/// Two devices that add up what both hold: Y = X of this device + X of the other, as an all-reduce.
struct SumOfTwo {
  Writer writer{{{"x", 2, true}}};
  AxisView x = writer.axis(0);
  BufferId X, Y;
  TaskId place, exchange;

  SumOfTwo() {
    Program& program = writer.now();
    program.buffers.push_back({"X", {1, 3}, DType::f32, Role::input, "X", {{x}, {}}});
    program.buffers.push_back({"Y", {1, 3}, DType::f32, Role::output, "Y", {{x}, {}}});
    X = BufferId{0}, Y = BufferId{1};
    writer.schedule.computes = Collective{CollectiveKind::all_reduce, {x}, whole(X), whole(Y), 1, 0, 0, {}};
    place = writer.add("place", podsim::testing::copy(whole(X), whole(Y)));
    exchange = writer.add("exchange", podsim::testing::shift(x, 1, whole(X), whole(Y), Combine::add), {after(place)});
  }
  static Region whole(BufferId buffer) { return {buffer, {all(1), all(3)}}; }
  Shift& shift() { return std::get<Shift>(writer.task(exchange).op); }
  [[nodiscard]] Judgement judge() const { return mutation::judge(writer.schedule, {.seed = 7, .orders = 8, .races = true}); }
};

TEST(Interpreter, SaysThatASumIsRight) {
  const Judgement judgement = SumOfTwo{}.judge();
  EXPECT_EQ(judgement.verdict, Verdict::right) << judgement.why;
  EXPECT_EQ(judgement.race, "");
}

TEST(Interpreter, SeesWhatIsLostDoubledOrSwapped) {
  SumOfTwo lost;
  lost.shift().combine = Combine::replace;
  EXPECT_EQ(lost.judge().verdict, Verdict::wrong);
  SumOfTwo doubled;
  doubled.writer.add("again", doubled.shift(), {after(doubled.exchange)});
  EXPECT_EQ(doubled.judge().verdict, Verdict::wrong);
  SumOfTwo swapped;
  swapped.shift().source = {swapped.X, {all(1), {Affine{{{swapped.x, 1, 0}}}, 1, 0, 2}}};
  swapped.shift().target = {swapped.Y, {all(1), {Affine{{{swapped.x, 1, 1}}}, 1, 0, 2}}};
  EXPECT_EQ(swapped.judge().verdict, Verdict::wrong);
  SumOfTwo alone;
  alone.writer.task(alone.exchange).where = podsim::testing::between(alone.x, 0, 1);
  EXPECT_EQ(alone.judge().verdict, Verdict::wrong);
  EXPECT_THAT(alone.judge().why, HasSubstr("on device 0"));
}

TEST(Interpreter, SeesARaceAndAnOrderInWhichItShows) {
  SumOfTwo schedule;
  schedule.writer.task(schedule.exchange).after = {after(schedule.place, Half::both, Half::send)};  // the target may still be written
  const Judgement judgement = schedule.judge();
  EXPECT_EQ(judgement.verdict, Verdict::wrong);
  EXPECT_THAT(judgement.race, HasSubstr("tasks 0 and 1 race for element 0 of buffer 1 on device 0"));
}

TEST(Interpreter, WhatHasArrivedHasBeenRead) {
  // The other device answers when it has received: then this one may overwrite what it sent, whether or not it waited for the end of its own send.
  SumOfTwo schedule;
  Writer& writer = schedule.writer;
  const BufferId aside = writer.scratch("aside", {1, 3}), zero = writer.scratch("zero", {1, 3});
  const TaskId answer = writer.add("answer", podsim::testing::shift(schedule.x, 1, SumOfTwo::whole(zero), SumOfTwo::whole(aside)),
                                   {after(schedule.exchange, Half::receive, Half::send)});
  const TaskId over =
      writer.add("overwrite", podsim::testing::copy(SumOfTwo::whole(zero), SumOfTwo::whole(schedule.X)), {after(answer, Half::receive)});
  EXPECT_EQ(schedule.judge().race, "");
  writer.task(over).after = {after(schedule.exchange, Half::receive)};  // what has arrived here says nothing of what was sent
  EXPECT_EQ(schedule.judge().race, "tasks 1 and 3 race for element 0 of buffer 0 on device 0");
}

TEST(Interpreter, MatchesSendsWithRecvsByTheirUse) {
  SumOfTwo schedule;
  Writer& writer = schedule.writer;
  writer.now().tasks.pop_back();
  const BufferId aside = writer.scratch("aside", {1, 3});
  writer.add("send", Send{5, neighbour(schedule.x, 1), SumOfTwo::whole(schedule.X), {}});
  const TaskId receive = writer.add("receive", Recv{5, neighbour(schedule.x, -1), SumOfTwo::whole(aside), Combine::replace});
  writer.add("add", Local{LocalKind::add, {SumOfTwo::whole(schedule.Y), SumOfTwo::whole(aside)}, {SumOfTwo::whole(schedule.Y)}, 1, Unit::core},
             {after(schedule.place), after(receive)});
  EXPECT_EQ(schedule.judge().verdict, Verdict::right) << schedule.judge().why;

  Writer deadlock = writer;
  std::swap(deadlock.now().tasks[1], deadlock.now().tasks[2]);  // everybody receives before it sends
  deadlock.now().tasks[2].after = {after(TaskId{1})};
  deadlock.now().tasks[3].after = {after(schedule.place), after(TaskId{1})};
  EXPECT_EQ(judge(deadlock.schedule, {}).verdict, Verdict::deadlock);

  Writer unmatched = writer;
  unmatched.now().tasks[1].where = podsim::testing::between(schedule.x, 0, 1);
  EXPECT_EQ(judge(unmatched.schedule, {}).verdict, Verdict::malformed);
  EXPECT_EQ(judge(unmatched.schedule, {}).why, "task 2 on device 0 has no other half");
}

TEST(Interpreter, KnowsWhatDoesNotFit) {
  SumOfTwo outside;
  outside.shift().target.dims[1].offset = 1;
  EXPECT_EQ(outside.judge().verdict, Verdict::malformed);
  SumOfTwo longer;
  longer.shift().source.dims[1].length = 2;
  EXPECT_EQ(longer.judge().verdict, Verdict::malformed);
  SumOfTwo over;
  const Region first{over.Y, {all(1), span(0, 2)}}, last{over.Y, {all(1), span(1, 2)}};
  const TaskId moved = over.writer.add("move", podsim::testing::copy(first, last), {after(over.exchange)});
  EXPECT_EQ(over.judge().verdict, Verdict::malformed);
  EXPECT_EQ(over.judge().why, "task 2 on device 0 writes over what it reads");
  over.writer.task(moved).op = podsim::testing::copy(first, first);
  EXPECT_EQ(over.judge().verdict, Verdict::right);
}

TEST(Interpreter, EvaluatesRotatedTermsAndModuli) {
  const AxisView half{0, 2, 3};  // (coordinate / 2) mod 3
  const Coordinates at{5};
  EXPECT_EQ(value_of(Affine{{{half, 10, 0}}, 1}, at), 21);
  EXPECT_EQ(value_of(Affine{{{half, 10, 2}}, 1}, at), 11);
  EXPECT_EQ(value_of(Affine{{{half, 10, -4}}, 1}, at), 11);
  EXPECT_EQ(value_of(Affine{{{half, -1, 0}}, 0, 5}, at), 3);
  const Mesh mesh = *Mesh::make({{"x", 2, true}, {"y", 6, true}});
  EXPECT_EQ(moved(mesh, {1, 5}, {1, 2, 3}, 1), 7);  // y = 5 is 2 of 3 pairs; the next pair is 0
  EXPECT_EQ(moved(mesh, {1, 1}, {0, 1, 2}, -1), 1);
  const Mesh folded = *Mesh::make({{"x", 2, true}, {"y", 6, true, {{3, true}, {2, true}}}});
  EXPECT_EQ(moved_by_dimension(folded, {1, 3}, 1, 5), 6);   // (1,1) + (2,1) is (0,0)
  EXPECT_EQ(moved_by_dimension(folded, {1, 3}, 1, -5), 10);  // (1,1) - (2,1) is (2,0)
}

TEST(Interpreter, MultipliesTransposedAndAccumulated) {
  // Y = X^T . W in two halves of K = 4, X [4, 2] and W [4, 3] on one device.
  Writer writer{{{"x", 1, true}}};
  const BufferId X = writer.replicated("X", Role::input, {4, 2}), W = writer.replicated("W", Role::input, {4, 3}),
                 Y = writer.replicated("Y", Role::output, {2, 3});
  Matmul first{{X, {span(0, 2), all(2)}}, {W, {span(0, 2), all(3)}}, {Y, {all(2), all(3)}}, 1, 1, 1, true, false, false}, second = first;
  second.left.dims[0] = second.right.dims[0] = span(2, 2);
  second.accumulate = true;
  writer.add("second", second, {after(writer.add("first", first))});
  writer.schedule.computes = Products{{"Y", "X", "W", 2, 3, 4, true, false}};
  EXPECT_EQ(judge(writer.schedule, {.races = true}).verdict, Verdict::right);
  std::get<Matmul>(writer.now().tasks[1].op).accumulate = false;
  EXPECT_EQ(judge(writer.schedule, {}).verdict, Verdict::wrong);
}

}  // namespace
}  // namespace podsim::mutation
