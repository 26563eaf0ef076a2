#include "sim/analysis/critical_path.hpp"

#include <algorithm>
#include <map>

#include "sim/analysis/metrics.hpp"
#include "sim/analysis/node_activity.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// What a start may have waited for: an instance up to one of its ends.
struct Predecessor {
  /// sent: of a work its end. shares: the core has worked off core shares; `position` is that of the last of them in NodeActivity::core_times().
  enum class End { none, sent, received, shares };
  End end = End::none;
  DeviceId device;  // that works or sends
  std::uint32_t program = 0;
  std::size_t task = 0;  // of shares: whose share it is
  Picoseconds time;
  std::size_t position = 0;
};

class Walk {
 public:
  Walk(const Model& model, const Timeline& timeline) : model_{model}, deployment_{model.deployment}, timeline_{timeline} {}

  std::vector<PathStep> run() {
    std::vector<PathStep> steps;
    for (Predecessor now = last(); now.end != Predecessor::End::none;) {
      if (now.end == End::shares) {
        add_shares(now, steps);
        now = behind_shares(now);
        continue;
      }
      PathStep step = step_of(now);
      const Predecessor before = predecessor_of(now);
      step.parts.waiting = step.start - std::min(step.start, before.time);
      if (total(step.parts) > Picoseconds{}) steps.push_back(step);
      now = before;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

 private:
  using End = Predecessor::End;

  std::uint32_t node(DeviceId device) const { return model_.node_of[device.index()]; }
  std::size_t local(DeviceId device) const { return deployment_.places[node(device)].local; }
  std::uint32_t activity(const Predecessor& p) const { return deployment_.activity(p.program, p.task, local(p.device)); }
  const TaskCost& cost(const Predecessor& p) const { return model_.costs[p.program][p.task]; }

  /// The first of the instances that end last, on the lowest device of its class.
  Predecessor last() {
    for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
      for (std::size_t t = 0; t < model_.costs[p].size(); ++t)
        for (std::size_t l = 0; l < deployment_.programs[p].devices.size(); ++l) {
          if (!deployment_.who(p, t).does(l)) continue;
          const ActivityTimes times = timeline_.at(deployment_.activity(p, t, l));
          const Predecessor found{End::none, model_.device_of[deployment_.programs[p].devices[l]], p, t, timeline_.makespan};
          if (times.received == timeline_.makespan) return with_end(found, End::received);
          if (times.sent == timeline_.makespan) return with_end(found, End::sent);
        }
    return last_shares();
  }

  /// The core shares that end last, on the lowest device of its class.
  Predecessor last_shares() {
    for (std::uint32_t at = 0; at < model_.nodes(); ++at) {
      if (deployment_.places[at].program == no_device) continue;
      const auto& times = core_of(at).times;
      if (!times.empty() && times.back().share && times.back().interval.end == timeline_.makespan)
        return shares_at(model_.device_of[at], times.size() - 1);
    }
    return {};
  }

  Predecessor shares_at(DeviceId device, std::size_t position) {
    const NodeActivity::CoreTime& time = core_of(node(device)).times.at(position);
    return {End::shares, device, deployment_.places[node(device)].program, time.task.index(), time.interval.end, position};
  }

  /// A step per piece of the core shares that stand together.
  void add_shares(const Predecessor& last, std::vector<PathStep>& steps) {
    const auto& times = core_of(node(last.device)).times;
    for (std::size_t i = last.position + 1; i-- > 0 && times[i].share;) {
      const Interval& interval = times[i].interval;
      PathStep step{last.program, times[i].task, last.device, last.device, -1, interval.begin, interval.end, {}};
      step.parts.core_share = interval.end - interval.begin;
      if (total(step.parts) > Picoseconds{}) steps.push_back(step);
    }
  }

  /// The task on the core before these shares; none: they stand at the start.
  Predecessor behind_shares(const Predecessor& last) {
    const auto& times = core_of(node(last.device)).times;
    for (std::size_t i = last.position + 1; i-- > 0;)
      if (!times[i].share) return {End::sent, last.device, last.program, times[i].task.index(), times[i].interval.end};
    return {};
  }
  static Predecessor with_end(Predecessor p, End end) {
    p.end = end;
    return p;
  }

  PathStep step_of(const Predecessor& p) const {
    const Task& task = model_.task(p.program, p.task);
    const TaskCost& c = cost(p);
    PathStep step{p.program, TaskId{p.task}, p.device, p.device, -1, timeline_.start(activity(p)), p.time, {}};
    if (c.kind == TaskCost::Kind::work) {
      const Picoseconds launch = std::min(p.time - step.start, ceil_to_clock(launch_of(task)));
      step.parts.launch = launch;
      if (is_launch(task.op)) {
        step.parts.own_block = p.time - step.start - launch;
        return step;
      }
      const Picoseconds rest = p.time - step.start - launch;
      if (const auto* local = std::get_if<Local>(&task.op); local != nullptr && traits_of(local->kind).cost == LocalCost::host) {
        step.parts.host = rest;
        return step;
      }
      step.parts.compute = std::min(rest, std::max(ceil_to_clock(model_.work(p.program, c, local(p.device))) - launch, Picoseconds{}));
      step.parts.memory = rest - step.parts.compute;
      return step;
    }
    step.receiver = receiver_of(p);
    step.axis = moving_axis(task);
    const Path& path = model_.path(c, local(p.device));
    Picoseconds left = timeline_.sent(activity(p)) - step.start;
    const auto take = [&](Picoseconds part) {
      part = std::min(left, part);
      left -= part;
      return part;
    };
    step.parts.launch = take(ceil_to_clock(c.delay - model_.machine->software.per_message));
    step.parts.per_message = take(ceil_to_clock(model_.machine->software.per_message));
    step.parts.latency = take(ceil_to_clock(path.latency));
    step.parts.bandwidth = take(ceil_to_clock(Seconds{c.flow_bytes / path.bottleneck.count()}));
    step.parts.sharing = left;
    step.parts.reduction = p.time - timeline_.sent(activity(p));
    return step;
  }

  Seconds launch_of(const Task& task) const {
    const auto& launch = model_.machine->software.launch;
    if (std::holds_alternative<Call>(task.op)) return {};
    if (std::holds_alternative<Matmul>(task.op)) return launch[static_cast<std::size_t>(CostKind::matmul)];
    if (is_launch(task.op))
      return launch[static_cast<std::size_t>(cost_kind_of(task.origin->kind))] +
             (task.origin->in_switch ? model_.machine->software.in_switch_launch : Seconds{});
    return task.origin ? Seconds{} : launch[static_cast<std::size_t>(CostKind::local)];
  }

  /// The devices of the mesh that a transfer joins; a folded model knows their classes only.
  DeviceId receiver_of(const Predecessor& p) const {
    const Mesh& mesh = model_.schedule->mesh;
    if (const auto* shift = std::get_if<Shift>(&model_.task(p.program, p.task).op))
      return podsim::receiver_of(mesh, *shift, p.device);
    return device_at(std::get<Send>(model_.task(p.program, p.task).op).to, p.device);
  }
  DeviceId sender_of(std::uint32_t program, std::size_t task, DeviceId receiver) const {
    const Mesh& mesh = model_.schedule->mesh;
    if (const auto* shift = std::get_if<Shift>(&model_.task(program, task).op)) return podsim::sender_of(mesh, *shift, receiver);
    return device_at(std::get<Recv>(model_.task(program, task).op).from, receiver);
  }
  DeviceId device_at(const Peer& peer, DeviceId from) const {
    const Coordinates here = model_.schedule->mesh.coordinates(from);
    Coordinates there;
    for (const Affine& affine : peer) there.push_back(static_cast<int>(evaluate(affine, here)));
    return model_.schedule->mesh.device(there);
  }

  Predecessor predecessor_of(const Predecessor& p) {
    Predecessor latest;
    latest.time = Picoseconds{-1};
    look_at_waits(p.program, p.task, p.device, false, latest);
    const TaskCost& c = cost(p);
    if (c.on_core) look_at_core(p, latest);
    if (c.kind == TaskCost::Kind::transfer) {
      const Participants& who = deployment_.who(p.program, p.task);
      const DeviceId receiver = receiver_of(p);
      const std::size_t task = who.to_task.empty() ? p.task : who.to_task[local(p.device)];
      look_at_waits(deployment_.places[node(receiver)].program, task, receiver, true, latest);
    }
    latest.time = std::max(latest.time, Picoseconds{});
    return latest;
  }

  static void consider(const Predecessor& candidate, Predecessor& latest) {
    if (candidate.time > latest.time) latest = candidate;
  }

  void look_at_waits(std::uint32_t program, std::size_t task, DeviceId device, bool receive_gate, Predecessor& latest) const {
    for (const Wait& wait : waits_of(model_.schedule->programs[program], TaskId{task}, receive_gate)) {
      const Participants& who = deployment_.who(program, wait.task.index());
      Predecessor candidate{wait.received ? End::received : End::sent, device, program, wait.task.index(), {}};
      if (wait.received) {
        if (!who.receives(local(device))) continue;
        candidate.device = sender_of(program, wait.task.index(), device);
        candidate.program = deployment_.places[node(candidate.device)].program;
        if (!who.from_task.empty()) candidate.task = who.from_task[local(device)];
        candidate.time = timeline_.at(activity(candidate)).received;
      } else {
        if (!who.does(local(device))) continue;
        candidate.time = timeline_.sent(activity(candidate));
      }
      consider(candidate, latest);
    }
  }

  /// What the core did before.
  void look_at_core(const Predecessor& p, Predecessor& latest) {
    const auto& [times, own] = core_of(node(p.device));
    const auto here =
        std::lower_bound(own.begin(), own.end(), p.task, [&](std::size_t at, std::size_t task) { return times[at].task.index() < task; });
    PODSIM_ASSERT(here != own.end() && times[*here].task.index() == p.task);
    if (*here == 0) return;
    if (const NodeActivity::CoreTime& before = times[*here - 1]; before.share)
      consider(shares_at(p.device, *here - 1), latest);
    else
      consider({End::sent, p.device, p.program, before.task.index(), before.interval.end}, latest);
  }

  /// What the core of a node does.
  struct Core {
    std::vector<NodeActivity::CoreTime> times;
    std::vector<std::size_t> own;  // positions of tasks on the core, not of shares
  };
  const Core& core_of(std::uint32_t at) {
    const auto [entry, is_new] = cores_.try_emplace(at);
    Core& core = entry->second;
    if (!is_new) return core;
    core.times = NodeActivity{model_, timeline_, at}.core_times();
    for (std::size_t i = 0; i < core.times.size(); ++i)
      if (!core.times[i].share) core.own.push_back(i);
    return core;
  }

  const Model& model_;
  const Deployment& deployment_;
  const Timeline& timeline_;
  std::map<std::uint32_t, Core> cores_;  // by node
};

}  // namespace

TimeParts operator+(const TimeParts& a, const TimeParts& b) {
  return {a.compute + b.compute,         a.host + b.host,       a.memory + b.memory,   a.core_share + b.core_share, a.launch + b.launch,   a.own_block + b.own_block,
          a.per_message + b.per_message, a.latency + b.latency, a.bandwidth + b.bandwidth,   a.sharing + b.sharing, a.reduction + b.reduction,
          a.waiting + b.waiting};
}

Picoseconds total(const TimeParts& parts) {
  return parts.compute + parts.host + parts.memory + parts.core_share + parts.launch + parts.own_block + parts.per_message + parts.latency + parts.bandwidth + parts.sharing +
         parts.reduction + parts.waiting;
}

std::vector<PathStep> critical_path(const Model& model, const Timeline& timeline) {
  PODSIM_ASSERT(!timeline.interrupted && timeline.size() == model.deployment.activities());
  return Walk{model, timeline}.run();
}

}  // namespace podsim
