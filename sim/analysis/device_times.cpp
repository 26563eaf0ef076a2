#include "sim/analysis/device_times.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/node_activity.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

Interval shifted(const Interval& interval, Picoseconds by) { return {interval.begin + by, interval.end + by}; }

/// The one axis on which two devices differ; -1: none, or several.
int axis_between(const Mesh& mesh, DeviceId device, const Peer& peer) {
  const Coordinates here = mesh.coordinates(device);
  int axis = -1;
  for (std::size_t a = 0; a < peer.size(); ++a) {
    if (evaluate(peer[a], here) == here[a]) continue;
    if (axis >= 0) return -1;
    axis = static_cast<int>(a);
  }
  return axis;
}

class Recorder {
 public:
  Recorder(const Model& model, const Timeline& timeline, std::uint32_t node)
      : model_{model},
        timeline_{timeline},
        activity_{model, timeline, node},
        node_{node},
        program_{model.deployment.places[node].program},
        local_{model.deployment.places[node].local} {}

  DeviceTimes run() {
    if (activity_.idle()) return {};
    record_core();
    std::size_t next_call = 0;
    for (std::size_t t = 0; t < model_.costs[program_].size(); ++t) {
      if (const PlayedCall* call = model_.call(program_, t); call != nullptr && does(t))
        record_call(*call, calls_[next_call++]);
      else
        record_task(t);
    }
    times_.core = merged(std::move(times_.core));
    times_.dma = merged(std::move(times_.dma));
    merge_flights();
    PODSIM_ASSERT(covered(times_.core) == total(times_.parts));
    return std::move(times_);
  }

 private:
  [[nodiscard]] bool does(std::size_t t) const { return model_.deployment.who(program_, t).does(local_); }

  void record_core() {
    for (const NodeActivity::CoreTime& time : activity_.core_times()) {
      const Picoseconds length = time.interval.end - time.interval.begin;
      const std::size_t t = time.task.index();
      if (time.share) {
        if (length > Picoseconds{}) shares_.emplace(t, time.interval);
        continue;
      }
      if (const PlayedCall* call = model_.call(program_, t)) {
        CoreParts parts = call->times.parts;
        if (model_.task(program_, t).recompute) parts.recompute = parts.recompute + std::exchange(parts.compute, {});
        times_.parts = times_.parts + parts;
        for (const Interval& busy : call->times.core) times_.core.push_back(shifted(busy, time.interval.begin));
        calls_.push_back(time.interval.begin);
        continue;
      }
      if (length == Picoseconds{}) continue;
      times_.core.push_back(time.interval);
      const Picoseconds launch = ceil_to_clock(model_.at_speed(model_.costs[program_][t].launch, node_));
      times_.parts = times_.parts + core_parts(model_.task(program_, t), length, std::min(length, launch));
    }
  }

  void record_call(const PlayedCall& call, Picoseconds start) {
    for (const Interval& busy : call.times.dma) times_.dma.push_back(shifted(busy, start));
    for (OperationFlight flight : call.times.flights) {
      flight.when = shifted(flight.when, start);
      flight.operation += times_.operations;
      times_.flights.push_back(flight);
    }
    times_.operations += call.times.operations;
  }

  void record_task(std::size_t t) {
    const Task& task = model_.task(program_, t);
    if (model_.costs[program_][t].kind == TaskCost::Kind::work && !model_.costs[program_][t].on_core && !is_launch(task.op) && does(t)) {
      const std::uint32_t a = model_.deployment.activity(program_, t, local_);
      if (timeline_.start(a) < timeline_.sent(a)) times_.dma.push_back({timeline_.start(a), timeline_.sent(a)});
      for (auto [share, last] = shares_.equal_range(t); share != last; ++share) times_.dma.push_back(share->second);
      return;
    }
    std::uint32_t operation = no_device;
    const auto add = [&](const Task&, const Interval& when) {
      if (when.begin == when.end) return;
      if (operation == no_device) operation = operation_of(task);
      times_.flights.push_back({when, operation, static_cast<std::int16_t>(axis_of(task)), kind_of(task)});
    };
    activity_.each_flight_of(t, add);
    for (auto [share, last] = shares_.equal_range(t); share != last; ++share) add(task, share->second);
  }

  std::uint32_t operation_of(const Task& task) {
    if (!task.origin) return times_.operations++;
    const auto [known, added] = collectives_.try_emplace(task.origin->collective, times_.operations);
    if (added) ++times_.operations;
    return known->second;
  }

  [[nodiscard]] int axis_of(const Task& task) const {
    const Mesh& mesh = model_.schedule->mesh;
    if (task.origin) return moving_axis(task);
    if (const auto* send = std::get_if<Send>(&task.op)) return axis_between(mesh, model_.device_of[node_], send->to);
    if (const auto* recv = std::get_if<Recv>(&task.op)) return axis_between(mesh, model_.device_of[node_], recv->from);
    return moving_axis(task);
  }

  static OperationFlight::Kind kind_of(const Task& task) {
    if (std::holds_alternative<Local>(task.op)) return OperationFlight::Kind::launch;
    return task.origin || std::holds_alternative<Shift>(task.op) ? OperationFlight::Kind::transfer : OperationFlight::Kind::exchange;
  }

  void merge_flights() {
    const auto key = [](const OperationFlight& flight) { return std::tuple{flight.operation, flight.axis, flight.kind}; };
    std::vector<OperationFlight>& flights = times_.flights;
    std::ranges::sort(flights, {}, [&](const OperationFlight& flight) {
      return std::tuple_cat(key(flight), std::tuple{flight.when.begin, flight.when.end});
    });
    std::size_t kept = 0;
    for (const OperationFlight& flight : flights) {
      if (kept > 0 && key(flights[kept - 1]) == key(flight) && flight.when.begin <= flights[kept - 1].when.end)
        flights[kept - 1].when.end = std::max(flights[kept - 1].when.end, flight.when.end);
      else
        flights[kept++] = flight;
    }
    flights.resize(kept);
  }

  const Model& model_;
  const Timeline& timeline_;
  NodeActivity activity_;
  std::uint32_t node_, program_;
  std::size_t local_;
  DeviceTimes times_;
  std::vector<Picoseconds> calls_;  // their starts
  std::multimap<std::size_t, Interval> shares_;  // of the core, by operation
  std::unordered_map<int, std::uint32_t> collectives_;
};

}  // namespace

CoreParts core_parts(const Task& task, Picoseconds time, Picoseconds launch) {
  CoreParts parts;
  parts.launch = launch;
  const auto* local = std::get_if<Local>(&task.op);
  const std::string_view category = local == nullptr ? std::string_view{} : traits_of(local->kind).category;
  Picoseconds& part = category == "copy"        ? parts.copies
                      : category == "optimiser" ? parts.optimiser
                      : task.recompute          ? parts.recompute
                                                : parts.compute;
  part = time - launch;
  return parts;
}

DeviceTimes device_times(const Model& model, const Timeline& timeline, std::uint32_t node) {
  PODSIM_ASSERT(!timeline.interrupted);
  return Recorder{model, timeline, node}.run();
}

CoreTimes::CoreTimes(const Model& model) : model_{model}, cores_(model.nodes()), next_piece_(model.costs.size(), 0) {}

void CoreTimes::read(std::uint32_t p, std::size_t t, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) {
  if (!model_.costs[p][t].on_core) return;
  work_off(p, t);
  const Participants& who = model_.deployment.who(p, t);
  const std::vector<std::uint32_t>& devices = model_.deployment.programs[p].devices;
  const PlayedCall* call = model_.call(p, t);
  for (std::size_t l = 0; l < devices.size(); ++l) {
    if (!who.does(l)) continue;
    Core& core = cores_[devices[l]];
    const Picoseconds begin = std::max(start[l], core.free);
    core.free = core.since = std::max(begin, sent[l]);
    core.shares = {};
    core.busy += call != nullptr ? total(call->times.parts) : core.free - begin;
  }
}

/// The shares before the task at this position.
void CoreTimes::work_off(std::uint32_t p, std::size_t place) {
  if (model_.core_shares.empty()) return;
  const std::vector<CoreShares::Piece>& pieces = model_.core_shares[p].pieces;
  const std::vector<std::uint32_t>& devices = model_.deployment.programs[p].devices;
  for (std::size_t& next = next_piece_[p]; next < pieces.size() && pieces[next].place <= place; ++next)
    for (std::size_t l = 0; l < devices.size(); ++l) {
      if (pieces[next].time[l] == Seconds{}) continue;
      Core& core = cores_[devices[l]];
      core.shares += pieces[next].time[l];
      core.free = later(core.since, ceil_to_clock(core.shares));
    }
}

std::vector<Picoseconds> CoreTimes::totals() {
  std::vector<Picoseconds> busy;
  for (std::uint32_t p = 0; p < model_.costs.size(); ++p) work_off(p, model_.costs[p].size());
  busy.reserve(cores_.size());
  for (const Core& core : cores_) busy.push_back(core.busy);
  return busy;
}

std::vector<Picoseconds> core_times(const Model& model, const Timeline& timeline) {
  CoreTimes times{model};
  read_times(model, timeline, times);
  return times.totals();
}

}  // namespace podsim
