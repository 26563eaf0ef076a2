#include "algorithms/mutation/mutants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "algorithms/mutation/edits.hpp"
#include "sim/base/rng.hpp"

namespace podsim::mutation {

namespace {

class Mutator {
 public:
  Mutator(const Schedule& base, std::uint64_t seed)
      : base_{base}, rng_{seed, stream_of(base.name) + static_cast<std::uint64_t>(base.mesh.devices())} {}

  struct Kind {
    std::string_view name;
    bool (Mutator::*apply)();
  };
  Mutant make(std::span<const Kind> kinds) {
    for (;;) {
      schedule_ = base_;
      what_.clear();
      const Kind& kind = kinds[rng_.below(kinds.size())];
      if ((this->*kind.apply)() && schedule_ != base_) return {std::move(schedule_), fmt::format("{} {}", kind.name, what_)};
    }
  }

  static std::span<const Kind> every_kind();
  static std::span<const Kind> of_sums();

 private:
  Program& program() { return schedule_.programs.front(); }
  std::vector<Task>& tasks() { return program().tasks; }
  Task& task(std::size_t t) { return tasks()[t]; }
  const Mesh& mesh() const { return schedule_.mesh; }
  std::int64_t sign() { return rng_.below(2) == 0 ? 1 : -1; }
  template <class List>
  auto& one_of(List&& list) {
    return list[rng_.below(list.size())];
  }
  Region& any_region(std::size_t t) {
    const std::vector<Region*> regions = regions_by_use(task(t).op).all;
    return *one_of(regions);
  }

  // ---- Choosing -----------------------------------------------------------------------------------------------------------------------------

  template <class Predicate>
  std::size_t pick(Predicate predicate) {
    std::vector<std::size_t> fitting;
    for (std::size_t t = 0; t < tasks().size(); ++t)
      if (predicate(task(t))) fitting.push_back(t);
    if (fitting.empty()) return none;
    const std::size_t t = one_of(fitting);
    note(t);
    return t;
  }
  template <class T>
  std::size_t pick() {
    return pick([](const Task& task) { return std::holds_alternative<T>(task.op); });
  }
  static bool moves_data(const Task& task) { return !is_launch(task); }
  void note(std::size_t t) { what_ += fmt::format("[task {} \"{}\"]", t, task(t).label); }

  /// A device that runs the task; -1: none.
  int device_of(std::size_t t) {
    const std::vector<int> devices = devices_of(schedule_, t);
    return devices.empty() ? -1 : one_of(devices);
  }
  /// From here on the task of one device, every other time.
  std::size_t maybe_isolate(std::size_t t) {
    const int device = rng_.below(2) == 0 ? device_of(t) : -1;
    return device < 0 ? t : isolated(t, device);
  }
  std::size_t isolated(std::size_t t, int device) {
    what_ += fmt::format(" on device {} only", device);
    return isolate(schedule_, t, device);
  }

  // ---- Mistakes -----------------------------------------------------------------------------------------------------------------------------

  static void flip(Combine& combine) { combine = combine == Combine::add ? Combine::replace : Combine::add; }

  bool flip_combine() {
    std::size_t t = pick([](const Task& task) { return std::holds_alternative<Shift>(task.op) || std::holds_alternative<Recv>(task.op); });
    if (t == none) return false;
    t = maybe_isolate(t);
    if (auto* shift = std::get_if<Shift>(&task(t).op)) return flip(shift->combine), true;
    return flip(std::get<Recv>(task(t).op).combine), true;
  }

  bool flip_accumulate() {
    std::size_t t = pick<Matmul>();
    if (t == none) return false;
    t = maybe_isolate(t);
    auto& matmul = std::get<Matmul>(task(t).op);
    matmul.accumulate = !matmul.accumulate;
    return true;
  }

  void nudge(Range& range, std::int64_t extent) {
    Affine& index = range.index;
    switch (rng_.below(6)) {
      case 0: range.offset += sign() * range.length; return;
      case 1: range.offset += sign(); return;
      case 2: index.constant += sign(); return;
      case 3: range.offset = static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(extent - range.length) + 1)); return;
      case 4:
        if (!index.terms.empty()) one_of(index.terms).add += sign();
        return;
      default:
        if (!index.terms.empty()) index.terms.erase(index.terms.begin() + static_cast<std::ptrdiff_t>(rng_.below(index.terms.size())));
    }
  }

  bool move_region() {
    std::size_t t = pick(moves_data);
    if (t == none) return false;
    t = maybe_isolate(t);
    Region& region = any_region(t);
    const std::size_t dim = rng_.below(region.dims.size());
    nudge(region.dims[dim], program().buffers[region.buffer.index()].extents[dim]);
    what_ += fmt::format(" dimension {} of buffer {}", dim, region.buffer.value);
    return fits(schedule_, t, region);
  }

  bool take_other_buffer() {
    std::size_t t = pick(moves_data);
    if (t == none) return false;
    t = maybe_isolate(t);
    Region& region = any_region(t);
    region.buffer = BufferId{static_cast<std::size_t>(rng_.below(program().buffers.size()))};
    what_ += fmt::format(" buffer {}", region.buffer.value);
    return fits(schedule_, t, region);
  }

  /// Another task's region in place of the own.
  bool take_other_region() {
    std::size_t t = pick(moves_data);
    const std::size_t from = pick(moves_data);
    if (t == none || t == from) return false;
    const Region taken = any_region(from);
    t = maybe_isolate(t);
    Region& region = any_region(t);
    const bool grouped = std::holds_alternative<Matmul>(task(t).op);
    if (elements_of(region) != elements_of(taken) || (grouped && region.dims.size() != taken.dims.size())) return false;
    for (std::size_t i = 0; grouped && i < region.dims.size(); ++i)
      if (region.dims[i].length != taken.dims[i].length) return false;
    region = taken;
    return fits(schedule_, t, region);
  }

  /// Two tasks of one kind exchange what they read, what they write, or both.
  bool swap_regions() {
    const std::size_t a = pick(moves_data);
    if (a == none) return false;
    const std::size_t b = pick([&](const Task& other) { return other.op.index() == task(a).op.index() && is_sum(other) == is_sum(task(a)); });
    if (a == b) return false;
    const Regions left = regions_by_use(task(a).op), right = regions_by_use(task(b).op);
    if (left.all.size() != right.all.size()) return false;
    const auto way = rng_.below(3);
    for (std::size_t i = 0; i < left.all.size(); ++i)
      if (way == 0 || (way == 1) == (i < left.reads)) std::swap(*left.all[i], *right.all[i]);
    for (const Region* region : left.all)
      if (!fits(schedule_, a, *region)) return false;
    for (const Region* region : right.all)
      if (!fits(schedule_, b, *region)) return false;
    return true;
  }

  bool swap_reads() {
    std::size_t t = pick([](const Task& task) {
      const auto* local = std::get_if<Local>(&task.op);
      return std::holds_alternative<Matmul>(task.op) || (local && local->reads.size() > 1);
    });
    if (t == none) return false;
    t = maybe_isolate(t);
    if (auto* matmul = std::get_if<Matmul>(&task(t).op)) {
      switch (rng_.below(3)) {
        case 0: matmul->transpose_left = !matmul->transpose_left; break;
        case 1: matmul->transpose_right = !matmul->transpose_right; break;
        default: std::swap(matmul->left, matmul->right);
      }
      return true;
    }
    auto& local = std::get<Local>(task(t).op);
    const std::size_t kept = rng_.below(2);
    if (rng_.below(2) == 0) {  // one summand twice, or alone
      local.reads[1 - kept] = local.reads[kept];
    } else {
      local = {LocalKind::copy, {local.reads[kept]}, local.writes, 1, local.unit};
    }
    return true;
  }

  /// A product over its own operand; a copy or sum of all but one element of something, to one element further on.
  bool write_over_operand() {
    const std::size_t t = pick(
        [](const Task& task) { return std::holds_alternative<Matmul>(task.op) || (std::holds_alternative<Local>(task.op) && !is_launch(task)); });
    if (t == none || device_of(t) < 0) return false;
    if (auto* matmul = std::get_if<Matmul>(&task(t).op)) {
      const Region operand = rng_.below(2) == 0 ? matmul->left : matmul->right;
      if (elements_of(operand) != elements_of(matmul->out)) return false;
      matmul->out = operand;
      return true;
    }
    auto& local = std::get<Local>(task(t).op);
    Region& read = local.reads.front();
    const std::size_t dim = rng_.below(read.dims.size());
    if (--read.dims[dim].length < 1) return false;
    local.reads.assign(local.reads.size(), Region{read});
    local.writes.front() = read;
    ++local.writes.front().dims[dim].offset;
    return true;
  }

  /// When all is done, something that nobody needs any more is moved by one element.
  bool overlap_at_the_end() {
    const std::size_t b = rng_.below(program().buffers.size());
    const Buffer& buffer = program().buffers[b];
    Region from{BufferId{b}, {}};
    for (const std::int64_t extent : buffer.extents) from.dims.push_back(all(extent));
    const std::size_t dim = rng_.below(from.dims.size());
    if (buffer.role == Role::output || --from.dims[dim].length < 1) return false;
    Region to = from;
    ++to.dims[dim].offset;
    Task last{"move", Local{LocalKind::copy, {from}, {to}}, {}, {}, {}};
    for (std::size_t t = 0; t < tasks().size(); ++t) last.after.push_back({TaskId{t}});
    tasks().push_back(std::move(last));
    what_ += fmt::format(" of buffer {}", b);
    return buffer.extents[dim] > 2;  // else only a copy to another element
  }

  bool skip_task(std::size_t t) {
    const int device = t == none || std::holds_alternative<Recv>(task(t).op) ? -1 : device_of(t);
    if (device < 0) return false;
    what_ += fmt::format(" on device {}", device);
    if (std::holds_alternative<Send>(task(t).op)) {
      const Partner partner = partner_of(schedule_, t, device);
      if (partner.task == none) return false;
      task(partner.task).where.push_back(all_but(mesh(), partner.device));
    }
    task(t).where.push_back(all_but(mesh(), device));
    return true;
  }
  bool skip() { return skip_task(pick(moves_data)); }

  bool change_guard() {
    const std::size_t t = pick([](const Task& task) { return !task.where.empty(); });
    if (t == none) return false;
    Guard& where = task(t).where;
    const std::size_t i = rng_.below(where.size());
    switch (rng_.below(3)) {
      case 0: where[i].low += sign(); return true;
      case 1: where[i].high += sign(); return true;
      default: where.erase(where.begin() + static_cast<std::ptrdiff_t>(i)); return true;
    }
  }

  bool change_shift() {
    std::size_t t = pick<Shift>();
    if (t == none) return false;
    t = maybe_isolate(t);
    Affine& by = std::get<Shift>(task(t).op).by;
    if (by.terms.empty() && rng_.below(2) == 0)
      by.constant = -by.constant;
    else
      by.constant += sign();
    return true;
  }

  bool change_peer() {
    const std::size_t t = pick([](const Task& task) { return std::holds_alternative<Send>(task.op) || std::holds_alternative<Recv>(task.op); });
    if (t == none) return false;
    auto* send = std::get_if<Send>(&task(t).op);
    one_of(send ? send->to : std::get<Recv>(task(t).op).from).constant += sign();
    return true;
  }

  bool delete_task() {
    const std::size_t t = pick(moves_data);
    if (t == none || std::holds_alternative<Recv>(task(t).op)) return false;
    if (std::holds_alternative<Send>(task(t).op)) {
      const int device = device_of(t);
      const Partner partner = device < 0 ? Partner{} : partner_of(schedule_, t, device);
      if (partner.task == none) return false;
      erase(program(), std::max(t, partner.task));
      erase(program(), std::min(t, partner.task));
    } else {
      erase(program(), t);
    }
    return true;
  }

  /// Done twice, on all devices or on one.
  bool repeat_task(std::size_t t) {
    if (t == none || std::holds_alternative<Recv>(task(t).op)) return false;
    const int device = rng_.below(2) == 0 ? device_of(t) : -1;
    if (std::holds_alternative<Send>(task(t).op)) {
      const int any = device < 0 ? device_of(t) : device;
      const Partner partner = any < 0 ? Partner{} : partner_of(schedule_, t, any);
      if (partner.task == none) return false;
      const std::size_t later = std::max(t, partner.task), earlier = std::min(t, partner.task);
      const auto guard_of = [&](std::size_t u) { return device < 0 ? Guard{} : only(mesh(), u == t ? device : partner.device); };
      repeat(later, guard_of(later));
      repeat(earlier, guard_of(earlier));
    } else {
      repeat(t, device < 0 ? Guard{} : only(mesh(), device));
    }
    if (device >= 0) what_ += fmt::format(" on device {}", device);
    return true;
  }
  void repeat(std::size_t t, const Guard& where) {
    Task twin = task(t);
    twin.where.insert(twin.where.end(), where.begin(), where.end());
    twin.after.push_back({TaskId{t}});
    insert_twin(program(), t, std::move(twin));
  }
  bool repeat_any() { return repeat_task(pick(moves_data)); }

  std::size_t pick_waiting() {
    return pick([](const Task& task) { return !task.after.empty(); });
  }
  bool drop_edge() {
    const std::size_t t = pick_waiting();
    if (t == none) return false;
    std::vector<Edge>& after = task(t).after;
    const std::size_t e = rng_.below(after.size());
    what_ += fmt::format(" to task {}", after[e].task.value);
    after.erase(after.begin() + static_cast<std::ptrdiff_t>(e));
    return true;
  }
  bool weaken_edge() {
    const std::size_t t = pick_waiting();
    if (t == none) return false;
    Edge& edge = one_of(task(t).after);
    what_ += fmt::format(" to task {}", edge.task.value);
    const bool done = rng_.below(2) == 0;
    if (!std::holds_alternative<Shift>((done ? task(edge.task.index()) : task(t)).op)) return false;  // it has one half only
    (done ? edge.done : edge.gates) = rng_.below(2) == 0 ? Half::send : Half::receive;
    return true;
  }
  bool redirect_edge() {
    const std::size_t t = pick_waiting();
    if (t == none || t == 0) return false;
    one_of(task(t).after).task = TaskId{static_cast<std::size_t>(rng_.below(t))};
    return true;
  }

  // Of sums.
  bool skip_sum() { return skip_task(pick(is_sum)); }
  bool repeat_sum() { return repeat_task(pick(is_sum)); }
  bool replace_in_place_of_add() {
    std::size_t t = pick([](const Task& task) { return is_sum(task) && !std::holds_alternative<Local>(task.op); });
    if (t == none) return false;
    if (const int device = device_of(t); device >= 0) t = isolated(t, device);
    if (auto* shift = std::get_if<Shift>(&task(t).op)) shift->combine = Combine::replace;
    if (auto* recv = std::get_if<Recv>(&task(t).op)) recv->combine = Combine::replace;
    if (auto* matmul = std::get_if<Matmul>(&task(t).op)) matmul->accumulate = false;
    return true;
  }

  const Schedule& base_;
  Rng rng_;
  Schedule schedule_;
  std::string what_;
};

std::span<const Mutator::Kind> Mutator::every_kind() {
  static constexpr Kind kinds[] = {
      {"flip combine", &Mutator::flip_combine},
      {"flip accumulate", &Mutator::flip_accumulate},
      {"move region", &Mutator::move_region},
      {"move region", &Mutator::move_region},
      {"other buffer", &Mutator::take_other_buffer},
      {"other region", &Mutator::take_other_region},
      {"swap regions", &Mutator::swap_regions},
      {"swap reads", &Mutator::swap_reads},
      {"over operand", &Mutator::write_over_operand},
      {"skip", &Mutator::skip},
      {"skip sum", &Mutator::skip_sum},
      {"change guard", &Mutator::change_guard},
      {"change shift", &Mutator::change_shift},
      {"change peer", &Mutator::change_peer},
      {"delete", &Mutator::delete_task},
      {"repeat", &Mutator::repeat_any},
      {"repeat sum", &Mutator::repeat_sum},
      {"drop edge", &Mutator::drop_edge},
      {"weaken edge", &Mutator::weaken_edge},
      {"redirect edge", &Mutator::redirect_edge},
      {"overlap", &Mutator::overlap_at_the_end},
  };
  return kinds;
}

std::span<const Mutator::Kind> Mutator::of_sums() {
  static constexpr Kind kinds[] = {
      {"skip sum", &Mutator::skip_sum}, {"repeat sum", &Mutator::repeat_sum}, {"replace in place of add", &Mutator::replace_in_place_of_add}};
  return kinds;
}

}  // namespace

Mutant mutate(const Schedule& base, std::uint64_t seed) { return Mutator{base, seed}.make(Mutator::every_kind()); }
Mutant mutate_sum(const Schedule& base, std::uint64_t seed) {
  const std::vector<Task>& tasks = base.programs.front().tasks;
  if (std::none_of(tasks.begin(), tasks.end(), is_sum)) return mutate(base, seed);
  return Mutator{base, seed}.make(Mutator::of_sums());
}

}  // namespace podsim::mutation
