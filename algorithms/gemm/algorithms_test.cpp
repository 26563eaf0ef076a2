// Every GEMM algorithm against the plain product, and against its closed form where no link is shared. (MeshSlice's own cases: gemm_test.cpp.)
#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

const std::vector<Dataflow> dataflows{Dataflow::os, Dataflow::ls, Dataflow::rs};

const GemmAlgorithmEntry& algorithm(std::string_view name) { return **gemm_algorithm(name); }

Schedule lowered(const Expected<Schedule>& schedule) {
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  if (!schedule) return {};
  const auto result = lower(*schedule, ring_or_line());
  EXPECT_TRUE(result) << to_text(result.error());
  return result ? *result : Schedule{};
}

double time_on(const SmallSystem& pod, const Schedule& schedule, std::string_view engine) {
  const auto timeline = testing::run(pod, schedule, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

SmallSystem random_pod(const GemmAlgorithmEntry& entry, Rng& rng) {
  const std::vector<std::pair<int, int>> shapes{{1, 4}, {4, 1}, {2, 2}, {2, 4}, {3, 5}, {6, 4}, {3, 3}, {4, 4}, {5, 5}, {1, 1}, {2, 3}};
  const auto [R, C] = shapes[rng.below(shapes.size())];
  const bool wraps = rng.below(2) == 0;
  if (entry.mesh != MeshUse::row_col) return small_system(ideal_machine(), {R, C}, wraps, {{"ring", R * C}});
  if (entry.name == "cannon") return small_system(ideal_machine(), {R, R}, wraps);
  return small_system(ideal_machine(), {R, C}, wraps);
}

GemmOptions random_options(const GemmAlgorithmEntry& entry, const SmallSystem& pod, Rng& rng) {
  GemmOptions options;
  if (entry.needs_slice_count) options.slice_count = rng.between(1, 4);
  if (entry.name == "summa" && rng.below(2) == 0) options.slice_count = rng.between(1, 2) * std::lcm(pod.mesh.axes()[0].size, pod.mesh.axes()[1].size);
  options.block = rng.between(1, 3);
  options.prefetch = rng.between(0, 3);
  options.slice_copies = rng.below(2) == 0;
  if (rng.below(3) == 0) options.wang_operand = rng.below(2) == 0 ? WangOperand::x : WangOperand::w;
  return options;
}

TEST(GemmAlgorithms, AreRightInEveryOrderOnRandomProblems) {
  for (const GemmAlgorithmEntry& entry : gemm_algorithms())
    for (std::uint64_t seed = 0; seed < test::cases(45U, 9U); ++seed) {
      Rng rng{seed, stream_of(entry.name)};
      const SmallSystem pod = random_pod(entry, rng);
      const Dataflow dataflow = entry.only ? *entry.only : dataflows[rng.below(3)];
      const GemmOptions options = random_options(entry, pod, rng);
      const bool forward_only = !required_multiples(entry, pod.mesh, Dataflow::os, Pass::backward, options) && entry.only == Dataflow::os;
      const Pass pass = forward_only ? Pass::forward : rng.below(3) == 0 ? Pass::both : rng.below(4) == 0 ? Pass::backward : Pass::forward;
      const auto multiples = required_multiples(entry, pod.mesh, dataflow, pass, options);
      ASSERT_TRUE(multiples) << to_text(multiples.error());
      const GemmProblem problem{multiples->m * rng.between(1, 3), multiples->n * rng.between(1, 3), multiples->k * rng.between(1, 3),
                                rng.below(3) == 0 ? DType::bf16 : DType::f32, dataflow};
      const Schedule schedule = lowered(make_layer(entry, pod.mesh, problem, pass, options));
      SCOPED_TRACE("seed " + std::to_string(seed) + " " + to_text(pod.mesh) + " " + schedule.name + " prefetch " + std::to_string(options.prefetch));
      const auto report = check(schedule, {});
      ASSERT_TRUE(report) << to_text(report.error());
      ASSERT_TRUE(report->ok) << to_text(report->problems);
    }
}

TEST(GemmAlgorithms, CannonsShiftsOfAStepOverlap) {
  // 4x4, square matrices: the shifts of X and of W take equally long and use different links, so a step is one shift.
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4, 4});
  const std::int64_t n = 1024;  // bound by communication
  const double tau = (n / 4.0) * (n / 4.0) * 2 / B, T = 2.0 * n * n * n / 64 / 100e12 * 4 / 4;
  ASSERT_LT(T, tau);
  const Schedule schedule = lowered(make_gemm(algorithm("cannon"), pod.mesh, {n, n, n, DType::bf16, Dataflow::os}, {}));
  for (const EngineEntry& engine : all_timing_engines())
    EXPECT_NEAR(time_on(pod, schedule, engine.name), 2 * tau + 3 * tau + T, 20e-12) << engine.name;  // 2 skewing steps, 3 shifts, the last matmul
}

TEST(GemmAlgorithms, CannonOverlapsShiftsWithMatmuls) {
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4, 4});
  const std::int64_t n = 65536;  // bound by arithmetic
  const double tau = (n / 4.0) * (n / 4.0) * 2 / B, T = 2.0 * (n / 4.0) * (n / 4.0) * (n / 4.0) / 100e12;
  ASSERT_GT(T, tau);
  for (const Dataflow dataflow : dataflows) {
    const Schedule schedule = lowered(make_gemm(algorithm("cannon"), pod.mesh, {n, n, n, DType::bf16, dataflow}, {}));
    const double expected = dataflow == Dataflow::os ? 2 * tau + 4 * T : 2 * tau + 4 * T + 2 * tau;
    for (const EngineEntry& engine : all_timing_engines()) EXPECT_NEAR(time_on(pod, schedule, engine.name), expected, 60e-12) << engine.name;
  }
}

TEST(GemmAlgorithms, CollectiveGathersThenMultipliesThenScatters) {
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4, 4});
  const std::int64_t m = 16384, n = 8192, k = 4096;
  const double T = 2.0 * m * n * k / 16 / 100e12;
  const auto ring = [&](std::int64_t rows, std::int64_t columns) { return 3 * (rows / 4.0) * (columns / 4.0) * 2 / 2 / B; };
  for (const auto& [dataflow, communication] : {std::pair{Dataflow::os, std::max(ring(m, k), ring(k, n))}, {Dataflow::ls, ring(n, k) + ring(m, n)},
                                                {Dataflow::rs, ring(k, m) + ring(m, n)}})
    for (const EngineEntry& engine : all_timing_engines())
      EXPECT_NEAR(time_on(pod, lowered(make_gemm(algorithm("collective"), pod.mesh, {m, n, k, DType::bf16, dataflow}, {})), engine.name), T + communication,
                  60e-12)
          << engine.name << " " << name_of(dataflow);
}

TEST(GemmAlgorithms, SummaHidesAllButItsFirstBroadcastAndLastReduce) {
  // 4x4, 4 panels, 8 chunks; a ring of 4 passes a chunk on twice.
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4, 4});
  const std::int64_t n = 65536;
  const double panel = (4 - 2 + 8) * (n / 4.0) * (n / 4.0) * 2 / 8 / B, T = 2.0 * (n / 4.0) * (n / 4.0) * (n / 4.0) / 100e12;
  ASSERT_GT(T, panel);
  for (const Dataflow dataflow : dataflows)
    for (const EngineEntry& engine : all_timing_engines())
      EXPECT_NEAR(time_on(pod, lowered(make_gemm(algorithm("summa"), pod.mesh, {n, n, n, DType::bf16, dataflow}, {})), engine.name),
                  panel + 4 * T + (dataflow == Dataflow::os ? 0 : panel), 100e-12)
          << engine.name << " " << name_of(dataflow);
}

TEST(GemmAlgorithms, WangOverlapsItsRingWithMatmuls) {
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4, 4});
  for (const std::int64_t n : {2048, 65536})
    for (const Dataflow dataflow : dataflows) {
      const double block = (n / 4.0) * (n / 4.0) * 2, gather = 3 * block / 2 / B, tau = block / 2 / B, T = 2.0 * (n / 4.0) * (n / 4.0) * (n / 4.0) / 100e12;
      const Schedule schedule = lowered(make_gemm(algorithm("wang"), pod.mesh, {n, n, n, DType::bf16, dataflow}, {}));
      // OS: the ring runs while the other operand is gathered, so at most one hop's worth of it is left when the first matmul may start.
      const double expected = dataflow == Dataflow::os ? gather + T + 3 * T : gather + T + 3 * std::max(T, tau);
      for (const EngineEntry& engine : all_timing_engines()) {
        if (dataflow == Dataflow::os && T < tau) continue;
        EXPECT_NEAR(time_on(pod, schedule, engine.name), expected, 60e-12) << engine.name << " n=" << n << " " << name_of(dataflow);
      }
    }
}

/// Links of 100 GB/s with a latency, no wraparound.
SmallSystem open_pod(const std::vector<int>& extents, Seconds latency, const std::vector<std::pair<std::string, int>>& mesh = {}) {
  Machine machine = ideal_machine(100e9);
  for (LinkParameters& link : machine.link) link.latency = latency;
  return small_system(machine, extents, false, mesh);
}

TEST(GemmAlgorithms, OnAnOpenAxisTheDeviceAtTheEndSendsBackOverTheWholeLine) {
  // One way round 5 devices: the end's transfers follow each other, each over 4 hops, on links that the others leave free.
  const double B = 100e9, latency = 2e-6;
  const SmallSystem line = open_pod({5}, Seconds{latency}, {{"ring", 5}});
  const std::int64_t M = 640, C = 8000, K = 1000;
  const double V = K / 5.0 * C * 2, A = M / 5.0 * C * 2, dot = 2.0 * (M / 5.0) * (K / 5.0) * C / 100e12;
  const auto on_line = [&](std::string_view name, std::string_view engine) {
    const GemmAlgorithmEntry& entry = algorithm(name);
    return time_on(line, lowered(make_gemm(entry, line.mesh, {M, C, K, DType::bf16, *entry.only}, {})), engine);
  };
  ASSERT_LT(dot, A / B + 4 * latency);
  for (const EngineEntry& engine : all_timing_engines()) {
    EXPECT_NEAR(on_line("jax-ag-overlapped", engine.name), dot + 4 * (V / B + 4 * latency), 60e-12) << engine.name;
    EXPECT_NEAR(on_line("jax-rs-overlapped", engine.name), dot + 4 * (A / B + 4 * latency), 60e-12) << engine.name;
  }
}

TEST(GemmAlgorithms, CannonOnAnOpenMeshTakesStepsOfTheLongestWay) {
  const double B = 100e9, latency = 2e-6;
  const SmallSystem pod = open_pod({4, 4}, Seconds{latency});
  const std::int64_t n = 1024;
  const double tau = (n / 4.0) * (n / 4.0) * 2 / B + 3 * latency, T = 2.0 * n * n * n / 64 / 100e12;
  ASSERT_LT(T, tau);
  const Schedule schedule = lowered(make_gemm(algorithm("cannon"), pod.mesh, {n, n, n, DType::bf16, Dataflow::os}, {}));
  for (const EngineEntry& engine : all_timing_engines())
    EXPECT_NEAR(time_on(pod, schedule, engine.name), 2 * tau + 3 * tau + T, 20e-12) << engine.name;
}

TEST(GemmAlgorithms, WangsHalvesShareTheLinksOfAnOpenAxis) {
  // Each link carries, each way, a neighbour's half-block and that of the device at the end: a whole block a hop, where a ring carries half of one.
  const double B = 100e9;
  const SmallSystem ring = small_system(ideal_machine(B), {4}, true, {{"ring", 4}}), line = small_system(ideal_machine(B), {4}, false, {{"ring", 4}});
  const std::int64_t M = 1024, C = 8192, K = 8192;
  const double V = K / 4.0 * C * 2, dot = 2.0 * (M / 4.0) * (K / 4.0) * C / 100e12;
  ASSERT_LT(dot, V / 2 / B);
  for (const std::string_view name : {"jax-ag-bidirectional", "1d-os"}) {
    const GemmProblem problem = name == "1d-os" ? GemmProblem{C, M, K, DType::bf16, Dataflow::os} : GemmProblem{M, C, K, DType::bf16, Dataflow::os};
    for (const std::string_view engine : {"des", "simgrid"}) {
      EXPECT_NEAR(time_on(ring, lowered(make_gemm(algorithm(name), ring.mesh, problem, {})), engine), dot + 3 * V / 2 / B, 60e-12)
          << name << " " << engine;
      EXPECT_NEAR(time_on(line, lowered(make_gemm(algorithm(name), line.mesh, problem, {})), engine), dot + 3 * V / B, 60e-12)
          << name << " " << engine;
    }
    EXPECT_NEAR(time_on(line, lowered(make_gemm(algorithm(name), line.mesh, problem, {})), "analytic"), dot + 3 * V / 2 / B, 60e-12)
        << "nobody shares";
  }
}

TEST(GemmAlgorithms, WangLetsTheOperandWithMoreBytesTimesHopsTravel) {
  const SmallSystem pod = small_system(ideal_machine(), {2, 8});
  const auto travels = [&](std::int64_t m, std::int64_t n, std::optional<WangOperand> operand) {
    GemmOptions options;
    options.wang_operand = operand;
    const auto schedule = make_gemm(algorithm("wang"), pod.mesh, {m, n, 64, DType::f32, Dataflow::os}, options);
    for (const Task& task : schedule->programs[0].tasks)
      if (std::holds_alternative<Shift>(task.op)) return task.label.substr(0, 6);
    return std::string{};
  };
  EXPECT_EQ(travels(16, 16, std::nullopt), "pass X");     // 8 rows of 8 over 7 hops against 32 rows of 2 over 1
  EXPECT_EQ(travels(2, 2048, std::nullopt), "pass W");
  EXPECT_EQ(travels(16, 16, WangOperand::w), "pass W");
}

TEST(GemmAlgorithms, OneDimensionalOnesAreWhatTheyAreCalled) {
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {8}, true, {{"ring", 8}});
  const std::int64_t n = 8192;
  const double T = 2.0 * n * n * n / 8 / 100e12;
  const auto time = [&](std::string_view name, Dataflow dataflow) {
    return time_on(pod, lowered(make_gemm(algorithm(name), pod.mesh, {n, n, n, DType::bf16, dataflow}, {})), "simgrid");
  };
  const double half = n * (n / 8.0) * 2 / 2 / B;
  EXPECT_NEAR(time("1d-os", Dataflow::os), T / 8 + 7 * std::max(T / 8, half), 60e-12);
  EXPECT_NEAR(time("1d-ls", Dataflow::ls), T / 8 + 7 * std::max(T / 8, half), 60e-12);
  EXPECT_NEAR(time("1d-fsdp", Dataflow::os), 7 * half + T, 60e-12);
  EXPECT_NEAR(time("1d-megatron", Dataflow::os), T, 60e-12);
  EXPECT_NEAR(time("1d-megatron", Dataflow::ls), T + 2 * 7 * half, 60e-12);
}

/// What a kernel does on one device: dots, permutes by direction, bytes of a permute.
struct Steps {
  int dots = 0, to_next = 0, to_previous = 0, collectives = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const Steps&, const Steps&) = default;
};
Steps steps_of(const Schedule& schedule) {
  Steps steps;
  const Program& program = schedule.programs[0];
  for (const Task& task : program.tasks) {
    steps.dots += std::holds_alternative<Matmul>(task.op);
    steps.collectives += std::holds_alternative<Collective>(task.op);
    if (const auto* shift = std::get_if<Shift>(&task.op)) {
      ++(shift->by.constant > 0 ? steps.to_next : steps.to_previous);
      steps.bytes = bytes_of(program, shift->source).count();
    }
  }
  return steps;
}

TEST(RealKernels, ShardMapCollectiveMatmulsTakeTheStepsOfTheTutorial) {
  // N = 4 devices; lhs [M, K] split on M, rhs [K, C] split on K: V = K/N C e bytes; accumulators of M/N C e bytes.
  const SmallSystem pod = small_system(ideal_machine(), {4}, true, {{"ring", 4}});
  const std::int64_t M = 64, C = 48, K = 32, V = K / 4 * C * 2, A = M / 4 * C * 2;
  const auto steps = [&](std::string_view name) {
    const GemmAlgorithmEntry& entry = algorithm(name);
    return steps_of(*make_gemm(entry, pod.mesh, {M, C, K, DType::bf16, *entry.only}, {}));
  };
  const int gather = 1;  // of the operand that is whole already: over an axis of one device, so that nothing moves
  EXPECT_EQ(steps("jax-ag-plain"), (Steps{1, 0, 0, 1 + gather, 0}));
  EXPECT_EQ(steps("jax-ag-overlapped"), (Steps{4, 3, 0, gather, V}));
  EXPECT_EQ(steps("jax-ag-bidirectional"), (Steps{4, 3, 3, gather, V / 2}));
  EXPECT_EQ(steps("jax-rs-plain"), (Steps{1, 0, 0, 1 + gather, 0}));
  EXPECT_EQ(steps("jax-rs-overlapped"), (Steps{4, 0, 3, gather, A}));
  EXPECT_EQ(steps("jax-rs-bidirectional"), (Steps{8, 3, 3, gather, A / 2}));
}

TEST(RealKernels, ShardMapCollectiveMatmulsOverlapAsTheTutorialSays) {
  // Ideal time T_dot + (N-1) max(T_dot, T_comm), T_comm = V / B one way, V/2 / B both ways; plain: AG + N T_dot.
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4}, true, {{"ring", 4}});
  for (const std::int64_t M : {1024, 65536}) {  // bound by communication, bound by compute
    const std::int64_t C = 8192, K = 8192;
    const double V = K / 4.0 * C * 2, A = M / 4.0 * C * 2, dot = 2.0 * (M / 4.0) * (K / 4.0) * C / 100e12;
    const auto time = [&](std::string_view name) {
      const GemmAlgorithmEntry& entry = algorithm(name);
      return time_on(pod, lowered(make_gemm(entry, pod.mesh, {M, C, K, DType::bf16, *entry.only}, {})), "simgrid");
    };
    EXPECT_NEAR(time("jax-ag-plain"), 3 * V / 2 / B + 4 * dot, 60e-12);
    EXPECT_NEAR(time("jax-ag-overlapped"), dot + 3 * std::max(dot, V / B), 60e-12);
    EXPECT_NEAR(time("jax-ag-bidirectional"), dot + 3 * std::max(dot, V / 2 / B), 60e-12);
    EXPECT_NEAR(time("jax-rs-plain"), 4 * dot + 3 * A / 2 / B, 60e-12);
    EXPECT_NEAR(time("jax-rs-overlapped"), dot + 3 * std::max(dot, A / B), 60e-12);
    // Two half dots: the first half is on its way while the second is multiplied.
    EXPECT_GE(time("jax-rs-bidirectional"), dot / 2 + 3 * std::max(dot, A / 2 / B) - 60e-12);
    EXPECT_LE(time("jax-rs-bidirectional"), dot + 3 * std::max(dot, A / 2 / B) + 60e-12);
  }
}

TEST(RealKernels, TensorParallelGathersOverlapADotPerBlock) {
  // On 1 x 8 devices of a mesh with a second axis of one device: T per block, tau per block.
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {1, 8});
  for (const std::int64_t N : {1024, 65536}) {  // bound by communication, bound by compute
    const std::int64_t M = 8192, K = 4096;
    const double tau = M / 8.0 * K * 2 / B, dot = 2.0 * (M / 8.0) * K * (N / 8.0) / 100e12;
    const auto time = [&](std::string_view name) {
      return time_on(pod, lowered(make_gemm(algorithm(name), pod.mesh, {M, N, K, DType::bf16, Dataflow::os}, {})), "simgrid");
    };
    EXPECT_NEAR(time("tp-ag-plain"), 7 * tau / 2 + 8 * dot, 60e-12);
    EXPECT_NEAR(time("tp-ag-overlapped"), dot + 7 * std::max(dot, tau), 60e-12);
    EXPECT_NEAR(time("tp-ag-bidirectional"), dot + 7 * std::max(dot, tau / 2), 60e-12);
  }
}

TEST(GemmAlgorithms, AlongOneAxisEveryGroupComputesTheProduct) {
  const SmallSystem pod = small_system(ideal_machine(), {3, 4}), ring = small_system(ideal_machine(), {4}, true, {{"ring", 4}});
  for (const std::string_view name : {"1d-os", "1d-fsdp", "jax-ag-overlapped", "jax-rs-bidirectional", "tp-ag-plain", "tp-ag-bidirectional"}) {
    const GemmAlgorithmEntry& entry = algorithm(name);
    const GemmProblem problem{64, 32, 48, DType::f32, entry.only.value_or(Dataflow::os)};
    const Schedule along = lowered(make_gemm(entry, *submesh_of(pod.mesh, *pod.mesh.axis("col"), one_device), problem, {}));
    const auto report = check(along, {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << name << "\n" << to_text(report->problems);
    EXPECT_EQ(time_on(pod, along, "des"), time_on(ring, lowered(make_gemm(entry, ring.mesh, problem, {})), "des")) << name;
  }
  const Submesh both = *submesh_of(pod.mesh, *pod.mesh.axis("row"), *pod.mesh.axis("col"));
  EXPECT_EQ(to_text(make_gemm(algorithm("1d-fsdp"), both, {64, 64, 64, DType::f32, Dataflow::os}, {}).error()),
            "1d-fsdp needs a mesh of one axis, found row=3,col=4");
}

TEST(GemmAlgorithms, SayWhatTheyCannotDo) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 2});
  const auto error = [&](std::string_view name, const SmallSystem& on, const GemmOptions& options = {}) {
    const auto schedule = make_gemm(algorithm(name), on.mesh, {64, 64, 64, DType::f32, Dataflow::os}, options);
    return schedule ? std::string{"none"} : to_text(schedule.error());
  };
  EXPECT_EQ(error("cannon", pod), "cannon needs a square mesh, found 4x2");
  EXPECT_EQ(error("1d-os", pod), "1d-os needs a mesh of one axis, found row=4,col=2");
  EXPECT_FALSE(make_layer(algorithm("tp-ag-plain"), small_system(ideal_machine(), {4}, true, {{"ring", 4}}).mesh, {64, 64, 64, DType::f32, Dataflow::os},
                          Pass::backward, {}));
  GemmOptions panels;
  panels.slice_count = 6;
  EXPECT_EQ(error("summa", pod, panels), "summa takes a multiple of lcm(R, C) = 4 panels, found 6");
}

}  // namespace
}  // namespace podsim
