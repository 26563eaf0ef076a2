#include "sim/model/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/invariant.hpp"
#include "sim/base/units.hpp"
#include "sim/model/core_share.hpp"
#include "sim/model/routes.hpp"
#include "sim/model/shared_memory.hpp"
#include "sim/model/task_cost.hpp"
#include "sim/model/translations.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {

namespace {

class ModelBuilder {
 public:
  ModelBuilder(const Schedule& schedule, const Machine& machine, const Topology& topology, const Placement& placement, Cancellation stop, const Orbits* orbits)
      : schedule_{schedule},
        machine_{machine},
        topology_{topology},
        placement_{placement},
        stop_{stop},
        orbits_{orbits},
        routes_{schedule.mesh, topology, placement} {}

  Expected<Model> run(Deployment deployment, std::shared_ptr<const PlayedCalls> calls) {
    model_.calls = std::move(calls);
    model_.schedule = &schedule_;
    model_.machine = &machine_;
    model_.deployment = std::move(deployment);
    if (orbits_ != nullptr) {
      model_.device_of.edit() = orbits_->lowest;
      model_.node_of.edit() = orbits_->node_of;
    } else {
      for (int d = 0; d < schedule_.mesh.devices(); ++d) {
        model_.device_of.edit().push_back(DeviceId{d});
        model_.node_of.edit().push_back(static_cast<std::uint32_t>(d));
      }
    }
    model_.devices_in.edit().assign(model_.nodes(), orbits_ == nullptr ? 1 : orbits_->translations.size());
    model_.speed = placement_.speed;
    model_.first_memory = topology_.link_slots();
    model_.links.reserve(static_cast<std::size_t>(model_.first_memory) + model_.nodes());  // memories come behind them
    for (int link = 0; link < topology_.link_slots(); ++link) model_.links.push_back({topology_.link(LinkId{link}).bandwidth, LinkId{link}, 1});
    for (std::uint32_t p = 0; p < schedule_.programs.size(); ++p) {
      auto& costs = model_.costs.emplace_back();
      costs.reserve(schedule_.programs[p].tasks.size());
      for (std::size_t t = 0; t < schedule_.programs[p].tasks.size(); ++t) {
        if (stop_.requested()) return cancelled_work();
        if (std::holds_alternative<Call>(model_.task(p, t).op)) {
          PODSIM_ASSERT(model_.calls != nullptr && placement_.speed.empty());
          TaskCost cost;
          cost.on_core = true;
          cost.work = to_seconds(model_.call(p, t)->length);
          costs.push_back(cost);
          continue;
        }
        costs.push_back(cost_of(machine_, schedule_.programs[p], model_.task(p, t)));
        if (costs.back().kind != TaskCost::Kind::transfer) continue;
        const auto routing = route(p, t);
        if (!routing && in_switch(p, t))
          return Diagnostic{location_of(model_.task(p, t).written_at),
                            fmt::format("task {}: {}", task_name(schedule_.programs[p], TaskId{t}), routing.error().message)};
        if (!routing) return routing.error();
        costs.back().routing = *routing;
        if (auto ok = pass_switch(p, t, costs.back()); !ok) return ok.error();
      }
    }
    take_paths();
    share_memory(model_, orbits_);
    model_.core_shares = core_shares_of(model_);
    if (auto ok = check_durations(model_, stop_); !ok) return ok.error();
    return std::move(model_);
  }

 private:
  const Deployment& deployment() const { return model_.deployment; }
  bool in_switch(std::uint32_t p, std::size_t t) const {
    const auto* shift = std::get_if<Shift>(&model_.task(p, t).op);
    return shift != nullptr && shift->in_switch != InSwitch::none;
  }

  /// The first participants of Sends with the same receivers: Sends of one device to another go one way, whatever task receives.
  std::uint32_t alike(std::uint32_t p, std::uint32_t participants) {
    const Participants& who = deployment().participants[participants];
    return who.to_task.empty() ? participants : senders_.try_emplace({p, who.to}, participants).first->second;
  }

  /// The path of each sender of a task; tasks with the same participants and the same order of dimensions share them.
  Expected<std::uint32_t> route(std::uint32_t p, std::size_t t) {
    const Op& op = model_.task(p, t).op;
    const auto* shift = std::get_if<Shift>(&op);
    const std::uint32_t participants = alike(p, deployment().programs[p].participants[t]);
    const std::vector<int>& order = shift != nullptr ? shift->route_order : std::get<Send>(op).route_order;
    const InSwitch role = shift != nullptr ? shift->in_switch : InSwitch::none;
    auto& known = routings_[{participants, role}];
    for (const auto& [known_order, routing] : known)
      if (*known_order == order) return routing;
    const Participants& who = deployment().participants[participants];
    const auto& devices = deployment().programs[p].devices;
    std::vector<std::uint32_t> paths(devices.size(), 0);
    for (std::size_t l = 0; l < devices.size(); ++l) {
      if (!who.does(l)) continue;
      if (stop_.requested()) return cancelled_work();
      const DeviceId receiver = orbits_ == nullptr ? DeviceId{static_cast<int>(who.to[l])} : orbits_->reached[participants][l];
      const auto found = routes_.find(op, model_.device_of[devices[l]], receiver);
      if (!found) return found.error();
      paths[l] = *found;
    }
    const auto routing = static_cast<std::uint32_t>(model_.routings.size());
    model_.routings.edit().push_back(std::move(paths));
    known.emplace_back(&order, routing);
    return routing;
  }

  /// What a switch adds up or copies goes at its rate.
  Status pass_switch(std::uint32_t p, std::size_t t, TaskCost& cost) const {
    const auto* shift = std::get_if<Shift>(&model_.task(p, t).op);
    if (shift == nullptr || shift->in_switch == InSwitch::none) return success();
    const Participants& who = deployment().who(p, t);
    double efficiency = 0;
    for (std::size_t l = 0; l < who.to.size(); ++l) {
      if (!who.does(l)) continue;
      const double own = routes_.routes()[model_.routings[cost.routing][l]].in_switch_efficiency;
      if (efficiency > 0 && own != efficiency)
        return Diagnostic{location_of(model_.task(p, t).written_at), fmt::format("task {} passes switches of different efficiency", task_name(schedule_.programs[p], TaskId{t}))};
      efficiency = own;
    }
    if (efficiency > 0) cost.flow_bytes /= efficiency;
    return success();
  }

  void take_paths() {
    std::vector<PathLink>& path_links = model_.path_links.edit();
    for (const RouteTable::Route& route : routes_.routes()) {
      Path path;
      path.first = static_cast<std::uint32_t>(path_links.size());
      for (std::size_t i = route.first; i < route.last; ++i) path_links.push_back({static_cast<std::uint32_t>(routes_.links()[i].value), 1});
      path.last = static_cast<std::uint32_t>(path_links.size());
      path.hops = static_cast<std::uint32_t>(route.hops);
      path.latency = route.latency;
      path.bottleneck = route.bottleneck;
      model_.paths.push_back(path);
    }
  }

  const Schedule& schedule_;
  const Machine& machine_;
  const Topology& topology_;
  const Placement& placement_;
  Cancellation stop_;
  const Orbits* orbits_;
  RouteTable routes_;
  /// By participants and what the switch does: (order, routing).
  std::map<std::pair<std::uint32_t, InSwitch>, std::vector<std::pair<const std::vector<int>*, std::uint32_t>>> routings_;
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> senders_;  // by program and receivers
  Model model_;
};

Diagnostic too_long(const Model& model, std::uint32_t p, std::size_t t, std::size_t local, Seconds duration) {
  const DeviceId device{static_cast<int>(model.deployment.programs[p].devices[local])};
  const Program& program = model.schedule->programs[p];
  return {location_of(program.tasks[t].written_at),
          fmt::format("task {} on device {} ({}) takes {}; expected less than 2000000 s, as the clock goes to 106 days", task_name(program, TaskId{t}), device.value,
                      model.schedule->mesh.name(device), to_text(duration))};
}

}  // namespace

Seconds Model::reduction(std::uint32_t program, std::size_t task, std::size_t local) const {
  const Participants& who = deployment.who(program, task);
  const TaskCost& receiving = who.to_task.empty() ? costs[program][task] : costs[deployment.places[who.to[local]].program][who.to_task[local]];
  return at_speed(receiving.reduction, who.to[local]);
}

Seconds uncontended(const Model& model, std::uint32_t program, std::size_t task, std::size_t local) {
  const TaskCost& cost = model.costs[program][task];
  if (cost.kind == TaskCost::Kind::work) return model.work(program, cost, local);
  return unshared(cost, model.path(cost, local)) + model.reduction(program, task, local);
}

Seconds unshared(const TaskCost& cost, const Path& path) { return cost.delay + path.latency + Seconds{cost.flow_bytes / path.bottleneck.count()}; }

Status check_durations(const Model& model, Cancellation stop) {
  Path worst;  // the longest latency and the least bottleneck of any
  for (const Path& path : model.paths) {
    worst.latency = std::max(worst.latency, path.latency);
    worst.bottleneck = std::min(worst.bottleneck, path.bottleneck);
  }
  const double slowest = model.speed.empty() ? 1 : *std::min_element(model.speed.begin(), model.speed.end());
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      const Participants& who = model.deployment.who(p, t);
      if (stop.requested()) return cancelled_work();
      // A Send's receivers are looked at one by one.
      const bool surely_fits = cost.kind == TaskCost::Kind::transfer && who.to_task.empty() && fits_clock(unshared(cost, worst) + cost.reduction / slowest);
      const bool the_same_everywhere = cost.kind == TaskCost::Kind::work && model.speed.empty();
      if (who.doers == 0 || surely_fits) continue;
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        if (const Seconds duration = uncontended(model, p, t, l); !fits_clock(duration)) return too_long(model, p, t, l, duration);
        if (the_same_everywhere) break;
      }
    }
  return success();
}

Expected<Model> make_model(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement, Cancellation stop,
                           std::shared_ptr<const PlayedCalls> calls) {
  Deployed deployed = deploy(lowered, stop);
  if (!deployed.problems.empty()) return deployed.problems.front();
  return cost_deployment(lowered, machine, topology, placement, std::move(deployed.deployment), stop, std::move(calls));
}

Expected<Model> cost_deployment(const Schedule& lowered, const Machine& machine, const Topology& topology, const Placement& placement,
                                Deployment deployment, Cancellation stop, std::shared_ptr<const PlayedCalls> calls, const Orbits* orbits) {
  if (placement.chip_of.size() != static_cast<std::size_t>(lowered.mesh.devices()))
    return Diagnostic{location_of(file_of(lowered)),
                      fmt::format("the schedule is for {} devices, the placement has {}", lowered.mesh.devices(), placement.chip_of.size())};
  return ModelBuilder{lowered, machine, topology, placement, stop, orbits}.run(std::move(deployment), std::move(calls));
}

}  // namespace podsim
