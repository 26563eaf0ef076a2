#include "tools/report/device_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/analysis/node_activity.hpp"
#include "sim/base/invariant.hpp"
#include "tools/report/lines.hpp"

namespace podsim {

namespace {

/// Which way a shift goes: the shorter one, half way round its own.
int way_of(const Mesh& mesh, const AxisView& view, std::int64_t by) {
  if (mesh.wraps(view)) {
    by %= view.size;
    if (2 * std::abs(by) > view.size) by = -by;  // only its sign is of interest
  }
  return by < 0 ? -1 : 1;
}

class DeviceReader {
 public:
  DeviceReader(const Model& model, const Timeline& timeline, DeviceId device)
      : model_{model},
        timeline_{timeline},
        mesh_{model.schedule->mesh},
        device_{device},
        node_{model.node_of[device.index()]},
        program_{model.deployment.places[node_].program},
        local_{model.deployment.places[node_].local} {}

  DeviceEvents run() {
    if (program_ == no_device) return {};
    at_ = mesh_.coordinates(device_);
    collect();
    return put_on_lines();
  }

 private:
  /// An event and the kind of its line: compute, dma, four per mesh axis, two of channels.
  using Group = std::uint32_t;
  struct Placed {
    Group group;
    TraceEvent event;
  };
  static constexpr Group compute = 0, dma = 1, first_axis = 2;

  [[nodiscard]] Group group_of(const Op& op, int sign, bool receives) const {
    const auto* shift = std::get_if<Shift>(&op);
    const std::size_t axis = shift != nullptr ? static_cast<std::size_t>(shift->axis.axis) : mesh_.axes().size();
    return static_cast<Group>(first_axis + 4 * axis + (sign < 0 ? 2 : 0) + (receives ? 1 : 0));
  }

  [[nodiscard]] std::string name_of(Group group) const {
    if (group == compute) return "compute";
    if (group == dma) return "dma";
    const Group axis = (group - first_axis) / 4, way = (group - first_axis) % 4;
    const char* half = way % 2 == 0 ? "send" : "receive";
    if (axis == mesh_.axes().size()) return fmt::format("channel {}", half);
    return fmt::format("{} {} {}", mesh_.axes()[axis].name, way < 2 ? '+' : '-', half);
  }

  void collect() {
    const NodeActivity activity{model_, timeline_, node_};
    for (const NodeActivity::CoreTime& time : activity.core_times()) {
      TraceEvent event{time.interval.begin, time.interval.end, time.task, {}};
      if (time.share) event.kind = TraceEvent::Kind::core_share;
      add(compute, event);
    }
    const auto& costs = model_.costs[program_];
    for (std::size_t t = 0; t < costs.size(); ++t) {
      const TaskCost& cost = costs[t];
      const Participants& who = model_.deployment.who(program_, t);
      if (who.does(local_) && !cost.on_core) {
        const std::uint32_t a = model_.deployment.activity(program_, t, local_);
        TraceEvent event{timeline_.start(a), timeline_.sent(a), TaskId{t}, {}};
        if (cost.kind == TaskCost::Kind::work)
          add(dma, event);
        else
          add_send(t, cost, who, event);
      }
      if (who.receives(local_)) add_receive(t, who, activity.incoming(who, t));
    }
  }

  void add_send(std::size_t t, const TaskCost& cost, const Participants& who, TraceEvent event) {
    const Op& op = model_.task(program_, t).op;
    event.kind = TraceEvent::Kind::send;
    if (const auto* shift = std::get_if<Shift>(&op)) {
      event.peer = receiver_of(mesh_, *shift, device_);
      event.sign = way_of(mesh_, shift->axis, evaluate(shift->by, at_));
    } else {
      event.peer = device_at(std::get<Send>(op).to);
    }
    PODSIM_ASSERT(model_.node_of[event.peer.index()] == who.to[local_]);
    event.hops = model_.path(cost, local_).hops;
    event.flow = flow_of(program_, t, device_);
    add(group_of(op, event.sign, false), event);
  }

  void add_receive(std::size_t t, const Participants& who, std::uint32_t incoming) {
    const Op& op = model_.task(program_, t).op;
    TraceEvent event{timeline_.start(incoming), timeline_.at(incoming).received, TaskId{t}, {}};
    event.kind = TraceEvent::Kind::receive;
    if (const auto* shift = std::get_if<Shift>(&op)) {
      event.peer = sender_of(mesh_, *shift, device_);
      event.sign = way_of(mesh_, shift->axis, evaluate(shift->by, at_));  // the sender's too: it depends on the other axes only
    } else {
      event.peer = device_at(std::get<Recv>(op).from);
    }
    PODSIM_ASSERT(model_.node_of[event.peer.index()] == who.from[local_]);
    const auto& [program, local] = model_.deployment.places[who.from[local_]];
    const std::size_t sender_task = who.from_task.empty() ? t : who.from_task[local_];
    event.hops = model_.path(model_.costs[program][sender_task], local).hops;
    event.flow = flow_of(program, sender_task, event.peer);
    add(group_of(op, event.sign, true), event);
  }

  [[nodiscard]] DeviceId device_at(const Peer& peer) const {
    Coordinates at;
    for (const Affine& affine : peer) at.push_back(static_cast<int>(evaluate(affine, at_)));
    return mesh_.device(at);
  }

  /// Numbers transfers from 1 by (program, task, sender).
  [[nodiscard]] std::int64_t flow_of(std::uint32_t program, std::size_t task, DeviceId sender) const {
    for (std::uint32_t p = 0; p < program; ++p) task += model_.costs[p].size();
    return static_cast<std::int64_t>(task) * mesh_.devices() + sender.value + 1;
  }

  void add(Group group, TraceEvent event) {
    event.on_core = group == compute;
    placed_.push_back({group, event});
  }

  DeviceEvents put_on_lines() {
    const auto key = [](const Placed& p) { return std::tuple{p.group, p.event.begin, p.event.end, p.event.task, p.event.kind}; };
    std::sort(placed_.begin(), placed_.end(), [&](const Placed& a, const Placed& b) { return key(a) < key(b); });
    DeviceEvents result;
    for (std::size_t first = 0, last = 0; first < placed_.size(); first = last) {
      const Group group = placed_[first].group;
      std::vector<Interval> intervals;
      for (; last < placed_.size() && placed_[last].group == group; ++last) intervals.push_back({placed_[last].event.begin, placed_[last].event.end});
      const std::vector<std::uint32_t> lines = allot_lines(intervals);
      const auto before = static_cast<std::uint32_t>(result.lines.size());
      for (std::size_t i = first; i < last; ++i) {
        placed_[i].event.line = before + lines[i - first];
        if (placed_[i].event.line < result.lines.size()) continue;
        result.lines.push_back(lines[i - first] == 0 ? name_of(group) : fmt::format("{} {}", name_of(group), lines[i - first] + 1));
      }
    }
    for (const Placed& placed : placed_) result.events.push_back(placed.event);
    std::stable_sort(result.events.begin(), result.events.end(), [](const TraceEvent& a, const TraceEvent& b) { return a.line < b.line; });
    return result;
  }

  const Model& model_;
  const Timeline& timeline_;
  const Mesh& mesh_;
  DeviceId device_;
  std::uint32_t node_, program_, local_;
  Coordinates at_;
  std::vector<Placed> placed_;
};

}  // namespace

DeviceEvents events_of(const Model& model, const Timeline& timeline, DeviceId device) { return DeviceReader{model, timeline, device}.run(); }

}  // namespace podsim
