#include "sim/schedule/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/blame.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

constexpr std::string_view launch_word = " launch";  // behind the label of a Collective

/// Each edge once, where it occurs first.
void remove_repeated(std::vector<Edge>& edges) {
  std::set<std::tuple<int, Half, Half>> seen;
  std::erase_if(edges, [&](const Edge& edge) { return !seen.insert({edge.task.value, edge.done, edge.gates}).second; });
}

/// For each task that is a Collective, the first equal one of the program, and how often each first one occurs: slices in the same buffers are equal.
struct Repetitions {
  std::vector<std::size_t> first, count;

  explicit Repetitions(const Program& program) : first(program.tasks.size()), count(program.tasks.size(), 0) {
    constexpr std::size_t most = 8;  // a program may have thousands in the same buffers, none like another
    std::map<std::tuple<CollectiveKind, int, int>, std::vector<std::size_t>> different;
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      const auto* collective = std::get_if<Collective>(&program.tasks[t].op);
      if (collective == nullptr) continue;
      std::vector<std::size_t>& candidates = different[{collective->kind, collective->input.buffer.value, collective->output.buffer.value}];
      const auto equal = std::find_if(candidates.begin(), candidates.end(),
                                      [&](std::size_t candidate) { return std::get<Collective>(program.tasks[candidate].op) == *collective; });
      first[t] = equal == candidates.end() ? t : *equal;
      ++count[first[t]];
      if (equal == candidates.end() && candidates.size() < most) candidates.push_back(t);
    }
  }
};

/// Algorithms are written for sums; a maximum moves the same data. What a switch would add up is compared by the receiver.
void take_maximum(Expansion& expansion) {
  const auto replace_sum = [](Combine& combine) {
    if (combine == Combine::add) combine = Combine::maximum;
  };
  for (Task& step : expansion.tasks) {
    if (auto* shift = std::get_if<Shift>(&step.op)) replace_sum(shift->combine);
    if (auto* receive = std::get_if<Recv>(&step.op)) replace_sum(receive->combine);
    if (auto* local = std::get_if<Local>(&step.op); local != nullptr && (local->kind == LocalKind::add || local->kind == LocalKind::add_in_switch))
      local->kind = LocalKind::maximum;
  }
}

class ProgramLowering {
 public:
  ProgramLowering(const Schedule& schedule, const Program& program, const CollectiveChooser& chooser)
      : schedule_{schedule}, program_{program}, chooser_{chooser}, lowered_{schedule.mesh, program.devices}, repetitions_{program} {
    for (const Buffer& buffer : program.buffers) lowered_.add_buffer(buffer);
    ends_.reserve(program.tasks.size());
  }

  Expected<Program> run() {
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
      const Task& task = program_.tasks[t];
      if (const auto* collective = std::get_if<Collective>(&task.op)) {
        if (auto ok = expand(t, *collective); !ok)
          return blamed_on(location_of(task.written_at), in_context("task " + task_name(program_, TaskId{t}), ok.error()));
        continue;
      }
      Task kept = task;
      kept.after = renumber(task.after);
      ends_.push_back({Edge{lowered_.add(std::move(kept))}});
    }
    return std::move(lowered_).finish();
  }

 private:
  /// Edges of the original program as edges of the lowered one. ends_ holds, per original task, what waiting for it means now.
  std::vector<Edge> renumber(const std::vector<Edge>& edges) const {
    std::vector<Edge> renumbered;
    renumbered.reserve(edges.size());
    for (const Edge& edge : edges)
      for (const Edge& end : ends_[edge.task.index()]) renumbered.push_back({end.task, end.done == Half::both ? edge.done : end.done, edge.gates});
    if (renumbered.size() > 1) remove_repeated(renumbered);
    return renumbered;
  }

  /// The expansion of a Collective; what equal ones have in common is written once and copied.
  Expected<Expansion> expansion_of(std::size_t t, const Collective& collective) {
    const std::size_t first = repetitions_.first[t];
    const auto kept = kept_.find(first);
    if (kept != kept_.end()) {
      if (--repetitions_.count[first] > 0) return kept->second;
      Expansion last = std::move(kept->second);
      kept_.erase(kept);
      return last;
    }
    const auto algorithm = chooser_(schedule_, program_, collective);
    if (!algorithm) return algorithm.error();
    auto expansion = (*algorithm)(schedule_.mesh, program_, collective);
    if (expansion && collective.reduction == Reduction::maximum) take_maximum(*expansion);
    if (expansion && --repetitions_.count[first] > 0) kept_.emplace(first, *expansion);
    return expansion;
  }

  Status expand(std::size_t t, const Collective& collective) {
    const Task& task = program_.tasks[t];
    const int number = collectives_++;
    auto expansion = expansion_of(t, collective);
    if (!expansion) return expansion.error();
    const std::vector<Edge> before = renumber(task.after);
    if (expansion->tasks.empty()) {  // nothing to do: waiting for the Collective is waiting for what it waits for
      ends_.push_back(before);
      return success();
    }
    Origin origin{number, collective.kind, collective.axes.front(), bytes_of(program_, collective.input), own_block_of(program_, collective)};
    origin.in_switch = std::any_of(expansion->tasks.begin(), expansion->tasks.end(), [](const Task& step) {
      const auto* shift = std::get_if<Shift>(&step.op);
      return shift != nullptr && shift->in_switch != InSwitch::none;
    });
    for (Buffer& buffer : expansion->scratch) buffer.name = fmt::format("{} {}", buffer.name, number);

    // One device along the axes: nothing is launched, at most the own shard is put in its place.
    const bool one_device = std::all_of(collective.axes.begin(), collective.axes.end(), [](const AxisView& view) { return view.size == 1; });
    std::vector<Edge> start = before;
    if (!one_device) {
      Task launch{task.label + std::string{launch_word}, Local{LocalKind::launch, {}, {}, 1, Unit::dma}, before, task.where, origin, task.written_at};
      for (const AxisView& view : collective.axes)
        for (const Queued& queued : queues_[view.axis]) launch.after.insert(launch.after.end(), queued.ends.begin(), queued.ends.end());
      remove_repeated(launch.after);
      start = {Edge{lowered_.add(std::move(launch))}};
    }

    for (Task& step : expansion->tasks) {
      step.label = task.label + (step.label.empty() ? "" : " ") + step.label;
      step.origin = origin;
      step.written_at = task.written_at;
      step.recompute = task.recompute;
      if (const auto* shift = std::get_if<Shift>(&step.op)) step.origin->axis = shift->axis;
    }
    std::vector<Edge> ends = lowered_.append(*std::move(expansion), program_.buffers.size(), start, task.where);
    if (!one_device)
      for (const AxisView& view : collective.axes) enqueue(queues_[view.axis], task.where, ends);
    ends_.push_back(std::move(ends));
    return success();
  }

  /// The last tasks of a Collective, and its guard: on devices where that does not hold, those of an earlier one.
  struct Queued {
    Guard where;
    std::vector<Edge> ends;
  };
  static void enqueue(std::vector<Queued>& queue, const Guard& where, const std::vector<Edge>& ends) {
    std::erase_if(queue, [&](const Queued& queued) { return where.empty() || queued.where == where; });
    queue.push_back({where, ends});
  }

  const Schedule& schedule_;
  const Program& program_;
  const CollectiveChooser& chooser_;
  ProgramBuilder lowered_;
  std::vector<std::vector<Edge>> ends_;
  std::map<int, std::vector<Queued>> queues_;  // by mesh axis: its latest Collectives that may be present
  int collectives_ = 0;
  Repetitions repetitions_;                 // count: how often one is still to come
  std::map<std::size_t, Expansion> kept_;   // by the first of equal Collectives
};

}  // namespace

std::string_view label_of_collective(const Task& first) {
  const std::string_view label = first.label;
  return is_launch(first.op) ? label.substr(0, label.size() - launch_word.size()) : label;
}

Bytes own_block_of(const Program& program, const Collective& collective) {
  if (collective.input.buffer == collective.output.buffer) return {};
  std::int64_t devices = 1;
  for (const AxisView& view : collective.axes) devices *= view.size;
  const Bytes input = bytes_of(program, collective.input);
  switch (collective.kind) {
    case CollectiveKind::all_gather: return input;
    case CollectiveKind::all_reduce: {
      const std::int64_t elements = elements_of(collective.input), block = (elements + devices - 1) / devices;
      return elements == 0 ? Bytes{} : block * (input / elements);
    }
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all: return input / devices;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::permute: break;
  }
  return {};
}

Expected<Schedule> lower(const Schedule& schedule, const CollectiveChooser& chooser) {
  auto lowered = lower_with_calls(schedule, chooser);
  if (!lowered || !has_calls(*lowered)) return lowered;
  return inline_calls(*lowered);
}

Expected<Schedule> lower_with_calls(const Schedule& schedule, const CollectiveChooser& chooser) {
  if (const auto problems = check_shapes(schedule); !problems.empty()) return problems.front();
  Schedule lowered{schedule.name, schedule.mesh, {}, schedule.computes, {}, schedule.source};
  for (const Function& function : schedule.functions) {
    Program body = function.body;
    body.devices = every_device(schedule.mesh);  // of its callers, in whole groups
    auto result = ProgramLowering{schedule, body, chooser}.run();
    if (!result) return in_context("function " + quoted(function.name), result.error());
    result->devices = {};
    lowered.functions.push_back({function.name, function.parameters, *std::move(result)});
  }
  lowered.programs.reserve(schedule.programs.size());
  for (const Program& program : schedule.programs) {
    auto result = ProgramLowering{schedule, program, chooser}.run();
    if (!result) return result.error();
    lowered.programs.push_back(std::move(*result));
  }
  return lowered;
}

}  // namespace podsim
