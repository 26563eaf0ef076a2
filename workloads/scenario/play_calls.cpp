#include "workloads/scenario/play_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "sim/analysis/device_times.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/operations.hpp"
#include "sim/analysis/peak_memory.hpp"
#include "sim/model/routes.hpp"
#include "sim/model/shared_memory.hpp"
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
  quiet.control.most_work = RunControl{}.most_work;
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
  for (const TaskCost& cost : model->costs.front())
    if (cost.on_core) call.core_work += cost.work;
  constexpr std::int64_t ends = 2;  // what inline_calls() writes around them
  call.tasks = metrics.tasks + ends * size_of(lowered.programs[program].devices);
  BufferLives lives{*model};
  read_times(*model, *timeline, lives);
  lives.describe(call, node, static_cast<std::size_t>(lowered.functions[function].parameters));
  call.times = device_times(*model, *timeline, node);
  const DeviceMetrics device = measure_devices(*model, *timeline)[node];
  call.sent = device.sent;
  call.received = device.received;
  call.operations = measure_operations(*model, *timeline, model->device_of[node]);
  for (const OperationMetrics& operation : call.operations) call.memory_bytes += operation.memory_bytes;
  const DrawnBesideCores drawn = drawn_beside_cores(*model);
  call.drawn_beside_core = drawn.all, call.fastest_beside_core = drawn.fastest;
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
      const DeviceId to = receiver_of(mesh, *shift, from);
      if (to == from || leaves_axis(mesh, *shift, here)) return std::nullopt;
      return to;
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

bool same_way(const Op& a, const Op& b) {
  const auto *one = std::get_if<Shift>(&a), *other = std::get_if<Shift>(&b);
  if (one != nullptr && other != nullptr)
    return one->axis == other->axis && one->by == other->by && one->by_dimension == other->by_dimension && one->route_order == other->route_order && one->in_switch == other->in_switch;
  const auto *sent = std::get_if<Send>(&a), *also = std::get_if<Send>(&b);
  return sent != nullptr && also != nullptr && sent->to == also->to && sent->route_order == also->route_order;
}

/// The functions that a program calls.
std::set<int> functions_of(const Program& program) {
  std::set<int> called;
  for (const Task& task : program.tasks)
    if (const auto* call = std::get_if<Call>(&task.op)) called.insert(call->function);
  return called;
}

/// Finds what uses links of calls.
class ConflictFinder {
 public:
  ConflictFinder(const System& system, const Schedule& lowered) : schedule_{lowered}, routes_{lowered, system} {}

  Expected<CallConflicts> run() {
    for (std::uint32_t p = 0; p < schedule_.programs.size(); ++p)
      for (const int function : functions_of(schedule_.programs[p])) {
        auto links = links_of(function, schedule_.programs[p].devices);
        if (!links) return links.error();
        if (std::find(links->begin(), links->end(), true) != links->end()) calls_.push_back({{p, function}, *std::move(links)});
      }
    for (std::uint32_t q = 0; q < schedule_.programs.size(); ++q)
      if (auto ok = add_users_in(q); !ok) return ok.error();
    return std::move(found_);
  }

 private:
  using Links = LinksOfTransfers::Links;
  struct CalledLinks {
    CallConflicts::Caller caller;
    Links links;
  };

  Expected<Links> links_of(int function, const DeviceSet& devices) {
    Links links = routes_.none();
    std::vector<const Op*> known;
    for (const Task& task : schedule_.functions[static_cast<std::size_t>(function)].body.tasks) {
      if (!std::holds_alternative<Shift>(task.op)) continue;
      if (std::any_of(known.begin(), known.end(), [&](const Op* op) { return same_way(*op, task.op); })) continue;
      known.push_back(&task.op);
      if (auto ok = routes_.add(task.op, devices, links); !ok) return ok.error();
    }
    return links;
  }

  /// The position of the callers whose links meet these; nullopt: there are none. `but`: a program whose own calls do not count.
  std::optional<std::size_t> callers_on(const Links& links, std::optional<std::uint32_t> but) {
    std::vector<CallConflicts::Caller> callers;
    for (const CalledLinks& called : calls_)
      if (called.caller.program != but && share_one(called.links, links)) callers.push_back(called.caller);
    if (callers.empty()) return std::nullopt;
    found_.callers.push_back(std::move(callers));
    return found_.callers.size() - 1;
  }

  Status add_users_in(std::uint32_t q) {
    const Program& program = schedule_.programs[q];
    std::map<int, std::optional<std::size_t>> of_calls;
    for (const CalledLinks& called : calls_)
      if (called.caller.program == q) of_calls[called.caller.function] = callers_on(called.links, q);
    struct Known {
      const Op* op;
      std::optional<std::size_t> callers;
    };
    std::vector<Known> known;
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      const Op& op = program.tasks[t].op;
      std::optional<std::size_t> callers;
      if (const auto* call = std::get_if<Call>(&op)) {
        if (const auto of_call = of_calls.find(call->function); of_call != of_calls.end()) callers = of_call->second;
      } else if (std::holds_alternative<Shift>(op) || std::holds_alternative<Send>(op)) {
        auto entry = std::find_if(known.begin(), known.end(), [&](const Known& other) { return same_way(*other.op, op); });
        if (entry == known.end()) {
          Links links = routes_.none();
          if (auto ok = routes_.add(op, program.devices, links); !ok) return ok.error();
          entry = known.insert(known.end(), {&op, callers_on(links, std::nullopt)});
        }
        callers = entry->callers;
      }
      if (callers) found_.users.push_back({q, t, *callers});
    }
    return success();
  }

  const Schedule& schedule_;
  LinksOfTransfers routes_;
  std::vector<CalledLinks> calls_;
  CallConflicts found_;
};

std::string name_of_task(const Model& model, std::uint32_t program, std::size_t task) {
  return fmt::format("task {}{}", task_name(model.schedule->programs[program], TaskId{task}),
                     model.schedule->programs.size() == 1 ? "" : fmt::format(" of program {}", program));
}

/// When the calls of a program are played.
class CallTimes {
 public:
  struct Played {
    std::size_t task = 0;
    Interval when;
    bool together = true;  // all devices begin it at the same time
  };

  CallTimes(const Model& model, const Timeline& timeline, std::uint32_t program) {
    for (std::size_t t = 0; t < model.costs[program].size(); ++t) {
      if (model.call(program, t) == nullptr) continue;
      const Participants& who = model.deployment.who(program, t);
      std::optional<Played> played;
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const std::uint32_t a = model.deployment.activity(program, t, l);
        const Interval when{timeline.start(a), timeline.sent(a)};
        if (!played) played = Played{t, when};
        played->together = played->together && played->when == when;
        played->when = {std::min(played->when.begin, when.begin), std::max(played->when.end, when.end)};
      }
      if (played) calls_.push_back(*played);
    }
    latest_end_.reserve(calls_.size());
    for (const Played& played : calls_) latest_end_.push_back(std::max(played.when.end, latest_end_.empty() ? Picoseconds{} : latest_end_.back()));
  }

  [[nodiscard]] const std::vector<Played>& all() const { return calls_; }

  /// Calls visit(task) for each call that goes on during an interval. Devices that begin calls at different times may have them out of order.
  template <class Visit>
  void each_during(const Interval& when, Visit visit) const {
    if (when.begin == when.end) return;
    const auto first = std::ranges::upper_bound(latest_end_, when.begin) - latest_end_.begin();
    for (auto call = calls_.begin() + first; call != calls_.end() && call->when.begin < when.end; ++call)
      if (call->when.begin < call->when.end && when.begin < call->when.end) visit(call->task);
  }

 private:
  std::vector<Played> calls_;             // in program order, which is that of their begins on any one device
  std::vector<Picoseconds> latest_end_;  // of those up to each
};

/// Finds the calls of a run that something else takes part in.
class Inexactness {
 public:
  Inexactness(const Model& model, const Timeline& timeline) : model_{model}, timeline_{timeline} {
    for (std::uint32_t p = 0; p < model.costs.size(); ++p) {
      times_.emplace_back(model, timeline, p);
      for (InexactCalls* found : {&found_.by_links, &found_.by_memory}) found->chosen.emplace_back(model.costs[p].size(), false);
    }
  }

  InexactPlay run(const CallConflicts& conflicts) {
    for (std::uint32_t p = 0; p < times_.size(); ++p)
      for (const CallTimes::Played& played : times_[p].all())
        if (!played.together) choose(found_.by_links, p, played.task, [&] { return fmt::format("devices begin {} at different times", name_of_task(model_, p, played.task)); });
    look_at_links(conflicts);
    const Chip& chip = model_.machine->chip;
    if (chip.memory_shared && !is_unlimited(chip.hbm_bandwidth) && chip.transfer_memory_passes > 0) look_at_memory();
    return std::move(found_);
  }

 private:
  template <class Why>
  static void choose(InexactCalls& found, std::uint32_t program, std::size_t task, Why why) {
    if (found.chosen[program][task]) return;
    found.chosen[program][task] = true;
    if (found.count++ == 0) found.why = why();
  }

  /// Calls visit(local node, interval) for each activity of a task.
  template <class Visit>
  void each_activity(std::uint32_t p, std::size_t t, Visit visit) const {
    const Participants& who = model_.deployment.who(p, t);
    for (std::size_t l = 0; l < who.to.size(); ++l) {
      if (!who.does(l)) continue;
      const std::uint32_t a = model_.deployment.activity(p, t, l);
      visit(l, Interval{timeline_.start(a), timeline_.sent(a)});
    }
  }

  void look_at_links(const CallConflicts& conflicts) {
    for (const CallConflicts::User& user : conflicts.users)
      each_activity(user.program, user.task, [&](std::size_t, const Interval& when) {
        for (const CallConflicts::Caller& caller : conflicts.callers[user.callers])
          times_[caller.program].each_during(when, [&](std::size_t call) {
            if (std::get<Call>(model_.task(caller.program, call).op).function != caller.function) return;
            choose(found_.by_links, caller.program, call, [&] {
              return fmt::format("{} uses links of {} at the same time", name_of_task(model_, user.program, user.task), name_of_task(model_, caller.program, call));
            });
          });
      });
  }

  /// A transfer of a program reads the memory of its sender and writes that of its receiver. dma tasks draw memory, too.
  void look_at_memory() {
    uses_.resize(model_.nodes());
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
        const TaskCost& cost = model_.costs[p][t];
        const bool moves = cost.kind == TaskCost::Kind::transfer && cost.flow_bytes > 0, works = cost.kind == TaskCost::Kind::work && !cost.on_core && cost.memory_bytes > 0;
        if (!moves && !works) continue;
        const Participants& who = model_.deployment.who(p, t);
        const double passes = model_.machine->chip.transfer_memory_passes;
        each_activity(p, t, [&](std::size_t l, const Interval& when) {
          const std::uint32_t node = model_.deployment.programs[p].devices[l];
          if (works) return use_memory(node, p, t, {when, cost.memory_bytes, 1, cost.memory_bytes / (cost.work - cost.launch - cost.rest).count()});
          const double arrives = (arrival_adds(model_, p, t, l) ? 2 : 1) * passes, rate = model_.path(cost, l).bottleneck.count();
          use_memory(node, p, t, {when, passes * cost.flow_bytes, passes, rate});
          use_memory(who.to[l], p, t, {when, arrives * cost.flow_bytes, arrives, rate});
        });
      }
    for (std::vector<Use>& uses : uses_) found_.transfers_wait = found_.transfers_wait || !leaves_enough(uses);
    for (std::uint32_t node = 0; node < uses_.size() && !found_.transfers_wait; ++node) add_waits(node);
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t)
        if (found_.by_memory.chosen[p][t] && !found_.by_links.chosen[p][t]) found_.waiting.push_back({p, t, waits_[{p, t}]});
    std::ranges::stable_sort(found_.waiting, std::greater{}, &InexactPlay::Waiting::at_most);
  }

  /// What draws a node's memory: at most `times` its rate.
  struct Use {
    Interval when;
    double bytes = 0, times = 0, rate = 0;  // per second
    bool beside_call = false;
    double drawn_in_calls = 0, fastest_in_calls = 0;  // beside their cores
    double others = 0;                                // at the same time

    /// Bytes per second of all but the cores.
    [[nodiscard]] double all() const { return times * rate + others + drawn_in_calls; }
  };

  /// That of a node, by a task of program `user`.
  void use_memory(std::uint32_t node, std::uint32_t user, std::size_t task, Use use) {
    if (use.times == 0) return;
    const std::uint32_t program = model_.deployment.places[node].program;
    times_[program].each_during(use.when, [&](std::size_t call) {
      const PlayedCall& played = *model_.call(program, call);
      use.beside_call = true;
      use.drawn_in_calls = std::max(use.drawn_in_calls, played.drawn_beside_core), use.fastest_in_calls = std::max(use.fastest_in_calls, played.fastest_beside_core);
      choose(found_.by_memory, program, call, [&] {
        return fmt::format("{} uses the memory of {} at the same time", name_of_task(model_, user, task), name_of_task(model_, program, call));
      });
    });
    uses_[node].push_back(use);
  }

  /// Whether all uses beside calls, and what goes on beside the core in those calls, get their rates. The memory raises the rates of all that share it together, so they do if there is enough
  /// for all of them where the core's operation draws as much as the fastest. Sums `others` up.
  [[nodiscard]] bool leaves_enough(std::vector<Use>& uses) const {
    std::ranges::sort(uses, {}, [](const Use& use) { return use.when.begin; });
    const auto has_enough = [&](const Use& use) {
      return !use.beside_call || use.all() + std::max(use.rate, use.fastest_in_calls) <= model_.machine->chip.hbm_bandwidth.count();
    };
    std::vector<Use*> active;
    for (Use& use : uses) {
      std::erase_if(active, [&](const Use* other) { return other->when.end <= use.when.begin; });
      for (Use* other : active) {
        other->others += use.times * use.rate, use.others += other->times * other->rate;
        if (!has_enough(*other)) return false;
      }
      if (!has_enough(use)) return false;
      active.push_back(&use);
    }
    return true;
  }

  /// The core's operations make up for what a use takes from them at the rate that all uses leave. Devices of a call that has transfers wait for each other's waits, too.
  void add_waits(std::uint32_t node) {
    const std::uint32_t program = model_.deployment.places[node].program;
    std::map<std::size_t, Seconds> waits;
    for (const Use& use : uses_[node])
      times_[program].each_during(use.when, [&](std::size_t call) { waits[call] += Seconds{use.bytes / (model_.machine->chip.hbm_bandwidth.count() - use.all())}; });
    for (const auto& [call, seconds] : waits) {
      Seconds& most = waits_[{program, call}];
      most = model_.call(program, call)->drawn_beside_core > 0 ? most + seconds : std::max(most, seconds);
    }
  }

  const Model& model_;
  const Timeline& timeline_;
  std::vector<CallTimes> times_;
  std::vector<std::vector<Use>> uses_;                               // of each node's memory
  std::map<std::pair<std::uint32_t, std::size_t>, Seconds> waits_{};  // at most, of a program's call
  InexactPlay found_;
};

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
  return PlayableCalls{std::move(calls), {}};
}

Expected<CallConflicts> call_conflicts(const System& system, const Schedule& lowered) { return ConflictFinder{system, lowered}.run(); }

InexactPlay inexact_calls(const Model& model, const Timeline& timeline, const CallConflicts& conflicts) { return Inexactness{model, timeline}.run(conflicts); }

}  // namespace podsim
