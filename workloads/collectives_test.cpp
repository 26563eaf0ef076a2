#include "workloads/collectives.hpp"

#include <gtest/gtest.h>

#include "algorithms/gemm/gemm.hpp"
#include "sim/engine/table/engines.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/lower.hpp"

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

TEST(ByDimension, IsTheRingOrLineWhereAnAxisIsOneDimension) {
  const SmallSystem pod = small_system(testing::ideal_machine(), {4, 4});
  EXPECT_EQ(lowered(pod, Dataflow::rs, by_dimension({})), lowered(pod, Dataflow::rs, ring_or_line()));
}

}  // namespace
}  // namespace podsim
