#include "workloads/tuning/reference_tuner.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace podsim {
namespace {

using Counts = std::vector<int>;

ReferenceParameters published(const char* name) {
  auto set = reference_parameters(name);
  EXPECT_TRUE(set) << to_text(set.error());
  return *set;
}

/// All-gather 1 and 2 GB/s along dimension 0 and 1, reduce-scatter 4 and 8; bases 10 and 20 us, hops 1 us; 1 TFLOP/s.
ReferenceParameters round_numbers(ReferenceGemmRule rule) {
  const Seconds hop{1e-6};
  return {"round",
          {{{{BytesPerSecond{1e9}, hop}, {BytesPerSecond{2e9}, hop}}}, Seconds{10e-6}},
          {{{{BytesPerSecond{4e9}, hop}, {BytesPerSecond{8e9}, hop}}}, Seconds{20e-6}},
          FlopsPerSecond{1e12},
          rule};
}

TEST(ReferenceTuner, ACollectiveCostsItsBaseAndPerStepABlockAndAHop) {
  const ReferenceParameters parameters = published("tpu_measured");
  const Bytes block{2 * 1024 * 512};
  EXPECT_DOUBLE_EQ(reference_time(parameters.all_gather, 0, 4, block).count(), 13e-6 + 3 * (1048576 / 27.472e9) + 3 * 5e-6);
  EXPECT_DOUBLE_EQ(reference_time(parameters.all_gather, 1, 4, block).count(), 13e-6 + 3 * (1048576 / 79.751e9) + 3 * 5e-6);
  EXPECT_DOUBLE_EQ(reference_time(parameters.reduce_scatter, 0, 8, block).count(), 26e-6 + 7 * (1048576 / 37.506e9) + 7 * 5e-6);
  EXPECT_DOUBLE_EQ(reference_time(parameters.reduce_scatter, 1, 8, block).count(), 26e-6 + 7 * (1048576 / 63.167e9) + 7 * 5e-6);
  const ReferenceParameters fit = published("simulation_fit");
  EXPECT_DOUBLE_EQ(reference_time(fit.all_gather, 0, 4, block).count(), 100e-6 + 3 * (1048576 / 60e9) + 3 * 6e-6);
  EXPECT_DOUBLE_EQ(reference_time(fit.reduce_scatter, 1, 4, block).count(), 100e-6 + 3 * (1048576 / 50e9) + 3 * 6e-6);
  EXPECT_EQ(reference_time(fit.all_gather, 0, 1, block), fit.all_gather.base);
}

TEST(ReferenceTuner, TheLargestMatrixStays) {
  struct Case {
    std::int64_t B, I, O;
    Dataflow expected;
  };
  using enum Dataflow;
  for (const Case& c : {Case{100, 10, 20, os}, Case{10, 10, 20, os}, Case{100, 10, 10, ls}, Case{10, 10, 10, ls}, Case{100, 20, 10, ls},
                        Case{10, 20, 10, ls}, Case{9, 20, 10, rs}, Case{9, 10, 20, rs}, Case{9, 10, 10, rs}})
    EXPECT_EQ(reference_dataflow({"", c.B, c.I, c.O}), c.expected) << c.B << " x " << c.I << " x " << c.O;
}

// An os layer of B = 32, I = 16, O = 64 on 4 x 2, by hand. In bytes: X 1024, W 2048, Y 4096; rings of 4 along dimension 0 and of 2 along 1.
TEST(ReferenceTuner, TheTermsOfALayerByHand) {
  const ReferenceLayer layer{"", 32, 16, 64};
  const ReferenceShape shape{4, 2};
  const ReferenceParameters parameters = round_numbers(ReferenceGemmRule::slower_collective);
  const double x_gather = 1024 * 1 / 2e9 / 8, x_scatter = 1024 * 1 / 8e9 / 8;  // along dimension 1
  const double w_gather = 2048 * 3 / 1e9 / 8, w_scatter = 2048 * 3 / 4e9 / 8;  // along dimension 0
  EXPECT_DOUBLE_EQ(reference_traffic(parameters, layer, shape).count(), w_gather + w_gather + w_scatter);
  EXPECT_DOUBLE_EQ(reference_pipeline(parameters, layer, shape, 2).count(), (w_gather + x_scatter + w_gather + x_gather + w_scatter) / 2);
  EXPECT_DOUBLE_EQ(reference_latency(parameters, layer, shape, 2).count(), 2 * (13e-6 + 21e-6 + 23e-6));

  // Slices of I: 8 columns of X and of its gradient, 8 rows of W; so blocks of 8 x 4 and 2 x 32 elements and matmuls of 8 x 32 x 8.
  const double xg = 10e-6 + 1e-6 + 64 / 2e9, xs = 20e-6 + 1e-6 + 64 / 8e9;
  const double wg = 10e-6 + 3e-6 + 3 * 128 / 1e9, ws = 20e-6 + 3e-6 + 3 * 128 / 4e9;
  const double t = 2.0 * 8 * 32 * 8 / 1e12;
  const double os = wg + wg + t, ls = (wg + xs) + xs + t, rs = (xg + ws) + ws + t;
  EXPECT_NEAR(reference_emulated(parameters, layer, shape, 2).count(), os + ls + rs, 1e-18);

  const double means = (xg + wg) / 2 + (wg + xs) / 2 + (xg + ws) / 2;
  EXPECT_NEAR(reference_emulated(round_numbers(ReferenceGemmRule::mean_collective), layer, shape, 2).count(), 2 * means + 3 * t, 1e-18);
}

// By hand: in 1024 bytes, along dimension 1, and out 2048, along dimension 0. The reference implementation has no figure for it.
TEST(ReferenceTuner, AnRsLayerMovesInputAndOutput) {
  const ReferenceLayer layer{"", 16, 32, 64};
  const ReferenceShape shape{4, 2};
  const ReferenceParameters parameters = round_numbers(ReferenceGemmRule::slower_collective);
  ASSERT_EQ(reference_dataflow(layer), Dataflow::rs);
  const double in_gather = 1024 * 1 / 2e9 / 8, in_scatter = 1024 * 1 / 8e9 / 8, out_gather = 2048 * 3 / 1e9 / 8, out_scatter = 2048 * 3 / 4e9 / 8;
  EXPECT_DOUBLE_EQ(reference_traffic(parameters, layer, shape).count(), out_scatter + out_gather + out_gather);
  EXPECT_DOUBLE_EQ(reference_pipeline(parameters, layer, shape, 1).count(), in_gather + out_scatter + in_scatter + out_gather + out_gather);
  EXPECT_DOUBLE_EQ(reference_latency(parameters, layer, shape, 1).count(), 23e-6 + 21e-6 + 13e-6);
}

TEST(ReferenceTuner, SliceCountsFollowTheTableOfTheirBranch) {
  const ReferenceParameters measured = published("tpu_measured"), fit = published("simulation_fit");
  const auto counts = [&](const ReferenceParameters& parameters, std::int64_t blocks) {
    return reference_slice_counts(parameters, {"", 1 << 20, blocks * 8 * 16, 1 << 20}, {16, 4});
  };
  const std::vector<std::pair<std::int64_t, Counts>> of_simulation{{96, {3, 4, 6, 8, 12, 16, 24, 32}},
                                                                   {480, {3, 4, 6, 8, 12, 16, 24, 32}},  // before 160
                                                                   {160, {4, 5, 8, 10, 16, 20, 32}},     // before 32
                                                                   {64, {4, 8, 16, 32}},
                                                                   {240, {3, 4, 6, 8, 12, 16, 24}},  // 48 before 80
                                                                   {80, {4, 5, 8, 10, 16, 20, 40}}};
  for (const auto& [blocks, expected] : of_simulation) EXPECT_EQ(counts(fit, blocks), expected) << blocks;
  const std::vector<std::pair<std::int64_t, Counts>> of_main{{96, {3, 4, 6, 8, 12, 16, 24}},
                                                             {160, {4, 5, 8, 10, 20}},
                                                             {80, {4, 5, 8, 10, 20}},
                                                             {64, {4, 8, 16}},
                                                             {480, {3, 4, 6, 8, 12, 16, 24}}};
  for (const auto& [blocks, expected] : of_main) EXPECT_EQ(counts(measured, blocks), expected) << blocks;
  const std::vector<std::pair<std::int64_t, Counts>> of_both{{48, {3, 4, 6, 8, 12, 16, 24}},
                                                             {120, {4, 5, 8, 10, 20}},  // 40 before 24
                                                             {24, {3, 4, 6, 8, 12, 24}},
                                                             {60, {4, 5, 10, 20}},
                                                             {16, {4, 8, 16}},
                                                             {12, {3, 4, 12}},
                                                             {50, {5, 10}},
                                                             {8, {4, 8}},
                                                             {18, {3, 6}},
                                                             {28, {4}},
                                                             {15, {5}},
                                                             {49, {49}},
                                                             {0, {}}};
  for (const ReferenceParameters& parameters : {measured, fit})
    for (const auto& [blocks, expected] : of_both) EXPECT_EQ(counts(parameters, blocks), expected) << parameters.name << ' ' << blocks;
}

TEST(ReferenceTuner, TheExtentThatIsCutGivesTheSliceCounts) {
  const ReferenceParameters parameters = published("tpu_measured");
  const ReferenceShape shape{4, 4};  // n = extent / 32
  EXPECT_EQ(reference_slice_counts(parameters, {"os", 3200, 32 * 7, 32 * 11}, shape), Counts{7});
  EXPECT_EQ(reference_slice_counts(parameters, {"ls", 3200, 32 * 11, 32 * 7}, shape), Counts{7});
  EXPECT_EQ(reference_slice_counts(parameters, {"rs", 32 * 7, 32 * 9, 32 * 11}, shape), Counts{7});
  EXPECT_EQ(reference_slice_counts(parameters, {"lcm of 4 and 6", 3200, 96 * 7, 96 * 8}, {4, 6}), Counts{7});
}

TEST(ReferenceTuner, ShapesDoubleTheirRows) {
  using Shapes = std::vector<ReferenceShape>;
  EXPECT_EQ(reference_shapes(64), (Shapes{{4, 16}, {8, 8}, {16, 4}}));
  EXPECT_EQ(reference_shapes(16), (Shapes{{4, 4}}));
  EXPECT_EQ(reference_shapes(48), (Shapes{{4, 12}, {8, 6}}));
  for (const int chips : {-4, 0, 8, 15, 18}) EXPECT_EQ(reference_shapes(chips), Shapes{}) << chips;
  EXPECT_EQ(reference_shapes(1 << 30).size(), 27U);
}

TEST(ReferenceTuner, LayersOfABlock) {
  EXPECT_EQ(block_layers(96, 128, 4096), (std::vector<ReferenceLayer>{{"qkv", 4096, 12288, 36864},
                                                                      {"projection", 4096, 12288, 12288},
                                                                      {"feed-forward 1", 4096, 12288, 49152},
                                                                      {"feed-forward 2", 4096, 49152, 12288}}));
}

TEST(ReferenceTuner, AnUnknownSetNamesTheNearOnes) {
  EXPECT_EQ(to_text(reference_parameters("tpu_mesured").error()),
            "there is no set of reference parameters \"tpu_mesured\", did you mean \"tpu_measured\"?");
  EXPECT_EQ(to_text(reference_parameters("Q").error()),
            "there is no set of reference parameters \"Q\", expected one of tpu_measured, simulation_fit");
}

Machine known_machine() {
  Machine machine;
  machine.name = "known";
  machine.chip.peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{200e12};
  machine.chip.matmul_efficiency = 0.75;
  machine.link[0] = {BytesPerSecond{45e9}, Seconds{1e-6}};
  machine.link[1] = {BytesPerSecond{90e9}, Seconds{2e-6}};
  machine.software.per_message = Seconds{4e-6};
  machine.software.launch[static_cast<std::size_t>(CostKind::all_gather)] = Seconds{13e-6};
  machine.software.launch[static_cast<std::size_t>(CostKind::reduce_scatter)] = Seconds{26e-6};
  machine.software.efficiency[static_cast<std::size_t>(CostKind::all_gather)] = {{Bytes{1024}, 0.25}, {Bytes{1 << 20}, 0.5}};
  return machine;
}

TEST(ReferenceTuner, AMachineGivesBothDirectionsOfItsRings) {
  const ReferenceParameters parameters = from_machine(known_machine());
  EXPECT_EQ(parameters.name, "known");
  EXPECT_EQ(parameters.all_gather.ring[0].bandwidth, BytesPerSecond{45e9});  // 2 * 45 GB/s * 0.5
  EXPECT_EQ(parameters.all_gather.ring[1].bandwidth, BytesPerSecond{90e9});
  EXPECT_EQ(parameters.reduce_scatter.ring[0].bandwidth, BytesPerSecond{90e9});
  EXPECT_EQ(parameters.reduce_scatter.ring[1].bandwidth, BytesPerSecond{180e9});
  for (const ReferenceCollective& collective : {parameters.all_gather, parameters.reduce_scatter}) {
    EXPECT_DOUBLE_EQ(collective.ring[0].hop.count(), 5e-6);
    EXPECT_DOUBLE_EQ(collective.ring[1].hop.count(), 6e-6);
  }
  EXPECT_EQ(parameters.all_gather.base, Seconds{13e-6});
  EXPECT_EQ(parameters.reduce_scatter.base, Seconds{26e-6});
  EXPECT_EQ(parameters.flops, FlopsPerSecond{150e12});
  EXPECT_EQ(parameters.rule, published("tpu_measured").rule);
  EXPECT_EQ(parameters.slice_counts, published("tpu_measured").slice_counts);
}

TEST(ReferenceTuner, OnRailsADeviceHasOnePortPerDimensionAndAStepPassesASwitch) {
  Machine machine = known_machine();
  machine.interconnect = Interconnect::rail;
  const ReferenceRing ring = from_machine(machine).reduce_scatter.ring[1];
  EXPECT_EQ(ring.bandwidth, BytesPerSecond{90e9});
  EXPECT_DOUBLE_EQ(ring.hop.count(), 8e-6);
}

TEST(ReferenceTuner, ALayerThatCannotBeCutLeavesAShapeOut) {
  const auto tuning = tune_by_reference({{"narrow", 4096, 8 * 16, 4096}}, 256, published("tpu_measured"));
  ASSERT_TRUE(tuning) << to_text(tuning.error());
  ASSERT_EQ(tuning->shapes.size(), 1U);  // 32 x 8 would leave 4 columns per device
  EXPECT_EQ(tuning->choice().shape, (ReferenceShape{16, 16}));
  EXPECT_EQ(tuning->choice().layers[0].choice().slice_count, 1);
}

TEST(ReferenceTuner, WhatCannotBeTunedIsSaid) {
  const ReferenceParameters parameters = published("tpu_measured");
  const auto message = [&](const std::vector<ReferenceLayer>& layers, int chips) {
    return to_text(tune_by_reference(layers, chips, parameters).error());
  };
  EXPECT_EQ(message({}, 16), "the reference tuner needs at least one layer");
  EXPECT_EQ(message({{"in", 64, 0, 64}}, 16), "layer \"in\": expected extents of 1 to 2^30, got 0");
  EXPECT_EQ(message({{"in", std::numeric_limits<std::int64_t>::max(), 1, 64}}, 16),
            "layer \"in\": expected extents of 1 to 2^30, got 9223372036854775807");
  EXPECT_EQ(message({{"in", 64, 64, 64}}, 8), "the reference tuner has no shape for 8 chips: expected R x C with R = 4, 8, 16, .. and C >= 4");
  EXPECT_EQ(message({{"in", 4096, 16, 64}}, 16),
            "the reference tuner cannot cut these layers into slices on any mesh of 16 chips: each needs 8 rows or columns per device of the "
            "extent that is cut");
}

}  // namespace
}  // namespace podsim
