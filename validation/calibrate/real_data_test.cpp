// What calibration makes of published measurements: every other size of an operation, and the two explanations of the TPU v5p profile.
#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "topologies/machines.hpp"
#include "validation/calibrate/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::pod_with;
using testing::value_of;

std::vector<Observation> dataset(const std::string& name) {
  const std::string path = PODSIM_SOURCE_DIR "/validation/datasets/" + name + "/observations.csv";
  std::ifstream file(path, std::ios::binary);
  auto observations = read_observations(std::string{std::istreambuf_iterator<char>(file), {}}, path);
  if (!observations) throw std::runtime_error(to_text(observations.error()));
  return *std::move(observations);
}

struct Held {
  Calibration calibration;
  double median = 0, p95 = 0;  // of the rows that were held back
};
Held hold_back(const std::vector<Observation>& fitted, const std::vector<Observation>& held, const Pod& base, const CalibrateOptions& options = {}) {
  auto calibration = calibrate(fitted, base, options);
  if (!calibration) throw std::runtime_error(to_text(calibration.error()));
  Pod pod = base;
  pod.machine = calibration->machine;
  if (const auto built = rebuild(pod); !built) throw std::runtime_error(to_text(built.error()));
  std::vector<double> errors;
  for (const Observation& o : held) errors.push_back(std::abs(predict(o, pod, options.predict)->count() / o.time.count() - 1));
  return {*std::move(calibration), median_of(errors), percentile_of(errors, 0.95)};
}

/// Every other row of each operation is fitted, beginning with the first or the second.
Held every_other(const std::string& name, const Pod& base, int first) {
  std::vector<Observation> fitted, held;
  std::map<ObservedOp, int> seen;
  for (const Observation& o : dataset(name)) (seen[o.op]++ % 2 == first ? fitted : held).push_back(o);
  return hold_back(fitted, held, base);
}

TEST(RealData, SizesBetweenAreMetWithinFivePercentInTheMedian) {
  for (const int first : {0, 1}) {
    EXPECT_LT(every_other("a100_8_nccl", pod_with(*find_machine("dgx_a100"), "1x8"), first).median, 0.05);
    EXPECT_LT(every_other("a100_16_nccl", pod_with(*find_machine("dgx_a100"), "2x8"), first).median, 0.05);
    EXPECT_LT(every_other("h100_16_nccl", pod_with(*find_machine("dgx_h100"), "2x8"), first).median, 0.05);
    EXPECT_LT(every_other("b200_8_nccl", pod_with(*find_machine("dgx_h100"), "1x8"), first).median, 0.05);
    EXPECT_LT(every_other("a100_gemm", pod_with(*find_machine("dgx_a100"), "1x1"), first).median, 0.05);
    EXPECT_LT(every_other("tpu7x_hbm_copy", pod_with(*find_machine("tpu7x"), "1x1"), first).median, 0.05);
  }
}

TEST(RealData, NinetyFivePercentOfTheSizesBetweenAreWithinFifteenWhereOneProtocolRules) {
  for (const int first : {0, 1}) {
    EXPECT_LT(every_other("a100_16_nccl", pod_with(*find_machine("dgx_a100"), "2x8"), first).p95, 0.15);
    EXPECT_LT(every_other("a100_gemm", pod_with(*find_machine("dgx_a100"), "1x1"), first).p95, 0.15);
  }
}

/// Permutes and a third of the profile's collectives; the others are held back.
Held v5p_profile(std::size_t third, const CalibrateOptions& options) {
  std::vector<Observation> fitted = dataset("tpu_v5p_ppermute"), held;
  std::size_t row = 0;
  for (const Observation& o : dataset("tpu_v5p_2x2_maxtext"))
    if (o.op != ObservedOp::matmul && o.m == 0) (row++ % 3 == third ? fitted : held).push_back(o);
  return hold_back(fitted, held, pod_with(*find_machine("tpu_v5p"), "2x2x1", {{"ring", 4}}, true), options);
}

TEST(RealData, TheV5pProfileIsMetByOneDirectionAndByAnInjectionLimit) {
  CalibrateOptions one_direction, injection;
  const std::string one_way = "ring-one-way", direct = "direct";
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce})
    one_direction.predict.algorithm.at(static_cast<std::size_t>(kind)) = one_way;
  injection.predict.algorithm.at(static_cast<std::size_t>(CollectiveKind::all_to_all)) = direct;
  for (std::size_t third = 0; third < 3; ++third) {
    EXPECT_LT(v5p_profile(third, one_direction).median, 0.05) << third;
    EXPECT_LT(v5p_profile(third, injection).median, 0.05) << third;
  }
  const Held held = v5p_profile(0, injection);
  const CalibratedValue *link = value_of(held.calibration, "link.bandwidth"), *limit = value_of(held.calibration, "chip.injection_bandwidth");
  ASSERT_TRUE(link != nullptr && limit != nullptr) << testing::to_text(held.calibration);
  EXPECT_NEAR(link->value, 87e9, 3e9) << "as its permutes have it";
  EXPECT_NEAR(limit->value, 101e9, 3e9);
}

}  // namespace
}  // namespace podsim
