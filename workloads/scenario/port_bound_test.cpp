// What collectives must move in and out of a chip bounds their time from below, on every topology.
#include <gtest/gtest.h>

#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/port_bound.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

TEST(PortBound, NoCollectiveTakesLess) {
  for (const char* topology : {"torus", "mesh", "crossbar", "fat-tree:4:2"})
    for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce, CollectiveKind::all_to_all})
      for (const char* mesh : {"row=4,col=4", "row=16,col=1", "row=2,col=8"}) {
        SCOPED_TRACE(std::string{topology} + " " + std::string{name_of(kind)} + " " + mesh);
        const System system = testing::system_with({{"machine", "tpu_v4"}, {"slice", "4x4"}, {"topology", topology}, {"mesh", mesh}});
        CollectiveSpec spec;
        spec.kind = kind, spec.input = Bytes{1 << 24};
        spec.policy = *parse_policy("auto", {});
        const auto posed = pose(system, ProblemSpec{spec}, {});
        ASSERT_TRUE(posed) << to_text(posed.error());
        const auto run = simulate(posed->system, posed->problem, {});
        ASSERT_TRUE(run) << to_text(run.error());
        EXPECT_GT(least_port_time(posed->system, posed->problem.schedule).count(), 0);
        EXPECT_LE(least_port_time(posed->system, posed->problem.schedule).count(), run->row.result.makespan_s);
      }
}

TEST(PortBound, IsTheTimeOfAnAllGatherOnACrossbarButForLatency) {
  const System system = testing::system_with({{"machine", "ideal"}, {"slice", "8"}, {"topology", "crossbar"}, {"set", "link.bandwidth=50GB/s"}});
  CollectiveSpec spec;
  spec.input = Bytes{50'000'000};
  spec.policy = *parse_policy("direct", {});
  const auto posed = pose(system, ProblemSpec{spec}, {});
  ASSERT_TRUE(posed) << to_text(posed.error());
  EXPECT_DOUBLE_EQ(least_port_time(posed->system, posed->problem.schedule).count(), 7 * 1e-3);
}

}  // namespace
}  // namespace podsim
