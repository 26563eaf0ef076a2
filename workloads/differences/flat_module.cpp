#include "workloads/differences/flat_module.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/invariant.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/program_builder.hpp"
#include "workloads/differences/data_flow.hpp"

namespace podsim {

namespace {

bool is_core(const Op& op) {
  const auto* local = std::get_if<Local>(&op);
  return std::holds_alternative<Matmul>(op) || (local != nullptr && local->unit == Unit::core);
}

/// A task of the program, or of trip `trip` of a loop.
ModuleTask described(const HloTask& task, const Op& op, const HloTask* trip) {
  ModuleTask described;
  if (task.role == HloTask::Role::place || (task.role == HloTask::Role::wait && !is_core(op)))
    described.part = ModuleTask::Part::place;
  else
    described.part = task.role == HloTask::Role::wait ? ModuleTask::Part::wait : is_core(op) ? ModuleTask::Part::work : ModuleTask::Part::transfer;
  described.instruction = task.instruction;
  described.makes_operand = task.role == HloTask::Role::operand;
  if (trip != nullptr) described.loop = trip->instruction->name, described.trip = trip->trip;
  return described;
}

/// What the tasks of a module's program stand for once its calls are written out (inline_calls()): of each call its begin, the tasks of its function, its end.
std::vector<ModuleTask> written_out(const Schedule& schedule, const HloTasks& tasks) {
  std::vector<ModuleTask> all;
  const std::vector<Task>& program = schedule.programs.front().tasks;
  for (std::size_t t = 0; t < program.size(); ++t) {
    const HloTask& task = tasks.program[t];
    const auto* call = std::get_if<Call>(&program[t].op);
    if (call == nullptr) {
      all.push_back(described(task, program[t].op, nullptr));
      continue;
    }
    ModuleTask boundary;
    boundary.part = ModuleTask::Part::boundary;
    boundary.loop = task.instruction->name, boundary.trip = task.trip;
    const auto function = static_cast<std::size_t>(call->function);
    const std::vector<Task>& body = schedule.functions[function].body.tasks;
    all.push_back(boundary);
    for (std::size_t b = 0; b < body.size(); ++b) all.push_back(described(tasks.functions[function][b], body[b].op, &task));
    all.push_back(boundary);
  }
  return all;
}

/// For each task of the first program before lowering, its tasks behind it: [first, last).
std::vector<std::pair<std::size_t, std::size_t>> lowered_ranges(const std::vector<Task>& tasks, const std::vector<Task>& lowered) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  std::size_t at = 0;
  int collective = 0;
  for (const Task& task : tasks) {
    const std::size_t first = at;
    if (!std::holds_alternative<Collective>(task.op)) {
      ++at;
    } else {
      while (at < lowered.size() && lowered[at].origin && lowered[at].origin->collective == collective) ++at;
      ++collective;
    }
    ranges.emplace_back(first, at);
  }
  PODSIM_ASSERT(at == lowered.size());
  return ranges;
}

/// Begin and end of the activities of a task on a node; nullopt: it has none there.
std::optional<std::pair<Picoseconds, Picoseconds>> times_of(const Run& run, std::uint32_t node, std::size_t task) {
  const Deployment& deployment = run.model.deployment;
  const auto [program, local] = deployment.places[node];
  const Participants& who = deployment.who(program, task);
  std::optional<std::pair<Picoseconds, Picoseconds>> times;
  const auto add = [&](const ActivityTimes& activity) {
    if (!times) times = {activity.start, activity.received};
    times = {std::min(times->first, activity.start), std::max(times->second, activity.received)};
  };
  if (who.does(local)) add(run.timeline.at(deployment.activity(program, task, local)));
  if (who.receives(local)) {
    const auto [sender, at] = deployment.places[who.from[local]];
    add(run.timeline.at(deployment.activity(sender, who.from_task.empty() ? task : who.from_task[local], at)));
  }
  return times;
}

}  // namespace

std::vector<double> link_bytes_by_task(const Run& run) {
  const Model& model = run.model;
  std::vector<double> bytes(model.costs.front().size(), 0);
  const auto& nodes = model.deployment.programs.front().devices;
  for (std::size_t t = 0; t < bytes.size(); ++t) {
    const TaskCost& cost = model.costs.front()[t];
    if (cost.kind != TaskCost::Kind::transfer) continue;
    const Participants& who = model.deployment.who(0, t);
    for (std::size_t local = 0; local < nodes.size(); ++local)
      if (who.does(local)) bytes[t] += static_cast<double>(cost.payload.count()) * model.path(cost, local).hops * model.devices_in[nodes[local]];
  }
  return bytes;
}

Expected<Picoseconds> makespan_of(const Expected<Run>& run) {
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  return run->metrics.makespan;
}

Expected<FlatModule> flat_module(const System& system, const HloSpec& spec, const RunOptions& options) {
  auto problem = make_problem(system, spec);
  if (!problem) return problem.error();
  std::vector<ModuleTask> described = written_out(problem->schedule, std::exchange(problem->hlo_tasks, {}));
  problem->schedule = inline_calls(problem->schedule);
  auto run = simulate(system, *problem, options);
  if (!run) return run.error();
  if (run->timeline.interrupted) return cancelled_work();
  FlatModule flat{system, *std::move(problem), std::move(described), run->metrics.makespan, run->row.result};
  const std::vector<Task>& tasks = flat.program().tasks;
  const auto ranges = lowered_ranges(tasks, run->lowered->programs.front().tasks);
  const std::vector<double> link_bytes = link_bytes_by_task(*run);
  const std::uint32_t node = run->model.node_of[run->metrics.busiest.index()];
  PODSIM_ASSERT(flat.tasks.size() == tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    ModuleTask& one = flat.tasks[t];
    std::optional<std::pair<Picoseconds, Picoseconds>> times;
    for (std::size_t l = ranges[t].first; l < ranges[t].second; ++l) {
      one.link_bytes += link_bytes[l];
      const auto of_step = times_of(*run, node, l);
      if (of_step) times = !times ? of_step : std::pair{std::min(times->first, of_step->first), std::max(times->second, of_step->second)};
    }
    if (times) one.begin = times->first, one.end = times->second;
  }
  return flat;
}

void ModuleEdit::add(const ModuleEdit& other) {
  dropped.insert(other.dropped.begin(), other.dropped.end());
  beside.insert(other.beside.begin(), other.beside.end());
  scaled.insert(other.scaled.begin(), other.scaled.end());
}

namespace {

/// Writes the tasks that are left, with the edges that they have now.
class Editing {
 public:
  Editing(const FlatModule& module, const ModuleEdit& edit) : module_{module}, edit_{edit} {
    if (!edit.beside.empty()) data_ = data_dependencies(module.program());
  }

  Schedule run() {
    Schedule schedule = module_.problem.schedule;
    std::vector<Task> tasks = std::move(schedule.programs.front().tasks);
    std::vector<Task>& kept = schedule.programs.front().tasks;
    kept.clear();
    std::optional<std::size_t> begin;  // of the trip that is being written
    std::vector<std::size_t> to_end;   // transfers beside the core that its end waits for
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const bool boundary = module_.tasks[t].part == ModuleTask::Part::boundary;
      Edges after = edges_of(tasks[t], t);
      if (boundary) {
        for (const std::size_t transfer : to_end) append(after, now_[transfer]);
        to_end.clear();
        begin = begin ? std::nullopt : std::optional{t};
      } else if (begin && after.empty()) {
        after = now_[*begin];
      }
      if (!boundary && begin && edit_.beside.contains(t)) to_end.push_back(t);
      make_unique(after);
      const bool core = is_core(tasks[t].op);
      starts_.push_back(core ? after : Edges{});
      if (core && last_core_) starts_.back().push_back(*last_core_);
      if (is_dropped(t)) {
        now_.push_back(std::move(after));
        continue;
      }
      tasks[t].after = std::move(after);
      if (const auto share = edit_.scaled.find(t); share != edit_.scaled.end()) scale(schedule.programs.front(), tasks[t].op, share->second);
      now_.push_back({Edge{TaskId{kept.size()}}});
      if (core) last_core_ = now_.back().front();
      kept.push_back(std::move(tasks[t]));
    }
    return schedule;
  }

 private:
  static void append(Edges& edges, const Edges& more) { edges.insert(edges.end(), more.begin(), more.end()); }
  static void make_unique(Edges& edges) {
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return std::tuple{a.task, a.done, a.gates} < std::tuple{b.task, b.done, b.gates};
    });
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  }

  /// Whether all that a wait of the core waits for runs beside it.
  [[nodiscard]] bool waits_beside(std::size_t t) const {
    if (module_.tasks[t].part != ModuleTask::Part::wait) return false;
    const std::vector<Edge>& after = module_.program().tasks[t].after;
    return !after.empty() && std::all_of(after.begin(), after.end(), [&](const Edge& edge) { return edit_.beside.contains(edge.task.index()); });
  }
  [[nodiscard]] bool is_dropped(std::size_t t) const { return edit_.dropped.contains(t) || waits_beside(t); }

  /// The edges of a task to what is left, without those that the edit cuts.
  [[nodiscard]] Edges edges_of(const Task& task, std::size_t t) const {
    Edges edges;
    const bool core = is_core(task.op);
    const auto beside = edit_.beside.find(t);
    for (const Edge& edge : task.after) {
      const std::size_t from = edge.task.index();
      const auto from_beside = edit_.beside.find(from);
      if (core && from_beside != edit_.beside.end() && !from_beside->second.reduces) continue;
      if (beside != edit_.beside.end() && is_core(module_.program().tasks[from].op)) {
        if (!std::binary_search(data_[t].begin(), data_[t].end(), from)) continue;
        if (beside->second.reduces) {
          append(edges, starts_[from]);
          continue;
        }
      }
      for (const Edge& now : now_[from]) edges.push_back({now.task, now.done == Half::both ? edge.done : now.done, edge.gates});
    }
    return edges;
  }

  /// Gives a transfer smaller buffers of one dimension.
  static void scale(Program& program, Op& op, double share) {
    const auto part = [&](const Region& like, std::int64_t elements) {
      const Buffer& buffer = program.buffers[like.buffer.index()];
      Buffer smaller{"part of " + buffer.name, {elements}, buffer.dtype, Role::scratch, {}, {}};
      smaller.on_chip = buffer.on_chip;
      program.buffers.push_back(std::move(smaller));
      return whole_buffer(BufferId{program.buffers.size() - 1}, {elements});
    };
    if (auto* shift = std::get_if<Shift>(&op)) {
      const auto elements = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(static_cast<double>(elements_of(shift->source)) * share)));
      shift->source = part(shift->source, elements);
      shift->target = part(shift->target, elements);
    }
    if (auto* collective = std::get_if<Collective>(&op)) {
      std::int64_t devices = 1;
      for (const AxisView& axis : collective->axes) devices *= axis.size;
      const std::int64_t in = elements_of(collective->input), out = elements_of(collective->output), least = std::min(in, out);
      const std::int64_t block = in == out ? devices : 1;  // of which every device has a part
      const auto wanted = static_cast<std::int64_t>(std::ceil(static_cast<double>(least) * share));
      const std::int64_t elements = std::max<std::int64_t>(1, (wanted + block - 1) / block) * block;
      collective->input = part(collective->input, elements * (in / least));
      collective->output = part(collective->output, elements * (out / least));
      collective->dim = collective->split_dim = 0;
    }
  }

  const FlatModule& module_;
  const ModuleEdit& edit_;
  std::vector<std::vector<std::size_t>> data_;
  std::vector<Edges> now_;     // of each task: what waiting for it means now
  std::vector<Edges> starts_;  // of each task of the core: what its own start waits for, the core's turn too
  std::optional<Edge> last_core_;
};

}  // namespace

Schedule edited(const FlatModule& module, const ModuleEdit& edit) { return Editing{module, edit}.run(); }

Expected<Picoseconds> simulate_edited(const FlatModule& module, const ModuleEdit& edit, const RunOptions& options) {
  Problem changed = module.problem;
  changed.schedule = edited(module, edit);
  return makespan_of(simulate(module.system, changed, options));
}

}  // namespace podsim
