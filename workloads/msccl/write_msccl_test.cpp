// Schedules as MSCCL algorithms.
#include "workloads/msccl/write_msccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/collectives/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "workloads/msccl/testing.hpp"

namespace podsim {
namespace {

MscclAlgorithm translated(const Schedule& schedule) {
  auto algorithm = to_msccl(schedule);
  EXPECT_TRUE(algorithm) << to_text(algorithm.error());
  return algorithm ? *std::move(algorithm) : MscclAlgorithm{};
}

TEST(WriteMsccl, ARingOfFourAsAPersonWouldWriteIt) {
  const testing::SmallSystem pod = testing::small_system(testing::ideal_machine(), {4});
  const MscclAlgorithm ring = translated(testing::lowered_collective(pod, CollectiveKind::all_gather, {"row"}, Bytes{1024}, "ring-one-way"));
  EXPECT_EQ(ring.collective, "allgather");
  EXPECT_FALSE(ring.in_place);
  EXPECT_EQ(ring.channels, 1);
  for (int g = 0; g < 4; ++g) {
    const MscclGpu& gpu = ring.gpus[static_cast<std::size_t>(g)];
    EXPECT_EQ(gpu.input_chunks, 1);
    EXPECT_EQ(gpu.output_chunks, 4);
    EXPECT_EQ(gpu.scratch_chunks, 0);
    ASSERT_EQ(gpu.blocks.size(), 3U) << "the copy of the own block, what is sent, what is received";
    EXPECT_EQ(gpu.blocks[0].steps.size(), 1U);
    EXPECT_EQ(gpu.blocks[0].steps[0].kind, MscclKind::copy);
    EXPECT_EQ(gpu.blocks[1].send, (g + 1) % 4);
    EXPECT_EQ(gpu.blocks[2].receive, (g + 3) % 4);
    for (int s = 0; s < 3; ++s) {
      const MscclStep &sent = gpu.blocks[1].steps[static_cast<std::size_t>(s)], &received = gpu.blocks[2].steps[static_cast<std::size_t>(s)];
      EXPECT_EQ(sent.source, (MscclPlace{MscclBuffer::output, (g - s + 4) % 4}));
      EXPECT_EQ(received.target, (MscclPlace{MscclBuffer::output, (g - 1 - s + 4) % 4}));
      EXPECT_EQ(sent.after_block, s == 0 ? 0 : 2) << "it sends what it has received";
    }
  }
}

TEST(WriteMsccl, WhatIsReadCanBeWrittenAndReadAgain) {
  for (const bool fused : {false, true}) {
    const testing::SmallSystem pod = testing::small_system(testing::ideal_machine(100e9, 1e-6), {4});
    const auto first = msccl_schedule(testing::msccl(testing::ring_text(4, fused)), pod.mesh, Bytes{4096}, DType::f32);
    ASSERT_TRUE(first) << to_text(first.error());
    const auto second = msccl_schedule(testing::msccl(write_msccl(translated(*first))), pod.mesh, Bytes{4096}, DType::f32);
    ASSERT_TRUE(second) << to_text(second.error());
    const auto report = check(*second, {.threads = 1});
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok) << to_text(report->problems);
    EXPECT_EQ(testing::seconds_of(pod, *second, "des"), testing::seconds_of(pod, *first, "des"));
  }
}

TEST(WriteMsccl, ChunksAreAsLargeAsAllOffsetsAllow) {
  const testing::SmallSystem pod = testing::small_system(testing::ideal_machine(), {8});
  const auto chunks = [&](std::string_view algorithm) {
    return translated(testing::lowered_collective(pod, CollectiveKind::all_reduce, {"row"}, Bytes{8192}, algorithm)).gpus[0].input_chunks;
  };
  EXPECT_EQ(chunks("ring-one-way"), 8);
  EXPECT_EQ(chunks("ring"), 16) << "half of each block goes each way";
}

TEST(WriteMsccl, NoMoreChunksThanAreRead) {
  const testing::SmallSystem pod = testing::small_system(testing::ideal_machine(), {4});
  const auto algorithm = to_msccl(testing::lowered_collective(pod, CollectiveKind::broadcast, {"row"}, Bytes{16'000'148}, "ring", {}, in_chunks(2)));
  ASSERT_FALSE(algorithm);
  EXPECT_THAT(to_text(algorithm.error()), ::testing::HasSubstr("which is what all offsets and sizes have in common"));
}

}  // namespace
}  // namespace podsim
