// The times of distributed FFTs: closed forms, engines against each other, folded against unfolded.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/fft/testing.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using testing::fft_case;
using testing::FftCase;
using testing::ideal_machine;
using testing::lowered_fft;
using testing::small_system;
using testing::SmallSystem;
using testing::world_of;

constexpr std::int64_t GiB = std::int64_t{1} << 30;

CollectiveChooser by(std::string_view name) { return *always(name); }

/// A pod of a machine's links with axes x, y, and the problem on its mesh.
struct PodCase {
  SmallSystem pod;
  FftCase c;
};
PodCase on_pod(const Machine& machine, const std::vector<int>& extents, FftMethod method, const std::string& spec, Extents array) {
  std::vector<std::pair<std::string, int>> axes;
  for (std::size_t d = 0; d < extents.size(); ++d) axes.emplace_back(std::string(1, "xyzw"[d]), extents[d]);
  PodCase result{small_system(machine, extents, true, axes), {}};
  result.c = {"", result.pod.mesh, method, {}};
  result.c.problem.extents = std::move(array);
  result.c.problem.sharding = testing::fft_sharding(spec, result.pod.mesh);
  result.c.problem.slice_copies = machine.slice_copies && machine.name != "ideal";
  return result;
}

Timeline timed(const PodCase& on, const Schedule& lowered, std::string_view engine = "des") {
  const auto timeline = testing::run(on.pod, lowered, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return *timeline;
}

/// The length of each task of the first device whose label begins so, in seconds.
std::vector<double> lengths_of_tasks(const PodCase& on, const Schedule& lowered, const std::string& label) {
  const auto model = testing::model_of(on.pod, lowered);
  EXPECT_TRUE(model) << to_text(model.error());
  std::vector<double> lengths;
  for (std::size_t t = 0; t < lowered.programs[0].tasks.size(); ++t)
    if (lowered.programs[0].tasks[t].label.starts_with(label)) lengths.push_back(model->work(0, model->costs[0][t], 0).count());
  return lengths;
}

TEST(FftTiming, PencilOnIdealIsTwoAllToAlls) {
  PodCase on = on_pod(ideal_machine(), {16, 16}, FftMethod::pencil, "x,y,-", {1024, 1024, 1024});
  const Schedule lowered = lowered_fft(on.c, by("ring"));
  // Each: 28 + 4 blocks of 2 MiB in either direction.
  for (const std::string_view engine : {"des", "analytic"}) EXPECT_EQ(timed(on, lowered, engine).makespan, Picoseconds{1'342'177'280}) << engine;
  on.c.problem.order = FftOrder::natural;
  EXPECT_EQ(timed(on, lowered_fft(on.c, by("ring"))).makespan, Picoseconds{2 * 1'342'177'280LL});
  on.c.problem.order = FftOrder::transposed;
  on.c.problem.chunks = 4;  // FFTs take no time, so there is nothing to overlap
  EXPECT_EQ(timed(on, lowered_fft(on.c, by("ring"))).makespan, Picoseconds{1'342'177'280});
}

TEST(FftTiming, NaiveOnIdealIsOneAllGather) {
  const PodCase on = on_pod(ideal_machine(), {16, 16}, FftMethod::naive, "x,y,-", {1024, 1024, 1024});
  // 255 blocks of 32 MiB over four links.
  EXPECT_EQ(timed(on, lowered_fft(on.c, by("rotations"))).makespan, Picoseconds{21'390'950'400});
  const PodCase folded = on_pod(ideal_machine(), {16, 16}, FftMethod::naive, "x+y,-,-", {1024, 1024, 1024});
  EXPECT_EQ(timed(folded, lowered_fft(folded.c, by("rotations"))).makespan, Picoseconds{21'390'950'400});
}

TEST(FftTiming, OnTpuV4PencilAndNaiveFollowFromLinksAndMemory) {
  const Machine v4 = *find_machine("tpu_v4");
  PodCase on = on_pod(v4, {16, 16}, FftMethod::pencil, "x,y,-", {1024, 1024, 1024});
  on.c.problem.slice_copies = false;
  // An all-to-all: 32 blocks of 2 MiB at 45 GB/s, 8 steps of 5 us, the launch. FFTs: the block of 32 MiB read and written at 1.2 TB/s.
  const double exchange = 32.0 * 2 * 1048576 / 45e9 + 8 * 5e-6 + 13e-6, pass = 2.0 * 33554432 / 1.2e12;
  EXPECT_NEAR(exchange, 1.544308092e-3, 10e-12);  // des rounds each step up to picoseconds
  Schedule lowered = lowered_fft(on.c, by("ring"));
  EXPECT_NEAR(to_seconds(timed(on, lowered).makespan).count(), 2 * exchange + 3 * pass, 100e-12);
  std::vector<double> passes = lengths_of_tasks(on, lowered, "fft along");
  ASSERT_EQ(passes.size(), 3U);
  for (const double seconds : passes) EXPECT_NEAR(seconds, 56e-6, 0.1e-6);

  const PodCase naive = on_pod(v4, {16, 16}, FftMethod::naive, "x,y,-", {1024, 1024, 1024});
  lowered = lowered_fft(naive.c, by("rotations"));
  passes = lengths_of_tasks(naive, lowered, "fft along");
  ASSERT_EQ(passes.size(), 16U + 2U);
  double transforms = 0;
  for (const double seconds : passes) transforms += seconds;
  EXPECT_NEAR(transforms, 3 * 2 * 8.0 * GiB / 1.2e12, 1e-9);  // 43 ms
  const Timeline timeline = timed(naive, lowered);
  EXPECT_NEAR(to_seconds(timeline.makespan).count() - transforms, 47.698e-3, 1e-6);
  const auto model = testing::model_of(naive.pod, lowered);
  EXPECT_GE(measure(*model, timeline).peak_memory.count(), 2 * 8 * GiB);  // what is gathered and its transform
}

TEST(FftTiming, DesAgreesWithSimgrid) {
  testing::Agreement seen;
  const Machine machines[] = {*find_machine("tpu_v4"), testing::overhead_machine()};
  for (const Machine& machine : machines)
    for (const FftMethod method : {FftMethod::pencil, FftMethod::naive})
      for (const int chunks : {1, 2}) {
        PodCase on = on_pod(machine, {4, 4}, method, "x,y,-", {64, 64, 64});
        on.c.problem.chunks = chunks;
        const Schedule lowered = lowered_fft(on.c, ring_or_line());
    const auto model = testing::model_of(on.pod, lowered);
        ASSERT_TRUE(model) << to_text(model.error());
        ASSERT_TRUE(testing::engines_agree(*model, 1e-6, seen)) << name_of(method) << " " << machine.name << " chunks " << chunks;
      }
  for (const int chunks : {1, 2}) {
    PodCase on = on_pod(*find_machine("tpu_v4"), {8}, FftMethod::four_step, "x", {1 << 15});
    on.c.problem.chunks = chunks;
    const Schedule lowered = lowered_fft(on.c, ring_or_line());
    const auto model = testing::model_of(on.pod, lowered);
    ASSERT_TRUE(model) << to_text(model.error());
    ASSERT_TRUE(testing::engines_agree(*model, 1e-6, seen)) << "four-step chunks " << chunks;
  }
  EXPECT_GE(seen.compared, 10);
}

TEST(FftTiming, ToriFoldIntoOneClass) {
  testing::Folds seen;
  for (const auto& [method, spec] : {std::pair{FftMethod::pencil, "x,y,-"}, {FftMethod::slab, "x+y,-,-"}, {FftMethod::naive, "x,y,-"}}) {
    PodCase on = on_pod(*find_machine("tpu_v4"), {4, 4}, method, spec, {32, 32, 32});
    on.c.problem.chunks = 2;
    on.c.problem.order = FftOrder::natural;
    ASSERT_TRUE(testing::folding_changes_nothing(lowered_fft(on.c, ring_or_line()), world_of(on.pod), seen)) << spec;
  }
  PodCase line = on_pod(*find_machine("tpu_v4"), {8}, FftMethod::four_step, "x", {1 << 12});
  line.c.problem.chunks = 2;
  ASSERT_TRUE(testing::folding_changes_nothing(lowered_fft(line.c, ring_or_line()), world_of(line.pod), seen));
  EXPECT_EQ(seen.into_one, 4);
}

TEST(FftTiming, ChunksOverlapAllToAllsWithTheFftsOfTheRest) {
  const double block = 64.0 * 64 * 64 / 16 * 8, exchange = block / 4 * 2 / 4e9;  // a ring of 4: 1.5 + 0.5 blocks each way
  for (const double memory : {8e9, 80e9}) {
    Machine machine = ideal_machine(4e9);
    machine.chip.hbm_bandwidth = BytesPerSecond{memory};
    machine.chip.memory_shared = false;
    PodCase on = on_pod(machine, {4, 4}, FftMethod::pencil, "x,y,-", {64, 64, 64});
    const double pass = 2 * block / memory;
    const auto time = [&](int chunks) {
      on.c.problem.chunks = chunks;
      return to_seconds(timed(on, lowered_fft(on.c, by("ring"))).makespan).count();
    };
    EXPECT_NEAR(time(1), 3 * pass + 2 * exchange, 50e-12);
    // Of the first all-to-all the last chunk is exposed if FFTs take longer, of the second none: the last FFTs begin meanwhile. Otherwise one chunk of
    // each FFT is exposed.
    for (const int chunks : {2, 4, 8})
      EXPECT_NEAR(time(chunks), pass > exchange ? 3 * pass + exchange / chunks : 2 * exchange + 3 * pass / chunks, 200e-12) << chunks << " at " << memory;
  }
}

}  // namespace
}  // namespace podsim
