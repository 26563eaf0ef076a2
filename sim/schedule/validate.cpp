#include "sim/schedule/validate.hpp"

#include <fmt/format.h>

#include <cassert>
#include <functional>

#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_diagnostics = 20;

/// Keeps the first diagnostics of a sort and counts the rest.
std::vector<Diagnostic> shortened(std::vector<Diagnostic> diagnostics, std::string_view sort) {
  if (diagnostics.size() <= most_diagnostics) return diagnostics;
  const std::size_t more = diagnostics.size() - most_diagnostics;
  diagnostics.resize(most_diagnostics);
  diagnostics.push_back({{}, fmt::format("... and {} more {}", more, sort)});
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
  return {{}, text};
}

/// Finds pairs of accesses to overlapping regions, one of them a write, that nothing orders: also two results of one task.
class RaceFinder {
 public:
  RaceFinder(const Schedule& schedule, const ActivityGraph& graph, const std::vector<std::uint32_t>& order)
      : schedule_{schedule}, graph_{graph}, order_{order}, before_{graph, order} {
    for (const Program& program : schedule.programs) {
      std::vector<bool> written(program.buffers.size(), false);
      for (const Task& task : program.tasks)
        visit_accesses(task.op, [&](const Region& region, bool write, Side) {
          if (write) written[region.buffer.index()] = true;
        });
      written_.push_back(std::move(written));
    }
    for (int d = 0; d < schedule.mesh.devices(); ++d) {
      const auto p = program_of(schedule, DeviceId{d});
      accesses_.emplace_back(p ? schedule.programs[*p].buffers.size() : 0);
    }
  }

  std::vector<Diagnostic> run() {
    for (const std::uint32_t a : order_) {
      const Activity& activity = graph_.activities[a];
      visit_accesses(op(activity.program, activity.task), [&](const Region& region, bool write, Side side) {
        if (side != Side::target) add(a, activity.device, activity.task, activity.program, region, write, false);
      });
      if (activity.kind == Activity::Kind::transfer)
        visit_accesses(op(activity.receiver_program, activity.receiver_task), [&](const Region& region, bool write, Side side) {
          if (side == Side::target) add(a, activity.receiver, activity.receiver_task, activity.receiver_program, region, write, true);
        });
    }
    return std::move(races_);
  }

 private:
  enum class Side { here, source, target };
  struct Access {
    std::uint32_t activity;
    TaskId task;
    bool write, received;
    Box box;
  };

  const Op& op(std::uint32_t program, TaskId task) const { return schedule_.programs[program].tasks[task.index()].op; }

  static void visit_accesses(const Op& op, const std::function<void(const Region&, bool write, Side)>& visit) {
    std::visit(Overloaded{
                   [&](const Matmul& m) { visit(m.left, false, Side::here), visit(m.right, false, Side::here), visit(m.out, true, Side::here); },
                   [&](const Local& l) {
                     for (const Region& region : l.reads) visit(region, false, Side::here);
                     for (const Region& region : l.writes) visit(region, true, Side::here);
                   },
                   [&](const Shift& s) { visit(s.source, false, Side::source), visit(s.target, true, Side::target); },
                   [&](const Send& s) { visit(s.source, false, Side::source); },
                   [&](const Recv& r) { visit(r.target, true, Side::target); },
                   [](const Collective&) {},
               },
               op);
  }

  void add(std::uint32_t activity, DeviceId device, TaskId task, std::uint32_t program, const Region& region, bool write, bool received) {
    if (!written_[program][region.buffer.index()]) return;  // inputs: only ever read
    Access access{activity, task, write, received, evaluate(region, schedule_.mesh.coordinates(device))};
    std::vector<Access>& earlier = accesses_[device.index()][region.buffer.index()];
    std::erase_if(earlier, [&](const Access& other) {
      if (!(write || other.write) || !overlap(access.box, other.box)) return false;
      if (other.activity == activity) {  // a task reads before it writes
        if (write && other.write) report(device, program, other, access, region);
        return false;
      }
      if (!before_(other.activity, other.received, activity)) {
        report(device, program, other, access, region);
        return false;
      }
      // Whoever conflicts with the covered access conflicts with this one too, and is ordered through it.
      return write && contains(access.box, other.box);
    });
    earlier.push_back(std::move(access));
  }

  void report(DeviceId device, std::uint32_t program, const Access& a, const Access& b, const Region& region) {
    if (races_.size() > 1000) return;
    const Program& p = schedule_.programs[program];
    const auto verb = [](const Access& access) { return access.write ? "writes" : "reads"; };
    races_.push_back({{},
                      fmt::format("race on {}: task {} {} and task {} {} overlapping parts of buffer {}, and neither happens before the other",
                                  place(schedule_, device), task_name(p, a.task), verb(a), task_name(p, b.task), verb(b),
                                  quoted(p.buffers[region.buffer.index()].name))});
  }

  const Schedule& schedule_;
  const ActivityGraph& graph_;
  const std::vector<std::uint32_t>& order_;
  HappensBefore before_;
  std::vector<std::vector<bool>> written_;                  // [program][buffer]
  std::vector<std::vector<std::vector<Access>>> accesses_;  // [device][buffer]
  std::vector<Diagnostic> races_;
};

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
      if (activity.task == edge.task && edge.done != Half::second) devices[activity.device.index()].ends.push_back({a, false});
      if (activity.task == task && edge.gates != Half::second) devices[activity.device.index()].starts.push_back(a);
    }
    if (transfer && activity.receiver_program == program) {
      if (activity.receiver_task == edge.task && edge.done != Half::first) devices[activity.receiver.index()].ends.push_back({a, true});
      if (activity.receiver_task == task && edge.gates != Half::first) devices[activity.receiver.index()].starts.push_back(a);
    }
  }
  for (const Pieces& pieces : devices)
    for (const Dependency& end : pieces.ends)
      for (const std::uint32_t start : pieces.starts)
        if (!before(end.activity, end.received, start)) return false;
  return true;
}

}  // namespace

std::vector<Diagnostic> Validation::all() const {
  std::vector<Diagnostic> everything;
  for (const auto* sort : {&shapes, &unmatched, &races, &deadlocks}) everything.insert(everything.end(), sort->begin(), sort->end());
  return everything;
}

Validation validate(const Schedule& lowered) {
  Validation result;
  result.shapes = shortened(check_shapes(lowered), "problems");
  if (!result.shapes.empty()) return result;
  const Unrolled unrolled = unroll(lowered);
  result.unmatched = shortened(unrolled.problems, "problems");
  const TopologicalOrder happens_before = topological_order(unrolled.graph, lowered, false);
  if (!happens_before.cycle.empty()) {
    result.deadlocks.push_back(deadlock(lowered, unrolled.graph, happens_before.cycle, ""));
    return result;
  }
  if (const auto with_core = topological_order(unrolled.graph, lowered, true); !with_core.cycle.empty())
    result.deadlocks.push_back(deadlock(lowered, unrolled.graph, with_core.cycle, " (core work runs in program order)"));
  result.races = shortened(RaceFinder{lowered, unrolled.graph, happens_before.order}.run(), "races");
  return result;
}

std::vector<EdgeAudit> audit_edges(const Schedule& lowered) {
  assert(validate(lowered).ok());
  std::vector<EdgeAudit> audits;
  for (std::size_t p = 0; p < lowered.programs.size(); ++p)
    for (std::size_t t = 0; t < lowered.programs[p].tasks.size(); ++t)
      for (std::size_t e = 0; e < lowered.programs[p].tasks[t].after.size(); ++e) {
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
