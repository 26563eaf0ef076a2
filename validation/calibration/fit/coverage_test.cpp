#include "validation/calibration/fit/coverage.hpp"

#include <gtest/gtest.h>

#include "workloads/scenario/coverage.hpp"

#include "algorithms/gemm/gemm.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::some_machine;

TEST(Coverage, OfObservationsIsTheRangeOfEachOperationOnEachNumberOfDevices) {
  const System system = pod_with(some_machine(), "4x8");
  std::vector<Observation> observations{observed(ObservedOp::all_gather, "row", 4, 4096), observed(ObservedOp::all_gather, "row", 4, 1 << 20),
                                        observed(ObservedOp::all_gather, "col", 8, 4096), observed(ObservedOp::all_reduce, "row+col", 32, 8),
                                        testing::product(128, 256, 512), testing::product(1024, 64, 512),
                                        observed(ObservedOp::hbm_copy, "", 1, 1 << 16)};
  const auto covers = coverage_of(observations, system);
  ASSERT_TRUE(covers) << to_text(covers.error());
  EXPECT_EQ(*covers, (std::vector<Coverage>{{CostKind::matmul, 1, "", {}, {128, 1024}, {64, 256}, {512, 512}},
                                            {CostKind::local, 1, "", {1 << 16, 1 << 16}, {}, {}, {}},
                                            {CostKind::all_gather, 4, "x", {4096, 1 << 20}, {}, {}, {}},
                                            {CostKind::all_gather, 8, "y", {4096, 4096}, {}, {}, {}},
                                            {CostKind::all_reduce, 32, "x,y", {8, 64}, {}, {}, {}}}));
}

TEST(Coverage, DevicesLieAlongTheDimensionsInWhichTheyDifferWhateverTheAxesAreCalled) {
  const auto along = [](const System& system, const std::string& axis, int devices) {
    const auto covers = coverage_of({observed(ObservedOp::all_gather, axis, devices, 4096)}, system);
    return covers ? covers->front().along : to_text(covers.error());
  };
  const Machine machine = some_machine();
  EXPECT_EQ(along(pod_with(machine, "4x8", {{"ring", 32}}), "ring", 32), "x,y");
  EXPECT_EQ(along(pod_with(machine, "4x8", {{"a", 4}, {"b", 2}, {"c", 4}}), "b", 2), "y");
  EXPECT_EQ(along(pod_with(machine, "2x2", {{"ring", 4}}, true), "ring", 4), "x,y") << "a snake";
  Machine pairs = machine;
  pairs.chip.devices = 2;
  EXPECT_EQ(along(pod_with(pairs, "4"), "core", 2), "core");
}

TEST(Coverage, OfAScheduleAreItsProductsAndItsCommunication) {
  const System system = pod_with(some_machine(), "4x2");
  const auto schedule = make_gemm(**gemm_algorithm("collective"), system.mesh, {64, 32, 128, DType::bf16, Dataflow::os}, {});
  ASSERT_TRUE(schedule) << to_text(schedule.error());
  EXPECT_EQ(operations_in(*schedule, system), (std::vector<Coverage>{{CostKind::all_gather, 2, "y", {16 * 64 * 2, 16 * 64 * 2}, {}, {}, {}},
                                                                   {CostKind::all_gather, 4, "x", {32 * 16 * 2, 32 * 16 * 2}, {}, {}, {}},
                                                                   {CostKind::matmul, 1, "", {}, {16, 16}, {16, 16}, {128, 128}}}));
}

}  // namespace
}  // namespace podsim
