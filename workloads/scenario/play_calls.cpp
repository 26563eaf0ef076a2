#include "workloads/scenario/play_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/analysis/device_times.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/node_activity.hpp"
#include "sim/analysis/operations.hpp"
#include "sim/model/routes.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/text.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

namespace {

/// The figures of a function alone on the devices of a program; nullopt: its devices do not do the same.
Expected<std::optional<PlayedCall>> play_alone(const System& system, const Schedule& lowered, std::size_t program, std::size_t function,
                                               const RunOptions& options) {
  const Schedule alone = schedule_of_call(lowered, program, function);
  RunOptions quiet = options;
  quiet.fold = true;
  quiet.control.progress = {};
  quiet.control.record = true;
  quiet.control.limit = end_of_clock;
  auto model = model_on(system, alone, quiet);
  if (!model) return model.error();
  const auto runs = [](const Deployment::Place& place) { return place.program != no_device; };
  const std::vector<Deployment::Place>& places = model->deployment.places;
  if (std::count_if(places.begin(), places.end(), runs) != 1) return std::optional<PlayedCall>{};
  const auto node = static_cast<std::uint32_t>(std::find_if(places.begin(), places.end(), runs) - places.begin());  // not Metrics::busiest: no core may be busy
  const auto timeline = des_engine().run(*model, quiet.control);
  if (!timeline) return timeline.error();
  if (timeline->interrupted) return cancelled_work();

  const Metrics metrics = measure(*model, *timeline);
  PlayedCall call;
  call.length = metrics.makespan;
  call.products = metrics.products;
  constexpr std::int64_t joins = 2;  // what inline_calls() writes around them
  call.tasks = metrics.tasks + joins * size_of(lowered.programs[program].devices);
  Bytes arguments;
  for (std::size_t b = 0; b < static_cast<std::size_t>(lowered.functions[function].parameters); ++b)
    arguments += size_on_device(alone.programs.front().buffers[b]);
  call.scratch = metrics.peak_memory - arguments;
  call.times = device_times(*model, *timeline, node);
  const DeviceMetrics device = measure_devices(*model, *timeline)[node];
  call.sent = device.sent;
  call.received = device.received;
  for (const OperationMetrics& operation : measure_operations(*model, *timeline, model->device_of[node])) call.memory_bytes += operation.memory_bytes;
  call.writes = written_parameters(lowered.functions[function]);
  for (const AxisMetrics& axis : metrics.axes) call.axes.push_back({axis.axis, axis.link_bytes, axis.transfers});
  return std::optional<PlayedCall>{std::move(call)};
}

/// Which links transfers may use, on any device of their program.
class LinksOfTransfers {
 public:
  LinksOfTransfers(const Schedule& schedule, const System& system)
      : schedule_{schedule}, slots_{static_cast<std::size_t>(system.topology->link_slots())}, routes_{schedule.mesh, *system.topology, system.placement} {}

  using Links = std::vector<bool>;
  [[nodiscard]] Links none() const { return Links(slots_, false); }

  /// Adds those of a Shift or Send; guards are not looked at. Other operations use none. Errors: those of routes.
  Status add(const Op& op, const DeviceSet& devices, Links& links) {
    for (const DeviceSet::Interval& interval : devices.intervals)
      for (int d = interval.first; d < interval.last; ++d) {
        const auto to = reached(op, DeviceId{d});
        if (!to) continue;
        const auto route = routes_.find(op, DeviceId{d}, *to);
        if (!route) return route.error();
        const RouteTable::Route& found = routes_.routes()[*route];
        for (std::size_t i = found.first; i < found.last; ++i) links[routes_.links()[i].index()] = true;
      }
    return success();
  }

 private:
  [[nodiscard]] std::optional<DeviceId> reached(const Op& op, DeviceId from) const {
    const Mesh& mesh = schedule_.mesh;
    const Coordinates here = mesh.coordinates(from);
    if (const auto* shift = std::get_if<Shift>(&op)) {
      const std::int64_t by = evaluate(shift->by, here), to = coordinate_on(here, shift->axis) + by;
      const bool leaves = !mesh.wraps(shift->axis) && (to < 0 || to >= shift->axis.size);  // where a guard keeps it
      if (by % shift->axis.size == 0 || leaves) return std::nullopt;
      return mesh.shifted(from, shift->axis, by);
    }
    const auto* send = std::get_if<Send>(&op);
    if (send == nullptr) return std::nullopt;
    Coordinates there;
    for (std::size_t a = 0; a < send->to.size(); ++a) {
      there.push_back(static_cast<int>(evaluate(send->to[a], here)));
      if (there.back() < 0 || there.back() >= mesh.axes()[a].size) return std::nullopt;
    }
    return mesh.device(there);
  }

  const Schedule& schedule_;
  std::size_t slots_;
  RouteTable routes_;
};

bool share_one(const std::vector<bool>& a, const std::vector<bool>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] && b[i]) return true;
  return false;
}

/// Everything that might disturb a call, found from routes alone.
Expected<std::vector<CallConflict>> conflicts_of(const System& system, const Schedule& lowered) {
  LinksOfTransfers routes{lowered, system};
  const std::size_t programs = lowered.programs.size();
  std::vector<LinksOfTransfers::Links> of_calls(programs, routes.none());
  const auto same_way = [](const Op& a, const Op& b) {
    const auto *one = std::get_if<Shift>(&a), *other = std::get_if<Shift>(&b);
    if (one != nullptr && other != nullptr)
      return one->axis == other->axis && one->by == other->by && one->route_order == other->route_order && one->in_switch == other->in_switch;
    const auto *sent = std::get_if<Send>(&a), *also = std::get_if<Send>(&b);
    return sent != nullptr && also != nullptr && sent->to == also->to && sent->route_order == also->route_order;
  };
  for (std::size_t p = 0; p < programs; ++p) {
    std::vector<const Op*> known;
    for (std::size_t f = 0; f < lowered.functions.size(); ++f) {
      const bool called = std::any_of(lowered.programs[p].tasks.begin(), lowered.programs[p].tasks.end(), [&](const Task& task) {
        const auto* call = std::get_if<Call>(&task.op);
        return call != nullptr && static_cast<std::size_t>(call->function) == f;
      });
      if (!called) continue;
      for (const Task& task : lowered.functions[f].body.tasks) {
        if (!std::holds_alternative<Shift>(task.op)) continue;
        if (std::any_of(known.begin(), known.end(), [&](const Op* op) { return same_way(*op, task.op); })) continue;
        known.push_back(&task.op);
        if (auto ok = routes.add(task.op, lowered.programs[p].devices, of_calls[p]); !ok) return ok.error();
      }
    }
  }
  std::vector<CallConflict> conflicts;
  for (std::uint32_t q = 0; q < programs; ++q) {
    struct Known {
      const Op* op;
      std::vector<std::uint32_t> callers;
    };
    std::vector<Known> known;
    std::vector<std::uint32_t> of_other_calls;
    for (std::uint32_t p = 0; p < programs; ++p)
      if (p != q && share_one(of_calls[p], of_calls[q])) of_other_calls.push_back(p);
    for (std::size_t t = 0; t < lowered.programs[q].tasks.size(); ++t) {
      const Op& op = lowered.programs[q].tasks[t].op;
      if (std::holds_alternative<Call>(op)) {
        for (const std::uint32_t p : of_other_calls) conflicts.push_back({p, q, t});
        continue;
      }
      if (!std::holds_alternative<Shift>(op) && !std::holds_alternative<Send>(op)) continue;
      auto found = std::find_if(known.begin(), known.end(), [&](const Known& other) { return same_way(*other.op, op); });
      if (found == known.end()) {
        auto links = routes.none();
        if (auto ok = routes.add(op, lowered.programs[q].devices, links); !ok) return ok.error();
        Known added{&op, {}};
        for (std::uint32_t p = 0; p < programs; ++p)
          if (share_one(of_calls[p], links)) added.callers.push_back(p);
        known.push_back(std::move(added));
        found = known.end() - 1;
      }
      for (const std::uint32_t p : found->callers) conflicts.push_back({p, q, t});
    }
  }
  return conflicts;
}

/// When any node of a program is in a call.
std::vector<Interval> times_of_calls(const Model& model, const Timeline& timeline, std::uint32_t p) {
  std::vector<Interval> times;
  for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
    if (model.call(p, t) == nullptr) continue;
    const Participants& who = model.deployment.who(p, t);
    for (std::size_t l = 0; l < who.to.size(); ++l)
      if (who.does(l)) times.push_back({timeline.start(model.deployment.activity(p, t, l)), timeline.sent(model.deployment.activity(p, t, l))});
  }
  return merged(std::move(times));
}

bool meets(const std::vector<Interval>& merged_times, const Interval& interval) {
  const auto next = std::partition_point(merged_times.begin(), merged_times.end(), [&](const Interval& other) { return other.end <= interval.begin; });
  return next != merged_times.end() && next->begin < interval.end;
}

std::string name_of_task(const Model& model, std::uint32_t program, std::size_t task) {
  return fmt::format("task {}{}", task_name(model.schedule->programs[program], TaskId{task}),
                     model.schedule->programs.size() == 1 ? "" : fmt::format(" of program {}", program));
}

}  // namespace

Expected<PlayableCalls> play_calls(const System& system, const Schedule& lowered, const RunOptions& options) {
  if (!system.placement.speed.empty()) return PlayableCalls{nullptr, "cores differ in speed"};
  auto calls = std::make_shared<PlayedCalls>(lowered.programs.size(), std::vector<PlayedCall>(lowered.functions.size()));
  for (std::size_t p = 0; p < lowered.programs.size(); ++p) {
    std::vector<bool> done(lowered.functions.size(), false);
    for (const Task& task : lowered.programs[p].tasks) {
      const auto* call = std::get_if<Call>(&task.op);
      if (call == nullptr) continue;
      const auto f = static_cast<std::size_t>(call->function);
      if (done[f]) continue;
      done[f] = true;
      if (options.stopped()) return cancelled_work();
      options.tell(fmt::format("simulating {} of {}", lowered.functions[f].name, lowered.name));
      auto played = play_alone(system, lowered, p, f, options);
      if (!played) return played.error();
      if (!*played)
        return PlayableCalls{nullptr, fmt::format("devices{} do different things in {}",
                                                  lowered.programs.size() == 1 ? "" : fmt::format(" of program {}", p), quoted(lowered.functions[f].name))};
      (*calls)[p][f] = **std::move(played);
    }
  }
  auto conflicts = conflicts_of(system, lowered);
  if (!conflicts) return conflicts.error();
  return PlayableCalls{std::move(calls), {}, *std::move(conflicts)};
}

std::string why_inexact(const Model& model, const Timeline& timeline, const std::vector<CallConflict>& conflicts) {
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      if (model.call(p, t) == nullptr) continue;
      const Participants& who = model.deployment.who(p, t);
      std::optional<Picoseconds> first;
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const Picoseconds start = timeline.start(model.deployment.activity(p, t, l));
        if (first && *first != start) return fmt::format("devices begin {} at different times", name_of_task(model, p, t));
        first = start;
      }
    }
  std::map<std::uint32_t, std::vector<Interval>> times;
  for (const CallConflict& conflict : conflicts) {
    const auto [of_caller, added] = times.try_emplace(conflict.caller);
    if (added) of_caller->second = times_of_calls(model, timeline, conflict.caller);
    const Participants& who = model.deployment.who(conflict.program, conflict.task);
    for (std::size_t l = 0; l < who.to.size(); ++l) {
      if (!who.does(l)) continue;
      const std::uint32_t a = model.deployment.activity(conflict.program, conflict.task, l);
      if (meets(of_caller->second, {timeline.start(a), timeline.sent(a)}))
        return fmt::format("{} uses links of calls{} at the same time", name_of_task(model, conflict.program, conflict.task),
                           model.costs.size() == 1 ? "" : fmt::format(" of program {}", conflict.caller));
    }
  }
  return {};
}

Bytes beside_calls(const Model& model, const Timeline& timeline) {
  std::vector<std::vector<Interval>> times;
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) times.push_back(times_of_calls(model, timeline, p));
  Bytes total;
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer) continue;
      const Participants& who = model.deployment.who(p, t);
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const std::uint32_t a = model.deployment.activity(p, t, l), q = model.deployment.places[who.to[l]].program;
        const Interval flight{timeline.start(a), timeline.sent(a)};
        if (meets(times[p], flight) || meets(times[q], flight)) total += std::int64_t{model.devices_in[model.deployment.programs[p].devices[l]]} * cost.payload;
      }
    }
  return total;
}

}  // namespace podsim
