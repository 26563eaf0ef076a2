#include <fmt/format.h>

#include "algorithms/collectives/blocks.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

Expected<Expansion> rings(const Schedule& schedule, const Program& program, const Collective& collective, bool both_ways) {
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (!schedule.mesh.wraps(*axis))
    return Diagnostic{{}, fmt::format("a ring needs an axis that wraps, {} is open; `line` is the algorithm for open axes", schedule.mesh.name(*axis))};
  auto workspace = open_workspace(program, collective, *axis);
  if (!workspace) return workspace.error();
  const Blocks& blocks = workspace->blocks;
  const bool gathers = collective.kind == CollectiveKind::all_gather;
  const std::vector<Part> parts = both_ways && axis->size > 2 ? blocks.halves() : std::vector<Part>{blocks.whole()};

  std::vector<Task>& tasks = workspace->expansion.tasks;
  std::vector<std::vector<Edge>> after(parts.size(), workspace->after_start);
  for (int step = 0; step + 1 < axis->size; ++step)
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const int sign = p == 0 ? +1 : -1;
      const int sent = gathers ? -sign * step : -sign * (step + 1);  // block, relative to the own coordinate; its successor receives one further
      Shift shift{*axis, sign, blocks.block(own(*axis, sent), parts[p]), blocks.block(own(*axis, sent - sign), parts[p]),
                  gathers ? Combine::replace : Combine::add, {}};
      tasks.push_back({fmt::format("{}{}", sign > 0 ? '+' : '-', step), std::move(shift), after[p], {}, {}});
      after[p] = {Edge{TaskId{tasks.size() - 1}}};
    }
  std::vector<Edge> last;
  for (const auto& edges : after) last.insert(last.end(), edges.begin(), edges.end());
  close_workspace(*workspace, collective, *axis, last);
  return std::move(workspace->expansion);
}

}  // namespace

Expected<Expansion> ring_one_way(const Schedule& schedule, const Program& program, const Collective& collective) {
  return rings(schedule, program, collective, false);
}

Expected<Expansion> ring(const Schedule& schedule, const Program& program, const Collective& collective) {
  return rings(schedule, program, collective, true);
}

}  // namespace podsim
