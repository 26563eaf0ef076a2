// Modules that are rewritten (combined_collectives.hpp, prefetched_gathers.hpp) compute the same numbers.
#include <gtest/gtest.h>

#include "workloads/hlo/combined_collectives.hpp"
#include "workloads/hlo/prefetched_gathers.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/hlo_values/test_run.hpp"

namespace podsim {
namespace {

TEST(RewrittenModules, ComputeTheSameNumbers) {
  const auto module = read_hlo_file(PODSIM_SOURCE_DIR "/tests/golden/input/layers.hlo");
  ASSERT_TRUE(module) << to_text(module.error());
  std::vector<HloArrays> parameters;
  for (int device = 0; device < 4; ++device) {
    HloArray given = test::counted("f32[64,64]"), weights = test::counted("f32[3,16,64]");
    for (double& value : given.reals) value = static_cast<double>((static_cast<int>(value) * 7 + device) % 5 - 2);
    for (double& value : weights.reals) value = static_cast<double>((static_cast<int>(value) * 11 + 3 * device) % 7 - 3);
    parameters.push_back({given, weights});
  }
  const auto plain = test::run(*module, parameters);
  ASSERT_TRUE(plain) << to_text(plain.error());
  const CombinedModule combined = combine_collectives(*module, usual_combine_threshold);
  const PrefetchedModule prefetched = prefetch_gathers(*module);
  EXPECT_EQ(combined.after, 1);
  EXPECT_EQ(prefetched.gathers, 1);
  for (const HloModule& rewritten : {combined.module, prefetched.module, combine_collectives(prefetched.module, usual_combine_threshold).module}) {
    const auto results = test::run(rewritten, parameters);
    ASSERT_TRUE(results) << to_text(results.error());
    EXPECT_EQ(*results, *plain);
  }
}

}  // namespace
}  // namespace podsim
