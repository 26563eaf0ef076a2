// What waits for a Collective's launch: everything of it, on each device. A slot that the Collective may only overwrite once its edges allow
// it is safe only then.
#include <map>

#include "algorithms/collectives/testing.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

/// Of each Collective and device, the launch; every other activity of the Collective must come after it, a transfer at both of its ends.
std::vector<std::string> early_starters(const Schedule& lowered) {
  const ActivityGraph graph = unroll(lowered).graph;
  const std::vector<std::uint32_t> order = topological_order(graph, lowered, false).order;
  HappensBefore before{graph, order};
  std::map<std::pair<int, DeviceId>, std::uint32_t> launches;
  std::vector<std::string> early;
  for (std::uint32_t a = 0; a < graph.activities.size(); ++a) {
    const Activity& activity = graph.activities[a];
    const Task& task = lowered.programs[activity.program].tasks[activity.task.index()];
    if (!task.origin) continue;
    if (const auto* local = std::get_if<Local>(&task.op); local && local->kind == LocalKind::launch) {
      launches[{task.origin->collective, activity.device}] = a;
      continue;
    }
    for (const DeviceId device : {activity.device, activity.receiver}) {
      const auto launch = launches.find({task.origin->collective, device});
      if (launch == launches.end() || !before({launch->second, false, a}))
        early.push_back("task " + task_name(lowered.programs[activity.program], activity.task) + " from device " +
                        std::to_string(activity.device.value) + " before the launch on device " + std::to_string(device.value));
    }
  }
  return early;
}

TEST(Launch, NothingOfACollectiveStartsBeforeItOnEitherSide) {
  int cases = 0;
  for (const std::vector<int>& extents : std::vector<std::vector<int>>{{2}, {3}, {4}, {5}, {8}, {2, 3}, {4, 2}, {2, 2, 2}})
    for (const bool wraps : {true, false}) {
      const SmallSystem pod = small_system(ideal_machine(), extents, wraps);
      std::vector<std::string> axes;
      int group = 1;
      for (const MeshAxis& axis : pod.mesh.axes()) {
        axes.push_back(axis.name);
        group *= axis.size;
        for (int kind = 0; kind < collective_kind_count; ++kind)
          for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
            for (const std::int64_t root : {0, group - 1}) {
              const CollectiveDetails details{root, shift_pairs(group, 1)};
              const auto schedule = testing::try_collective(pod, static_cast<CollectiveKind>(kind), axes, Bytes{std::int64_t{4} * 6 * group},
                                                            entry.name, details, in_chunks(3));
              if (!schedule) continue;  // it does not apply
              const auto early = early_starters(*schedule);
              ASSERT_TRUE(early.empty()) << entry.name << " " << name_of(static_cast<CollectiveKind>(kind)) << " on " << to_text(pod.mesh)
                                         << (wraps ? "" : " (open)") << ": " << early.front() << "\n"
                                         << to_text(*schedule);
              ++cases;
            }
      }
    }
  EXPECT_GT(cases, 300);
}

}  // namespace
}  // namespace podsim
