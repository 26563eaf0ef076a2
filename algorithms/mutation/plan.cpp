#include "algorithms/mutation/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace podsim::mutation {

namespace {

bool concerns(Half half, int side) { return half == Half::both || half == (side == sending ? Half::send : Half::receive); }

/// Elements of the first or second group of dimensions.
std::int64_t group(const Region& region, int split, bool second) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < region.dims.size(); ++i)
    if ((i >= static_cast<std::size_t>(split)) == second) count *= region.dims[i].length;
  return count;
}

}  // namespace

const Region& source_of(const Op& op) {
  const auto* shift = std::get_if<Shift>(&op);
  return shift ? shift->source : std::get<Send>(op).source;
}
const Region& target_of(const Op& op) {
  const auto* shift = std::get_if<Shift>(&op);
  return shift ? shift->target : std::get<Recv>(op).target;
}
bool adds(const Op& op) {
  const auto* shift = std::get_if<Shift>(&op);
  return (shift ? shift->combine : std::get<Recv>(op).combine) == Combine::add;
}

Extents product_extents(const Matmul& matmul) {
  return {group(matmul.out, matmul.out_split, false), group(matmul.out, matmul.out_split, true),
          group(matmul.left, matmul.left_split, !matmul.transpose_left)};
}

Plan::Plan(const Schedule& schedule) : schedule_{schedule} {
  for (int d = 0; d < schedule.mesh.devices(); ++d) at_.push_back(coordinates_of(schedule.mesh, d));
  programs_.assign(at_.size(), nullptr);
  for (const Program& program : schedule.programs)
    for (const DeviceSet::Interval& interval : program.devices.intervals)
      for (int d = interval.first; d < interval.last; ++d) programs_[static_cast<std::size_t>(d)] = &program;
  halves_.resize(at_.size());
  for (std::size_t d = 0; d < at_.size(); ++d)
    if (programs_[d]) halves_[d].assign(programs_[d]->tasks.size(), {-1, -1});
  for (std::size_t d = 0; d < at_.size(); ++d)
    for (std::size_t t = 0; t < halves_[d].size(); ++t)
      if (runs_on(programs_[d]->tasks[t], at_[d])) add(static_cast<int>(d), static_cast<int>(t));
  pair_up();
  for (std::size_t a = 0; a < actions_.size() && problem_.empty(); ++a) {
    wait(static_cast<int>(a), sending);
    if (actions_[a].transfer) wait(static_cast<int>(a), receiving);
    check_sizes(actions_[a]);
  }
}

const Task& Plan::task(const Action& action, int side) const {
  const auto s = static_cast<std::size_t>(side);
  return programs_[static_cast<std::size_t>(action.device[s])]->tasks[static_cast<std::size_t>(action.task[s])];
}

std::optional<Positions> Plan::positions(int device, const Region& region) const {
  const auto d = static_cast<std::size_t>(device);
  return positions_of(programs_[d]->buffers[region.buffer.index()], region, at_[d]);
}

void Plan::complain(int device, int task, std::string_view what) {
  if (problem_.empty()) problem_ = fmt::format("task {} on device {} {}", task, device, what);
}

void Plan::add(int device, int task) {
  const auto d = static_cast<std::size_t>(device);
  const Op& op = programs_[d]->tasks[static_cast<std::size_t>(task)].op;
  if (const auto* shift = std::get_if<Shift>(&op)) {
    const int to = shift->by_dimension ? moved_by_dimension(schedule_.mesh, at_[d], shift->axis.axis, shift->by.constant)
                                       : moved(schedule_.mesh, at_[d], shift->axis, value_of(shift->by, at_[d]));
    if (to == device) return;
    if (programs_[static_cast<std::size_t>(to)] != programs_[d]) return complain(device, task, "shifts to another program");
    if (halves(to, task)[receiving] >= 0) return complain(to, task, "receives twice");
    add_transfer(device, task, to, task);
  } else if (const auto* send = std::get_if<Send>(&op)) {
    const auto to = device_of(schedule_.mesh, send->to, at_[d]);
    if (!to) return complain(device, task, "sends outside the mesh");
    uses_[{send->channel, device, *to}][sending].push_back(task);
  } else if (const auto* recv = std::get_if<Recv>(&op)) {
    const auto from = device_of(schedule_.mesh, recv->from, at_[d]);
    if (!from) return complain(device, task, "receives from outside the mesh");
    uses_[{recv->channel, *from, device}][receiving].push_back(task);
  } else {
    halves(device, task) = {static_cast<int>(actions_.size()), static_cast<int>(actions_.size())};
    actions_.push_back({{device, -1}, {task, -1}, false, 0, {}});
  }
}

void Plan::add_transfer(int from, int send, int to, int receive) {
  halves(from, send)[sending] = halves(to, receive)[receiving] = static_cast<int>(actions_.size());
  actions_.push_back({{from, to}, {send, receive}, true, 0, {}});
}

void Plan::pair_up() {
  for (const auto& [key, tasks] : uses_) {
    const auto& [channel, from, to] = key;
    if (tasks[sending].size() != tasks[receiving].size()) {
      const bool more = tasks[sending].size() > tasks[receiving].size();
      return complain(more ? from : to, tasks[more ? sending : receiving].back(), "has no other half");
    }
    for (std::size_t k = 0; k < tasks[sending].size(); ++k) add_transfer(from, tasks[sending][k], to, tasks[receiving][k]);
  }
}

void Plan::wait(int action, int side) {
  const Action& self = actions_[static_cast<std::size_t>(action)];
  const int device = self.device[static_cast<std::size_t>(side)], own = self.task[static_cast<std::size_t>(side)];
  for (const Edge& edge : task(self, side).after) {
    if (edge.task.value < 0 || edge.task.value >= own) return complain(device, own, "waits for what is no earlier task");
    if (self.transfer && !concerns(edge.gates, side)) continue;
    const Halves before = halves(device, edge.task.value);
    if (before[sending] >= 0 && !actions_[static_cast<std::size_t>(before[sending])].transfer) {
      wait_for(action, before[sending], sending);
      continue;
    }
    for (const int end : {sending, receiving})
      if (concerns(edge.done, end) && before[static_cast<std::size_t>(end)] >= 0) wait_for(action, before[static_cast<std::size_t>(end)], end);
  }
}

void Plan::wait_for(int action, int before, int end) {
  actions_[static_cast<std::size_t>(before)].followers[static_cast<std::size_t>(end)].push_back(action);
  ++actions_[static_cast<std::size_t>(action)].waits;
}

void Plan::check_sizes(const Action& action) {
  const Op& op = task(action, sending).op;
  if (action.transfer) {
    const std::int64_t sent = count(action.device[sending], source_of(op));
    if (sent < 0) complain(action.device[sending], action.task[sending], "reads outside its buffer");
    expect_count(action, receiving, target_of(task(action, receiving).op), sent);
  } else if (const auto* local = std::get_if<Local>(&op)) {
    check_sizes(action, *local);
  } else if (const auto* matmul = std::get_if<Matmul>(&op)) {
    check_sizes(action, *matmul);
  } else {
    complain(action.device[sending], action.task[sending], "is not lowered");
  }
}

void Plan::check_sizes(const Action& action, const Local& local) {
  const bool launch = waits_only(local.kind), add = local.kind == LocalKind::add || local.kind == LocalKind::add_in_switch;
  const bool known = launch || add || local.kind == LocalKind::copy || local.kind == LocalKind::alias;
  if (!known || local.writes.size() != (launch ? 0U : 1U) || local.reads.size() != (launch ? 0U : add ? 2U : 1U))
    return complain(action.device[sending], action.task[sending], "is nothing that this interpreter knows");
  for (const Region& read : local.reads) {
    expect_count(action, sending, read, count(action.device[sending], local.writes.front()));
    expect_apart(action, read, local.writes.front(), true);
  }
}

void Plan::check_sizes(const Action& action, const Matmul& matmul) {
  const auto [m, n, k] = product_extents(matmul);
  expect_count(action, sending, matmul.left, m * k);
  expect_count(action, sending, matmul.right, k * n);
  expect_count(action, sending, matmul.out, m * n);
  if (group(matmul.right, matmul.right_split, matmul.transpose_right) != k)
    complain(action.device[sending], action.task[sending], "contracts different extents");
  for (const Region* read : {&matmul.left, &matmul.right}) expect_apart(action, *read, matmul.out, false);
}

void Plan::expect_count(const Action& action, int side, const Region& region, std::int64_t expected) {
  const auto s = static_cast<std::size_t>(side);
  const std::int64_t found = count(action.device[s], region);
  if (found < 0 || found != expected) complain(action.device[s], action.task[s], "has regions that do not fit");
}

/// What is written shares nothing with what is read; element by element it may be the very same.
void Plan::expect_apart(const Action& action, const Region& read, const Region& written, bool may_be_same) {
  if (read.buffer != written.buffer) return;
  const auto from = positions(action.device[sending], read), to = positions(action.device[sending], written);
  if (!from || !to || (may_be_same && *from == *to)) return;
  const std::set<std::int64_t> shared{from->begin(), from->end()};
  if (std::any_of(to->begin(), to->end(), [&](std::int64_t position) { return shared.contains(position); }))
    complain(action.device[sending], action.task[sending], "writes over what it reads");
}

/// Elements of a region on a device; -1: it leaves its buffer.
std::int64_t Plan::count(int device, const Region& region) const {
  const auto where = positions(device, region);
  return where ? static_cast<std::int64_t>(where->size()) : -1;
}

}  // namespace podsim::mutation
