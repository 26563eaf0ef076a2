// The edges of every shipped GEMM and collective, derived again from what their tasks read and write.
#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/collectives/testing.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/derive_edges.hpp"

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

}  // namespace
}  // namespace podsim
