#include "workloads/collectives.hpp"

#include <gtest/gtest.h>

#include "algorithms/gemm/gemm.hpp"
#include "sim/base/rng.hpp"
#include "sim/engine/table/engines.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/lower.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;

Schedule lowered(const SmallSystem& pod, Dataflow dataflow, const CollectiveChooser& chooser) {
  const auto schedule = make_gemm(**gemm_algorithm("collective"), pod.mesh, {512, 256, 128, DType::f32, dataflow}, {});
  EXPECT_TRUE(schedule);
  const auto result = lower(*schedule, chooser);
  EXPECT_TRUE(result);
  return *result;
}

double seconds(const SmallSystem& pod, const Schedule& schedule) {
  const auto model = testing::model_of(pod, schedule);
  return to_seconds((*timing_engine("des"))->run(*model, {})->makespan).count();
}

TEST(ByDimension, UsesTheDimensionsOfAFoldedAxisAtOnceThoughInputAndOutputDifferInRank) {
  // A GEMM's operands are matrices, what they are gathered into has a dimension of blocks more.
  const SmallSystem pod = small_system(testing::ideal_machine(), {4, 4, 1}, true, {{"row", 16}, {"col", 1}});
  for (const Dataflow dataflow : {Dataflow::os, Dataflow::ls}) {
    const Schedule schedule = lowered(pod, dataflow, by_dimension({}));
    const auto proof = check(schedule, {});
    ASSERT_TRUE(proof);
    EXPECT_TRUE(proof->ok) << name_of(dataflow);
    // W is gathered in halves, each over one dimension and then the other, both ways round: (p-1) V/4 + (p-1) p V/4.
    const double shard = 4.0 * 256 * 128 / 16, link = testing::ideal_machine().link[0].bandwidth.count();
    const double gather = 3 * shard / 4 / link + 3 * 4 * shard / 4 / link;
    const double product = 2.0 * 512 * 256 * 128 / 16 / peak_of(testing::ideal_machine(), DType::f32).count();
    EXPECT_NEAR(seconds(pod, schedule), gather + product, 1e-10) << name_of(dataflow);
    EXPECT_LT(seconds(pod, schedule), seconds(pod, lowered(pod, dataflow, ring_or_line())));
  }
}

TEST(ByDimension, FollowsTheAlgorithmThatACollectiveNames) {
  using Kind = CollectiveKind;
  const SmallSystem pod = small_system(testing::ideal_machine(), {4, 4});
  const auto lowered_as = [&](const std::string& algorithm, Kind kind, const CollectiveChooser& chooser) {
    Schedule schedule = *collective_schedule(pod.mesh, kind, {pod.mesh.whole(0), pod.mesh.whole(1)}, Bytes{4 * 1024}, DType::f32);
    std::get<Collective>(schedule.programs.front().tasks.front().op).algorithm = algorithm;
    return lower(schedule, chooser);
  };
  const auto as_named = lowered_as("rotations", Kind::all_reduce, by_dimension({})), asked_for = lowered_as("", Kind::all_reduce, *always("rotations"));
  ASSERT_TRUE(as_named && asked_for);
  EXPECT_EQ(as_named->programs, asked_for->programs);
  // A policy of the run comes first, and what the named algorithm cannot do goes ring after ring.
  const auto told = lowered_as("rotations", Kind::all_reduce, ring_or_line()), usual = lowered_as("", Kind::all_reduce, ring_or_line());
  ASSERT_TRUE(told && usual);
  EXPECT_EQ(told->programs, usual->programs);
  const auto rooted = lowered_as("rotations", Kind::broadcast, by_dimension({})), usually_rooted = lowered_as("", Kind::broadcast, ring_or_line());
  ASSERT_TRUE(rooted && usually_rooted);
  EXPECT_EQ(rooted->programs, usually_rooted->programs);
  const auto unknown = lowered_as("rotation", Kind::all_reduce, by_dimension({}));
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("there is no collective algorithm \"rotation\""), std::string::npos) << unknown.error().message;
}

TEST(ByDimension, IsTheRingOrLineWhereAnAxisIsOneDimension) {
  const SmallSystem pod = small_system(testing::ideal_machine(), {4, 4});
  EXPECT_EQ(lowered(pod, Dataflow::rs, by_dimension({})), lowered(pod, Dataflow::rs, ring_or_line()));
}

/// An axis of the mesh over several dimensions of the grid, of which a collective sees parts: a device's place on it is the sum of all of them.
void expect_every_postcondition_over_axes_of_several_dimensions(const CollectiveChooser& chooser) {
  struct Layout {
    std::vector<int> extents;
    std::vector<std::pair<std::string, int>> mesh;
    std::vector<std::string> axes;
  };
  const std::vector<Layout> layouts{{{2, 4}, {{"x", 8}}, {"x"}}, {{2, 2, 2}, {{"x", 8}}, {"x"}}, {{2, 2, 3}, {{"x", 4}, {"y", 3}}, {"y", "x"}}, {{2, 2, 3}, {{"x", 4}, {"y", 3}}, {"x"}}};
  for (std::uint64_t seed = 0; seed < 70U; ++seed) {
    Rng rng{seed};
    const Layout& layout = layouts[rng.below(layouts.size())];
    const SmallSystem pod = small_system(testing::ideal_machine(), layout.extents, rng.below(2) == 0, layout.mesh);
    std::int64_t group = 1;
    std::vector<AxisView> axes;
    for (const std::string& name : layout.axes) {
      axes.push_back(*pod.mesh.axis(name));
      group *= axes.back().size;
    }
    const auto kind = static_cast<CollectiveKind>(seed % collective_kind_count);
    CollectiveDetails details{rng.between(0, static_cast<int>(group) - 1), {}};
    // A chain, and what is left of one.
    for (std::int64_t from = 0; from + 1 < group; ++from)
      if (seed % 3 == 0 || rng.below(3) > 0) details.pairs.push_back({from, from + 1});
    if (details.pairs.empty()) details.pairs.push_back({0, group - 1});
    const auto schedule = lower(*collective_schedule(pod.mesh, kind, axes, Bytes{8 * group}, DType::f32, details), chooser);
    ASSERT_TRUE(schedule) << to_text(schedule.error());
    const auto report = check(*schedule, {});
    ASSERT_TRUE(report) << seed << to_text(report.error());
    EXPECT_TRUE(report->ok) << seed << ' ' << name_of(kind) << to_text(report->problems) << to_text(*schedule);
  }
}

TEST(ByDimension, DeliversThePostconditionOfEveryKindOverAxesOfSeveralDimensions) { expect_every_postcondition_over_axes_of_several_dimensions(by_dimension({})); }

TEST(AsNccl, DeliversThePostconditionOfEveryKindOverAxesOfSeveralDimensions) { expect_every_postcondition_over_axes_of_several_dimensions(as_nccl({})); }

/// Two nodes of four: of the ranks of `both` there are four in each node, of `node` one, of `device` all are in one.
TEST(AsNccl, SendsAllToAllsDirectlyAndGoesNodeByNodeWhereANodeHasSeveralRanks) {
  using Kind = CollectiveKind;
  const SmallSystem flat = small_system(testing::ideal_machine(), {2, 4}, true, {{"both", 8}}), apart = small_system(testing::ideal_machine(), {2, 4}, true, {{"node", 2}, {"device", 4}});
  const auto programs = [](const SmallSystem& pod, Kind kind, const std::vector<AxisView>& axes, const CollectiveChooser& chooser) {
    const auto schedule = lower(*collective_schedule(pod.mesh, kind, axes, Bytes{4 * 1024}, DType::f32), chooser);
    EXPECT_TRUE(schedule) << to_text(schedule.error());
    return schedule->programs;
  };
  const std::vector<AxisView> both{*flat.mesh.axis("both")}, node{*apart.mesh.axis("node")}, device{*apart.mesh.axis("device")}, all{node.front(), device.front()};
  EXPECT_EQ(programs(flat, Kind::all_to_all, both, as_nccl({})), programs(flat, Kind::all_to_all, both, *always("direct")));
  EXPECT_EQ(programs(apart, Kind::all_to_all, all, as_nccl({})), programs(apart, Kind::all_to_all, all, *always("direct")));
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce}) {
    EXPECT_EQ(programs(flat, kind, both, as_nccl({})), programs(flat, kind, both, on_factors(*always("hierarchical"), flat.mesh.factors(0)))) << name_of(kind);
    EXPECT_EQ(programs(apart, kind, all, as_nccl({})), programs(apart, kind, all, *always("hierarchical"))) << name_of(kind);
    for (const auto& axes : {node, device}) EXPECT_EQ(programs(apart, kind, axes, as_nccl({})), programs(apart, kind, axes, ring_or_line())) << name_of(kind);
  }
}

}  // namespace
}  // namespace podsim
