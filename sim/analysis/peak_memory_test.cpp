#include "sim/analysis/peak_memory.hpp"

#include <gtest/gtest.h>

#include "sim/analysis/metrics.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after, testing::between, testing::copy, testing::part, testing::plain_machine, testing::shift, testing::small_system, testing::SmallSystem, testing::Writer;

Bytes peak_on(const SmallSystem& pod, const Schedule& schedule) {
  const auto timeline = testing::run(pod, schedule, "analytic");
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return measure(*testing::model_of(pod, schedule), *timeline).peak_memory;
}

TEST(PeakMemory, IsOfBuffersFromFirstWriteToLastUse) {
  const SmallSystem pod = small_system(plain_machine(), {1});
  Writer w{pod.mesh};
  const BufferId in = w.replicated("in", Role::input, {100});  // 400 bytes, always
  const BufferId a = w.scratch("a", {100}), b = w.scratch("b", {50}), c = w.scratch("c", {100});
  w.scratch("never used", {100000});
  const TaskId one = w.add("one", copy(part(in, 0, 100), part(a, 0, 100)));             // a from 0
  const TaskId two = w.add("two", copy(part(a, 0, 50), part(b, 0, 50)), {after(one)});  // b from 100; a ends at 150
  w.add("three", copy(part(b, 0, 50), part(c, 0, 50)), {after(two)});                   // c from 150, b ends at 200
  EXPECT_EQ(peak_on(pod, w.schedule), Bytes{400 + 400 + 200}) << "in + a + b; later in + b + c, which is as much";
  w.task(two).after.clear();
  w.add("four", copy(part(a, 0, 1), part(c, 0, 1)), {after(TaskId{2})});  // keeps a alive with c
  EXPECT_EQ(peak_on(pod, w.schedule), Bytes{400 + 400 + 200 + 400});
}

TEST(PeakMemory, BuffersOnTheHostAreNotTheDevices) {
  Machine machine = plain_machine();
  machine.dcn.host_bandwidth = BytesPerSecond{4e9};
  const SmallSystem pod = small_system(machine, {1});
  Writer w{pod.mesh};
  const BufferId in = w.replicated("in", Role::input, {100}), a = w.scratch("a", {100}), out = w.replicated("out", Role::output, {1000});
  const BufferId away = w.scratch("away", {100});
  for (const BufferId there : {away, out}) w.now().buffers[there.index()].on_host = true;
  const TaskId gone = w.add("gone", Local{LocalKind::to_host, {part(in, 0, 100)}, {part(away, 0, 100)}, 1, Unit::dma});
  w.add("back", Local{LocalKind::from_host, {part(away, 0, 100)}, {part(a, 0, 100)}, 1, Unit::dma}, {after(gone)});
  EXPECT_EQ(peak_on(pod, w.schedule), Bytes{400 + 400}) << "in, and a when it comes back";
}

TEST(PeakMemory, OutputsCountFromTheBeginningEvenIfNobodyTouchesThem) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Writer w{pod.mesh};
  w.replicated("out", Role::output, {100});
  EXPECT_EQ(peak_on(pod, w.schedule), Bytes{400});
}

TEST(PeakMemory, WhatArrivesIsAliveAtTheReceiverFromTheTransfersStart) {
  const SmallSystem pod = small_system(plain_machine(), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {300}), b = w.scratch("b", {200}), c = w.scratch("c", {500});
  const AxisView x = w.axis(0);
  // On device 1, c ends at 500; b arrives from 400 to 600.
  w.add("c", copy(part(c, 0, 500), part(c, 0, 500)), {}, between(x, 1, 2));
  const TaskId wait = w.add("wait", copy(part(a, 0, 300), part(a, 0, 300)), {}, between(x, 0, 1));
  const TaskId more = w.add("more", copy(part(a, 0, 100), part(a, 0, 100)), {after(wait)}, between(x, 0, 1));
  w.add("move", shift(x, 1, part(a, 0, 200), part(b, 0, 200)), {after(more)}, between(x, 0, 1));
  EXPECT_EQ(peak_on(pod, w.schedule), Bytes{4 * (500 + 200)});
  w.task(TaskId{0}).op = copy(part(c, 0, 400), part(c, 0, 400));  // c ends at 400, when b begins: its place is free
  EXPECT_EQ(peak_on(pod, w.schedule), Bytes{4 * 500});
}

TEST(PeakMemory, IsOfTheWorstDeviceAndProgram) {
  const SmallSystem pod = small_system(plain_machine(), {4});
  Writer w{pod.mesh};
  w.program(0, 2);
  w.replicated("small", Role::input, {10});
  w.add("wait", copy(part(BufferId{0}, 0, 5), part(w.scratch("s", {5}), 0, 5)));
  w.program(2, 3);
  w.replicated("large", Role::input, {70});
  EXPECT_EQ(peak_on(pod, w.schedule), Bytes{280});
}

}  // namespace
}  // namespace podsim
