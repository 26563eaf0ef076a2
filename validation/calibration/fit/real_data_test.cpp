// What calibration makes of the TPU v5p profile. (How well it predicts what was held back, of every dataset: validation/validate.)
#include <gtest/gtest.h>

#include "topologies/machines.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"
#include "validation/validate/datasets.hpp"

namespace podsim {
namespace {

TEST(RealData, TheV5pProfileNamesAnInjectionLimitWhereRingsGoBothWays) {
  auto observations = find_observations("tpu_v5p_ppermute"), profile = find_observations("tpu_v5p_2x2_maxtext");
  ASSERT_TRUE(observations && profile);
  std::size_t row = 0;
  for (const Observation& o : *profile)
    if (o.op != ObservedOp::matmul && row++ % 3 == 0) observations->push_back(o);
  CalibrateOptions options;
  options.predict.algorithm.at(static_cast<std::size_t>(CollectiveKind::all_to_all)) = "direct";
  const auto found = calibrate(*observations, testing::pod_with(*find_machine("tpu_v5p"), "2x2x1", {{"ring", 4}}, true), options);
  ASSERT_TRUE(found) << to_text(found.error());
  const CalibratedValue *link = testing::value_of(*found, "link.bandwidth"), *limit = testing::value_of(*found, "chip.injection_bandwidth");
  ASSERT_TRUE(link != nullptr && limit != nullptr) << testing::to_text(*found);
  EXPECT_NEAR(link->value, 87e9, 3e9) << "as its permutes have it";
  EXPECT_NEAR(limit->value, 101e9, 3e9);
}

}  // namespace
}  // namespace podsim
