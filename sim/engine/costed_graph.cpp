#include "sim/engine/costed_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/base/units.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {

namespace {

/// What a task costs wherever it runs; regions have the same sizes on every device.
struct TaskCost {
  Seconds work;
  bool core_work = false;  // a Matmul or a Local on the core
  Seconds launch;          // of a transfer that an algorithm wrote
  Bytes payload;
  double flow_bytes = 0;
  Seconds reduction;
  double core_share = 0;
};

class Coster {
 public:
  Coster(const Schedule& schedule, const Machine& machine, const Topology& topology, const Placement& placement)
      : schedule_{schedule}, machine_{machine}, topology_{topology}, placement_{placement} {}

  Expected<CostedGraph> run() {
    if (placement_.chip_of.size() != static_cast<std::size_t>(schedule_.mesh.devices()))
      return Diagnostic{{}, fmt::format("the schedule is for {} devices, the placement has {}", schedule_.mesh.devices(), placement_.chip_of.size())};
    Unrolled unrolled = unroll(schedule_);
    if (!unrolled.problems.empty()) return unrolled.problems.front();
    result_.graph = std::move(unrolled.graph);
    for (int link = 0; link < topology_.link_slots(); ++link) result_.links.push_back(topology_.link(LinkId{link}));
    result_.routes.emplace_back();
    result_.hops.push_back(0);
    latencies_.emplace_back();
    find_rings();
    cost_tasks();

    const auto& activities = result_.graph.activities;
    result_.work_time.resize(activities.size());
    result_.transfers.resize(activities.size());
    result_.on_core.resize(activities.size());
    result_.core_time.resize(activities.size());
    for (std::size_t a = 0; a < activities.size(); ++a)
      if (auto ok = cost_activity(a); !ok) return ok.error();
    share_core();
    if (auto ok = check_durations(); !ok) return ok.error();
    return std::move(result_);
  }

 private:
  const Task& task(std::uint32_t program, TaskId id) const { return schedule_.programs[program].tasks[id.index()]; }

  void cost_tasks() {
    for (const Program& program : schedule_.programs) {
      std::vector<TaskCost> costs;
      costs.reserve(program.tasks.size());
      for (const Task& entry : program.tasks) costs.push_back(cost_task(program, entry));
      costs_.push_back(std::move(costs));
    }
  }

  TaskCost cost_task(const Program& program, const Task& entry) const {
    const Software& software = machine_.software;
    const CostKind kind = entry.origin ? cost_kind_of(entry.origin->kind) : CostKind::permute;
    const auto transfer = [&](const Region& source) {
      TaskCost cost;
      cost.launch = entry.origin ? Seconds{} : software.launch[static_cast<std::size_t>(CostKind::permute)];
      cost.payload = bytes_of(program, source);
      const Bytes input = entry.origin ? entry.origin->input_bytes : cost.payload;
      cost.flow_bytes = static_cast<double>(cost.payload.count()) / efficiency_at(software.efficiency[static_cast<std::size_t>(kind)], input);
      cost.core_share = software.core_share[static_cast<std::size_t>(kind)];
      return cost;
    };
    return std::visit(Overloaded{
                          [&](const Matmul& m) {
                            TaskCost cost;
                            cost.work = matmul_time(machine_, m, program.buffers[m.out.buffer.index()].dtype);
                            cost.core_work = true;
                            return cost;
                          },
                          [&](const Local& l) {
                            TaskCost cost;
                            cost.work = local_time(machine_, program, entry);
                            cost.core_work = l.unit == Unit::core;
                            cost.core_share = software.core_share[static_cast<std::size_t>(entry.origin ? kind : CostKind::local)];
                            return cost;
                          },
                          [&](const Shift& s) {
                            TaskCost cost = transfer(s.source);
                            if (s.combine == Combine::add) cost.reduction = cost.payload / machine_.chip.reduce_bandwidth;
                            return cost;
                          },
                          [&](const Send& s) { return transfer(s.source); },
                          [&](const Recv& r) {
                            TaskCost cost;
                            if (r.combine == Combine::add) cost.reduction = bytes_of(program, r.target) / machine_.chip.reduce_bandwidth;
                            return cost;
                          },
                          [](const Collective&) -> TaskCost {
                            assert(!"lowered before timing");
                            return {};
                          },
                      },
                      entry.op);
  }

  /// Which mesh axes lie along exactly one physical dimension of a grid: only there does the sign of an antipodal shift choose the way.
  void find_rings() {
    const auto* grid = dynamic_cast<const Grid*>(&topology_);
    for (std::size_t a = 0; a < schedule_.mesh.axes().size(); ++a) {
      const AxisView axis = schedule_.mesh.whole(static_cast<int>(a));
      bool ring = grid != nullptr && axis.size > 1;
      for (int d = 0; ring && d < schedule_.mesh.devices(); ++d) {
        const auto here = grid->coordinates(placement_.chip_of[static_cast<std::size_t>(d)]);
        const auto there = grid->coordinates(placement_.chip_of[schedule_.mesh.shifted(DeviceId{d}, axis, 1).index()]);
        int differing = 0;
        for (std::size_t i = 0; i < here.size(); ++i)
          if (here[i] != there[i]) ++differing, ring = ring && grid->dimensions()[i].extent == axis.size;
        ring = ring && differing == 1;
      }
      along_one_dimension_.push_back(ring);
    }
  }

  RouteOptions options_for(const Op& op, DeviceId sender) const {
    RouteOptions options;
    if (const auto* shift = std::get_if<Shift>(&op)) {
      options.dimension_order = shift->route_order;
      const std::int64_t by = evaluate(shift->by, schedule_.mesh.coordinates(sender));
      const bool whole = shift->axis == schedule_.mesh.whole(shift->axis.axis);
      if (whole && along_one_dimension_[static_cast<std::size_t>(shift->axis.axis)] && by < 0 && -2 * by <= shift->axis.size)
        options.antipodal_sign = -1;
    } else {
      options.dimension_order = std::get<Send>(op).route_order;
    }
    return options;
  }

  Expected<std::uint32_t> route(ChipId from, ChipId to, const RouteOptions& options) {
    if (from == to) return std::uint32_t{0};
    int order = 0;
    if (!options.dimension_order.empty()) order = orders_.try_emplace(options.dimension_order, static_cast<int>(orders_.size()) + 1).first->second;
    const auto [entry, added] =
        route_ids_.try_emplace({from.value, to.value, options.antipodal_sign, order}, static_cast<std::uint32_t>(result_.routes.size()));
    if (!added) return entry->second;
    std::vector<LinkId> links;
    if (auto ok = topology_.route(from, to, options, links); !ok) return ok.error();
    Seconds latency;
    for (const LinkId link : links) latency += result_.links[link.index()].latency;
    latencies_.push_back(latency);
    result_.hops.push_back(static_cast<int>(std::count_if(links.begin(), links.end(), [&](LinkId link) { return topology_.is_hop(link); })));
    result_.routes.push_back(std::move(links));
    return entry->second;
  }

  Done cost_activity(std::size_t a) {
    const Activity& activity = result_.graph.activities[a];
    const TaskCost& cost = costs_[activity.program][activity.task.index()];
    if (activity.kind == Activity::Kind::work) {
      result_.work_time[a] = cost.work;
      result_.on_core[a] = cost.core_work;
      if (cost.core_work) result_.core_time[a] = cost.work;
      return done();
    }
    const auto route_id = route(placement_.chip_of[activity.device.index()], placement_.chip_of[activity.receiver.index()],
                                options_for(task(activity.program, activity.task).op, activity.device));
    if (!route_id) return route_id.error();
    result_.transfers[a] = {cost.launch + machine_.software.per_message + latencies_[*route_id], cost.flow_bytes, cost.payload, *route_id,
                            costs_[activity.receiver_program][activity.receiver_task.index()].reduction};
    return done();
  }

  /// Core shares. Of an op that an algorithm wrote: at its own place. Of a Collective: all of it at its launch, so that a small share costs
  /// little; a core task per ring step would make the core wait for every arrival in between, and nothing would overlap however small the share.
  void share_core() {
    std::map<std::tuple<std::uint32_t, int, int>, std::size_t> launches;  // program, collective, device
    const auto& activities = result_.graph.activities;
    for (std::size_t a = 0; a < activities.size(); ++a) {
      const Activity& activity = activities[a];
      const TaskCost& cost = costs_[activity.program][activity.task.index()];
      if (cost.core_share == 0 || cost.core_work) continue;
      const Task& entry = task(activity.program, activity.task);
      const Seconds time =
          cost.core_share * (activity.kind == Activity::Kind::work ? result_.work_time[a] : uncontended(result_, result_.transfers[a]));
      std::size_t at = a;
      if (entry.origin) {
        const auto key = std::tuple{activity.program, entry.origin->collective, activity.device.value};
        if (const auto* local = std::get_if<Local>(&entry.op); local && local->kind == LocalKind::launch) launches[key] = a;
        const auto launch = launches.find(key);
        if (launch == launches.end()) continue;  // a Collective over a single device: nothing moves
        at = launch->second;
      }
      result_.on_core[at] = true;
      result_.core_time[at] += time;
    }
  }

  /// Whoever rounds a duration to the clock may rely on it.
  Done check_durations() const {
    const auto& activities = result_.graph.activities;
    for (std::size_t a = 0; a < activities.size(); ++a) {
      const bool transfer = activities[a].kind == Activity::Kind::transfer;
      const Seconds duration = std::max(transfer ? uncontended(result_, result_.transfers[a]) : result_.work_time[a], result_.core_time[a]);
      if (!fits_clock(duration))
        return Diagnostic{{},
                          fmt::format("task {} on device {} ({}) takes {}; expected less than 2000000 s, as the clock goes to 106 days",
                                      task_name(schedule_.programs[activities[a].program], activities[a].task), activities[a].device.value,
                                      schedule_.mesh.name(activities[a].device), to_text(duration))};
    }
    return done();
  }

  struct RouteKey {
    int from, to, sign, order;
    friend bool operator==(const RouteKey&, const RouteKey&) = default;
  };
  struct RouteKeyHash {
    std::size_t operator()(const RouteKey& key) const {
      return (static_cast<std::size_t>(key.from) * 0x9e3779b97f4a7c15ULL) ^ (static_cast<std::size_t>(key.to) * 0xd1342543de82ef95ULL) ^
             static_cast<std::size_t>(key.order * 2 + key.sign);
    }
  };

  const Schedule& schedule_;
  const Machine& machine_;
  const Topology& topology_;
  const Placement& placement_;
  std::vector<std::vector<TaskCost>> costs_;  // [program][task]
  std::vector<bool> along_one_dimension_;     // per mesh axis
  std::map<std::vector<int>, int> orders_;
  std::unordered_map<RouteKey, std::uint32_t, RouteKeyHash> route_ids_;
  std::vector<Seconds> latencies_;  // per route
  CostedGraph result_;
};

}  // namespace

Expected<CostedGraph> cost(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement) {
  return Coster{lowered, machine, topology, placement}.run();
}

BytesPerSecond bottleneck(const CostedGraph& graph, std::uint32_t route) {
  BytesPerSecond least = unlimited<BytesPerSecond>;
  for (const LinkId link : graph.routes[route]) least = std::min(least, graph.links[link.index()].bandwidth);
  return least;
}

Seconds uncontended(const CostedGraph& graph, const TransferCost& transfer) {
  return transfer.delay + Seconds{transfer.flow_bytes / bottleneck(graph, transfer.route).count()} + transfer.reduction;
}

}  // namespace podsim
