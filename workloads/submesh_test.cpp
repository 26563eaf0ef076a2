// A block on two axes, of any name, of a mesh that has more: right, and as fast as on a mesh of its own.
#include <gtest/gtest.h>

#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "workloads/plan.hpp"
#include "workloads/test_blocks.hpp"

namespace podsim {
namespace {

using testing::activations;
using testing::close;

/// Axes a and b of 2 x 4 devices among u and v of 2 each, a chip per device; and 2 x 4 devices of their own.
struct FourAxes {
  testing::SmallSystem pod = testing::small_system(testing::overhead_machine(), {2, 2, 2, 4}, true, {{"u", 2}, {"a", 2}, {"v", 2}, {"b", 4}});
  testing::SmallSystem own = testing::small_system(testing::overhead_machine(), {2, 4}, true, {{"row", 2}, {"col", 4}});

  [[nodiscard]] Submesh everywhere() const { return *submesh_of(pod.mesh, *pod.mesh.axis("a"), *pod.mesh.axis("b")); }
  /// The devices with u = 1 and v = 0.
  [[nodiscard]] Submesh at_one_coordinate() const {
    const Guard there{{podsim::own(*pod.mesh.axis("u")), 1, 2}, {podsim::own(*pod.mesh.axis("v")), 0, 1}};
    return *submesh_of(pod.mesh, *pod.mesh.axis("a"), *pod.mesh.axis("b"), devices_where(pod.mesh, there));
  }
};

template <class Body>
int for_each_small_plan(const Mesh& own, Body body) {
  int count = 0;
  for (const TransformerBlock& block : {testing::small_block(), testing::small_gated_block()}) {
    const auto workload = workload_of(block, own.devices());
    for (const testing::NamedPlan& named : testing::plans_for(*workload)) {
      if (!parts_of(*workload, named.plan, own, Pass::both)) continue;
      SCOPED_TRACE(block.name + ", " + named.name);
      body(*workload, named.plan);
      ++count;
      if (::testing::Test::HasFatalFailure()) return count;
    }
  }
  return count;
}

TEST(BlockOnSubmesh, ComputesTheBlockOnTwoOfFourAxes) {
  const FourAxes axes;
  const int plans = for_each_small_plan(axes.own.mesh, [&](const Workload& workload, const Plan& plan) {
    const auto own = testing::run_on_numbers(*block_schedule(axes.own.mesh, workload, plan, Pass::both), ring_or_line());
    for (const Submesh& submesh : {axes.everywhere(), axes.at_one_coordinate()}) {
      const auto schedule = block_schedule(submesh, workload, plan, Pass::both);
      ASSERT_TRUE(schedule) << to_text(schedule.error());
      EXPECT_EQ(size_of(schedule->programs.front().devices), submesh == axes.everywhere() ? 32 : 8);
      const auto found = testing::run_on_numbers(*schedule, ring_or_line());  // that copies are equal, too
      ASSERT_EQ(found.size(), own.size());
      for (const auto& [tensor, whole] : own) EXPECT_EQ(found.at(tensor).values, whole.values) << tensor;

      const auto report = check(*lower(*schedule, ring_or_line()), {.random_orders = 0, .threads = 1});
      ASSERT_TRUE(report) << to_text(report.error());
      ASSERT_TRUE(report->ok) << to_text(report->problems);
    }
  });
  EXPECT_GE(plans, 10);
}

// Groups share no link here: neighbours along a and b have the same u and v.
TEST(BlockOnSubmesh, TakesTheTimeOfAMeshOfItsOwn) {
  const FourAxes axes;
  testing::Folds folds;
  testing::Agreement agreement;
  const int plans = for_each_small_plan(axes.own.mesh, [&](const Workload& workload, const Plan& plan) {
    const auto time = [](const testing::SmallSystem& pod, const Schedule& schedule) {
      return testing::run(pod, *lower(schedule, ring_or_line()), "des")->makespan;
    };
    const auto own = time(axes.own, *block_schedule(axes.own.mesh, workload, plan, Pass::both));
    for (const Submesh& submesh : {axes.everywhere(), axes.at_one_coordinate()}) {
      const Schedule schedule = *block_schedule(submesh, workload, plan, Pass::both);
      EXPECT_EQ(time(axes.pod, schedule), own);
      const Schedule lowered = *lower(schedule, ring_or_line());
      ASSERT_TRUE(testing::folding_changes_nothing(lowered, testing::world_of(axes.pod), folds));
    }
    const Schedule forward = *lower(*block_schedule(axes.at_one_coordinate(), workload, plan, Pass::forward), ring_or_line());
    const auto model = testing::model_of(axes.pod, forward);
    ASSERT_TRUE(model) << to_text(model.error());
    ASSERT_TRUE(testing::engines_agree(*model, 1e-6, agreement));
  });
  EXPECT_GE(plans, 10);
  EXPECT_EQ(agreement.compared, plans);
}

}  // namespace
}  // namespace podsim
