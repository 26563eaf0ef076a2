#include "workloads/differences/core_order.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/schedule/program_builder.hpp"
#include "workloads/differences/data_flow.hpp"

namespace podsim {

namespace {

using Numbers = std::vector<std::size_t>;

void sort_unique(Numbers& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

bool has_phase(const ModuleTask& task, HloPhase phase) { return task.instruction != nullptr && task.instruction->phase == phase; }

/// A wait for an asynchronous operation. One that blocks (is_sync) waits at its start.
bool is_done(const ModuleTask& task) { return task.part == ModuleTask::Part::wait && has_phase(task, HloPhase::done); }
/// Runs on the core, or holds it.
bool holds_core(const ModuleTask& task) { return task.part == ModuleTask::Part::work || task.part == ModuleTask::Part::wait; }

/// What every task really waits for: its edges, but of transfers and what puts their operands in place no edges to work of the core that they have no
/// data from, and those of a -done in place of the -done.
std::vector<Numbers> dependencies(const FlatModule& flat) {
  const std::vector<Task>& tasks = flat.program().tasks;
  const std::vector<Numbers> data = data_dependencies(flat.program());
  std::vector<Numbers> before(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const bool beside = flat.tasks[t].part == ModuleTask::Part::transfer || flat.tasks[t].part == ModuleTask::Part::place;
    for (const Edge& edge : tasks[t].after) {
      const std::size_t from = edge.task.index();
      if (beside && holds_core(flat.tasks[from]) && !std::binary_search(data[t].begin(), data[t].end(), from)) continue;
      if (is_done(flat.tasks[from]))
        before[t].insert(before[t].end(), before[from].begin(), before[from].end());
      else
        before[t].push_back(from);
    }
    sort_unique(before[t]);
  }
  return before;
}

class ListSchedule {
 public:
  explicit ListSchedule(const FlatModule& flat) : flat_{flat}, before_{dependencies(flat)}, new_edges_(flat.tasks.size()), end_(flat.tasks.size()) {}

  /// The tasks in their new order, without -dones.
  Numbers run() {
    std::size_t first = 0;
    while (first < flat_.tasks.size()) {
      if (is_boundary(first)) {
        emit_boundary(first++);
        continue;
      }
      std::size_t last = first;
      while (last < flat_.tasks.size() && !is_boundary(last)) ++last;
      segment(first, last);
      first = last;
    }
    return std::move(order_);
  }
  [[nodiscard]] const Numbers& edges_of(std::size_t task) const { return new_edges_[task]; }
  [[nodiscard]] std::optional<std::size_t> first_moved() const { return first_moved_; }

 private:
  [[nodiscard]] bool is_boundary(std::size_t t) const { return flat_.tasks[t].part == ModuleTask::Part::boundary; }
  [[nodiscard]] Picoseconds duration(std::size_t t) const { return flat_.tasks[t].end - flat_.tasks[t].begin; }

  /// Runs on the core, or holds it until its wait: a plain collective.
  [[nodiscard]] bool takes_turns(std::size_t t) const {
    const ModuleTask& task = flat_.tasks[t];
    if (holds_core(task)) return !is_done(task);
    const Op& op = flat_.program().tasks[t].op;
    const bool between_devices = std::holds_alternative<Shift>(op) || std::holds_alternative<Collective>(op);
    return between_devices && (!has_phase(task, HloPhase::start) || task.instruction->attributes->is_sync);
  }

  void emit(std::size_t t) {
    new_edges_[t] = before_[t];
    order_.push_back(t);
  }

  void emit_boundary(std::size_t t) {
    Picoseconds at;
    for (const std::size_t from : before_[t]) at = std::max(at, end_[from]);
    at = std::max(at, core_free_);
    emit(t);
    if (last_core_) new_edges_[t].push_back(*last_core_);
    end_[t] = core_free_ = at;
    last_boundary_ = last_core_ = t;
  }

  void segment(std::size_t first, std::size_t last) {
    waiting_.assign(last - first, 0);
    users_.assign(last - first, {});
    first_ = first;
    for (std::size_t t = first; t < last; ++t) {
      if (is_done(flat_.tasks[t])) continue;
      for (const std::size_t from : before_[t]) {
        if (from < first) continue;
        ++waiting_[t - first];
        users_[from - first].push_back(t);
      }
      if (waiting_[t - first] == 0 && last_boundary_) before_[t].push_back(*last_boundary_);
    }
    for (std::size_t t = first; t < last; ++t)
      if (waiting_[t - first] == 0 && !is_done(flat_.tasks[t])) became_ready(t);
    std::set<std::size_t> left;  // work of the core that is not placed yet
    for (std::size_t t = first; t < last; ++t)
      if (takes_turns(t) && duration(t) > Picoseconds{}) left.insert(t);
    while (!now_.empty() || !later_.empty()) {
      while (!later_.empty() && (later_.begin()->first <= core_free_ || now_.empty())) {
        core_free_ = std::max(core_free_, later_.begin()->first);
        now_.insert(later_.begin()->second);
        later_.erase(later_.begin());
      }
      const std::size_t t = *now_.begin();
      now_.erase(now_.begin());
      if (!first_moved_ && left.contains(t) && *left.begin() != t) first_moved_ = t;
      left.erase(t);
      place_on_core(t);
    }
  }

  /// Everything that it waits for has ended, or will end at a known time.
  void became_ready(std::size_t t) {
    Picoseconds ready;
    for (const std::size_t from : before_[t]) ready = std::max(ready, end_[from]);
    if (takes_turns(t)) {
      later_.insert({ready, t});
      return;
    }
    end_[t] = ready + duration(t);
    emit(t);
    release(t);
  }

  void place_on_core(std::size_t t) {
    emit(t);
    const bool runs_beside = flat_.tasks[t].part == ModuleTask::Part::transfer;
    if (last_core_ && (runs_beside || !holds_core(flat_.tasks[*last_core_]))) new_edges_[t].push_back(*last_core_);
    core_free_ += duration(t);
    end_[t] = core_free_;
    last_core_ = t;
    release(t);
  }

  void release(std::size_t t) {
    for (const std::size_t user : users_[t - first_])
      if (--waiting_[user - first_] == 0) became_ready(user);
  }

  const FlatModule& flat_;
  std::vector<Numbers> before_, new_edges_;
  std::vector<Picoseconds> end_;
  Numbers order_;
  Picoseconds core_free_;
  std::optional<std::size_t> last_core_, last_boundary_, first_moved_;
  // Of the segment:
  std::size_t first_ = 0;
  std::vector<int> waiting_;
  std::vector<Numbers> users_;
  std::set<std::size_t> now_;                            // ready
  std::set<std::pair<Picoseconds, std::size_t>> later_;  // by the time at which they are
};

/// The -done at which the core waits longest, and how long.
std::pair<std::string, Picoseconds> longest_wait(const FlatModule& flat) {
  std::map<std::string, Picoseconds> waits;
  Picoseconds core_until;
  for (const ModuleTask& task : flat.tasks) {
    if (!holds_core(task)) continue;
    if (is_done(task) && task.end > core_until) waits[task.instruction->name] += task.end - core_until;
    core_until = std::max(core_until, task.end);
  }
  std::pair<std::string, Picoseconds> longest;
  for (const auto& [name, time] : waits)
    if (time > longest.second) longest = {name, time};
  return longest;
}

}  // namespace

std::optional<ReorderedModule> reordered(const FlatModule& flat) {
  auto [waits_at, waited] = longest_wait(flat);
  if (waits_at.empty()) return std::nullopt;
  ListSchedule list{flat};
  const Numbers order = list.run();
  if (!list.first_moved()) return std::nullopt;
  ReorderedModule made{flat.problem.schedule, std::move(waits_at), waited, {}};
  const HloInstruction* first = flat.tasks[*list.first_moved()].instruction;
  made.first = first != nullptr ? first->name : flat.program().tasks[*list.first_moved()].label;
  std::vector<Task> tasks = std::move(made.schedule.programs.front().tasks);
  std::vector<Task>& kept = made.schedule.programs.front().tasks;
  kept.clear();
  std::vector<std::size_t> now(tasks.size());
  for (const std::size_t t : order) {
    Numbers from = list.edges_of(t);
    sort_unique(from);
    tasks[t].after.clear();
    for (const std::size_t f : from) tasks[t].after.push_back(Edge{TaskId{now[f]}});
    now[t] = kept.size();
    kept.push_back(std::move(tasks[t]));
  }
  return made;
}

}  // namespace podsim
