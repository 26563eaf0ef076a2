#include "workloads/sharded/reshard.hpp"

#include "workloads/sharded/testing.hpp"

namespace podsim::testing {
namespace {

/// Every sharding of rank 2 without partial sums.
std::vector<Sharding> all_shardings(const Mesh& mesh) {
  std::vector<Sharding> all;
  for (const std::string text : {"-,-", "x,-", "-,x", "y,-", "-,y", "x,y", "y,x", "(x+y),-", "(y+x),-", "-,(x+y)", "-,(y+x)"}) all.push_back(*parse_sharding(text, mesh, 2, {}));
  return all;
}

/// Gathers every dimension that is divided otherwise in `to`, dimension by dimension, then slices.
std::int64_t gather_and_slice(const ArrayLayout& array, const Sharding& from, const Sharding& to, const Mesh& mesh) {
  Sharding now = from;
  now.dims.resize(array.extents.size());
  std::int64_t received = 0;
  for (std::size_t d = 0; d < now.dims.size(); ++d) {
    std::size_t same = 0;
    while (same < now.dims[d].size() && same < to.axes_of(d).size() && now.dims[d][same] == to.axes_of(d)[same]) ++same;
    if (same == now.dims[d].size()) continue;
    const std::int64_t before = block_bytes(array, now, mesh).count();
    now.dims[d].resize(same);
    received += block_bytes(array, now, mesh).count() - before;
  }
  return received;
}

TEST(Reshard, NeverReceivesMoreThanGatherAndSlice) {
  const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  Resharder resharder{mesh};
  const ArrayLayout array{{16, 32}, Bytes{4}};
  for (const Sharding& from : all_shardings(mesh))
    for (const Sharding& to : all_shardings(mesh)) {
      const Resharding* way = resharder.find(array, from, to);
      ASSERT_NE(way, nullptr);
      SCOPED_TRACE(to_text(from, mesh, 2) + " to " + to_text(to, mesh, 2));
      EXPECT_LE(way->cost.received.count(), gather_and_slice(array, from, to, mesh));
      Sharding now = from;
      for (const ReshardStep& step : way->steps) {
        EXPECT_EQ(step.before, now);
        now = step.after;
      }
      EXPECT_EQ(now, to);
      EXPECT_EQ(way->steps.empty(), from == to);
    }
}

TEST(Reshard, RowsByColumnsToColumnsByRowsGathersNothing) {
  const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  Resharder resharder{mesh};
  const ArrayLayout array{{16, 32}, Bytes{4}};
  const Sharding from = *parse_sharding("x,y", mesh, 2, {}), to = *parse_sharding("y,x", mesh, 2, {});
  const Resharding* way = resharder.find(array, from, to);
  ASSERT_NE(way, nullptr);
  EXPECT_LE(static_cast<double>(way->cost.received.count()), 2.25 * static_cast<double>(block_bytes(array, from, mesh).count()));
  for (const ReshardStep& step : way->steps) EXPECT_NE(step.kind, StepKind::all_gather);
}

TEST(Reshard, PartialSumsAreScatteredWhereTheResultIsDivided) {
  const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  Resharder resharder{mesh};
  const ArrayLayout array{{16, 32}, Bytes{4}};
  const Sharding pending = *parse_sharding("unreduced(x):-,y", mesh, 2, {}, true);
  const Resharding* scattered = resharder.find(array, pending, *parse_sharding("x,y", mesh, 2, {}));
  ASSERT_NE(scattered, nullptr);
  ASSERT_EQ(scattered->steps.size(), 1U);
  EXPECT_EQ(scattered->steps[0].kind, StepKind::reduce_scatter);
  EXPECT_EQ(scattered->cost.received.count(), 16 * 16 * 4 * 3 / 4);
  const Resharding* reduced = resharder.find(array, pending, *parse_sharding("-,y", mesh, 2, {}));
  ASSERT_NE(reduced, nullptr);
  EXPECT_EQ(reduced->steps.size(), 1U);
  EXPECT_EQ(reduced->cost.received.count(), 2 * 16 * 16 * 4 * 3 / 4);
  const Resharding* again = resharder.find(array, *parse_sharding("-,y", mesh, 2, {}), pending);
  ASSERT_NE(again, nullptr);
  ASSERT_EQ(again->steps.size(), 1U);
  EXPECT_EQ(again->steps[0].kind, StepKind::unreduce);
  EXPECT_EQ(again->cost, ReshardCost{});
}

TEST(Reshard, WhatDoesNotDivideIsNotOnTheWay) {
  const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  Resharder resharder{mesh};
  const ArrayLayout array{{16, 6}, Bytes{4}};
  const Sharding rows = *parse_sharding("x,-", mesh, 2, {}), columns = *parse_sharding("-,x", mesh, 2, {});
  EXPECT_EQ(resharder.find(array, rows, columns), nullptr);
  for (const auto& [to, way] : resharder.all(array, rows, {0, 1}))
    for (const ReshardStep& step : way.steps) EXPECT_EQ(6 % devices_along(mesh, step.after.axes_of(1)), 0);
}

}  // namespace
}  // namespace podsim::testing
