// MSCCL algorithms as schedules: proven, and timed as what they are.
#include "workloads/msccl/msccl_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/collectives/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "workloads/msccl/testing.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using testing::msccl_text;
using testing::ring_text;

Mesh mesh_of(int devices) { return *Mesh::make({{"row", devices, true}}); }

Schedule schedule_of(const std::string& text, Bytes bytes = Bytes{960}, DType dtype = DType::f32) {
  const MscclAlgorithm algorithm = testing::msccl(text);
  auto schedule = msccl_schedule(algorithm, mesh_of(std::max(1, static_cast<int>(algorithm.gpus.size()))), bytes, dtype);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  return schedule ? *std::move(schedule) : Schedule{};
}

CheckReport check_of(const std::string& text) {
  const auto report = check(schedule_of(text), {.random_orders = 5, .threads = 1});
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

void expect_proven(const std::string& text, const std::string& claim) {
  const CheckReport report = check_of(text);
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_TRUE(report.bit_equal);
  EXPECT_THAT(report.compared, HasSubstr(claim));
}

double microseconds(const std::string& text, const Machine& machine, Bytes bytes, std::string_view engine = "des") {
  const Schedule schedule = schedule_of(text, bytes);
  return 1e6 * testing::seconds_of(testing::small_system(machine, {schedule.mesh.devices()}), schedule, engine);
}

TEST(Msccl, RingsByEitherSortOfStepsAreAllReduces) {
  for (const int P : {2, 3, 4, 8})
    for (const bool fused : {false, true}) expect_proven(ring_text(P, fused), "all-reduce");
}

TEST(Msccl, EveryStepDoesWhatItsNameSays) {
  // On the way to GPU 2: sent, received and stored and sent on (rcs); summed on the way without a trace (rrs); and with one (rrcs), from another
  // chunk (rrc).
  expect_proven(msccl_text("allgather", false,
                           {"1 3 0 | 1 -1 0: s i0 o0 | -1 2 0: r i0 o2; r o1 o1 | -1 -1 0: cpy i0 o0",
                            "1 3 0 | 2 0 0: rcs i0 o0; s i0 o1 | -1 2 1: r i0 o2 | -1 -1 0: cpy i0 o1",
                            "1 3 0 | 0 -1 0: s i0 o2; s o1 o1 @1.1 | -1 1 0: r i0 o0; r i0 o1 ! | 1 -1 1: s i0 o2 | -1 -1 0: cpy i0 o2"}),
                "all-gather");
  expect_proven(
      msccl_text(
          "reduce_scatter", false,
          {"3 1 2 | 1 -1 0: s i2 i2 | 2 -1 0: s i1 i1 | -1 1 0: r s0 s0 ! | -1 2 1: r s1 s1 ! | -1 -1 0: cpy i0 o0; re s0 o0 @2.0; re s1 o0 @3.0",
           "3 1 0 | 2 0 0: rrs i2 i2 | 0 -1 0: s i0 s0 | -1 2 0: rrc i1 o0", "3 1 0 | -1 1 0: rrc i2 o0 | 1 0 0: rrs i1 i1 | 0 -1 1: s i0 s1"}),
      "reduce-scatter");
}

TEST(Msccl, InPlaceAndOutOfPlaceAreBothProven) {
  expect_proven(msccl_text("reduce_scatter", true, {"2 1 0 | 1 1 0: s i1 i1; rrc i0 i0", "2 1 0 | 0 0 0: s i0 i0; rrc o0 o0"}), "reduce-scatter");
  expect_proven(msccl_text("reduce_scatter", true, {"2 0 0 | 1 1 0: s i1 i1; rrc i0 i0", "2 0 0 | 0 0 0: s i0 i0; rrc i1 i1"}), "reduce-scatter");
  expect_proven(msccl_text("allgather", true, {"1 2 0 | 1 1 0: s o0 o0; r o1 o1", "1 2 0 | 0 0 0: s i0 o1; r o0 o0"}), "all-gather");
  expect_proven(msccl_text("all_reduce", false, {"1 1 0 | 1 1 0: s i0 i0; rrc i0 o0", "1 1 0 | 0 0 0: s i0 i0; rrc i0 o0"}), "all-reduce");
  expect_proven(msccl_text("broadcast", true, {"1 0 0 | 1 -1 0: s i0 i0", "1 0 0 | -1 0 0: r i0 i0"}), "broadcast");
  expect_proven(msccl_text("reduce", false, {"1 1 0 | -1 1 0: rrc i0 o0", "1 1 0 | 0 -1 0: s i0 i0"}), "reduce");
  expect_proven(msccl_text("all2all", false, {"2 2 0 | 1 1 0: s i1 o0; cpy i0 o0; r i0 o1", "2 2 0 | 0 0 0: s i0 o1; cpy i1 o1; r i1 o0"}),
                "all-to-all");
}

TEST(Msccl, WhatIsSentBeforeItIsOverwrittenWaitsForNoReceiver) {
  // Both send a chunk and then receive into the same one: without a place for what arrives each would wait for the other.
  const std::string swap = msccl_text("alltoall", true, {"2 0 0 | 1 1 0: s i1 i0; r i0 i1", "2 0 0 | 0 0 0: s i0 i1; r i1 i0"});
  expect_proven(swap, "all-to-all");
  const Schedule schedule = schedule_of(swap);
  EXPECT_EQ(schedule.programs[0].buffers.back().name, "slots");
  EXPECT_EQ(schedule_of(ring_text(4, false)).programs[0].buffers.back().name, "output") << "nothing is overwritten too early: no slots";
}

TEST(Msccl, AStepThatReadsTheWrongChunkIsFound) {
  std::string text = ring_text(4, false);
  const std::size_t at = text.find("type=\"r\"");
  text.replace(text.find("dstoff=\"0", at) + 8, 1, "1");
  const CheckReport report = check_of(text);
  EXPECT_FALSE(report.ok);
}

TEST(Msccl, AMissingDependenceIsARaceAtItsStep) {
  const std::vector<std::string> gpus{"2 2 0 | 1 -1 0: s i1 o0 | -1 1 0: r i0 o1 ! | -1 -1 0: cpy i0 o0",
                                      "2 2 0 | 0 -1 0: s i0 o1 | -1 0 0: r i1 o0 | -1 -1 0: cpy i1 o1"};
  expect_proven(msccl_text("alltoall", false, gpus), "all-to-all");
  // The all-gather's GPU 1 passes on what it may not have received yet.
  const std::string racing = msccl_text("allgather", true,
                                        {"0 3 0 | 1 -1 0: s o0 o0 | -1 2 0: r o2 o2 | -1 1 0: r o1 o1",
                                         "0 3 0 | 2 -1 0: s o0 o0; s o1 o1 | -1 0 0: r o0 o0 | 0 -1 0: s o1 o1 | -1 2 0: r o2 o2",
                                         "0 3 0 | 0 -1 0: s o2 o2 | 1 -1 0: s o2 o2 | -1 1 0: r o0 o0; r o1 o1"});
  const CheckReport report = check_of(racing);
  EXPECT_FALSE(report.race_free);
  ASSERT_FALSE(report.problems.empty());
  EXPECT_EQ(report.problems.front().where.file, "a.xml");
  EXPECT_THAT(to_text(report.problems), HasSubstr("gpu 1 block 0 step 0 s"));
}

TEST(Msccl, ThreadBlocksRunBesideEachOtherAndTheirStepsOneAfterTheOther) {
  // 4000 B at 4 GB/s are 1 us; four messages from each of two devices to the other over one link each way.
  Machine machine = testing::plain_machine();
  machine.link.fill({BytesPerSecond{4e9}, Seconds{1e-6}});
  const auto text = [](bool one_block) {
    std::vector<std::string> gpus;
    for (const char* other : {"1", "0"}) {
      std::string gpu = "4 4 0";
      for (const char* half : {"s", "r"}) {
        const std::string ends = *half == 's' ? fmt::format("{} -1", other) : fmt::format("-1 {}", other);
        for (int c = 0; c < 4; ++c)
          gpu += fmt::format("{} {} i{} o{}", one_block && c > 0 ? ";" : fmt::format("| {} {}:", ends, one_block ? 0 : c), half, c, c);
      }
      gpus.push_back(gpu);
    }
    return msccl_text("custom", false, gpus);
  };
  for (const std::string_view engine : {"des", "simgrid"}) {
    EXPECT_NEAR(microseconds(text(false), machine, Bytes{16000}, engine), 5, 1e-3) << "one latency and all bytes";
    EXPECT_NEAR(microseconds(text(true), machine, Bytes{16000}, engine), 8, 1e-3) << "four latencies and all bytes";
  }
}

TEST(Msccl, TakesAsLongAsTheSameRingOfOurs) {
  Machine machine = testing::ideal_machine(100e9, 1e-6);
  machine.software.launch.fill(Seconds{5e-6});
  machine.software.per_message = Seconds{0.25e-6};
  for (const int P : {2, 4, 8}) {
    const testing::SmallSystem pod = testing::small_system(machine, {P});
    const Schedule ours = testing::lowered_collective(pod, CollectiveKind::all_reduce, {"row"}, Bytes{P * 4096}, "ring-one-way");
    for (const bool fused : {false, true})
      for (const std::string_view engine : {"des", "simgrid", "analytic"})
        EXPECT_NEAR(microseconds(ring_text(P, fused), machine, Bytes{P * 4096}, engine), 1e6 * testing::seconds_of(pod, ours, engine), 1e-6)
            << P << " " << fused << " " << engine;
  }
}

TEST(Msccl, SaysWhatDoesNotFit) {
  const MscclAlgorithm ring = testing::msccl(ring_text(4, false));
  const auto error = [&](const MscclAlgorithm& algorithm, int devices, Bytes bytes) {
    const auto schedule = msccl_schedule(algorithm, mesh_of(devices), bytes, DType::bf16);
    return schedule ? "" : to_text(schedule.error());
  };
  EXPECT_EQ(error(ring, 8, Bytes{64}), "a.xml:1:2: expected a mesh of 4 devices, as ngpus says, found row=8");
  EXPECT_EQ(error(ring, 4, Bytes{100}), "bytes: expected a positive multiple of 8 (4 chunks of whole bf16 elements), found 100");
  EXPECT_EQ(error(ring, 4, Bytes{0}), "bytes: expected a positive multiple of 8 (4 chunks of whole bf16 elements), found 0");
  EXPECT_EQ(error(testing::msccl(msccl_text("allgather", false, {"2 3 0", "2 3 0"})), 2, Bytes{64}),
            "a.xml:2:2: all-gather of 2 GPUs: expected o_chunks=4 for i_chunks=2, found 3");
  EXPECT_EQ(error(testing::msccl(msccl_text("alltoall", false, {"3 3 0", "3 3 0"})), 2, Bytes{60}),
            "a.xml:2:2: all-to-all of 2 GPUs: expected i_chunks positive and a multiple of 2, found 3");
  EXPECT_EQ(error(testing::msccl(msccl_text("allreduce", false, {"2 2 0", "2 1 0"})), 2, Bytes{64}),
            "a.xml:4:2: expected i_chunks=2 and o_chunks=2, as of GPU 0, found 2 and 1");
}

TEST(Msccl, ACollectiveOfItsOwnClaimsNothing) {
  const std::string text = msccl_text("custom", false, {"1 1 0 | 1 -1 0: s i0 o0", "1 1 0 | -1 0 0: r i0 o0"});
  EXPECT_TRUE(std::holds_alternative<std::monostate>(schedule_of(text).computes));
  const auto report = check(schedule_of(text), {.threads = 1, .structure_only = true});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->ok) << to_text(report->problems);
}

TEST(Msccl, RunsOnAMeshOfSeveralAxes) {
  const Mesh mesh = *Mesh::make({{"x", 2, true}, {"one", 1, true}, {"y", 2, true}});
  std::vector<std::string> gather;  // every GPU to every other one
  for (int g = 0; g < 4; ++g) {
    gather.emplace_back("0 4 0");
    for (int other = 0; other < 4; ++other)
      if (other != g) gather.back() += fmt::format(" | {0} -1 0: s o{1} o{1} | -1 {0} 0: r o{0} o{0}", other, g);
  }
  for (const std::string& text : {ring_text(4, false), ring_text(4, true), msccl_text("allgather", true, gather)}) {
    const auto schedule = msccl_schedule(testing::msccl(text), mesh, Bytes{960}, DType::f32);
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    const auto report = check(*schedule, {.threads = 1});
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok) << to_text(report->problems);
  }
}

}  // namespace
}  // namespace podsim
