#include "sim/schedule/calls.hpp"

#include <algorithm>
#include <utility>

#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

bool on_core(const Op& op) {
  const auto* local = std::get_if<Local>(&op);
  return std::holds_alternative<Matmul>(op) || std::holds_alternative<Call>(op) || (local != nullptr && local->unit == Unit::core);
}

/// One more than the largest number of a lowered Collective.
int collectives_in(const std::vector<Task>& tasks) {
  int count = 0;
  for (const Task& task : tasks)
    if (task.origin) count = std::max(count, task.origin->collective + 1);
  return count;
}

constexpr std::size_t ends = 2;  // around what a function does: its begin and its end

std::size_t tasks_in_place_of(const Schedule& schedule, const Task& task, bool chosen) {
  return chosen ? ends + schedule.functions[static_cast<std::size_t>(std::get<Call>(task.op).function)].body.tasks.size() : 1;
}

std::size_t scratch_of(const Function& function) { return function.body.buffers.size() - static_cast<std::size_t>(function.parameters); }

class Inlining {
 public:
  /// `chosen`: of the program's tasks.
  Inlining(const Schedule& schedule, Program program, const std::vector<bool>& chosen)
      : functions_{schedule.functions}, program_{std::move(program)}, chosen_{chosen}, collectives_{collectives_in(program_.tasks)}, inlined_{schedule.mesh, program_.devices} {
    std::size_t tasks = 0, buffers = program_.buffers.size();
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
      tasks += tasks_in_place_of(schedule, program_.tasks[t], chosen_[t]);
      if (chosen_[t]) buffers += scratch_of(function_of(std::get<Call>(program_.tasks[t].op)));
    }
    inlined_.reserve(tasks, buffers);
    for (Buffer& buffer : program_.buffers) inlined_.add_buffer(std::move(buffer));
    now_.reserve(program_.tasks.size());
  }

  Program run() {
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
      Task& task = program_.tasks[t];
      if (chosen_[t]) {
        expand(task, std::get<Call>(task.op));
        continue;
      }
      Task kept = std::move(task);
      for (Edge& edge : kept.after) edge.task = now_[edge.task.index()];
      const bool core = on_core(kept.op), always = kept.where.empty();
      if (core && behind_call_) kept.after = join(std::move(kept.after), {*behind_call_});
      now_.push_back(inlined_.add(std::move(kept)));
      if (!core) continue;
      // What is behind an unguarded core task is behind all before it. A guarded one may be absent.
      if (always) core_.clear(), behind_call_.reset();
      core_.push_back(Edge{now_.back()});
    }
    return std::move(inlined_).finish();
  }

 private:
  void expand(const Task& task, const Call& call) {
    const Function& function = function_of(call);
    Edges start = task.after;
    for (Edge& edge : start) edge.task = now_[edge.task.index()];
    start = join(std::move(start), core_);
    const TaskId begin = inlined_.add(Task{task.label + " begin", Local{LocalKind::begin_call, {}, {}}, std::move(start), {}, {}, task.written_at});

    const std::size_t parameters = static_cast<std::size_t>(function.parameters), outer = inlined_.buffer_count();
    for (std::size_t b = parameters; b < function.body.buffers.size(); ++b) {
      Buffer scratch = function.body.buffers[b];
      scratch.name = task.label + " " + scratch.name;
      inlined_.add_buffer(std::move(scratch));
    }
    const std::vector<Task>& body = function.body.tasks;
    const std::size_t first = inlined_.task_count();
    for (const Task& original : body) {
      Task step = original;
      const bool waits = std::any_of(step.after.begin(), step.after.end(), [&](const Edge& edge) {
        return edge.gates == Half::both && body[edge.task.index()].where.empty();
      });
      for (Edge& edge : step.after) edge.task = TaskId{first + edge.task.index()};
      if (!waits || !step.where.empty()) step.after.push_back(Edge{begin});
      step.label = task.label + " " + step.label;
      if (step.written_at.file == nullptr) step.written_at = task.written_at;
      step.recompute = step.recompute || task.recompute;
      if (step.origin) step.origin->collective += collectives_;
      for (Region* region : regions_of(step.op)) {
        const std::size_t b = region->buffer.index();
        region->buffer = b < parameters ? call.arguments[b] : BufferId{outer + b - parameters};
      }
      inlined_.add(std::move(step));
    }
    collectives_ += collectives_in(body);
    Edges last;
    for (const std::size_t t : last_tasks({body, {}})) last.push_back(Edge{TaskId{first + t}});
    if (last.empty()) last.push_back(Edge{begin});
    const Edge end{inlined_.add(Task{task.label + " end", Local{LocalKind::end_call, {}, {}}, std::move(last), {}, {}, task.written_at})};
    now_.push_back(end.task);
    core_ = {end};
    behind_call_ = end;
  }

  [[nodiscard]] const Function& function_of(const Call& call) const { return functions_[static_cast<std::size_t>(call.function)]; }

  const std::vector<Function>& functions_;
  Program program_;  // what is kept of it moves to the result
  const std::vector<bool>& chosen_;
  int collectives_;
  ProgramBuilder inlined_;
  std::vector<TaskId> now_;          // of each task: the task that stands for it; of a Call its end
  Edges core_;                       // the core tasks of which one is the last to end before the next
  std::optional<Edge> behind_call_;  // the end of the latest inlined Call, until an unguarded core task waits for it
};

ChosenCalls all_calls(const Schedule& schedule) {
  ChosenCalls all;
  for (const Program& program : schedule.programs) {
    std::vector<bool>& of_program = all.emplace_back();
    for (const Task& task : program.tasks) of_program.push_back(std::holds_alternative<Call>(task.op));
  }
  return all;
}

}  // namespace

bool has_calls(const Schedule& schedule) {
  for (std::size_t f = 0; f < schedule.functions.size(); ++f)
    if (caller_of(schedule, f)) return true;
  return false;
}

std::optional<std::size_t> caller_of(const Schedule& schedule, std::size_t function) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p)
    for (const Task& task : schedule.programs[p].tasks)
      if (const auto* call = std::get_if<Call>(&task.op); call != nullptr && static_cast<std::size_t>(call->function) == function) return p;
  return std::nullopt;
}

Schedule inline_calls(Schedule schedule) {
  const ChosenCalls chosen = all_calls(schedule);
  schedule = inline_calls(std::move(schedule), chosen);
  schedule.functions.clear();
  return schedule;
}

Schedule inline_calls(Schedule schedule, const ChosenCalls& chosen) {
  for (std::size_t p = 0; p < schedule.programs.size(); ++p) schedule.programs[p] = Inlining{schedule, std::move(schedule.programs[p]), chosen[p]}.run();
  return schedule;
}

double tasks_written_out(const Schedule& schedule) { return tasks_written_out(schedule, all_calls(schedule)); }

double tasks_written_out(const Schedule& schedule, const ChosenCalls& chosen) {
  double tasks = 0;
  for (std::size_t p = 0; p < schedule.programs.size(); ++p)
    for (std::size_t t = 0; t < schedule.programs[p].tasks.size(); ++t)
      tasks += static_cast<double>(tasks_in_place_of(schedule, schedule.programs[p].tasks[t], chosen[p][t]));
  return tasks;
}

std::vector<bool> written_parameters(const Function& function) {
  std::vector<bool> written(static_cast<std::size_t>(function.parameters), false);
  const auto write = [&](const Region& region) {
    if (region.buffer.index() < written.size()) written[region.buffer.index()] = true;
  };
  for (const Task& task : function.body.tasks) {
    if (const auto* matmul = std::get_if<Matmul>(&task.op)) write(matmul->out);
    if (const auto* shift = std::get_if<Shift>(&task.op)) write(shift->target);
    if (const auto* collective = std::get_if<Collective>(&task.op)) write(collective->output);
    if (const auto* local = std::get_if<Local>(&task.op))
      for (const Region& region : local->writes) write(region);
  }
  return written;
}

Schedule schedule_of_call(const Schedule& schedule, std::size_t program, std::size_t function) {
  const Function& called = schedule.functions[function];
  Program alone = called.body;
  alone.devices = schedule.programs[program].devices;
  return {called.name, schedule.mesh, {std::move(alone)}, {}};
}

}  // namespace podsim
