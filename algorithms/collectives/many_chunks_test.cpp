// Collectives in many chunks along several axes: as many edges as tasks, not as their square.
#include "algorithms/collectives/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::lowered_collective;
using testing::small_system;
using testing::SmallSystem;
using testing::seconds_of;

TEST(ManyChunks, HaveAsManyEdgesAsTasksAndTakeTheTimeOfTheirPhases) {
  constexpr int chunks = 300;
  constexpr Bytes bytes{4 * 1200};
  const ChunkRule rule = in_chunks(chunks);
  const SmallSystem pod = small_system(ideal_machine(), {2, 3}, false);
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    SCOPED_TRACE(name_of(kind));
    const auto lowered = [&](const std::vector<std::string>& axes) {
      return lowered_collective(pod, kind, axes, bytes, "line", {0, {}}, rule);
    };
    const Schedule both = lowered({"row", "col"});
    EXPECT_LT(testing::edges_of(both), 8 * both.programs[0].tasks.size());
    EXPECT_EQ(to_text(validate(both).all()), "");
    const auto checked = check(both, {});
    ASSERT_TRUE(checked) << to_text(checked.error());
    EXPECT_TRUE(checked->ok);
    const double apart = seconds_of(pod, lowered({"row"}), "des") + seconds_of(pod, lowered({"col"}), "des");
    EXPECT_NEAR(seconds_of(pod, both, "des"), apart, 1e-6 * apart);
  }
}

}  // namespace
}  // namespace podsim
