#include "sim/model/shared_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using testing::part;
using testing::shift;
using testing::small_system;
using testing::SmallSystem;
using testing::Writer;

/// Links of 4 GB/s, memory of 8 GB/s, and arithmetic that takes no time.
Machine sharing_machine() {
  Machine machine = testing::plain_machine();
  machine.chip.memory_shared = true;
  return machine;
}

Picoseconds makespan(const SmallSystem& pod, const Schedule& schedule, const char* engine = "des") {
  const auto timeline = testing::run(pod, schedule, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? timeline->makespan : Picoseconds{};
}

Picoseconds nanoseconds(std::int64_t count) { return Picoseconds{1000 * count}; }

/// A copy on the core of device 0, which alone takes 200 ns (1600 bytes at 8 GB/s), beside a Shift of 400 bytes by every device.
Schedule copy_beside_shift(const SmallSystem& pod, Combine combine = Combine::replace) {
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("copy", copy(part(a, 0, 200), part(a, 200, 200)), {}, between(w.axis(0), 0, 1));
  Shift s = shift(w.axis(0), 1, part(a, 400, 100), part(a, 500, 100));
  s.combine = combine;
  w.add("shift", std::move(s));
  return w.schedule;
}

TEST(SharedMemory, WorkAndTransfersShareIt) {
  // At device 0 three flows have a third of 8 GB/s each, until the two transfers have moved 400 bytes at 150 ns. The copy has then moved 400 of its 1600
  // bytes, and the other 1200 take 150 ns: 1600 + 800 bytes at 8 GB/s.
  const SmallSystem pod = small_system(sharing_machine(), {4});
  for (const char* engine : {"des", "simgrid"}) EXPECT_EQ(makespan(pod, copy_beside_shift(pod), engine), nanoseconds(300)) << engine;
  EXPECT_EQ(makespan(pod, copy_beside_shift(pod), "analytic"), nanoseconds(200)) << "as if each were alone";
}

TEST(SharedMemory, IsReadAgainWhereAnArrivalAdds) {
  const SmallSystem pod = small_system(sharing_machine(), {4});
  for (const char* engine : {"des", "simgrid"})
    EXPECT_EQ(makespan(pod, copy_beside_shift(pod, Combine::add), engine), nanoseconds(350)) << engine << ": 1600 + 400 + 800 bytes";
}

TEST(SharedMemory, CountsThePassesOfATransfer) {
  Machine machine = sharing_machine();
  machine.chip.transfer_memory_passes = 2.5;
  const SmallSystem pod = small_system(machine, {4});
  for (const char* engine : {"des", "simgrid"})
    EXPECT_EQ(makespan(pod, copy_beside_shift(pod), engine), nanoseconds(450)) << engine << ": 1600 + 2.5 * 800 bytes";
  machine.chip.transfer_memory_passes = 0;
  const SmallSystem none = small_system(machine, {4});
  for (const char* engine : {"des", "simgrid"}) EXPECT_EQ(makespan(none, copy_beside_shift(none), engine), nanoseconds(200)) << engine;
}

TEST(SharedMemory, HoldsATransferBackWhereItIsSlowerThanTheLink) {
  Machine machine = sharing_machine();
  machine.chip.hbm_bandwidth = BytesPerSecond{2e9};
  const SmallSystem pod = small_system(machine, {2}, false);
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {200});
  w.add("one way", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)), {}, between(w.axis(0), 0, 1));
  for (const char* engine : {"des", "simgrid", "analytic"}) EXPECT_EQ(makespan(pod, w.schedule, engine), nanoseconds(200)) << engine;
}

TEST(SharedMemory, SeparateMemoryIsAsIfEachHadItToItself) {
  Machine machine = sharing_machine();
  machine.chip.memory_shared = false;
  const SmallSystem pod = small_system(machine, {4});
  for (const char* engine : {"des", "simgrid"}) EXPECT_EQ(makespan(pod, copy_beside_shift(pod), engine), nanoseconds(200)) << engine;
}

TEST(SharedMemory, LaunchAndWhatArithmeticDoesNotHideDrawNothing) {
  // Arithmetic of 800 ns and memory of 200 ns, half hidden: 50 ns launch, 800 ns in which 1600 bytes flow, 100 ns behind.
  Machine machine = sharing_machine();
  machine.chip.overlap_hbm = 0.5;
  machine.chip.vector_peak = FlopsPerSecond{100 / 800e-9};
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{50e-9};
  const SmallSystem pod = small_system(machine, {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {10'000});
  w.add("add", Local{LocalKind::add, {part(a, 0, 100), part(a, 200, 100)}, {part(a, 0, 100)}, 1, Unit::core});
  const auto model = testing::model_of(pod, w.schedule);
  const TaskCost& cost = model->costs[0][0];
  EXPECT_NEAR(cost.launch.count(), 50e-9, 1e-18);
  EXPECT_NEAR(cost.work.count(), 50e-9 + 800e-9 + 0.5 * 150e-9, 1e-18);
  EXPECT_NEAR(cost.rest.count(), 0.5 * 150e-9, 1e-18);
  EXPECT_EQ(cost.memory_bytes, 1200);
}

TEST(SharedMemory, ThatIsNeverShortIsLeftOutOfTheModel) {
  Machine machine = sharing_machine();
  machine.chip.hbm_bandwidth = BytesPerSecond{1e12};  // four links of 4 GB/s beside it, and no work on it
  const SmallSystem pod = small_system(machine, {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {200});
  w.add("ring", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)));
  EXPECT_TRUE(testing::model_of(pod, w.schedule)->memory_paths.empty());
  machine.chip.hbm_bandwidth = BytesPerSecond{7.9e9};  // in and out need 8
  const SmallSystem less = small_system(machine, {4});
  EXPECT_FALSE(testing::model_of(less, w.schedule)->memory_paths.empty());
}

TEST(SharedMemory, LooksAtAllTransfersOfAnInjectionLinkTogether) {
  // Both directions of the ring at once: 2 x 4 GB/s leave over an injection link of 8 GB/s and as much arrives, 16 GB/s, which two flows alone at each
  // of its links do not show. The memory has 12 GB/s, 3 for each of the four flows: 400 bytes take 133.3 ns, not 100.
  Machine machine = sharing_machine();
  machine.chip.injection_bandwidth = machine.chip.ejection_bandwidth = BytesPerSecond{8e9};
  const auto both_ways = [](const SmallSystem& pod) {
    Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {400});
    w.add("up", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)));
    w.add("down", shift(w.axis(0), -1, part(a, 200, 100), part(a, 300, 100)));
    return w.schedule;
  };
  machine.chip.hbm_bandwidth = BytesPerSecond{12e9};
  const SmallSystem little = small_system(machine, {5});
  const Schedule schedule = both_ways(little);
  for (const char* engine : {"des", "simgrid"}) EXPECT_NEAR(static_cast<double>(makespan(little, schedule, engine).count()), 400e3 / 3, 1) << engine;
  machine.chip.hbm_bandwidth = BytesPerSecond{16e9};
  const SmallSystem enough = small_system(machine, {5});
  const Schedule same = both_ways(enough);
  EXPECT_TRUE(testing::model_of(enough, same)->memory_paths.empty());
  EXPECT_EQ(makespan(enough, same), nanoseconds(100));
}

TEST(SharedMemory, ThatFitsChangesNoPicosecond) {
  // The dma copy at the end makes the model look at memory all the time. Before it, products and transfers fit to the byte.
  Rng rng{7};
  for (int round = 0; round < 100; ++round) {
    Machine machine = sharing_machine();
    machine.chip.overlap_hbm = rng.uniform();
    machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(20, 40) * 1e9};
    machine.chip.vector_peak = FlopsPerSecond{rng.between(1, 300) * 1e6};  // an add of 12 bytes at most per 3.3 ns: 3.6 GB/s
    machine.software.launch.fill(Seconds{rng.between(0, 3) * 1.0000001e-9});
    machine.software.per_message = Seconds{rng.between(0, 3) * 1.3e-9};
    const auto build = [&](const SmallSystem& pod) {
      Rng sizes{static_cast<std::uint64_t>(round)};
      Writer w{pod.mesh};
      const BufferId a = w.scratch("a", {10'000});
      std::vector<Edge> all;
      for (int i = 0; i < 12; ++i) {
        const auto n = sizes.between(1, 400);
        const auto there = 1000 + 400 * i;
        if (sizes.below(2) == 0)
          all.push_back(after(w.add("add", Local{LocalKind::add, {part(a, 0, n), part(a, 500, n)}, {part(a, 0, n)}, 1, Unit::core})));
        else
          all.push_back(after(w.add("move", shift(w.axis(0), sizes.below(2) == 0 ? 1 : -1, part(a, there, n), part(a, there + n, n)))));
      }
      w.add("dma", copy(part(a, 0, 10), part(a, 20, 10), Unit::dma), all);
      return w.schedule;
    };
    const SmallSystem shared = small_system(machine, {4});
    machine.chip.memory_shared = false;
    const SmallSystem separate = small_system(machine, {4});
    const Schedule schedule = build(shared);
    const auto with = testing::run(shared, schedule, "des"), without = testing::run(separate, schedule, "des");
    ASSERT_TRUE(with && without);
    ASSERT_FALSE(testing::model_of(shared, schedule)->memory_paths.empty());
    for (std::size_t activity = 0; activity < without->size(); ++activity) ASSERT_EQ(with->at(activity), without->at(activity)) << round;
  }
}

}  // namespace
}  // namespace podsim
