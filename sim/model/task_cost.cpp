#include "sim/model/task_cost.hpp"

#include <algorithm>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// A transfer or Local that lowering wrote is accounted to the kind of its Collective.
CostKind kind_of(const Task& task) {
  if (task.origin) return cost_kind_of(task.origin->kind);
  return std::holds_alternative<Local>(task.op) ? CostKind::local : CostKind::permute;
}

TaskCost transfer_cost(const Machine& machine, const Program& program, const Task& task, const Region& source) {
  const Software& software = machine.software;
  TaskCost cost;
  cost.kind = TaskCost::Kind::transfer;
  const Seconds launch = task.origin ? Seconds{} : software.launch[static_cast<std::size_t>(CostKind::permute)];
  cost.delay = launch + software.per_message;
  cost.payload = bytes_of(program, source);
  const Bytes input = task.origin ? task.origin->input_bytes : cost.payload;
  const auto& efficiency = software.efficiency[static_cast<std::size_t>(kind_of(task))];
  cost.flow_bytes = static_cast<double>(cost.payload.count()) / efficiency_at(efficiency, input);
  return cost;
}

TaskCost work_cost(const WorkTime& work, bool on_core) {
  TaskCost cost;
  cost.work = work.total;
  cost.launch = work.launch;
  cost.rest = work.rest;
  if (work.launch + work.rest < work.total) cost.memory_bytes = work.bytes;  // else it takes no time: unlimited memory
  cost.on_core = on_core;
  return cost;
}

}  // namespace

TaskCost cost_of(const Machine& machine, const Program& program, const Task& task) {
  const auto reduction = [&](const Region& target, Combine combine) {
    return combine != Combine::replace ? bytes_of(program, target) / machine.chip.reduce_bandwidth : Seconds{};
  };
  return std::visit(Overloaded{
                        [&](const Matmul& m) { return work_cost(matmul_work(machine, program, m), true); },
                        [&](const Local& l) { return work_cost(local_work(machine, program, task), l.unit == Unit::core); },
                        [&](const Shift& s) {
                          TaskCost cost = transfer_cost(machine, program, task, s.source);
                          cost.reduction = reduction(s.target, s.combine);
                          return cost;
                        },
                        [&](const Send& s) { return transfer_cost(machine, program, task, s.source); },
                        [&](const Recv& r) {
                          TaskCost cost;
                          cost.kind = TaskCost::Kind::receive;
                          cost.reduction = reduction(r.target, r.combine);
                          return cost;
                        },
                        [](const Collective&) -> TaskCost {
                          PODSIM_ASSERT(!"lowered before timing");
                          return {};
                        },
                        [](const Call&) -> TaskCost {
                          PODSIM_ASSERT(!"the model knows its length");
                          return {};
                        },
                    },
                    task.op);
}

double core_share_of(const Machine& machine, const Task& task) {
  if (std::holds_alternative<Matmul>(task.op) || std::holds_alternative<Recv>(task.op) || std::holds_alternative<Call>(task.op)) return 0;
  if (const auto* local = std::get_if<Local>(&task.op); local && local->unit == Unit::core) return 0;
  return machine.software.core_share[static_cast<std::size_t>(kind_of(task))];
}

Picoseconds least_core_time(const Machine& machine, const Schedule& schedule) {
  Picoseconds most;
  for (const Program& program : schedule.programs) {
    if (program.devices.intervals.empty()) continue;
    const Coordinates at = schedule.mesh.coordinates(DeviceId{program.devices.intervals.front().first});
    Picoseconds end;
    for (const Task& task : program.tasks) {
      if (std::holds_alternative<Collective>(task.op) || std::holds_alternative<Call>(task.op) || !holds(task.where, at)) continue;
      const TaskCost cost = cost_of(machine, program, task);
      if (!cost.on_core) continue;
      if (!fits_clock(cost.work)) return {};  // an error of the run
      end = later(end, ceil_to_clock(cost.work));
    }
    most = std::max(most, end);
  }
  return most;
}

}  // namespace podsim
