#include "sim/engine/stuck.hpp"

#include <fmt/format.h>

#include "sim/schedule/text.hpp"

namespace podsim {

Diagnostic stuck(const Schedule& lowered, const CostedGraph& costs, const std::vector<bool>& finished) {
  constexpr int most_named = 4;
  const ActivityGraph& graph = costs.graph;
  const auto name = [&](std::uint32_t a) {
    const Activity& activity = graph.activities[a];
    return fmt::format("task {} on device {} ({})", task_name(lowered.programs[activity.program], activity.task), activity.device.value,
                       lowered.mesh.name(activity.device));
  };
  const auto first_wait = [&](std::uint32_t a) -> std::string {
    for (const Gate gate : {Gate::start, Gate::receive})
      for (const Dependency& dependency : graph.waits_for(a, gate))
        if (!finished[dependency.activity]) return name(dependency.activity);
    for (const std::uint32_t before : graph.program_order(graph.activities[a].device)) {
      if (before == a) break;
      if (costs.on_core[before] && !finished[before]) return "the core, which is kept by " + name(before);
    }
    return "its partner";
  };
  std::string text = "deadlock: ";
  std::size_t left = 0;
  for (std::uint32_t a = 0; a < finished.size(); ++a) {
    if (finished[a]) continue;
    if (left++ < most_named) text += fmt::format("{}{} waits for {}", left > 1 ? "; " : "", name(a), first_wait(a));
  }
  return {{}, fmt::format("{}; {} of {} task instances never ran", text, left, finished.size())};
}

}  // namespace podsim
