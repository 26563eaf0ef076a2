// The edges of every shipped GEMM, collective, FFT and factorisation, derived again from what their tasks read and write.
#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/collectives/testing.hpp"
#include "algorithms/fft/testing.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "algorithms/lu/test_lu.hpp"
#include "sim/base/rng.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/derive_edges.hpp"
#include "sim/schedule/testing.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

Schedule derived_again(Schedule schedule) {
  for (Program& program : schedule.programs)
    for (Task& task : program.tasks) task.after.clear();
  const auto edges = derive_edges(std::move(schedule));
  EXPECT_TRUE(edges) << to_text(edges.error());
  return edges ? edges->schedule : Schedule{};
}

void expect_right(const Schedule& lowered) {
  const auto report = check(lowered, {});
  ASSERT_TRUE(report) << to_text(report.error());
  EXPECT_TRUE(report->ok) << to_text(report->problems);
}

TEST(DerivedEdges, EveryGemmComputesTheSameWithThem) {
  for (const GemmAlgorithmEntry& entry : gemm_algorithms())
    for (const auto& [R, C] : std::vector<std::pair<int, int>>{{2, 2}, {3, 3}, {4, 2}, {1, 4}})
      for (const Dataflow dataflow : all_dataflows)
        for (const int prefetch : {0, 1, 2}) {
          std::vector<MeshAxis> axes{{"row", R, true}, {"col", C, true}};
          if (entry.mesh != MeshUse::row_col) axes = {{"ring", R * C, true}};
          const Mesh mesh = *Mesh::make(axes);
          GemmOptions options;
          options.prefetch = prefetch;
          options.block = 2;
          if (entry.needs_slice_count) options.slice_count = 3;
          if (entry.only && *entry.only != dataflow) continue;
          const auto multiples = required_multiples(entry, mesh, dataflow, options);
          if (!multiples) continue;
          const auto written = make_gemm(entry, mesh, {multiples->m, multiples->n, multiples->k, DType::f32, dataflow}, options);
          ASSERT_TRUE(written) << to_text(written.error());
          SCOPED_TRACE(written->name + " on " + to_text(mesh) + ", prefetch " + std::to_string(prefetch));
          const auto as_written = lower(*written, ring_or_line()), derived = lower(derived_again(*written), ring_or_line());
          ASSERT_TRUE(as_written && derived);
          expect_right(*derived);
          if (prefetch == 1) expect_right(derived_again(*as_written));
        }
}

TEST(DerivedEdges, LayersComputeTheSameWithThem) {
  for (const char* name : {"collective", "meshslice", "summa", "cannon", "wang"}) {
    const GemmAlgorithmEntry& entry = **gemm_algorithm(name);
    const Mesh mesh = *Mesh::make({{"row", 2, true}, {"col", 2, true}});
    GemmOptions options;
    options.block = 2;
    if (entry.needs_slice_count) options.slice_count = 2;
    const auto multiples = required_multiples(entry, mesh, Dataflow::os, Pass::both, options);
    ASSERT_TRUE(multiples) << to_text(multiples.error());
    const auto written = make_layer(entry, mesh, {multiples->m, multiples->n, multiples->k, DType::f32, Dataflow::os}, Pass::both, options);
    ASSERT_TRUE(written) << to_text(written.error());
    SCOPED_TRACE(written->name);
    const auto derived = lower(derived_again(*written), ring_or_line());
    ASSERT_TRUE(derived) << to_text(derived.error());
    expect_right(*derived);
  }
}

TEST(DerivedEdges, EveryCollectiveDeliversWithThem) {
  int cases = 0;
  for (const std::vector<int>& extents : {std::vector<int>{4}, {5}, {2, 3}, {4, 2}})
    for (const bool wraps : {true, false}) {
      const testing::SmallSystem pod = testing::small_system(testing::ideal_machine(), extents, wraps);
      std::vector<std::string> axes;
      for (const MeshAxis& axis : pod.mesh.axes()) axes.push_back(axis.name);
      for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
        for (int k = 0; k < collective_kind_count; ++k) {
          const auto kind = static_cast<CollectiveKind>(k);
          const CollectiveDetails details{1, shift_pairs(pod.mesh.devices(), 1)};
          const auto written =
              testing::try_collective(pod, kind, axes, Bytes{std::int64_t{24} * pod.mesh.devices()}, entry.name, details, in_chunks(3));
          if (!written) continue;  // it does not apply
          SCOPED_TRACE(std::string{entry.name} + " " + std::string{name_of(kind)} + " on " + to_text(pod.mesh));
          expect_right(derived_again(*written));
          ++cases;
        }
    }
  EXPECT_GT(cases, 100);
}

TEST(DerivedEdges, EveryFftAndFactorisationComputesTheSameWithThem) {
  for (const testing::FftCase& fft : testing::fft_cases()) {
    SCOPED_TRACE(fft.name);
    const auto written = make_fft(fft.method, fft.mesh, fft.problem);
    ASSERT_TRUE(written) << to_text(written.error());
    expect_right(*lower(derived_again(*written), ring_or_line()));
  }
  const Mesh mesh = testing::lu_mesh(2, 2);
  for (const int ahead : {0, 1})
    for (const auto& written :
         {make_lu(LuMethod::block, mesh, testing::lu_problem(mesh, 24, 4, ahead)), make_lu(LuMethod::naive, mesh, testing::lu_problem(mesh, 24, 4)),
          make_solve(SolveMethod::block, mesh, testing::lu_problem(mesh, 24, 4, ahead, {24, 3}))}) {
      ASSERT_TRUE(written) << to_text(written.error());
      SCOPED_TRACE(written->name);
      expect_right(*lower(derived_again(*written), ring_or_line()));
    }
}

/// Collectives of all kinds one behind the other, some with guards, on overlapping parts of a few buffers.
Schedule random_collectives(std::uint64_t seed) {
  Rng rng{seed, stream_of("collectives")};
  testing::Writer w{std::vector<MeshAxis>{{"x", rng.between(1, 4), rng.below(2) == 0}, {"y", rng.between(1, 3), true}}};
  const std::int64_t part = 4;
  for (int b = 0; b < 3; ++b) w.scratch("b" + std::to_string(b), {part * w.schedule.mesh.devices() + 4});
  for (int t = 0; t < 8; ++t) {
    const AxisView axis = w.axis(rng.between(0, 1)), other = w.axis(1 - axis.axis);
    const int from = rng.between(0, 2), to = (from + rng.between(1, 2)) % 3;
    const auto region = [&](int buffer, std::int64_t length) { return testing::part(BufferId{buffer}, rng.between(0, 4), length); };
    Collective collective{static_cast<CollectiveKind>(rng.below(collective_kind_count)), {axis}, {}, {}, 0, 0, rng.between(0, axis.size - 1), {}};
    const std::int64_t in = collective.kind == CollectiveKind::reduce_scatter ? part * axis.size
                            : collective.kind == CollectiveKind::all_to_all   ? axis.size
                                                                              : part;
    const std::int64_t out = collective.kind == CollectiveKind::all_gather       ? part * axis.size
                             : collective.kind == CollectiveKind::reduce_scatter ? part
                                                                                 : in;
    collective.input = region(from, in), collective.output = region(to, out);
    if (collective.kind == CollectiveKind::permute)
      for (std::int64_t p = 0; p < axis.size; ++p)
        if (rng.below(2) == 0) collective.pairs.push_back({p, (p + 1) % axis.size});
    if (collective.kind == CollectiveKind::permute && collective.pairs.empty()) collective.pairs.push_back({0, axis.size - 1});
    w.add("c" + std::to_string(t), std::move(collective), {}, rng.below(3) == 0 ? testing::between(other, 0, rng.between(1, other.size)) : Guard{});
  }
  return w.schedule;
}

TEST(DerivedEdges, CollectivesOnOverlappingRegionsDoNotRace) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto derived = derive_edges(random_collectives(seed));
    ASSERT_TRUE(derived) << to_text(derived.error());
    for (const auto& chooser : {ring_or_line(), ring_or_line(in_chunks(2))}) {
      const auto lowered = lower(derived->schedule, chooser);
      ASSERT_TRUE(lowered) << to_text(lowered.error());
      const Validation found = validate(*lowered);
      EXPECT_TRUE(found.ok()) << to_text(found.all()) << to_text(derived->schedule);
    }
  }
}

}  // namespace
}  // namespace podsim
