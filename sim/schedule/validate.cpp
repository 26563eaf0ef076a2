#include "sim/schedule/validate.hpp"

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/races.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_diagnostics = 20;

/// Keeps the first diagnostics of a sort and counts the rest; not `all`: there are more.
std::vector<Diagnostic> shortened(std::vector<Diagnostic> diagnostics, std::string_view sort, bool all = true) {
  if (diagnostics.size() <= most_diagnostics) return diagnostics;
  const std::size_t more = diagnostics.size() - most_diagnostics;
  diagnostics.resize(most_diagnostics);
  diagnostics.push_back({{}, fmt::format("... and {}{} more {}", all ? "" : "at least ", more, sort)});
  return diagnostics;
}

std::string place(const Schedule& schedule, DeviceId device) { return fmt::format("device {} ({})", device.value, schedule.mesh.name(device)); }

std::string activity_name(const Schedule& schedule, const Activity& activity) {
  const std::string name =
      fmt::format("task {} on {}", task_name(schedule.programs[activity.program], activity.task), place(schedule, activity.device));
  return activity.kind == Activity::Kind::work ? name : fmt::format("{} to {}", name, place(schedule, activity.receiver));
}

Diagnostic deadlock(const Schedule& schedule, const ActivityGraph& graph, const std::vector<std::uint32_t>& cycle, std::string_view how) {
  constexpr std::size_t most_named = 8;
  std::string text = fmt::format("deadlock{}: ", how);
  for (std::size_t i = 0; i < cycle.size() && i < most_named; ++i)
    text += fmt::format("{}{}", activity_name(schedule, graph.activities[cycle[i]]), " waits for ");
  text += cycle.size() > most_named ? fmt::format("{} more, which wait for the first", cycle.size() - most_named) : "the first";
  const Activity& first = graph.activities[cycle.front()];
  return {location_of(schedule.programs[first.program].tasks[first.task.index()].written_at), text};
}

/// Whether the edge's order holds on every device without the edge: `without` lacks it.
bool implied(const Schedule& schedule, const ActivityGraph& without, const Edge& edge, std::uint32_t program, TaskId task) {
  const auto order = topological_order(without, schedule, false).order;
  HappensBefore before{without, order};
  // What the edge makes wait, and what it waits for, per device: the activities of the two tasks there.
  struct Pieces {
    std::vector<Dependency> ends;
    std::vector<std::uint32_t> starts;
  };
  std::vector<Pieces> devices(static_cast<std::size_t>(schedule.mesh.devices()));
  for (std::uint32_t a = 0; a < without.activities.size(); ++a) {
    const Activity& activity = without.activities[a];
    const bool transfer = activity.kind == Activity::Kind::transfer;
    if (activity.program == program) {
      if (activity.task == edge.task && edge.done != Half::receive) devices[activity.device.index()].ends.push_back({a, false});
      if (activity.task == task && edge.gates != Half::receive) devices[activity.device.index()].starts.push_back(a);
    }
    if (transfer && activity.receiver_program == program) {
      if (activity.receiver_task == edge.task && edge.done != Half::send) devices[activity.receiver.index()].ends.push_back({a, true});
      if (activity.receiver_task == task && edge.gates != Half::send) devices[activity.receiver.index()].starts.push_back(a);
    }
  }
  for (const Pieces& pieces : devices)
    for (const Dependency& end : pieces.ends)
      for (const std::uint32_t start : pieces.starts)
        if (!before({end.activity, end.received, start})) return false;
  return true;
}

}  // namespace

std::vector<Diagnostic> Validation::all() const {
  std::vector<Diagnostic> everything;
  for (const auto* sort : {&shapes, &unmatched, &races, &deadlocks}) everything.insert(everything.end(), sort->begin(), sort->end());
  return everything;
}

Validation validate(const Schedule& lowered, Cancellation stop) {
  Validation result;
  result.shapes = shortened(check_shapes(lowered), "problems");
  if (!result.shapes.empty()) return result;
  const Unrolled unrolled = unroll(lowered);
  result.unmatched = shortened(unrolled.problems, "problems");
  if ((result.cancelled = stop.requested())) return result;
  const TopologicalOrder happens_before = topological_order(unrolled.graph, lowered, false);
  if (!happens_before.cycle.empty()) {
    result.deadlocks.push_back(deadlock(lowered, unrolled.graph, happens_before.cycle, ""));
    return result;
  }
  if (const auto with_core = topological_order(unrolled.graph, lowered, true); !with_core.cycle.empty())
    result.deadlocks.push_back(deadlock(lowered, unrolled.graph, with_core.cycle, " (core work runs in program order)"));
  if ((result.cancelled = stop.requested())) return result;
  Races races = find_races(lowered, unrolled.graph, happens_before.order, stop);
  result.races = shortened(std::move(races.found), "races", races.all);
  result.cancelled = stop.requested();
  return result;
}

Expected<std::vector<EdgeAudit>> audit_edges(const Schedule& lowered, Cancellation stop) {
  PODSIM_ASSERT(validate(lowered).ok());
  std::vector<EdgeAudit> audits;
  for (std::size_t p = 0; p < lowered.programs.size(); ++p)
    for (std::size_t t = 0; t < lowered.programs[p].tasks.size(); ++t)
      for (std::size_t e = 0; e < lowered.programs[p].tasks[t].after.size(); ++e) {
        if (stop.requested()) return cancelled_work();
        Schedule without = lowered;
        auto& after = without.programs[p].tasks[t].after;
        const Edge removed = after[e];
        after.erase(after.begin() + static_cast<std::ptrdiff_t>(e));
        EdgeAudit audit{p, TaskId{t}, e, EdgePurpose::implied, {}};
        const Unrolled unrolled = unroll(without);
        if (!implied(without, unrolled.graph, removed, static_cast<std::uint32_t>(p), TaskId{t})) {
          const Validation validation = validate(without);
          audit.purpose = validation.races.empty() ? EdgePurpose::timing : EdgePurpose::ordering;
          if (!validation.races.empty()) audit.race = validation.races.front();
        }
        audits.push_back(std::move(audit));
      }
  return audits;
}

}  // namespace podsim
