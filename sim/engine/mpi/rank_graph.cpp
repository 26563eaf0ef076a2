#include "sim/engine/mpi/rank_graph.hpp"

#include <algorithm>

#include "sim/base/invariant.hpp"
#include "sim/schedule/happens_before.hpp"

namespace podsim {

std::vector<RankTask> tasks_of_rank(const ActivityGraph& graph, const Schedule& lowered, DeviceId device) {
  using Part = RankTask::Part;
  std::vector<RankTask> tasks;
  for (std::uint32_t a = 0; a < graph.activities.size(); ++a) {
    const Activity& activity = graph.activities[a];
    const bool transfer = activity.kind == Activity::Kind::transfer;
    if (activity.device == device) tasks.push_back({transfer ? Part::send : Part::work, on_core(lowered, activity), a, 0, {}});
    if (transfer && activity.receiver == device) tasks.push_back({Part::receive, false, a, 0, {}});
  }
  const auto position = [&](const RankTask& task) {
    const Activity& activity = graph.activities[task.activity];
    return (task.part == Part::receive ? activity.receiver_task : activity.task).index();
  };
  std::stable_sort(tasks.begin(), tasks.end(), [&](const RankTask& a, const RankTask& b) { return position(a) < position(b); });

  // Where the end (or `sent`) and the `received` of each activity stand in the list.
  std::vector<std::uint32_t> ends(2 * graph.activities.size(), no_device);
  for (std::uint32_t t = 0; t < tasks.size(); ++t) ends[2 * std::size_t{tasks[t].activity} + (tasks[t].part == Part::receive ? 1 : 0)] = t;
  for (std::uint32_t t = 0; t < tasks.size(); ++t) {
    const Gate gate = tasks[t].part == Part::work ? Gate::start : tasks[t].part == Part::send ? Gate::send : Gate::receive;
    for (const Dependency& wait : graph.waits_for(tasks[t].activity, gate)) {
      const std::uint32_t on = ends[2 * std::size_t{wait.activity} + (wait.received ? 1 : 0)];
      PODSIM_ASSERT(on != no_device && "a wait names what its own device does");
      tasks[on].followers.push_back(t);
      ++tasks[t].waits;
    }
  }
  return tasks;
}

}  // namespace podsim
