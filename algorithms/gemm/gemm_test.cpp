#include "algorithms/gemm/gemm.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

const std::vector<Dataflow> all_dataflows{Dataflow::os, Dataflow::ls, Dataflow::rs};

Expected<Schedule> gemm(std::string_view algorithm, const Mesh& mesh, const GemmProblem& problem, const GemmOptions& options = {}) {
  return make_gemm(**gemm_algorithm(algorithm), mesh, problem, options);
}
GemmOptions sliced(std::int64_t S, std::int64_t block = 8, int prefetch = 1, bool copies = true) { return {S, block, prefetch, copies, std::nullopt}; }

Schedule lowered_gemm(const Expected<Schedule>& schedule) {
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto result = lower(*schedule, ring_or_line());
  EXPECT_TRUE(result) << to_text(result.error());
  return *result;
}

/// Y = X.W with B=512, I=256, O=1024: Y by OS, dX = dY.W^T by LS, dW = X^T.dY by RS, as GEMMs with their own m, n, k.
std::vector<GemmProblem> notebook_layer() {
  return {{512, 1024, 256, DType::f32, Dataflow::os}, {512, 256, 1024, DType::f32, Dataflow::ls}, {256, 1024, 512, DType::f32, Dataflow::rs}};
}

TEST(Gemm, TheReferenceNotebooksLayerIsRightForwardAndBackward) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 2});
  for (const GemmProblem& problem : notebook_layer())
    for (const std::int64_t S : {1, 8})
      for (const bool copies : {true, false}) {
        SCOPED_TRACE(std::string{name_of(problem.dataflow)} + " S=" + std::to_string(S));
        const auto report = check(lowered_gemm(gemm("meshslice", pod.mesh, problem, sliced(S, 8, 1, copies))), {});
        ASSERT_TRUE(report) << to_text(report.error());
        EXPECT_TRUE(report->ok) << to_text(report->problems);
        EXPECT_TRUE(report->bit_equal);
        EXPECT_LE(report->max_rel_error, 1e-5);
      }
}

TEST(Gemm, RandomProblemsAreRightInEveryOrder) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Rng rng{seed};
    const SmallSystem pod = small_system(ideal_machine(), {rng.between(1, 5), rng.between(1, 5)}, rng.below(3) != 0);
    const Dataflow dataflow = all_dataflows[rng.below(3)];
    const GemmOptions options = sliced(rng.between(1, 4), rng.between(1, 3), rng.between(0, 3), rng.below(2) == 0);
    const auto multiples = required_multiples(**gemm_algorithm("meshslice"), pod.mesh, dataflow, options);
    ASSERT_TRUE(multiples);
    const GemmProblem problem{multiples->m * rng.between(1, 2), multiples->n * rng.between(1, 2), multiples->k * rng.between(1, 2),
                              rng.below(3) == 0 ? DType::bf16 : DType::f32, dataflow};
    const Schedule schedule = lowered_gemm(gemm("meshslice", pod.mesh, problem, options));
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + to_text(pod.mesh) + " " + schedule.name);
    const auto report = check(schedule, {});
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << to_text(report->problems);
  }
}

TEST(Gemm, EveryEdgeOrdersARaceOrIsProvenBenign) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 2});
  int ordering = 0, timing = 0;
  for (const GemmProblem& problem : notebook_layer()) {
    const Schedule schedule = lowered_gemm(gemm("meshslice", pod.mesh, problem, sliced(problem.dataflow == Dataflow::os ? 4 : 2, 8, 1, true)));
    const auto audits = audit_edges(schedule);
    for (const EdgeAudit& audit : *audits) {
      if (audit.purpose == EdgePurpose::timing) ++timing;
      if (audit.purpose != EdgePurpose::ordering) continue;
      ++ordering;
      // A race names two different tasks.
      EXPECT_NE(audit.race.message.find("race on device"), std::string::npos);
      EXPECT_EQ(std::count(audit.race.message.begin(), audit.race.message.end(), '"'), 6) << audit.race.message;  // two labels and a buffer
    }
  }
  EXPECT_GT(ordering, 50);
  EXPECT_GT(timing, 0);  // the queue of an axis, for one
}

TEST(Gemm, MeshSliceOverlapsGathersWithMatmuls) {
  // 4x4, square: gathers of X and W equal and at once, G per slice; T per slice.
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4, 4});
  const std::int64_t S = 8, n = 4096;
  for (const std::int64_t m : {1024, 65536}) {  // bound by communication, bound by compute
    const GemmProblem problem{m, m, n, DType::bf16, Dataflow::os};
    const double G = 3 * (m / 4.0 * n / 4 / S * 2 / 2) / B, T = 2.0 * m * m * n / 16 / S / 100e12;
    const Schedule schedule = lowered_gemm(gemm("meshslice", pod.mesh, problem, sliced(S, 8, 1, false)));
    for (const EngineEntry& engine : all_timing_engines()) {
      const auto timeline = testing::run(pod, schedule, engine.name);
      ASSERT_TRUE(timeline) << to_text(timeline.error());
      const double expected = G + (S - 1) * std::max(G, T) + T;
      EXPECT_NEAR(to_seconds(timeline->makespan).count(), expected, 1e-12 * 4 * S) << engine.name << " m=" << m;  // 1 ps per event
    }
  }
}

TEST(Gemm, LeftStationaryHidesItsReduceScatter) {
  // T equal to the reduce-scatter per slice: S+1 of them after the first gather, not 2S.
  const double B = 100e9;
  const SmallSystem pod = small_system(ideal_machine(B), {4, 4});
  const std::int64_t S = 8, m = 8192, n = 2048;
  // Reduce-scatter per slice: 3 (m/4)(n/4/S) 2/2 / B; matmul per slice: 2 m n k / 16 / S / peak. Equal for k = 3/(4 B) peak ... rounded to blocks.
  const std::int64_t k = 3 * 100 * 1000 / 200 / 32 * 32;
  const GemmProblem problem{m, n, k, DType::bf16, Dataflow::ls};
  const double D = 3 * (m / 4.0 * n / 4 / S) / B, T = 2.0 * m * n * k / 16 / S / 100e12, G = 3 * (n / 4.0 * k / 4 / S) / B;
  ASSERT_LT(G, T);
  const double L = std::max(D, T);
  const Schedule schedule = lowered_gemm(gemm("meshslice", pod.mesh, problem, sliced(S, 8, 1, false)));
  for (const EngineEntry& engine : all_timing_engines()) {
    const auto timeline = testing::run(pod, schedule, engine.name);
    ASSERT_TRUE(timeline);
    EXPECT_NEAR(to_seconds(timeline->makespan).count(), G + (S - 1) * L + T + D, 1e-12 * 5 * S) << engine.name;
  }
}

TEST(Gemm, OneSliceIsCollective) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 2});
  for (const GemmProblem& problem : notebook_layer())
    EXPECT_EQ(*gemm("meshslice", pod.mesh, problem, sliced(1, 8, 1, true)), *gemm("collective", pod.mesh, problem));
}

TEST(Gemm, SizesThatDoNotDivideAreNamedWithTheirMultiple) {
  const SmallSystem pod = small_system(ideal_machine(), {4, 2});
  const auto error = [&](const GemmProblem& problem, const GemmOptions& options) { return to_text(gemm("meshslice", pod.mesh, problem, options).error()); };
  EXPECT_EQ(error({512, 1024, 250, DType::f32, Dataflow::os}, sliced(8)),
            "k must be a positive multiple of 256 (meshslice os on row=4,col=2, S=8, B=8), found 250; `pad` rounds it up");
  EXPECT_EQ(error({510, 1024, 256, DType::f32, Dataflow::os}, sliced(1)),
            "m must be a positive multiple of 4 (meshslice os on row=4,col=2, S=1, B=8), found 510; `pad` rounds it up");
  EXPECT_EQ(error({512, 1024, 256, DType::f32, Dataflow::os}, sliced(0)), "the slice count must be 1 to 1048576, found 0");
  const GemmProblem rounded = padded({510, 1023, 250, DType::f32, Dataflow::os}, *required_multiples(**gemm_algorithm("meshslice"), pod.mesh, Dataflow::os, sliced(8)));
  EXPECT_EQ(rounded, (GemmProblem{512, 1024, 256, DType::f32, Dataflow::os}));
}

TEST(Gemm, AnalyticAndSimgridAgreeWhereNothingIsShared) {
  for (std::uint64_t seed = 0; seed < test::cases(200U, 40U); ++seed) {
    Rng rng{seed};
    Machine machine = ideal_machine(rng.between(10, 200) * 1e9, rng.between(0, 3) * 0.5e-6);
    machine.software.per_message = Seconds{rng.between(0, 4) * 1e-6};
    machine.software.launch.fill(Seconds{rng.between(0, 20) * 1e-6});
    machine.chip.hbm_bandwidth = BytesPerSecond{1e12};
    machine.chip.vector_peak = FlopsPerSecond{4e12};
    machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 10) * 1e11};
    machine.chip.overlap_hbm = rng.uniform();
    machine.chip.memory_shared = false;  // the analytic engine shares nothing
    if (rng.below(3) == 0) machine.software.core_share.fill(rng.uniform() / 4);
    const SmallSystem pod = small_system(machine, {rng.between(1, 5), rng.between(1, 5)}, rng.below(3) != 0);
    const Dataflow dataflow = all_dataflows[rng.below(3)];
    const GemmOptions options = sliced(rng.between(1, 6), 8, rng.between(0, 2), rng.below(2) == 0);
    const auto multiples = required_multiples(**gemm_algorithm("meshslice"), pod.mesh, dataflow, options);
    const GemmProblem problem{multiples->m * rng.between(1, 64), multiples->n * rng.between(1, 64), multiples->k * rng.between(1, 4), DType::bf16, dataflow};
    const Schedule schedule = lowered_gemm(gemm("meshslice", pod.mesh, problem, options));
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + to_text(pod.mesh) + " " + schedule.name);
    const auto analytic = testing::run(pod, schedule, "analytic"), simgrid = testing::run(pod, schedule, "simgrid");
    ASSERT_TRUE(analytic) << to_text(analytic.error());
    ASSERT_TRUE(simgrid) << to_text(simgrid.error());
    // One picosecond per causally preceding event: at most four roundings per activity on the longest chain, which has no more than
    // the activities of one device.
    const auto graph = unroll(schedule).graph;
    const double events = 4.0 * static_cast<double>(graph.program_order(DeviceId{0}).size());
    for (std::size_t a = 0; a < analytic->size(); ++a) {
      const double t = to_seconds(analytic->at(a).received).count();
      ASSERT_NEAR(t, to_seconds(simgrid->at(a).received).count(), 1e-6 * t + events * 1e-12) << a;
      ASSERT_NEAR(to_seconds(analytic->at(a).start).count(), to_seconds(simgrid->at(a).start).count(), 1e-6 * t + events * 1e-12) << a;
    }
  }
}

}  // namespace
}  // namespace podsim
