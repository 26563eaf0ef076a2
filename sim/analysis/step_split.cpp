#include "sim/analysis/step_split.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "sim/analysis/device_times.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/node_activity.hpp"
#include "sim/analysis/peak_memory.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// The idle time of the core under flights, by axis.
class ExposedByAxis {
 public:
  explicit ExposedByAxis(const DeviceTimes& times) : times_{times}, last_(times.operations, Picoseconds{-1}) {}

  std::vector<StepSplit::Axis> run() {
    std::vector<const OperationFlight*> flights;
    flights.reserve(times_.flights.size());
    for (const OperationFlight& flight : times_.flights) {
      last_[flight.operation] = std::max(last_[flight.operation], flight.when.end);
      exposed_[flight.axis];
      flights.push_back(&flight);
    }
    std::ranges::sort(flights, {}, [](const OperationFlight* flight) { return flight->when.begin; });
    // What is in flight without a pause is looked at by itself, so that sorting costs little however many there are.
    for (auto first = flights.begin(); first != flights.end();) {
      Picoseconds end = (*first)->when.end;
      auto next = first + 1;
      for (; next != flights.end() && (*next)->when.begin < end; ++next) end = std::max(end, (*next)->when.end);
      in_flight_.push_back({(*first)->when.begin, end});
      add(std::span{first, next});
      first = next;
    }
    std::vector<StepSplit::Axis> axes;
    for (const auto& [axis, time] : exposed_) axes.push_back({axis, time});
    if (!axes.empty() && axes.front().axis < 0) std::rotate(axes.begin(), axes.begin() + 1, axes.end());
    return axes;
  }
  /// When something is in flight: sorted.
  [[nodiscard]] const std::vector<Interval>& in_flight() const { return in_flight_; }

 private:
  struct Change {
    Picoseconds at;
    std::size_t flight;
    bool begins;
  };

  void add(std::span<const OperationFlight*> flights) {
    // A moment counts to the first of those in flight, in this order.
    std::ranges::sort(flights, {}, [&](const OperationFlight* flight) {
      return std::tuple{-last_[flight->operation].count(), flight->operation, -flight->when.end.count(), flight->axis, flight->kind, flight->when.begin};
    });
    changes_.clear();
    for (std::size_t f = 0; f < flights.size(); ++f) changes_.push_back({flights[f]->when.begin, f, true}), changes_.push_back({flights[f]->when.end, f, false});
    std::ranges::sort(changes_, {}, &Change::at);
    std::set<std::size_t> now;
    Picoseconds at = changes_.front().at;
    Picoseconds busy_before = busy(at);
    for (const Change& change : changes_) {
      if (change.at > at) {
        const Picoseconds busy_now = busy(change.at);
        exposed_[flights[*now.begin()]->axis] += (change.at - at) - (busy_now - busy_before);
        at = change.at, busy_before = busy_now;
      }
      if (change.begins)
        now.insert(change.flight);
      else
        now.erase(change.flight);
    }
  }

  /// The time before a moment in which the core is at work; moments come in order.
  Picoseconds busy(Picoseconds at) {
    for (; core_ < times_.core.size() && times_.core[core_].end <= at; ++core_) whole_ += times_.core[core_].end - times_.core[core_].begin;
    return core_ < times_.core.size() && times_.core[core_].begin < at ? whole_ + (at - times_.core[core_].begin) : whole_;
  }

  const DeviceTimes& times_;
  std::vector<Picoseconds> last_;  // end of each operation
  std::map<int, Picoseconds> exposed_;
  std::vector<Change> changes_;
  std::vector<Interval> in_flight_;
  std::size_t core_ = 0;  // the first interval of the core that is not over
  Picoseconds whole_;     // those before it
};

/// By program: when its devices have done their last work and have received their last transfer. Empty: there is one program.
std::vector<Picoseconds> ends_of_programs(const Model& model, const Timeline& timeline) {
  if (model.costs.size() == 1) return {};
  std::vector<Picoseconds> ends(model.costs.size());
  const auto extend = [&](std::uint32_t node, Picoseconds end) {
    Picoseconds& last = ends[model.deployment.places[node].program];
    last = std::max(last, end);
  };
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost::Kind kind = model.costs[p][t].kind;
      if (kind == TaskCost::Kind::receive) continue;
      const Participants& who = model.deployment.who(p, t);
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const std::uint32_t a = model.deployment.activity(p, t, l);
        extend(model.deployment.programs[p].devices[l], timeline.sent(a));
        if (kind == TaskCost::Kind::transfer) extend(who.to[l], timeline.at(a).received);
      }
    }
  if (model.core_shares.empty()) return ends;
  for (std::uint32_t node = 0; node < model.nodes(); ++node)
    if (const auto core = NodeActivity{model, timeline, node}.core_times(); !core.empty()) extend(node, core.back().interval.end);
  return ends;
}

/// `ends`: of programs; empty: there is one.
StepSplit split_of_node(const Model& model, const Timeline& timeline, std::uint32_t node, const std::vector<Picoseconds>& ends) {
  const DeviceTimes times = device_times(model, timeline, node);
  ExposedByAxis exposed{times};
  StepSplit split{times.parts, exposed.run(), {}, {}};
  const Picoseconds idle = timeline.makespan - total(split.core) - exposed_communication(split);
  if (!ends.empty() && idle > Picoseconds{}) {
    std::vector<Interval> occupied = times.core;
    occupied.insert(occupied.end(), exposed.in_flight().begin(), exposed.in_flight().end());
    occupied.insert(occupied.end(), times.dma.begin(), times.dma.end());
    occupied = merged(std::move(occupied));
    Picoseconds until = times.core.empty() ? Picoseconds{} : times.core.back().end;
    for (std::uint32_t p = 0; p < ends.size(); ++p)
      if (p != model.deployment.places[node].program) until = std::max(until, ends[p]);
    split.bubble = until - CoveredBefore{occupied}(until);
  }
  split.waiting = idle - split.bubble;
  PODSIM_ASSERT(split.waiting >= Picoseconds{} && total(split) == timeline.makespan);
  return split;
}

}  // namespace

Picoseconds exposed_communication(const StepSplit& split) {
  Picoseconds sum;
  for (const StepSplit::Axis& axis : split.exposed) sum += axis.exposed;
  return sum;
}

Picoseconds total(const StepSplit& split) { return total(split.core) + exposed_communication(split) + split.bubble + split.waiting; }

StepSplit split_step(const Model& model, const Timeline& timeline, DeviceId device) {
  return split_of_node(model, timeline, model.node_of[device.index()], ends_of_programs(model, timeline));
}

StepSplit split_call(const PlayedCall& call) {
  StepSplit split{call.times.parts, ExposedByAxis{call.times}.run(), {}, {}};
  split.waiting = call.length - total(split);
  return split;
}

std::vector<ProgramMetrics> measure_programs(const Model& model, const Timeline& timeline) {
  const std::size_t programs = model.schedule->programs.size();
  std::vector<ProgramMetrics> result(programs);
  std::vector<std::uint32_t> busiest(programs, no_device);
  std::vector<Picoseconds> longest(programs, Picoseconds{-1});
  const std::vector<Bytes> peaks = peak_memory(model, timeline);
  const std::vector<Picoseconds> busy = core_times(model, timeline);
  const std::vector<Picoseconds> ends = ends_of_programs(model, timeline);
  for (std::uint32_t node = 0; node < model.nodes(); ++node) {
    const std::uint32_t p = model.deployment.places[node].program;
    if (p == no_device) continue;
    result[p].peak_memory = std::max(result[p].peak_memory, peaks[node]);
    if (busy[node] > longest[p]) longest[p] = busy[node], busiest[p] = node;
  }
  for (std::size_t p = 0; p < programs; ++p) {
    if (busiest[p] == no_device) continue;
    result[p].busiest = model.device_of[busiest[p]];
    result[p].split = split_of_node(model, timeline, busiest[p], ends);
  }
  return result;
}

}  // namespace podsim
