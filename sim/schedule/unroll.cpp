#include "sim/schedule/unroll.hpp"

#include "sim/schedule/deploy.hpp"

namespace podsim {

namespace {

/// The activity whose `sent` (or end) or `received` a wait names, on one device; no_device: that half is absent.
std::uint32_t awaited(const Deployment& deployment, std::uint32_t program, const Wait& wait, std::size_t local) {
  const Participants& who = deployment.who(program, wait.task.index());
  if (!wait.received) return who.does(local) ? deployment.activity(program, wait.task.index(), local) : no_device;
  if (!who.receives(local)) return no_device;
  const auto& [sender_program, sender_local] = deployment.places[who.from[local]];
  return deployment.activity(sender_program, who.from_task.empty() ? wait.task.index() : who.from_task[local], sender_local);
}

class Unroller {
 public:
  Unroller(const Schedule& schedule, const Deployment& deployment) : schedule_{schedule}, deployment_{deployment} {}

  ActivityGraph run() {
    graph_.activities.reserve(deployment_.activities());
    graph_.wait_rows.reserve(2 * std::size_t{deployment_.activities()} + 1);
    graph_.wait_rows.push_back(0);
    for (std::uint32_t p = 0; p < deployment_.programs.size(); ++p)
      for (std::size_t t = 0; t < schedule_.programs[p].tasks.size(); ++t) unroll(p, t);
    sort_program_order();
    return std::move(graph_);
  }

 private:
  void unroll(std::uint32_t p, std::size_t t) {
    const Participants& who = deployment_.who(p, t);
    const Program& program = schedule_.programs[p];
    if (who.doers == 0) return;
    const bool transfer = std::holds_alternative<Shift>(program.tasks[t].op) || std::holds_alternative<Send>(program.tasks[t].op);
    const std::vector<Wait> own = waits_of(program, TaskId{t}, false);
    const std::vector<Wait> own_receive = transfer && who.to_task.empty() ? waits_of(program, TaskId{t}, true) : std::vector<Wait>{};
    for (std::size_t l = 0; l < who.to.size(); ++l) {
      if (!who.does(l)) continue;
      Activity activity;
      activity.kind = transfer ? Activity::Kind::transfer : Activity::Kind::work;
      activity.device = DeviceId{static_cast<int>(deployment_.programs[p].devices[l])};
      activity.task = activity.receiver_task = TaskId{t};
      activity.receiver = DeviceId{static_cast<int>(who.to[l])};
      activity.program = p;
      activity.receiver_program = deployment_.places[who.to[l]].program;
      if (!who.to_task.empty()) activity.receiver_task = TaskId{static_cast<int>(who.to_task[l])};
      graph_.activities.push_back(activity);
      add_waits(p, own, l);
      if (transfer) {
        const std::uint32_t q = activity.receiver_program;
        add_waits(q, who.to_task.empty() ? own_receive : waits_of(schedule_.programs[q], activity.receiver_task, true),
                  deployment_.places[who.to[l]].local);
      } else {
        graph_.wait_rows.push_back(static_cast<std::uint32_t>(graph_.waits.size()));
      }
    }
  }

  void add_waits(std::uint32_t p, const std::vector<Wait>& waits, std::size_t local) {
    for (const Wait& wait : waits)
      if (const std::uint32_t a = awaited(deployment_, p, wait, local); a != no_device) graph_.waits.push_back({a, wait.received});
    graph_.wait_rows.push_back(static_cast<std::uint32_t>(graph_.waits.size()));
  }

  void sort_program_order() {
    const std::size_t devices = deployment_.places.size();
    graph_.order_rows.assign(devices + 1, 0);
    for (const Activity& activity : graph_.activities) ++graph_.order_rows[activity.device.index() + 1];
    for (std::size_t d = 0; d < devices; ++d) graph_.order_rows[d + 1] += graph_.order_rows[d];
    graph_.order.resize(graph_.activities.size());
    std::vector<std::uint32_t> next(graph_.order_rows.begin(), graph_.order_rows.end() - 1);
    for (std::size_t a = 0; a < graph_.activities.size(); ++a)
      graph_.order[next[graph_.activities[a].device.index()]++] = static_cast<std::uint32_t>(a);
  }

  const Schedule& schedule_;
  const Deployment& deployment_;
  ActivityGraph graph_;
};

}  // namespace

std::span<const Dependency> ActivityGraph::waits_for(std::size_t activity, Gate gate) const {
  const std::size_t row = 2 * activity + (gate == Gate::receive ? 1 : 0);
  return {waits.data() + wait_rows[row], wait_rows[row + 1] - wait_rows[row]};
}

std::span<const std::uint32_t> ActivityGraph::program_order(DeviceId device) const {
  return {order.data() + order_rows[device.index()], order_rows[device.index() + 1] - order_rows[device.index()]};
}

ActivityGraph unroll(const Schedule& lowered, const Deployment& deployment) { return Unroller{lowered, deployment}.run(); }

Unrolled unroll(const Schedule& lowered) {
  Deployed deployed = deploy(lowered);
  if (deployed.deployment.places.empty()) return {{}, std::move(deployed.problems)};
  return {unroll(lowered, deployed.deployment), std::move(deployed.problems)};
}

}  // namespace podsim
