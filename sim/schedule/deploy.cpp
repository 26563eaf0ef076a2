#include "sim/schedule/deploy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>

#include "sim/schedule/part_taken.hpp"
#include "sim/schedule/presence.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

constexpr std::size_t most_problems = 1000;  // of a broken schedule on many devices; validate() shows fewer

class Deployer {
 public:
  Deployer(const Schedule& schedule, Cancellation stop) : schedule_{schedule}, stop_{stop}, devices_{static_cast<std::size_t>(schedule.mesh.devices())} {}

  Deployed run() {
    result_.problems = check_shapes(schedule_);
    for (const Program& program : schedule_.programs)
      for (std::size_t t = 0; t < program.tasks.size() && result_.problems.empty(); ++t)
        if (std::holds_alternative<Collective>(program.tasks[t].op))
          problem(place_of(program, TaskId{t}), "task {} is a Collective: lower() the schedule first", task_name(program, TaskId{t}));
    if (!result_.problems.empty()) return std::move(result_);
    lay_out();
    collect_receives();
    for (std::uint32_t p = 0; p < schedule_.programs.size(); ++p)
      for (std::size_t t = 0; t < schedule_.programs[p].tasks.size(); ++t) {
        if (stop_.requested()) return {{}, {cancelled_work()}};
        deploy(p, TaskId{t});
      }
    for (std::uint32_t p = 0; p < schedule_.programs.size(); ++p)
      for (std::size_t t = 0; t < schedule_.programs[p].tasks.size(); ++t)
        if (std::holds_alternative<Recv>(schedule_.programs[p].tasks[t].op)) add(p, t, std::move(receive_tables_[{p, t}]));
    report_unmatched_receives();
    count_activities();
    return std::move(result_);
  }

 private:
  /// What one program receives on one channel.
  struct Receives {
    struct Sender {
      std::uint32_t device;
      std::uint32_t next, end;  // in `halves`: the first that has no Send yet
    };
    std::vector<std::uint32_t> tasks;   // its Recvs, in program order
    std::vector<std::uint32_t> first;   // per device of the program, where its senders begin
    std::vector<Sender> senders;        // of one device in order
    std::vector<std::uint32_t> halves;  // their Recvs, in program order

    [[nodiscard]] std::span<Sender> to(std::uint32_t local) { return std::span{senders}.subspan(first[local], first[local + 1] - first[local]); }
  };
  /// The devices that a Peer names, from each device of a program: `unasked` until asked for; no_device: none that may be named.
  struct Peers {
    std::uint32_t program = no_device;
    const Peer* peer = nullptr;
    std::vector<std::uint32_t> devices;
  };
  static constexpr std::uint32_t unasked = no_device - 1;
  static constexpr std::size_t most_peers = 64;

  template <class... Args>
  void problem(const WrittenAt& place, fmt::format_string<Args...> format, Args&&... args) {
    if (result_.problems.size() < most_problems)
      result_.problems.push_back({location_of(place), fmt::format(format, std::forward<Args>(args)...)});
  }
  static const WrittenAt& place_of(const Program& program, TaskId task) { return program.tasks[task.index()].written_at; }
  Deployment& deployment() { return result_.deployment; }
  std::string name(std::size_t device) const { return fmt::format("device {} ({})", device, schedule_.mesh.name(DeviceId{device})); }
  const Program& program(std::size_t device) const { return schedule_.programs[result_.deployment.places[device].program]; }
  bool idle(std::size_t device) const { return result_.deployment.places[device].program == no_device; }

  void lay_out() {
    deployment().places.edit().resize(devices_);
    deployment().programs.edit().resize(schedule_.programs.size());
    coordinates_.reserve(devices_);
    axis_coordinates_.resize(schedule_.mesh.axes().size());
    for (std::size_t d = 0; d < devices_; ++d) {
      coordinates_.push_back(schedule_.mesh.coordinates(DeviceId{d}));
      for (std::size_t a = 0; a < axis_coordinates_.size(); ++a) axis_coordinates_[a].push_back(coordinates_.back()[a]);
    }
    for (std::uint32_t p = 0; p < schedule_.programs.size(); ++p) {
      auto& devices = deployment().programs.edit()[p].devices;
      for (const DeviceSet::Interval& interval : schedule_.programs[p].devices.intervals)
        for (int d = interval.first; d < interval.last; ++d) {
          deployment().places.edit()[static_cast<std::size_t>(d)] = {p, static_cast<std::uint32_t>(devices.size())};
          devices.push_back(static_cast<std::uint32_t>(d));
        }
      deployment().programs.edit()[p].participants.resize(schedule_.programs[p].tasks.size());
    }
  }

  /// Where a guard holds, per device of a program. A condition on one axis is looked at once per coordinate.
  std::vector<bool> holding(std::uint32_t p, const Guard& where) const {
    const auto& devices = result_.deployment.programs[p].devices;
    std::vector<bool> holds(devices.size(), true);
    for (const Condition& condition : where) {
      const auto axis = axis_of(condition);
      if (!axis) {
        for (std::size_t l = 0; l < devices.size(); ++l) holds[l] = holds[l] && podsim::holds({condition}, coordinates_[devices[l]]);
        continue;
      }
      const std::vector<bool> along = holds_along(schedule_.mesh, condition, *axis);
      const std::vector<int>& at = axis_coordinates_[static_cast<std::size_t>(*axis)];
      for (std::size_t l = 0; l < devices.size(); ++l)
        if (!along[static_cast<std::size_t>(at[devices[l]])]) holds[l] = false;
    }
    return holds;
  }

  /// Checks a task's region on the devices that `table` names; bounds on their coordinates may be known.
  void check_region(std::uint32_t p, TaskId task, const Region& region, const std::vector<std::uint32_t>& table,
                    const std::vector<KnownCoordinate>& known = {}) {
    const Program& owner = schedule_.programs[p];
    if (!may_leave(owner, region, known)) return;
    const Buffer& buffer = owner.buffers[region.buffer.index()];
    const auto& devices = deployment().programs[p].devices;
    for (std::size_t l = 0; l < devices.size(); ++l) {
      if (table[l] == no_device) continue;
      const Box box = evaluate(region, coordinates_[devices[l]]);
      for (std::size_t i = 0; i < box.begin.size(); ++i)
        if (box.begin[i] < 0 || box.begin[i] + box.length[i] > buffer.extents[i])
          problem(place_of(owner, task), "task {} on {} takes elements {}..{} of dimension {} of buffer {}, which has {}", task_name(owner, task), name(devices[l]),
                  box.begin[i], box.begin[i] + box.length[i], i, quoted(buffer.name), buffer.extents[i]);
    }
  }

  /// The device that a Send or Recv names; nullopt and a problem if it is outside the mesh, idle, or the device itself.
  std::optional<std::uint32_t> peer(std::size_t device, TaskId task, const Peer& peer) {
    Coordinates at(peer.size());
    for (std::size_t a = 0; a < peer.size(); ++a) {
      const std::int64_t c = evaluate(peer[a], coordinates_[device]);
      if (c < 0 || c >= schedule_.mesh.axes()[a].size) {
        problem(place_of(program(device), task), "task {} on {} names a peer at {}={}, outside the mesh", task_name(program(device), task), name(device),
                schedule_.mesh.axes()[a].name, c);
        return std::nullopt;
      }
      at[a] = static_cast<int>(c);
    }
    const std::size_t other = schedule_.mesh.device(at).index();
    if (other == device || idle(other)) {
      problem(place_of(program(device), task), "task {} on {} names {} as its peer, which {}", task_name(program(device), task), name(device), name(other),
              other == device ? "is itself" : "runs no program");
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(other);
  }

  /// The same, for many tasks that name the same peer.
  std::optional<std::uint32_t> known_peer(Peers& known, std::size_t local, TaskId task, const Peer& named) {
    const std::uint32_t device = deployment().programs[known.program].devices[local];
    std::uint32_t& other = known.devices[local];
    if (other == unasked)
      other = peer(device, task, named).value_or(no_device);
    else if (other == no_device)
      (void)peer(device, task, named);  // each such task is to be reported
    return other == no_device ? std::nullopt : std::optional{other};
  }
  Peers& peers(std::uint32_t p, const Peer& peer) {
    for (Peers& known : peers_)
      if (known.program == p && *known.peer == peer) return known;
    if (peers_.size() < most_peers) peers_.emplace_back();
    Peers& next = peers_[next_peers_++ % most_peers];
    next.program = p;
    next.peer = &peer;
    next.devices.assign(deployment().programs[p].devices.size(), unasked);
    return next;
  }

  /// Every receive half that a Recv declares: Sends are matched against them.
  void collect_receives() {
    for (std::uint32_t p = 0; p < schedule_.programs.size(); ++p) {
      const auto& devices = deployment().programs[p].devices;
      const auto& tasks = schedule_.programs[p].tasks;
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const auto* recv = std::get_if<Recv>(&tasks[t].op);
        if (!recv) continue;
        Participants& table = receive_tables_[{p, t}];
        table.from.assign(devices.size(), no_device);
        table.from_task.assign(devices.size(), no_device);
        Peers& known = peers(p, recv->from);
        const std::vector<bool> holds = holding(p, tasks[t].where);
        for (std::size_t l = 0; l < devices.size(); ++l)
          if (holds[l]) table.from[l] = known_peer(known, l, TaskId{t}, recv->from).value_or(no_device);
        receives_[{recv->channel, p}].tasks.push_back(static_cast<std::uint32_t>(t));
        check_region(p, TaskId{t}, recv->target, table.from);
      }
    }
    for (auto& [of, receives] : receives_) list_halves(of.second, receives);
  }

  void list_halves(std::uint32_t p, Receives& receives) {
    const std::size_t locals = deployment().programs[p].devices.size();
    std::vector<const std::vector<std::uint32_t>*> from;  // per Recv
    for (const std::uint32_t t : receives.tasks) from.push_back(&receive_tables_.at({p, t}).from);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> here;  // sender and Recv
    for (std::size_t l = 0; l < locals; ++l) {
      here.clear();
      for (std::size_t t = 0; t < from.size(); ++t)
        if ((*from[t])[l] != no_device) here.emplace_back((*from[t])[l], receives.tasks[t]);
      if (!std::is_sorted(here.begin(), here.end())) std::sort(here.begin(), here.end());
      receives.first.push_back(static_cast<std::uint32_t>(receives.senders.size()));
      for (const auto& [sender, task] : here) {
        const auto half = static_cast<std::uint32_t>(receives.halves.size());
        if (receives.senders.size() == receives.first.back() || receives.senders.back().device != sender) receives.senders.push_back({sender, half, half});
        ++receives.senders.back().end;
        receives.halves.push_back(task);
      }
    }
    receives.first.push_back(static_cast<std::uint32_t>(receives.senders.size()));
  }

  /// The Recv of the first half on `channel` from `sender` to `receiver` that has no Send yet, and gives it one.
  std::optional<TaskId> match(int channel, std::uint32_t sender, std::uint32_t receiver) {
    const Deployment::Place& there = deployment().places[receiver];
    const auto group = receives_.find({channel, there.program});
    if (group == receives_.end()) return std::nullopt;
    const auto senders = group->second.to(there.local);
    const auto found = std::lower_bound(senders.begin(), senders.end(), sender, [](const auto& one, std::uint32_t device) { return one.device < device; });
    if (found == senders.end() || found->device != sender || found->next == found->end) return std::nullopt;
    return TaskId{std::size_t{group->second.halves[found->next++]}};
  }

  void deploy(std::uint32_t p, TaskId t) {
    const Task& task = schedule_.programs[p].tasks[t.index()];
    const std::vector<KnownCoordinate> known = known_coordinates(task.where);
    std::visit(Overloaded{
                   [&](const Matmul& matmul) {
                     const Participants& who = workers(p, t, task);
                     for (const Region* region : {&matmul.left, &matmul.right, &matmul.out}) check_region(p, t, *region, who.to, known);
                   },
                   [&](const Local& local) {
                     const Participants& who = workers(p, t, task);
                     for (const Region& region : local.reads) check_region(p, t, region, who.to, known);
                     for (const Region& region : local.writes) check_region(p, t, region, who.to, known);
                   },
                   [&](const Shift& shift) {
                     const Participants& who = shifters(p, t, task, shift);
                     check_region(p, t, shift.source, who.to, known);
                     const bool constant = shift.by.terms.empty() && shift.by.modulus == 0 && !shift.by_dimension;
                     check_region(p, t, shift.target, who.from,
                                  constant ? known_after(known, shift.axis, shift.by.constant) : std::vector<KnownCoordinate>{});
                   },
                   [&](const Send& send) { add(p, t.index(), senders(p, t, task, send)); },
                   [](const Recv&) {},        // its table is complete when all Sends are matched
                   [](const Collective&) {},  // rejected above
                   [&](const Call&) { workers(p, t, task); },
               },
               task.op);
  }

  const Participants& add(std::uint32_t p, std::size_t task, Participants table) {
    table.rank.assign(table.to.size(), no_device);
    for (std::size_t l = 0; l < table.to.size(); ++l)
      if (table.to[l] != no_device) table.rank[l] = table.doers++;
    for (const std::uint32_t sender : table.from) table.receivers += sender != no_device ? 1 : 0;
    deployment().programs.edit()[p].participants[task] = static_cast<std::uint32_t>(deployment().participants.size());
    deployment().participants.edit().push_back(std::move(table));
    return deployment().participants.back();
  }

  const Participants& workers(std::uint32_t p, TaskId t, const Task& task) {
    if (const Participants* known = find({p, nullptr, &task.where}, p, t)) return *known;
    const auto& devices = deployment().programs[p].devices;
    Participants table;
    table.to.assign(devices.size(), no_device);
    const std::vector<bool> holds = holding(p, task.where);
    for (std::size_t l = 0; l < devices.size(); ++l)
      if (holds[l]) table.to[l] = devices[l];
    return add(p, t.index(), std::move(table));
  }

  const Participants& shifters(std::uint32_t p, TaskId t, const Task& task, const Shift& shift) {
    const PartTaken key{p, &shift, &task.where};
    if (const Participants* known = find(key, p, t)) return *known;
    const std::size_t problems_before = result_.problems.size();
    const auto& devices = deployment().programs[p].devices;
    Participants table;
    table.to.assign(devices.size(), no_device);
    table.from.assign(devices.size(), no_device);
    const std::vector<bool> holds = holding(p, task.where);
    for (std::size_t l = 0; l < devices.size(); ++l) {
      const std::uint32_t d = devices[l];
      if (!holds[l]) continue;
      if (leaves_axis(schedule_.mesh, shift, coordinates_[d])) {
        problem(task.written_at, "task {} shifts {} by {} off the end of the open axis {}; expected a guard or an axis that wraps", task_name(program(d), t), name(d),
                evaluate(shift.by, coordinates_[d]), schedule_.mesh.name(shift.axis));
        continue;
      }
      const std::size_t receiver = receiver_of(schedule_.mesh, shift, DeviceId{static_cast<int>(d)}).index();
      if (receiver == d) continue;
      if (deployment().places[receiver].program != p) {
        problem(task.written_at, "unmatched: task {} on {} sends to {}, which does not run the same program", task_name(program(d), t), name(d), name(receiver));
        continue;
      }
      table.to[l] = static_cast<std::uint32_t>(receiver);
      table.from[deployment().places[receiver].local] = d;
    }
    const Participants& who = add(p, t.index(), std::move(table));
    if (result_.problems.size() != problems_before) known_.erase(key);  // each such task is to be reported
    return who;
  }

  Participants senders(std::uint32_t p, TaskId t, const Task& task, const Send& send) {
    const auto& devices = deployment().programs[p].devices;
    Participants table;
    table.to.assign(devices.size(), no_device);
    table.to_task.assign(devices.size(), no_device);
    Peers& known = peers(p, send.to);
    const std::vector<bool> holds = holding(p, task.where);
    std::pair<std::uint32_t, std::size_t> receiving{no_device, 0};  // the Recv of the device before, mostly the same
    Participants* receive_table = nullptr;
    bool same_size = true;
    for (std::size_t l = 0; l < devices.size(); ++l) {
      const std::uint32_t d = devices[l];
      if (!holds[l]) continue;
      const auto to = known_peer(known, l, t, send.to);
      if (!to) continue;
      const auto matched = match(send.channel, d, *to);
      if (!matched) {
        problem(task.written_at, "unmatched: task {} on {} sends to {} on channel {}, which has no receive for it", task_name(program(d), t), name(d), name(*to),
                send.channel);
        continue;
      }
      const TaskId recv_task = *matched;
      const Deployment::Place& there = deployment().places[*to];
      const Region& target = std::get<Recv>(program(*to).tasks[recv_task.index()].op).target;
      if (const std::pair of{there.program, recv_task.index()}; of != receiving) {
        receiving = of;
        receive_table = &receive_tables_[of];
        same_size = elements_of(send.source) == elements_of(target) && bytes_of(program(d), send.source) == bytes_of(program(*to), target);
      }
      if (!same_size)
        problem(task.written_at, "task {} on {} sends {} elements of {} bytes to task {} on {}, which expects {} of {} bytes", task_name(program(d), t), name(d),
                elements_of(send.source), bytes_of(program(d), send.source).count(), task_name(program(*to), recv_task), name(*to),
                elements_of(target), bytes_of(program(*to), target).count());
      table.to[l] = *to;
      table.to_task[l] = static_cast<std::uint32_t>(recv_task.value);
      receive_table->from_task[there.local] = static_cast<std::uint32_t>(t.value);
    }
    check_region(p, t, send.source, table.to);
    return table;
  }

  /// The participants of an earlier task with the same key; otherwise the key stands for those that are added next.
  const Participants* find(const PartTaken& key, std::uint32_t p, TaskId t) {
    const auto [entry, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(deployment().participants.size()));
    if (is_new) return nullptr;
    deployment().programs.edit()[p].participants[t.index()] = entry->second;
    return &deployment().participants[entry->second];
  }

  void report_unmatched_receives() {
    std::vector<std::tuple<int, std::uint32_t, std::uint32_t, std::uint32_t>> unmatched;  // channel, sender, receiver, task
    for (auto& [of, receives] : receives_)
      for (std::uint32_t l = 0; l + 1 < receives.first.size(); ++l)
        for (const Receives::Sender& sender : receives.to(l))
          for (std::uint32_t h = sender.next; h < sender.end; ++h)
            unmatched.emplace_back(of.first, sender.device, deployment().programs[of.second].devices[l], receives.halves[h]);
    std::sort(unmatched.begin(), unmatched.end());
    for (const auto& [channel, sender, receiver, task] : unmatched) {
      problem(place_of(program(receiver), TaskId{std::size_t{task}}), "unmatched: task {} on {} receives from {} on channel {}, which has no send for it",
              task_name(program(receiver), TaskId{std::size_t{task}}), name(receiver), name(sender), channel);
      // A half without a partner never ends; what could be matched is deployed.
      const auto& place = deployment().places[receiver];
      Participants& table = deployment().participants.edit()[deployment().programs[place.program].participants[task]];
      table.from[place.local] = no_device;
      --table.receivers;
    }
  }

  void count_activities() {
    std::uint64_t next = 0;
    for (auto& program : deployment().programs.edit()) {
      for (const std::uint32_t participants : program.participants) {
        program.first_activity.push_back(static_cast<std::uint32_t>(next));
        next += deployment().participants[participants].doers;
      }
      program.first_activity.push_back(static_cast<std::uint32_t>(next));
      if (next >= no_device) {
        problem(file_of(schedule_), "the schedule has more than {} task instances; expected fewer", no_device - 1);
        return;
      }
    }
  }

  const Schedule& schedule_;
  Cancellation stop_;
  std::size_t devices_;
  std::vector<Coordinates> coordinates_;            // per device
  std::vector<std::vector<int>> axis_coordinates_;  // per axis and device
  std::map<std::pair<int, std::uint32_t>, Receives> receives_;  // by channel and program
  std::vector<Peers> peers_;  // those that were asked for last
  std::size_t next_peers_ = 0;
  std::map<std::pair<std::uint32_t, std::size_t>, Participants> receive_tables_;  // of Recvs, by program and task
  std::unordered_map<PartTaken, std::uint32_t, PartTakenHash> known_;
  Deployed result_;
};

}  // namespace

bool may_leave(const Program& program, const Region& region) { return may_leave(program, region, {}); }

std::uint32_t Deployment::activities() const {
  return programs.empty() || programs.back().first_activity.empty() ? 0 : programs.back().first_activity.back();
}

std::vector<Wait> waits_of(const Program& program, TaskId task, bool receive_gate) {
  const Task& waiting = program.tasks[task.index()];
  const bool transfer = !std::holds_alternative<Matmul>(waiting.op) && !std::holds_alternative<Local>(waiting.op);
  const Half gate = !transfer ? Half::both : receive_gate ? Half::receive : Half::send;
  std::vector<Wait> waits;
  for (const Edge& edge : waiting.after) {
    if (gate != Half::both && edge.gates != Half::both && edge.gates != gate) continue;
    if (edge.done != Half::receive) waits.push_back({edge.task, false});
    if (edge.done != Half::send) waits.push_back({edge.task, true});
  }
  return waits;
}

Deployed deploy(const Schedule& lowered, Cancellation stop) { return Deployer{lowered, stop}.run(); }

}  // namespace podsim
