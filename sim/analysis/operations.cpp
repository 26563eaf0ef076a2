#include "sim/analysis/operations.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/model/shared_memory.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim {

namespace {

/// Sorts the tasks of one node into occurrences, and those into operations.
class Sorter {
 public:
  Sorter(const Model& model, const Timeline& timeline, std::uint32_t node)
      : model_{model},
        activity_{model, timeline, node},
        program_{model.deployment.places[node].program},
        local_{model.deployment.places[node].local},
        schedule_program_{model.schedule->programs[program_]} {}

  /// `in_time`: with occurrences, views and stretches.
  OperationTimeline run(bool in_time) {
    const std::vector<TaskCost>& costs = model_.costs[program_];
    occurrence_of_.assign(costs.size(), no_device);
    for (std::size_t t = 0; t < costs.size(); ++t) {
      const Participants& who = model_.deployment.who(program_, t);
      if (!who.does(local_) && !who.receives(local_)) continue;
      occurrence_of(t);
      occurrences_[occurrence_of_[t]].memory_bytes += memory_bytes_of(t, who);
    }
    std::vector<Interval> core;
    for (const NodeActivity::CoreTime& time : activity_.core_times()) {
      Occurrence& occurrence = occurrences_[occurrence_of_[time.task.index()]];
      occurrence.timed = true;
      if (time.share) {  // what communication takes of the core is no work
        if (activity_.flies(time.task.index())) add_flight(time.interval, occurrence_of_[time.task.index()]);
        continue;
      }
      const PlayedCall* call = model_.call(program_, time.task.index());
      if (call == nullptr) {
        occurrence.busy += time.interval.end - time.interval.begin;
        core.push_back(time.interval);
        keep(in_time, time.interval, occurrence_of_[time.task.index()], false);
        continue;
      }
      occurrence.busy += total(call->times.parts);
      const auto in_call = [&](const Interval& when) { return Interval{time.interval.begin + when.begin, time.interval.begin + when.end}; };
      for (const Interval& busy : call->times.core) {
        core.push_back(in_call(busy));
        keep(in_time, core.back(), occurrence_of_[time.task.index()], false);
      }
      for (const OperationFlight& flight : call->times.flights) add_flight(in_call(flight.when), occurrence_of_[time.task.index()]);
    }
    activity_.each_flight([&, first = schedule_program_.tasks.data()](const Task& task, const Interval& flight) {
      add_flight(flight, occurrence_of_[static_cast<std::size_t>(&task - first)]);
    });
    attribute_flights(merged(std::move(core)), in_time);
    OperationTimeline result{operations(), {}, {}, {}};
    if (in_time) tell_in_time(result);
    return result;
  }

 private:
  struct Occurrence {
    std::size_t first_task = 0;
    Picoseconds busy, exposed, overlapped, in_flight;
    std::vector<Interval> flights{};
    double memory_bytes = 0;
    bool timed = false;                         // on the core, or in flight
    std::map<int, std::set<AxisView>> views{};  // of a collective: of each mesh axis that it moves on
    std::uint32_t operation = 0;                // position in the result, of one that is timed
  };

  void keep(bool in_time, const Interval& when, std::uint32_t occurrence, bool waits) {
    if (in_time && when.end > when.begin) stretches_.push_back({when, occurrence, waits});
  }

  void tell_in_time(OperationTimeline& result) {
    std::vector<std::uint32_t> position(occurrences_.size(), 0);
    result.views.resize(result.operations.size());
    for (std::size_t o = 0; o < occurrences_.size(); ++o) {
      const Occurrence& from = occurrences_[o];
      if (!from.timed) continue;
      position[o] = static_cast<std::uint32_t>(result.occurrences.size());
      OperationOccurrence occurrence{from.operation, TaskId{from.first_task}, !from.flights.empty(), {}, from.overlapped};
      if (occurrence.flies) occurrence.flight = {from.flights.front().begin, from.flights.front().end};
      for (const Interval& flight : from.flights) {
        occurrence.flight.begin = std::min(occurrence.flight.begin, flight.begin);
        occurrence.flight.end = std::max(occurrence.flight.end, flight.end);
      }
      result.occurrences.push_back(occurrence);
      if (auto& views = result.views[from.operation]; views.empty())
        for (const auto& [axis, on_axis] : from.views) views.insert(views.end(), on_axis.begin(), on_axis.end());
    }
    std::ranges::sort(stretches_, [](const OperationStretch& a, const OperationStretch& b) { return a.when.begin < b.when.begin; });
    for (OperationStretch& stretch : stretches_) stretch.occurrence = position[stretch.occurrence];
    result.stretches = std::move(stretches_);
  }

  /// What a task moves through the memory here: as work, as sender and as receiver.
  [[nodiscard]] double memory_bytes_of(std::size_t t, const Participants& who) const {
    const TaskCost& cost = model_.costs[program_][t];
    double bytes = who.does(local_) ? cost.memory_bytes : 0;
    if (const PlayedCall* call = model_.call(program_, t); call != nullptr && who.does(local_)) bytes += call->memory_bytes;
    const double passes = model_.machine->chip.transfer_memory_passes;
    if (who.does(local_)) bytes += passes * static_cast<double>(cost.payload.count());
    if (!who.receives(local_)) return bytes;
    const auto& [program, local] = model_.deployment.places[who.from[local_]];
    const std::size_t sending = who.from_task.empty() ? t : who.from_task[local_];
    return bytes +
           (arrival_adds(model_, program, sending, local) ? 2 : 1) * passes * static_cast<double>(model_.costs[program][sending].payload.count());
  }

  void occurrence_of(std::size_t t) {
    const Task& task = schedule_program_.tasks[t];
    std::uint32_t* known = task.origin ? &collectives_.try_emplace(task.origin->collective, no_device).first->second : nullptr;
    if (known == nullptr || *known == no_device) {
      occurrences_.emplace_back().first_task = t;
      if (known != nullptr) *known = static_cast<std::uint32_t>(occurrences_.size() - 1);
    }
    const std::uint32_t at = known != nullptr ? *known : static_cast<std::uint32_t>(occurrences_.size() - 1);
    occurrences_[at].timed |= model_.costs[program_][t].on_core || !std::holds_alternative<Local>(task.op);
    occurrence_of_[t] = at;
  }

  void add_flight(const Interval& when, std::uint32_t occurrence) {
    flights_.push_back({when, occurrence});
    occurrences_[occurrence].flights.push_back(when);
  }

  void attribute_flights(const std::vector<Interval>& core, bool in_time) {
    each_exposure(core, flights_, occurrences_.size(), [&](std::uint32_t occurrence, const Interval& when) {
      occurrences_[occurrence].exposed += when.end - when.begin;
      keep(in_time, when, occurrence, true);
    });
    const CoveredBefore busy{core};
    for (std::size_t o = 0; o < occurrences_.size(); ++o) {
      for (const Interval& flight : occurrences_[o].flights = merged(std::move(occurrences_[o].flights))) {
        occurrences_[o].in_flight += flight.end - flight.begin;
        occurrences_[o].overlapped += busy(flight.end) - busy(flight.begin);
        occurrences_[o].timed |= flight.end > flight.begin;
      }
    }
  }

  std::vector<OperationMetrics> operations() {
    std::vector<OperationMetrics> result;
    std::map<std::tuple<std::string, std::string_view, double, std::int64_t, int>, std::size_t> known;
    for (std::size_t t = 0; t < occurrence_of_.size(); ++t)
      if (const Task& task = schedule_program_.tasks[t]; occurrence_of_[t] != no_device && task.origin && std::holds_alternative<Shift>(task.op))
        occurrences_[occurrence_of_[t]].views[task.origin->axis.axis].insert(task.origin->axis);
    for (Occurrence& occurrence : occurrences_) {
      if (!occurrence.timed) continue;
      OperationMetrics operation = described(occurrence);
      const auto [found, added] =
          known.try_emplace({operation.name, operation.category, operation.flops.count(), operation.bytes.count(), operation.devices}, result.size());
      if (added) result.push_back(std::move(operation));
      occurrence.operation = static_cast<std::uint32_t>(found->second);
      OperationMetrics& sum = result[found->second];
      ++sum.count;
      sum.busy += occurrence.busy;
      sum.exposed += occurrence.exposed;
      sum.overlapped += occurrence.overlapped;
      sum.in_flight += occurrence.in_flight;
      sum.memory_bytes += occurrence.memory_bytes;
    }
    return result;
  }

  [[nodiscard]] OperationMetrics described(const Occurrence& occurrence) const {
    const Task& task = schedule_program_.tasks[occurrence.first_task];
    OperationMetrics operation;
    operation.category = category_of(task);
    std::string_view label = task.label;
    if (task.origin) {
      label = label_of_collective(task);
      operation.bytes = task.origin->input_bytes;
      operation.devices = devices_of(*task.origin, occurrence);
      for (const auto& [axis, views] : occurrence.views) operation.axes.push_back(axis);
      if (operation.axes.empty() && task.origin->axis.axis >= 0) operation.axes = {task.origin->axis.axis};
    } else if (const auto* matmul = std::get_if<Matmul>(&task.op)) {
      operation.extents = extents_of(*matmul);
      operation.flops =
          Flops{2.0 * static_cast<double>(operation.extents.m) * static_cast<double>(operation.extents.n) * static_cast<double>(operation.extents.k)};
    } else if (const auto* local = std::get_if<Local>(&task.op)) {
      if (operation.category == "matmul") operation.flops = local->opaque.matrix, operation.extents = local->opaque.product.value_or(MatmulExtents{});
    } else if (const auto* shift = std::get_if<Shift>(&task.op)) {
      operation.bytes = bytes_of(schedule_program_, shift->source);
      operation.devices = shift->axis.size;
      operation.axes = {shift->axis.axis};
    } else if (const auto* call = std::get_if<Call>(&task.op)) {
      operation.name = model_.schedule->functions[static_cast<std::size_t>(call->function)].name;
      operation.call = model_.call(program_, occurrence.first_task);
      return operation;
    } else {
      const auto* send = std::get_if<Send>(&task.op);
      operation.bytes = bytes_of(schedule_program_, send != nullptr ? send->source : std::get<Recv>(task.op).target);
    }
    operation.name = without_slice(label);
    return operation;
  }

  /// The sizes of the factors of an axis that it moves on, multiplied, and those of its axes.
  [[nodiscard]] int devices_of(const Origin& origin, const Occurrence& occurrence) const {
    if (occurrence.views.empty()) return origin.axis.size;
    int devices = 1;
    for (const auto& [axis, views] : occurrence.views) {
      const int all = model_.schedule->mesh.axes()[static_cast<std::size_t>(axis)].size;
      int product = 1;
      for (const AxisView& view : views) product = std::min(all, product * view.size);
      devices *= product;
    }
    return devices;
  }

  const Model& model_;
  NodeActivity activity_;
  std::uint32_t program_;
  std::size_t local_;
  const Program& schedule_program_;
  std::vector<Occurrence> occurrences_;
  std::vector<Flight> flights_;
  std::vector<OperationStretch> stretches_;   // occurrences counted with those that are not timed
  std::vector<std::uint32_t> occurrence_of_;  // per task
  std::map<int, std::uint32_t> collectives_;  // occurrence by number
};

}  // namespace

std::string_view category_of(const Task& task) {
  if (task.origin) return name_of(task.origin->kind);
  return std::visit(Overloaded{
                        [](const Matmul&) -> std::string_view { return "matmul"; },
                        [](const Local& local) -> std::string_view {
                          if (local.kind != LocalKind::opaque) return traits_of(local.kind).category;
                          // What its cost says: which unit has work, if that is known.
                          if (local.opaque.matrix > Flops{}) return local.opaque.attention ? "attention" : "matmul";
                          return local.opaque.vector > Flops{} ? "elementwise" : traits_of(local.kind).category;
                        },
                        [](const Shift&) { return name_of(CollectiveKind::permute); },
                        [](const Call&) -> std::string_view { return "call"; },
                        [](const Collective& collective) { return name_of(collective.kind); },
                        [](const auto&) -> std::string_view { return "send"; },
                    },
                    task.op);
}

std::vector<OperationMetrics> measure_operations(const Model& model, const Timeline& timeline, DeviceId device) {
  const std::uint32_t node = model.node_of[device.index()];
  if (model.deployment.places[node].program == no_device) return {};
  return Sorter{model, timeline, node}.run(false).operations;
}

OperationTimeline operation_timeline(const Model& model, const Timeline& timeline, DeviceId device) {
  const std::uint32_t node = model.node_of[device.index()];
  if (model.deployment.places[node].program == no_device) return {};
  return Sorter{model, timeline, node}.run(true);
}

std::vector<Picoseconds> exposed_by(const std::vector<Interval>& core, const std::vector<Flight>& flights, std::size_t things) {
  std::vector<Picoseconds> exposed(things);
  each_exposure(core, flights, things, [&exposed](std::uint32_t thing, const Interval& when) { exposed[thing] += when.end - when.begin; });
  return exposed;
}

void each_exposure(const std::vector<Interval>& core, const std::vector<Flight>& flights, std::size_t things,
                   const std::function<void(std::uint32_t thing, const Interval& when)>& visit) {
  std::vector<Picoseconds> first(things), last(things);
  std::vector<std::uint32_t> in_flight(things, 0);
  struct Change {
    Picoseconds at;
    std::uint32_t thing;
    bool begins;
  };
  std::vector<Change> changes;
  std::vector<bool> seen(things, false);
  for (const auto& [when, thing] : flights) {
    if (when.end <= when.begin) continue;
    first[thing] = seen[thing] ? std::min(first[thing], when.begin) : when.begin;
    last[thing] = seen[thing] ? std::max(last[thing], when.end) : when.end;
    seen[thing] = true;
    changes.push_back({when.begin, thing, true});
    changes.push_back({when.end, thing, false});
  }
  std::ranges::sort(changes, {}, &Change::at);

  std::set<std::uint32_t> now;
  const auto to_blame = [&](bool core_goes_on, Picoseconds at) {
    std::uint32_t waited_for = no_device, oldest = no_device;
    for (const std::uint32_t thing : now) {
      if ((!core_goes_on || last[thing] <= at) && (waited_for == no_device || last[thing] > last[waited_for])) waited_for = thing;
      if (oldest == no_device || first[thing] < first[oldest]) oldest = thing;
    }
    return waited_for != no_device ? waited_for : oldest;
  };
  std::size_t next_core = 0;  // the first interval that ends after `at`
  Picoseconds at;
  for (const Change& change : changes) {
    // What lies between two changes, without the core's intervals.
    while (at < change.at) {
      while (next_core < core.size() && core[next_core].end <= at) ++next_core;
      const bool core_goes_on = next_core < core.size();
      if (core_goes_on && core[next_core].begin <= at) {
        at = std::min(change.at, core[next_core].end);
        continue;
      }
      const Picoseconds until = core_goes_on ? std::min(change.at, core[next_core].begin) : change.at;
      if (!now.empty()) visit(to_blame(core_goes_on, core_goes_on ? core[next_core].begin : until), {at, until});
      at = until;
    }
    if (change.begins) {
      if (in_flight[change.thing]++ == 0) now.insert(change.thing);
    } else if (--in_flight[change.thing] == 0) {
      now.erase(change.thing);
    }
  }
}

std::string without_slice(std::string_view label) {
  std::string kept;
  while (!label.empty()) {
    const std::size_t space = label.find(' ');
    const std::string_view word = label.substr(0, space);
    const bool slice = word.size() > 1 && word.front() == 's' && word.find_first_not_of("0123456789", 1) == std::string_view::npos;
    if (!slice) kept.append(kept.empty() ? "" : " ").append(word);
    label.remove_prefix(space == std::string_view::npos ? label.size() : space + 1);
  }
  return kept;
}

}  // namespace podsim
