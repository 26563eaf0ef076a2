#include "workloads/differences/find_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/units.hpp"
#include "workloads/differences/module_work.hpp"

namespace podsim {

namespace {

using Part = ModuleTask::Part;

/// Tasks that are one difference, by the text order of their first one.
class TaskGroups {
 public:
  void add(const HloInstruction* instruction, const std::string& name, std::size_t task) {
    const auto [found, is_new] = numbers_.try_emplace(name, groups_.size());
    if (is_new) groups_.push_back({instruction, name, {}});
    groups_[found->second].tasks.insert(task);
  }
  struct Group {
    const HloInstruction* instruction;
    std::string name;
    std::set<std::size_t> tasks;
  };
  [[nodiscard]] const std::vector<Group>& all() const { return groups_; }

 private:
  std::vector<Group> groups_;
  std::map<std::string, std::size_t> numbers_;
};

Picoseconds time_of(const FlatModule& flat, const std::set<std::size_t>& tasks) {
  Picoseconds time;
  for (const std::size_t t : tasks) time += flat.tasks[t].end - flat.tasks[t].begin;
  return time;
}

double link_bytes_of(const FlatModule& flat, const std::set<std::size_t>& tasks) {
  double bytes = 0;
  for (const std::size_t t : tasks) bytes += flat.tasks[t].link_bytes;
  return bytes;
}

/// Of a task that belongs to no instruction its label.
std::string name_of_task(const FlatModule& flat, std::size_t t) {
  const HloInstruction* instruction = flat.tasks[t].instruction;
  return instruction != nullptr ? instruction->name : flat.program().tasks[t].label;
}

bool is_between_devices(const Op& op) { return std::holds_alternative<Shift>(op) || std::holds_alternative<Collective>(op); }

bool reduces(const Op& op) {
  const auto* collective = std::get_if<Collective>(&op);
  if (collective == nullptr) return false;
  return collective->kind == CollectiveKind::reduce_scatter || collective->kind == CollectiveKind::all_reduce ||
         collective->kind == CollectiveKind::reduce;
}

std::string sentence_of(std::string what, const std::string& where) { return where.empty() ? what : what + " " + where; }

/// Transfers and work that nothing uses.
void add_unused(const FlatModule& flat, const std::vector<bool>& unused, std::vector<DifferenceCandidate>& candidates) {
  TaskGroups groups;
  for (std::size_t t = 0; t < flat.tasks.size(); ++t) {
    const Part part = flat.tasks[t].part;
    if (unused[t] && (part == Part::transfer || part == Part::work)) groups.add(flat.tasks[t].instruction, name_of_task(flat, t), t);
  }
  for (const auto& group : groups.all()) {
    const double bytes = link_bytes_of(flat, group.tasks);
    std::string text = sentence_of(fmt::format("nothing uses the result of {}", group.name), where_text(flat, group.tasks));
    if (bytes > 0) text += fmt::format(": {} of link traffic for nothing", bytes_text(bytes));
    candidates.push_back({{DifferenceKind::superfluous, group.name, time_of(flat, group.tasks), {}, std::move(text)}, {group.tasks, {}, {}}});
  }
}

/// The transfers between devices that a wait waits for, through the copies behind them.
std::set<std::size_t> awaited(const FlatModule& flat, std::size_t wait) {
  std::set<std::size_t> transfers, seen;
  std::vector<std::size_t> open{wait};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (const Edge& edge : flat.program().tasks[at].after) {
      const std::size_t from = edge.task.index();
      if (flat.tasks[from].part == Part::place && seen.insert(from).second) open.push_back(from);
      if (flat.tasks[from].part == Part::transfer && is_between_devices(flat.program().tasks[from].op)) transfers.insert(from);
    }
  }
  return transfers;
}

/// Collectives with no work of the core between their start and their end.
void add_not_overlapped(const FlatModule& flat, const std::vector<bool>& unused, std::vector<DifferenceCandidate>& candidates) {
  std::vector<Picoseconds> core_before(flat.tasks.size() + 1);
  for (std::size_t t = 0; t < flat.tasks.size(); ++t) {
    core_before[t + 1] = core_before[t];
    if (flat.tasks[t].part == Part::work) core_before[t + 1] += flat.tasks[t].end - flat.tasks[t].begin;
  }
  TaskGroups waited, overlapped;
  for (std::size_t w = 0; w < flat.tasks.size(); ++w) {
    if (flat.tasks[w].part != Part::wait) continue;
    for (const std::size_t t : awaited(flat, w)) {
      if (flat.tasks[t].instruction == nullptr || unused[t]) continue;
      const bool alone = core_before[w] == core_before[t];
      (alone ? waited : overlapped).add(flat.tasks[t].instruction, flat.tasks[t].instruction->name, t);
    }
  }
  for (const auto& group : waited.all()) {
    const ModuleEdit::Beside how{reduces(flat.program().tasks[*group.tasks.begin()].op)};
    ModuleEdit edit;
    for (const std::size_t t : group.tasks) edit.beside[t] = how;
    for (std::size_t t = 0; t < flat.tasks.size(); ++t)
      if (flat.tasks[t].instruction == group.instruction && flat.tasks[t].part == Part::place) edit.beside[t] = how;
    std::string text = sentence_of(fmt::format("the core waits for all of {} and does nothing beside it", group.name), where_text(flat, group.tasks));
    if (!group.instruction->attributes->async_collective_name.empty()) text += "; the compiler wanted it asynchronous";
    candidates.push_back({{DifferenceKind::not_overlapped, group.name, time_of(flat, group.tasks), {}, std::move(text)}, std::move(edit), true});
  }
}

/// Work beside the products.
void add_work(const HloModule& module, const FlatModule& flat, const std::vector<bool>& unused, std::vector<DifferenceCandidate>& candidates) {
  TaskGroups groups;
  for (std::size_t t = 0; t < flat.tasks.size(); ++t) {
    const ModuleTask& task = flat.tasks[t];
    const Op& op = flat.program().tasks[t].op;
    const bool is_copy_beside = task.part == Part::transfer && !is_between_devices(op);
    if (unused[t] || is_product(op) || !(task.part == Part::work || is_copy_beside) || !(task.end > task.begin)) continue;
    groups.add(task.instruction, name_of_task(flat, t) + (task.makes_operand ? " operand" : ""), t);
  }
  for (const auto& group : groups.all()) {
    const std::string where = where_text(flat, group.tasks);
    const bool makes_operand = flat.tasks[*group.tasks.begin()].makes_operand;
    const WorkKind work = group.instruction == nullptr || makes_operand ? WorkKind::arithmetic : work_kind_of(module, *group.instruction);
    DifferenceKind kind = DifferenceKind::superfluous;
    std::string what = fmt::format("{} is work that the product does not need", group.name);
    if (work == WorkKind::copy)
      kind = DifferenceKind::copy, what = fmt::format("{} copies in memory what could be read or written where it is", group.name);
    if (work == WorkKind::layout) kind = DifferenceKind::layout, what = fmt::format("{} changes the layout of its operand", group.name);
    candidates.push_back({{kind, group.name, time_of(flat, group.tasks), {}, sentence_of(std::move(what), where)}, {group.tasks, {}, {}}});
  }
}

Carried carried_of(const Sources& sources, const std::vector<bool>& left, const std::vector<bool>& right) {
  if (sources.product) return Carried::result;
  const auto any = [&](const std::vector<bool>& of) {
    for (std::size_t i = 0; i < sources.inputs.size() && i < of.size(); ++i)
      if (sources.inputs[i] && of[i]) return true;
    return false;
  };
  return any(left) ? Carried::left : any(right) ? Carried::right : Carried::other;
}

/// Which inputs of a program are the tensor `name`.
std::vector<bool> inputs_named(const Program& program, const DataFlow& flow, const std::string& name) {
  std::vector<bool> named;
  for (const BufferId input : flow.inputs) named.push_back(!name.empty() && program.buffers[input.index()].tensor == name);
  return named;
}

}  // namespace

std::string where_text(const FlatModule& flat, const std::set<std::size_t>& tasks) {
  std::set<std::pair<std::string, std::int64_t>> trips;
  for (const std::size_t t : tasks) trips.insert({flat.tasks[t].loop, flat.tasks[t].trip});
  const auto& [loop, trip] = *trips.begin();
  if (trips.size() == 1 && !loop.empty()) {
    std::int64_t count = 0;
    for (const ModuleTask& task : flat.tasks)
      if (task.loop == loop) count = std::max(count, task.trip + 1);
    return fmt::format("in trip {} of {} of {}", trip + 1, count, loop);
  }
  return tasks.size() > 1 ? fmt::format("({} times)", tasks.size()) : "";
}

std::vector<DifferenceCandidate> candidates_of(const HloModule& module, const FlatModule& flat) {
  std::vector<DifferenceCandidate> candidates;
  const std::vector<bool> unused = unused_tasks(flat.program());
  add_unused(flat, unused, candidates);
  add_not_overlapped(flat, unused, candidates);
  add_work(module, flat, unused, candidates);
  return candidates;
}

std::vector<Carried> carried_by_module(const FlatModule& flat, const DataFlow& flow, const ModuleProduct& product) {
  const auto left = inputs_named(flat.program(), flow, product.left), right = inputs_named(flat.program(), flow, product.right);
  std::vector<Carried> carried;
  for (const std::vector<Sources>& reads : flow.reads) carried.push_back(reads.empty() ? Carried::other : carried_of(reads.front(), left, right));
  return carried;
}

CarriedBytes carried_bytes(const Run& ours) {
  const Program& program = ours.lowered->programs.front();
  const DataFlow flow = data_flow(program);
  const auto left = inputs_named(program, flow, "X"), right = inputs_named(program, flow, "W");
  const std::vector<double> bytes = link_bytes_by_task(ours);
  CarriedBytes carried{};
  for (std::size_t t = 0; t < bytes.size(); ++t)
    if (bytes[t] > 0)
      carried[static_cast<std::size_t>(flow.reads[t].empty() ? Carried::other : carried_of(flow.reads[t].front(), left, right))] += bytes[t];
  return carried;
}

std::vector<DifferenceCandidate> excess_transfers(const FlatModule& flat, const std::vector<Carried>& carried, const CarriedBytes& ours) {
  const std::vector<bool> unused = unused_tasks(flat.program());
  CarriedBytes moved{};
  double all = 0, all_ours = 0;
  TaskGroups groups;
  for (std::size_t t = 0; t < flat.tasks.size(); ++t) {
    if (unused[t] || flat.tasks[t].link_bytes == 0 || flat.tasks[t].instruction == nullptr) continue;
    moved[static_cast<std::size_t>(carried[t])] += flat.tasks[t].link_bytes;
    all += flat.tasks[t].link_bytes;
    groups.add(flat.tasks[t].instruction, flat.tasks[t].instruction->name, t);
  }
  for (const double bytes : ours) all_ours += bytes;
  std::vector<DifferenceCandidate> candidates;
  if (all <= all_ours) return candidates;
  constexpr std::array<const char*, carried_count> names{"the left operand", "the right operand", "the result", "what is neither operand nor result"};
  for (const auto& group : groups.all()) {
    const auto what = static_cast<std::size_t>(carried[*group.tasks.begin()]);
    if (moved[what] <= ours[what]) continue;
    const double share = ours[what] > 0 ? ours[what] / moved[what] : all_ours / all;
    ModuleEdit edit;
    if (share == 0)
      edit.dropped = group.tasks;
    else
      for (const std::size_t t : group.tasks) edit.scaled[t] = share;
    std::string text = sentence_of(fmt::format("{} moves {}", group.name, names[what]), where_text(flat, group.tasks));
    if (share == 0)
      text += fmt::format(" with {} of link traffic, where our schedule moves nothing", bytes_text(link_bytes_of(flat, group.tasks)));
    else if (ours[what] > 0)
      text += fmt::format("; all transfers of it take {} of link traffic, {:.3g} times ours", bytes_text(moved[what]), 1 / share);
    else
      text += fmt::format("; our schedule moves other arrays, and all of the module's link traffic is {:.3g} times ours", 1 / share);
    candidates.push_back({{DifferenceKind::superfluous, group.name, time_of(flat, group.tasks), {}, std::move(text)}, std::move(edit)});
  }
  return candidates;
}

}  // namespace podsim
