#include "sim/schedule/unroll.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <optional>
#include <tuple>

#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {

namespace {

constexpr std::uint32_t absent = ~std::uint32_t{0};
constexpr std::size_t most_problems = 1000;  // of a broken schedule on many devices; validate() shows fewer

/// Whether an index may leave [0, extent) on some device, judged by bounds alone. False is a proof; true has to be looked at per device.
bool may_leave(const Range& range, std::int64_t extent) {
  std::int64_t low = range.index.constant, high = range.index.constant;
  for (const AxisTerm& term : range.index.terms) (term.coefficient < 0 ? low : high) += term.coefficient * (term.axis.size - 1);
  if (const std::int64_t n = range.index.modulus; n > 0 && (low < 0 || high >= n)) low = 0, high = n - 1;
  const std::int64_t a = range.offset + low * range.stride, b = range.offset + high * range.stride;
  return std::min(a, b) < 0 || std::max(a, b) + range.length > extent;
}

bool may_leave(const Program& program, const Region& region) {
  const Buffer& buffer = program.buffers[region.buffer.index()];
  for (std::size_t i = 0; i < region.dims.size(); ++i)
    if (may_leave(region.dims[i], buffer.extents[i])) return true;
  return false;
}

class Unroller {
 public:
  explicit Unroller(const Schedule& schedule) : schedule_{schedule}, devices_{static_cast<std::size_t>(schedule.mesh.devices())} {}

  Unrolled run() {
    result_.problems = check_shapes(schedule_);
    for (const Program& program : schedule_.programs)
      for (std::size_t t = 0; t < program.tasks.size() && result_.problems.empty(); ++t)
        if (std::holds_alternative<Collective>(program.tasks[t].op))
          problem("task {} is a Collective: lower() the schedule first", task_name(program, TaskId{t}));
    if (!result_.problems.empty()) return std::move(result_);
    lay_out();
    collect_receives();
    create_activities();
    report_unmatched_receives();
    link();
    sort_program_order();
    return std::move(result_);
  }

 private:
  struct Place {  // of a device: its program and where its rows begin
    std::uint32_t program = absent;
    std::size_t row = 0;
  };
  using ChannelKey = std::tuple<int, int, int>;  // channel, sender, receiver
  struct Receives {
    std::vector<TaskId> tasks;
    std::size_t matched = 0;
  };

  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    if (result_.problems.size() < most_problems) result_.problems.push_back({{}, fmt::format(format, std::forward<Args>(args)...)});
  }
  std::string name(std::size_t device) const { return fmt::format("device {} ({})", device, schedule_.mesh.name(DeviceId{device})); }
  const Program& program(std::size_t device) const { return schedule_.programs[places_[device].program]; }
  std::uint32_t& own(std::size_t device, TaskId task) { return own_[places_[device].row + task.index()]; }
  std::uint32_t& received(std::size_t device, TaskId task) { return received_[places_[device].row + task.index()]; }

  void lay_out() {
    places_.resize(devices_);
    coordinates_.reserve(devices_);
    for (std::size_t d = 0; d < devices_; ++d) coordinates_.push_back(schedule_.mesh.coordinates(DeviceId{d}));
    std::size_t rows = 0;
    for (std::size_t p = 0; p < schedule_.programs.size(); ++p) {
      for (const DeviceSet::Interval& interval : schedule_.programs[p].devices.intervals)
        for (int d = interval.first; d < interval.last; ++d) {
          places_[static_cast<std::size_t>(d)] = {static_cast<std::uint32_t>(p), rows};
          rows += schedule_.programs[p].tasks.size();
        }
      most_tasks_ = std::max(most_tasks_, schedule_.programs[p].tasks.size());
    }
    own_.assign(rows, absent);
    received_.assign(rows, absent);
  }

  void check_region(std::size_t device, TaskId task, const Region& region) {
    const Program& p = program(device);
    if (!may_leave(p, region)) return;
    const Box box = evaluate(region, coordinates_[device]);
    const Buffer& buffer = p.buffers[region.buffer.index()];
    for (std::size_t i = 0; i < box.begin.size(); ++i)
      if (box.begin[i] < 0 || box.begin[i] + box.length[i] > buffer.extents[i])
        problem("task {} on {} takes elements {}..{} of dimension {} of buffer {}, which has {}", task_name(p, task), name(device), box.begin[i],
                box.begin[i] + box.length[i], i, quoted(buffer.name), buffer.extents[i]);
  }

  /// The device that a Send or Recv names; nullopt and a problem if it is outside the mesh, idle, or the device itself.
  std::optional<std::size_t> peer(std::size_t device, TaskId task, const Peer& peer) {
    Coordinates at(peer.size());
    for (std::size_t a = 0; a < peer.size(); ++a) {
      const std::int64_t c = evaluate(peer[a], coordinates_[device]);
      if (c < 0 || c >= schedule_.mesh.axes()[a].size) {
        problem("task {} on {} names a peer at {}={}, outside the mesh", task_name(program(device), task), name(device),
                schedule_.mesh.axes()[a].name, c);
        return std::nullopt;
      }
      at[a] = static_cast<int>(c);
    }
    const std::size_t other = schedule_.mesh.device(at).index();
    if (other == device || places_[other].program == absent) {
      problem("task {} on {} names {} as its peer, which {}", task_name(program(device), task), name(device), name(other),
              other == device ? "is itself" : "runs no program");
      return std::nullopt;
    }
    return other;
  }

  void collect_receives() {
    for (std::size_t d = 0; d < devices_; ++d) {
      if (places_[d].program == absent) continue;
      const auto& tasks = program(d).tasks;
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const auto* recv = std::get_if<Recv>(&tasks[t].op);
        if (!recv || !holds(tasks[t].where, coordinates_[d])) continue;
        if (const auto from = peer(d, TaskId{t}, recv->from)) {
          receives_[{recv->channel, static_cast<int>(*from), static_cast<int>(d)}].tasks.push_back(TaskId{t});
          check_region(d, TaskId{t}, recv->target);
        }
      }
    }
  }

  void create_activities() {
    for (std::size_t t = 0; t < most_tasks_; ++t)
      for (std::size_t d = 0; d < devices_; ++d) {
        if (places_[d].program == absent || t >= program(d).tasks.size()) continue;
        const Task& task = program(d).tasks[t];
        if (holds(task.where, coordinates_[d])) create(d, TaskId{t}, task);
      }
  }

  void create(std::size_t d, TaskId t, const Task& task) {
    std::visit(
        Overloaded{
            [&](const Matmul& matmul) {
              for (const Region* region : {&matmul.left, &matmul.right, &matmul.out}) check_region(d, t, *region);
              add_work(d, t);
            },
            [&](const Local& local) {
              for (const Region& region : local.reads) check_region(d, t, region);
              for (const Region& region : local.writes) check_region(d, t, region);
              add_work(d, t);
            },
            [&](const Shift& shift) { create(d, t, shift); }, [&](const Send& send) { create(d, t, send); }, [](const Recv&) {},  // made at its Send
            [](const Collective&) {},                                                                                             // rejected above
        },
        task.op);
  }

  void create(std::size_t d, TaskId t, const Shift& shift) {
    const std::int64_t by = evaluate(shift.by, coordinates_[d]);
    if (by % shift.axis.size == 0) return;
    const std::int64_t to = coordinate_on(coordinates_[d], shift.axis) + by;
    if ((to < 0 || to >= shift.axis.size) && !schedule_.mesh.wraps(shift.axis)) {
      problem("task {} shifts {} by {} off the end of the open axis {}; expected a guard or an axis that wraps", task_name(program(d), t), name(d),
              by, schedule_.mesh.name(shift.axis));
      return;
    }
    const std::size_t receiver = schedule_.mesh.shifted(DeviceId{d}, shift.axis, by).index();
    if (places_[receiver].program != places_[d].program) {
      problem("unmatched: task {} on {} sends to {}, which does not run the same program", task_name(program(d), t), name(d), name(receiver));
      return;
    }
    check_region(d, t, shift.source);
    check_region(receiver, t, shift.target);
    add_transfer(d, t, receiver, t);
  }

  void create(std::size_t d, TaskId t, const Send& send) {
    const auto to = peer(d, t, send.to);
    if (!to) return;
    check_region(d, t, send.source);
    const auto found = receives_.find({send.channel, static_cast<int>(d), static_cast<int>(*to)});
    if (found == receives_.end() || found->second.matched == found->second.tasks.size()) {
      problem("unmatched: task {} on {} sends to {} on channel {}, which has no receive for it", task_name(program(d), t), name(d), name(*to),
              send.channel);
      return;
    }
    const TaskId recv_task = found->second.tasks[found->second.matched++];
    const Region& target = std::get<Recv>(program(*to).tasks[recv_task.index()].op).target;
    if (elements_of(send.source) != elements_of(target) || bytes_of(program(d), send.source) != bytes_of(program(*to), target))
      problem("task {} on {} sends {} elements of {} bytes to task {} on {}, which expects {} of {} bytes", task_name(program(d), t), name(d),
              elements_of(send.source), bytes_of(program(d), send.source).count(), task_name(program(*to), recv_task), name(*to), elements_of(target),
              bytes_of(program(*to), target).count());
    add_transfer(d, t, *to, recv_task);
  }

  void add_work(std::size_t d, TaskId t) {
    own(d, t) = static_cast<std::uint32_t>(graph().activities.size());
    graph().activities.push_back({Activity::Kind::work, DeviceId{d}, t, DeviceId{d}, t, places_[d].program, places_[d].program});
  }

  void add_transfer(std::size_t d, TaskId t, std::size_t receiver, TaskId receiver_task) {
    const auto index = static_cast<std::uint32_t>(graph().activities.size());
    own(d, t) = index;
    assert(received(receiver, receiver_task) == absent);
    received(receiver, receiver_task) = index;
    graph().activities.push_back(
        {Activity::Kind::transfer, DeviceId{d}, t, DeviceId{receiver}, receiver_task, places_[d].program, places_[receiver].program});
  }

  void report_unmatched_receives() {
    for (const auto& [key, receives] : receives_)
      for (std::size_t k = receives.matched; k < receives.tasks.size(); ++k) {
        const auto& [channel, sender, receiver] = key;
        const auto r = static_cast<std::size_t>(receiver);
        problem("unmatched: task {} on {} receives from {} on channel {}, which has no send for it", task_name(program(r), receives.tasks[k]),
                name(r), name(static_cast<std::size_t>(sender)), channel);
      }
  }

  /// What `gate` of a task waits for on a device.
  void add_waits(std::size_t d, TaskId t, Half gate) {
    for (const Edge& edge : program(d).tasks[t.index()].after) {
      if (gate != Half::both && edge.gates != Half::both && edge.gates != gate) continue;
      if (const std::uint32_t a = own(d, edge.task); a != absent && edge.done != Half::second) graph().waits.push_back({a, false});
      if (const std::uint32_t a = received(d, edge.task); a != absent && edge.done != Half::first) graph().waits.push_back({a, true});
    }
  }

  void link() {
    ActivityGraph& g = graph();
    g.wait_rows.reserve(2 * g.activities.size() + 1);
    g.wait_rows.push_back(0);
    for (const Activity& activity : g.activities) {
      const bool transfer = activity.kind == Activity::Kind::transfer;
      add_waits(activity.device.index(), activity.task, transfer ? Half::first : Half::both);
      g.wait_rows.push_back(static_cast<std::uint32_t>(g.waits.size()));
      if (transfer) add_waits(activity.receiver.index(), activity.receiver_task, Half::second);
      g.wait_rows.push_back(static_cast<std::uint32_t>(g.waits.size()));
    }
  }

  void sort_program_order() {
    ActivityGraph& g = graph();
    g.order_rows.assign(devices_ + 1, 0);
    for (const Activity& activity : g.activities) ++g.order_rows[activity.device.index() + 1];
    for (std::size_t d = 0; d < devices_; ++d) g.order_rows[d + 1] += g.order_rows[d];
    g.order.resize(g.activities.size());
    std::vector<std::uint32_t> next(g.order_rows.begin(), g.order_rows.end() - 1);
    for (std::size_t a = 0; a < g.activities.size(); ++a) g.order[next[g.activities[a].device.index()]++] = static_cast<std::uint32_t>(a);
  }

  ActivityGraph& graph() { return result_.graph; }

  const Schedule& schedule_;
  std::size_t devices_;
  std::size_t most_tasks_ = 0;
  std::vector<Place> places_;
  std::vector<Coordinates> coordinates_;
  std::vector<std::uint32_t> own_, received_;  // activity of a device's task: worked or sent; received
  std::map<ChannelKey, Receives> receives_;
  Unrolled result_;
};

}  // namespace

std::span<const Dependency> ActivityGraph::waits_for(std::size_t activity, Gate gate) const {
  const std::size_t row = 2 * activity + (gate == Gate::receive ? 1 : 0);
  return {waits.data() + wait_rows[row], wait_rows[row + 1] - wait_rows[row]};
}

std::span<const std::uint32_t> ActivityGraph::program_order(DeviceId device) const {
  return {order.data() + order_rows[device.index()], order_rows[device.index() + 1] - order_rows[device.index()]};
}

Unrolled unroll(const Schedule& lowered) { return Unroller{lowered}.run(); }

}  // namespace podsim
