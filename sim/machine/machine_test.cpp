#include "sim/machine/machine.hpp"

#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::copy;
using testing::part;
using testing::product;

/// No limits and no costs but 100 TFLOP/s of bf16, of which float32 takes one pass.
Machine bare_machine() {
  Machine machine;
  machine.chip.peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{100e12};
  return machine;
}

/// m x n x k on buffers of their own.
Matmul matmul(std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate = false) {
  return product(BufferId{0}, BufferId{1}, BufferId{2}, m, n, k, accumulate);
}
double seconds(const Machine& machine, const Matmul& m, DType dtype = DType::bf16) { return matmul_time(machine, m, dtype).count(); }

TEST(MatmulTime, IsTwiceTheVolumeOverThePeak) { EXPECT_DOUBLE_EQ(seconds(bare_machine(), matmul(100, 200, 300)), 2.0 * 100 * 200 * 300 / 100e12); }

TEST(MatmulTime, PadsEveryExtentToItsOwnTile) {
  Machine machine = bare_machine();
  machine.chip.matmul_tile_m = 8, machine.chip.matmul_tile_n = 128, machine.chip.matmul_tile_k = 32;
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(9, 129, 33)), 2.0 * 16 * 256 * 64 / 100e12);
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(8, 128, 32)), 2.0 * 8 * 128 * 32 / 100e12) << "a whole tile is not padded";
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(1, 1, 1)), 2.0 * 8 * 128 * 32 / 100e12);
}

TEST(MatmulTime, EfficiencyIsAPartOfThePeak) {
  Machine machine = bare_machine();
  machine.chip.matmul_efficiency = 0.5;
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(100, 200, 300)), 2 * 2.0 * 100 * 200 * 300 / 100e12);
}

TEST(MatmulTime, MemoryTrafficIsUnpaddedAndAnAccumulatorIsReadToo) {
  Machine machine = bare_machine();
  machine.chip.peak.fill(unlimited<FlopsPerSecond>);
  machine.chip.matmul_tile_m = machine.chip.matmul_tile_n = machine.chip.matmul_tile_k = 128;
  machine.chip.hbm_bandwidth = BytesPerSecond{1e9};
  const double left = 3 * 7, right = 7 * 5, out = 3 * 5;
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(3, 5, 7)), 2 * (left + right + out) / 1e9);
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(3, 5, 7, true)), 2 * (left + right + 2 * out) / 1e9);
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(3, 5, 7), DType::f32), 4 * (left + right + out) / 1e9);
}

TEST(MatmulTime, ArithmeticAndMemoryOverlapAsFarAsTheMachineLetsThem) {
  const double c = 2.0 * 100 * 100 * 100 / 1e9, h = 2.0 * 3 * 100 * 100 / 1e8;  // 2 ms of arithmetic, 0.6 ms of memory
  for (const double overlap : {0.0, 0.5, 1.0}) {
    Machine machine = bare_machine();
    machine.chip.peak.fill(FlopsPerSecond{1e9});
    machine.chip.hbm_bandwidth = BytesPerSecond{1e8};
    machine.chip.overlap_hbm = overlap;
    EXPECT_DOUBLE_EQ(seconds(machine, matmul(100, 100, 100)), c + (1 - overlap) * h) << overlap;
    machine.chip.hbm_bandwidth = BytesPerSecond{1e7};  // memory is the longer one: 6 ms
    EXPECT_DOUBLE_EQ(seconds(machine, matmul(100, 100, 100)), 10 * h + (1 - overlap) * c) << overlap;
  }
}

TEST(MatmulTime, Float32TakesPassesOfBf16UnlessItHasAPeakOfItsOwn) {
  Machine machine = bare_machine();
  for (const int passes : {1, 3, 6}) {
    machine.chip.float32_passes = passes;
    EXPECT_DOUBLE_EQ(seconds(machine, matmul(10, 10, 10), DType::f32), passes * 2000 / 100e12);
    EXPECT_DOUBLE_EQ(peak_of(machine, DType::f32).count(), 100e12 / passes);
    EXPECT_DOUBLE_EQ(peak_of(machine, DType::bf16).count(), 100e12);
  }
  machine.chip.peak[static_cast<std::size_t>(DType::f32)] = FlopsPerSecond{20e12};
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(10, 10, 10), DType::f32), 2000 / 20e12);
}

TEST(MatmulTime, AProductMaySayItsOwnPasses) {
  Machine machine = bare_machine();
  machine.chip.float32_passes = 3;
  Matmul precise = matmul(10, 10, 10);
  precise.float32_passes = 6;
  EXPECT_DOUBLE_EQ(seconds(machine, precise, DType::f32), 6 * 2000 / 100e12);
  EXPECT_DOUBLE_EQ(seconds(machine, precise, DType::bf16), 2000 / 100e12) << "of float32 only";
}

TEST(MatmulTime, Float32IsTf32WhereTheChipHasItUnlessSixPassesAreAsked) {
  Machine machine = bare_machine();
  machine.chip.peak[static_cast<std::size_t>(DType::f32)] = FlopsPerSecond{20e12};
  machine.chip.peak[tf32_peak] = FlopsPerSecond{50e12};
  for (const int passes : {1, 3, 6}) {
    machine.chip.float32_passes = passes;
    EXPECT_DOUBLE_EQ(peak_of(machine, DType::f32).count(), passes == 6 ? 20e12 : 50e12) << passes;
  }
  EXPECT_DOUBLE_EQ(peak_of(machine, DType::f32, 1).count(), 50e12);
}

TEST(MatmulTime, OperandsDecideTheRateAndBytesCountByTheirTypes) {
  Machine machine = bare_machine();
  EXPECT_DOUBLE_EQ(peak_of(machine, DType::s8).count(), 100e12) << "no units for it: as bf16";
  machine.chip.peak[static_cast<std::size_t>(DType::s8)] = FlopsPerSecond{200e12};
  machine.chip.peak[static_cast<std::size_t>(DType::f8e4m3fn)] = FlopsPerSecond{180e12};
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(10, 20, 30), DType::s8), 12000 / 200e12);
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(10, 20, 30), DType::f8e4m3fn), 12000 / 180e12);
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(10, 20, 30), DType::f8e5m2), 12000 / 100e12);
  machine.chip.peak.fill(unlimited<FlopsPerSecond>);
  machine.chip.hbm_bandwidth = BytesPerSecond{1e9};
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(10, 20, 30), DType::s8), (10 * 30 + 30 * 20 + 4 * 10 * 20) / 1e9) << "into s32";
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(10, 20, 30), DType::f8e5m2), (10 * 30 + 30 * 20 + 2 * 10 * 20) / 1e9) << "into bf16";
  Program program;
  for (const DType dtype : {DType::f8e4m3fn, DType::f8e4m3fn, DType::f32}) program.buffers.push_back({"", {30, 30}, dtype, Role::scratch, {}, {}});
  EXPECT_DOUBLE_EQ(matmul_work(machine, program, matmul(10, 20, 30)).total.count(), (10 * 30 + 30 * 20 + 4 * 10 * 20) / 1e9) << "as the buffers are";
}

TEST(MatmulTime, TheLaunchComesOnTop) {
  Machine machine = bare_machine();
  machine.software.launch.fill(Seconds{1});  // of the others: not charged here
  machine.software.launch[static_cast<std::size_t>(CostKind::matmul)] = Seconds{5e-6};
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(100, 200, 300)), 5e-6 + 2.0 * 100 * 200 * 300 / 100e12);
}

// ---- Locals ---------------------------------------------------------------------------------------------------------------------------

struct LocalCosts : ::testing::Test {
  Machine machine = bare_machine();
  Program program{{},
                  {{"narrow", {64, 8}, DType::bf16, Role::scratch, {}, {}},
                   {"wide", {4, 128}, DType::bf16, Role::scratch, {}, {}},
                   {"line", {512}, DType::f32, Role::scratch, {}, {}}},
                  {}};
  Region narrow{BufferId{0}, {all(64), all(8)}}, wide{BufferId{1}, {all(4), all(128)}};

  LocalCosts() { machine.chip.hbm_bandwidth = BytesPerSecond{1e9}; }
  [[nodiscard]] double time(const Local& local, std::optional<Origin> origin = std::nullopt) const {
    return local_time(machine, program, {"", local, {}, {}, std::move(origin)}).count();
  }
};

TEST_F(LocalCosts, ACopyReadsAndWritesItsBytes) { EXPECT_DOUBLE_EQ(time(copy(narrow, wide)), (1024 + 1024) / 1e9); }

TEST_F(LocalCosts, EachRegionFillsTheLanesOfItsOwnRows) {
  machine.chip.layout_lanes = 128, machine.chip.layout_sublanes = 8;
  EXPECT_DOUBLE_EQ(time(copy(narrow, wide)), (16 * 1024 + 1024) / 1e9) << "rows of 8 take 128 lanes each, rows of 128 are whole";
  EXPECT_DOUBLE_EQ(time(copy(wide, narrow)), (1024 + 16 * 1024) / 1e9);
  // r counts what the region takes of the last dimension, not what the buffer has.
  const Region part_of_wide{BufferId{1}, {all(4), span(64, 48)}};
  EXPECT_DOUBLE_EQ(time(copy(part_of_wide, part_of_wide)), 2 * (4 * 48 * 2) * (128.0 / 48) / 1e9);
  const Region long_rows = part(BufferId{2}, 0, 129);
  EXPECT_DOUBLE_EQ(time(copy(long_rows, long_rows)), 2 * (129 * 4) * (256.0 / 129) / 1e9);
}

TEST_F(LocalCosts, AnLuFactorisationWaitsForEachOfItsPivots) {
  program.buffers.push_back({"systems", {100, 16, 16}, DType::f32, Role::scratch, {}, {}});
  program.buffers.push_back({"sides", {100, 16, 1}, DType::f32, Role::scratch, {}, {}});
  const Region systems{BufferId{3}, {all(100), all(16), all(16)}}, sides{BufferId{4}, {all(100), all(16), all(1)}};
  const Local solve{LocalKind::solve, {systems, sides}, {sides}};
  machine.chip.hbm_bandwidth = unlimited<BytesPerSecond>;
  const double arithmetic = time(solve);
  EXPECT_GT(arithmetic, 0);
  machine.chip.pivot_latency = Seconds{2e-6};
  EXPECT_DOUBLE_EQ(time(solve), 16 * 2e-6) << "all systems at once";
  machine.chip.pivot_latency = Seconds{1e-15};
  EXPECT_DOUBLE_EQ(time(solve), arithmetic) << "the longer one counts";
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{5e-6};
  machine.chip.pivot_latency = Seconds{2e-6};
  EXPECT_DOUBLE_EQ(time(solve), 5e-6 + 16 * 2e-6);
}

TEST_F(LocalCosts, StackingIsACopyThatMayBeSlower) {
  const Local stack{LocalKind::stack, {narrow}, {wide}};
  EXPECT_DOUBLE_EQ(time(stack), time(copy(narrow, wide)));
  machine.chip.stack_bandwidth = BytesPerSecond{2e8};
  EXPECT_DOUBLE_EQ(time(stack), 1024 / 2e8) << "of what it writes";
  EXPECT_DOUBLE_EQ(time(copy(narrow, wide)), (1024 + 1024) / 1e9);
}

TEST_F(LocalCosts, AnOpaqueOperationCostsWhatItStates) {
  machine.chip.peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{1e9};
  machine.chip.vector_peak = FlopsPerSecond{1e6};
  machine.chip.matmul_efficiency = 0.5;
  machine.chip.overlap_hbm = 1;
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{1e-6};
  Local opaque{LocalKind::opaque, {narrow, wide}, {narrow}};
  EXPECT_DOUBLE_EQ(time(opaque), 1e-6 + 3 * 1024 / 1e9) << "nothing stated: every region once";
  opaque.opaque.bytes = Bytes{5000};
  EXPECT_DOUBLE_EQ(time(opaque), 1e-6 + 5000 / 1e9);
  opaque.opaque.matrix = Flops{1e4};
  EXPECT_DOUBLE_EQ(time(opaque), 1e-6 + 1e4 / (0.5 * 1e9));
  opaque.opaque.attention = true;
  machine.chip.attention_efficiency = 0.25;
  EXPECT_DOUBLE_EQ(time(opaque), 1e-6 + 1e4 / (0.25 * 0.5 * 1e9)) << "a kernel of attention";
  opaque.opaque.product = MatmulExtents{10, 10, 10};
  EXPECT_DOUBLE_EQ(time(opaque), 1e-6 + 1e4 / (0.25 * 0.5 * 1e9)) << "by its own rate, whatever its products";
  opaque.opaque.attention = false, opaque.opaque.product.reset();
  opaque.opaque.vector = Flops{50};
  EXPECT_DOUBLE_EQ(time(opaque), 1e-6 + 50 / 1e6) << "the units work side by side";
  opaque.opaque.launch = Seconds{2e-6};
  EXPECT_DOUBLE_EQ(time(opaque), 2e-6 + 1e-6 + 50 / 1e6) << "its own launch comes before that of the machine";
  opaque.opaque.time = Seconds{123e-6};
  opaque.opaque.rest = Seconds{3e-6};
  EXPECT_DOUBLE_EQ(time(opaque), 123e-6) << "in place of everything else";
  const WorkTime work = local_work(machine, program, {"", opaque, {}, {}, {}});
  EXPECT_EQ(work.bytes, 5000);
  opaque.opaque.bytes = Bytes{1'000'000};
  EXPECT_DOUBLE_EQ(local_work(machine, program, {"", opaque, {}, {}, {}}).bytes, 118e-6 * 1e9) << "what memory gives in that time";
  EXPECT_EQ(work.launch, Seconds{2e-6});
  EXPECT_EQ(work.rest, Seconds{3e-6});
  EXPECT_DOUBLE_EQ(time(Local{LocalKind::opaque, {}, {}}), 1e-6) << "without operands, too";
}

TEST_F(LocalCosts, AnOpaqueProductIsAsFastAsAProductOfItsExtents) {
  machine.chip.peak[static_cast<std::size_t>(DType::bf16)] = FlopsPerSecond{1e9};
  set_matmul_points(machine.chip, {{64, 64, 64, 0.25}, {512, 64, 64, 0.5}});
  machine.chip.matmul_tile_m = machine.chip.matmul_tile_n = machine.chip.matmul_tile_k = 32;
  OpaqueCost cost;
  cost.matrix = Flops{2.0 * 64 * 64 * 64};
  EXPECT_DOUBLE_EQ(arithmetic_time(machine, cost, 0).count(), cost.matrix.count() / (0.5 * 1e9)) << "extents that are not known: the best efficiency";
  cost.product = {64, 64, 64};
  EXPECT_DOUBLE_EQ(arithmetic_time(machine, cost, 0).count(), cost.matrix.count() / (0.25 * 1e9));
  cost.matrix = 8 * cost.matrix;
  EXPECT_DOUBLE_EQ(arithmetic_time(machine, cost, 0).count(), cost.matrix.count() / (0.5 * 1e9)) << "a batch of 8 has the efficiency of their 512 rows";
  cost.matrix = Flops{2.0 * 64 * 64 * 40}, cost.product = {64, 64, 40};
  EXPECT_DOUBLE_EQ(arithmetic_time(machine, cost, 0).count(), 2.0 * 64 * 64 * 64 / (matmul_efficiency_of(machine.chip, 64, 64, 40) * 1e9)) << "40 is padded to 64";
}

TEST(MatmulTime, AUnitOfTwiceTheLanesTakesHalfForWhatFitsIntoThem) {
  Machine machine = bare_machine();
  machine.chip.matmul_tile_n = machine.chip.matmul_tile_k = 256;
  machine.chip.layout_lanes = 128;
  const double pass = 2.0 * 64 * 256 * 256 / 100e12;
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(64, 128, 128)), pass / 2);
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(64, 129, 128)), pass);
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(64, 8, 256)), pass);
  machine.chip.matmul_tile_n = machine.chip.matmul_tile_k = 128;
  EXPECT_DOUBLE_EQ(seconds(machine, matmul(64, 128, 128)), pass / 4) << "a unit of 128 has one pass of it";
}

TEST_F(LocalCosts, ABufferWithoutDimensionsIsOneElement) {
  program.buffers.push_back({"one", {}, DType::f32, Role::scratch, {}, {}});
  const Region one{BufferId{3}, {}};
  EXPECT_DOUBLE_EQ(time(copy(one, one)), 8 / 1e9);
}

TEST_F(LocalCosts, ArithmeticRunsOnTheVectorUnit) {
  machine.chip.vector_peak = FlopsPerSecond{1e6};
  machine.chip.overlap_hbm = 0;
  EXPECT_DOUBLE_EQ(time({LocalKind::add, {narrow, narrow}, {narrow}, 1, Unit::core}), 512 / 1e6 + 3 * 1024 / 1e9);
  EXPECT_DOUBLE_EQ(time({LocalKind::scale, {narrow}, {narrow}, 2, Unit::core}), 512 / 1e6 + 2 * 1024 / 1e9);
  EXPECT_DOUBLE_EQ(time(copy(narrow, wide)), 2 * 1024 / 1e9);
  machine.chip.overlap_hbm = 1;
  EXPECT_DOUBLE_EQ(time({LocalKind::add, {narrow, narrow}, {narrow}, 1, Unit::core}), 512 / 1e6);
}

// openxla/xprof commit 5fe3589, HLO stats of MaxText on four TPU v5p (data_tpu-training_hlo_stats_tpu_training.json.gz): the AdamW updates of one core, half a
// chip's shard of a weight each, float32; only the gradient of the embedding is bf16.
TEST_F(LocalCosts, AnOptimiserMovesTheBytesThatMaxTextsAdamWDoes) {
  struct Fusion {
    std::int64_t parameters;  // of the shard of a chip
    double microseconds, gibibytes_per_second;
    DType gradient = DType::f32;
  };
  const std::vector<Fusion> measured{{512 * 16 * 7168, 961.683, 796.13},                 // fusion.339
                                     {7168 * 16 * 512, 956.911, 800.1},                  // fusion.337
                                     {16 * 16 * 128 * 512, 198.081, 1104.35},            // fusion.372
                                     {512 * 32000, 192.945, 1107.17},                    // fusion.388
                                     {32000 * 512, 179.655, 1104.14, DType::bf16}};      // fusion.387
  machine.chip.hbm_bandwidth = BytesPerSecond{1};
  for (const auto& [parameters, microseconds, rate, gradient] : measured) {
    program.buffers = {{"f32", {parameters / 2}, DType::f32, Role::scratch, {}, {}}, {"gradient", {parameters / 2}, gradient, Role::scratch, {}, {}}};
    const Region x{BufferId{0}, {all(parameters / 2)}}, g{BufferId{1}, {all(parameters / 2)}};
    const double bytes = time({LocalKind::adamw, {x, g, x, x}, {x, x, x}});
    EXPECT_EQ(bytes, static_cast<double>(parameters) / 2 * (gradient == DType::f32 ? 28 : 26));
    EXPECT_NEAR(microseconds * 1e-6 * rate * 0x1p30 / bytes, 1, 1e-3);
  }
}

TEST_F(LocalCosts, AttentionsProductsRunOnTheMatrixUnitBesideTheVectorUnit) {
  // 2 sequences of 8 tokens, 3 groups of 4 queries, heads of 16.
  program.buffers = {{"qkv", {2, 8, 3, 6, 16}, DType::bf16, Role::scratch, {}, {}}, {"o", {2, 8, 3, 4, 16}, DType::bf16, Role::scratch, {}, {}}};
  const Region qkv{BufferId{0}, {all(2), all(8), all(3), all(6), all(16)}}, o{BufferId{1}, {all(2), all(8), all(3), all(4), all(16)}};
  const Local forward{LocalKind::attention, {qkv}, {o}}, backward{LocalKind::attention_grad, {o, qkv}, {qkv}};
  constexpr double scores = 2 * 3 * 4 * 8 * 8, bytes = 2 * 2 * 8 * 3 * 16;  // per head of a group
  machine.chip.hbm_bandwidth = unlimited<BytesPerSecond>;
  machine.chip.matmul_efficiency = 0.5;
  EXPECT_DOUBLE_EQ(time(forward), 4 * scores * 16 / (0.5 * 100e12));
  EXPECT_DOUBLE_EQ(time(backward), 10 * scores * 16 / (0.5 * 100e12));
  machine.chip.attention_efficiency = 0.25;
  EXPECT_DOUBLE_EQ(time(forward), 4 * scores * 16 / (0.25 * 0.5 * 100e12));
  machine.chip.attention_efficiency = 1;
  machine.chip.vector_peak = FlopsPerSecond{50e12};
  EXPECT_DOUBLE_EQ(time(forward), 4 * scores * 16 / 50e12) << "the shorter of the two is hidden";
  machine.chip.vector_peak = FlopsPerSecond{1e12};
  EXPECT_DOUBLE_EQ(time(forward), 6 * scores / 1e12);
  EXPECT_DOUBLE_EQ(time(backward), 11 * scores / 1e12);
  machine.chip.vector_peak = unlimited<FlopsPerSecond>;
  machine.chip.hbm_bandwidth = BytesPerSecond{1e9};
  EXPECT_DOUBLE_EQ(time(forward), (6 + 4) * bytes / 1e9) << "scores stay on the chip";
  EXPECT_DOUBLE_EQ(time(backward), (4 + 6 + 6) * bytes / 1e9);
  for (Buffer& buffer : program.buffers) buffer.dtype = DType::f32;
  machine.chip.hbm_bandwidth = unlimited<BytesPerSecond>;
  machine.chip.float32_passes = 3;
  EXPECT_DOUBLE_EQ(time(forward), 3 * 4 * scores * 16 / (0.5 * 100e12));
}

TEST_F(LocalCosts, WhatIsBetweenProductsIsBoundByTheVectorUnitOrMemory) {
  program.buffers.push_back({"sums", {64, 2}, DType::f32, Role::scratch, {}, {}});
  program.buffers.push_back({"turned", {8, 64}, DType::bf16, Role::scratch, {}, {}});
  const Region sums{BufferId{3}, {all(64), all(2)}}, turned{BufferId{4}, {all(8), all(64)}};
  const std::vector<std::pair<Local, double>> flops_and_locals = {
      {{LocalKind::norm_sums, {narrow}, {sums}, 8}, 3},
      {{LocalKind::norm, {narrow, sums}, {narrow}, 8}, 2},
      {{LocalKind::norm_grad_sums, {narrow, narrow, sums}, {sums}, 8}, 5},
      {{LocalKind::norm_grad, {narrow, narrow, sums, sums}, {narrow}, 8}, 6},
      {{LocalKind::gelu, {narrow}, {narrow}}, 9},
      {{LocalKind::gelu_grad, {narrow, narrow}, {narrow}}, 18},
      {{LocalKind::swiglu, {narrow, narrow}, {narrow}}, 5},
      {{LocalKind::swiglu_grad, {narrow, narrow, narrow}, {narrow, narrow}}, 11},
      {{LocalKind::transpose, {narrow}, {turned}}, 0},
  };
  for (const auto& entry : flops_and_locals) {
    const Local& local = entry.first;
    SCOPED_TRACE(traits_of(local.kind).name);
    double bytes = 0;
    for (const std::vector<Region>* regions : {&local.reads, &local.writes})
      for (const Region& region : *regions) bytes += region == sums ? 64 * 2 * 4 : 64 * 8 * 2;
    machine.chip.vector_peak = FlopsPerSecond{1e6};
    EXPECT_DOUBLE_EQ(time(local), std::max(entry.second * 512 / 1e6, bytes / 1e9));
    machine.chip.vector_peak = unlimited<FlopsPerSecond>;
    EXPECT_DOUBLE_EQ(time(local), bytes / 1e9);
  }
}

TEST_F(LocalCosts, WhatAnAlgorithmWrotePaysTheLaunchLoweredTasksDoNot) {
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{3e-6};
  EXPECT_DOUBLE_EQ(time(copy(narrow, wide)), 3e-6 + 2048 / 1e9);
  EXPECT_DOUBLE_EQ(time(copy(narrow, wide), Origin{}), 2048 / 1e9);
}

TEST_F(LocalCosts, APlaceIsFree) {
  machine.software.launch.fill(Seconds{1});
  EXPECT_EQ(time(testing::alias(narrow, wide)), 0);
}

TEST_F(LocalCosts, ALaunchTakesThatOfItsCollectivesKind) {
  for (int kind = 0; kind < collective_kind_count; ++kind)
    machine.software.launch[static_cast<std::size_t>(cost_kind_of(static_cast<CollectiveKind>(kind)))] = Seconds{(kind + 1) * 1e-6};
  for (int kind = 0; kind < collective_kind_count; ++kind)
    EXPECT_DOUBLE_EQ(time({LocalKind::launch, {}, {}, 1, Unit::dma}, Origin{0, static_cast<CollectiveKind>(kind), {}, {}}), (kind + 1) * 1e-6);
}

// ---- Curves and names -----------------------------------------------------------------------------------------------------------------

TEST(EfficiencyAt, IsLinearInTheLogarithmOfTheBytesAndConstantBeyondTheEnds) {
  const std::vector<EfficiencyPoint> points{{Bytes{1024}, 0.2}, {Bytes{1024 * 1024}, 0.8}, {Bytes{4 * 1024 * 1024}, 0.9}};
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{1024}), 0.2);
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{32 * 1024}), 0.5) << "half way in the exponent";
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{1024 * 1024}), 0.8);
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{2 * 1024 * 1024}), 0.85);
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{1}), 0.2);
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{std::int64_t{1} << 40}), 0.9);
  EXPECT_DOUBLE_EQ(efficiency_at({}, Bytes{5}), 1) << "without points: all of the links";
  EXPECT_DOUBLE_EQ(efficiency_at({{Bytes{64}, 0.3}}, Bytes{5}), 0.3);
}

TEST(EfficiencyAt, AFirstPointAtNoBytesIsNoTrap) {
  const std::vector<EfficiencyPoint> points{{Bytes{0}, 0.2}, {Bytes{1024}, 0.8}};
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{0}), 0.2);
  EXPECT_DOUBLE_EQ(efficiency_at(points, Bytes{32}), 0.5);
}

TEST(CostKind, CollectivesFollowTheirKind) {
  EXPECT_EQ(name_of(CostKind::matmul), "matmul");
  EXPECT_EQ(name_of(CostKind::local), "local");
  for (int kind = 0; kind < collective_kind_count; ++kind) {
    const auto collective = static_cast<CollectiveKind>(kind);
    EXPECT_EQ(name_of(cost_kind_of(collective)), name_of(collective));
  }
  EXPECT_EQ(cost_kind_of(CollectiveKind::permute), CostKind::permute);
}

}  // namespace
}  // namespace podsim
