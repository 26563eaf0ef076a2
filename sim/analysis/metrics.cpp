#include "sim/analysis/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/analysis/node_activity.hpp"
#include "sim/base/invariant.hpp"
#include "sim/model/shared_memory.hpp"

namespace podsim {

namespace {

__extension__ typedef unsigned __int128 Count;  // exact sums of bytes and flops: the same in any order, folded or not

/// Calls visit(played call) for each task of a node that is a Call.
template <class Visit>
void each_call(const Model& model, std::uint32_t node, Visit visit) {
  const auto& [p, local] = model.deployment.places[node];
  if (model.calls == nullptr || p == no_device) return;
  for (std::size_t t = 0; t < model.costs[p].size(); ++t)
    if (const PlayedCall* call = model.call(p, t); call != nullptr && model.deployment.who(p, t).does(local)) visit(*call);
}

TimeSplit split_of(const DeviceTimes& times, Picoseconds makespan) {
  std::vector<Interval> either = times.core;
  for (const OperationFlight& flight : times.flights) either.push_back(flight.when);
  TimeSplit split{total(times.parts), covered(merged(std::move(either))) - total(times.parts), {}};
  split.waiting = makespan - split.compute - split.exposed_communication;
  return split;
}

/// Sums over all transfers: visit(task, cost, path, payload bytes of the whole class of senders).
template <class Visit>
void each_transfer(const Model& model, Visit visit) {
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer) continue;
      const Participants& who = model.deployment.who(p, t);
      for (std::size_t l = 0; l < who.to.size(); ++l)
        if (who.does(l)) visit(model.task(p, t), cost, model.path(cost, l), model.deployment.programs[p].devices[l], who.to[l]);
    }
}

/// Over all devices that a node stands for: those that run the tasks with certain participants, and the hops of what they send.
struct Senders {
  std::int64_t devices = 0, hops = 0;
};

/// Counts the senders of tasks; those that share participants and routing once.
class SenderCounts {
 public:
  explicit SenderCounts(const Model& model) : model_{model} {}

  const Senders& of(std::uint32_t program, std::size_t task) {
    const TaskCost& cost = model_.costs[program][task];
    const auto [found, is_new] = known_.try_emplace({program, model_.deployment.programs[program].participants[task], cost.routing});
    if (is_new) found->second = count(program, cost, model_.deployment.who(program, task));
    return found->second;
  }

 private:
  [[nodiscard]] Senders count(std::uint32_t program, const TaskCost& cost, const Participants& who) const {
    Senders senders;
    for (std::size_t l = 0; l < who.to.size(); ++l) {
      if (!who.does(l)) continue;
      const std::int64_t devices = model_.devices_in[model_.deployment.programs[program].devices[l]];
      senders.devices += devices;
      if (cost.kind == TaskCost::Kind::transfer) senders.hops += devices * model_.path(cost, l).hops;
    }
    return senders;
  }

  const Model& model_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Senders> known_;  // by program, participants, routing
};

void measure_axes(const Model& model, const DeviceTimes& busiest, Metrics& metrics) {
  struct Sums {
    Count link_bytes = 0;
    std::int64_t transfers = 0;
    std::vector<Interval> flights;
  };
  std::map<int, Sums> axes;
  Count link_bytes = 0;
  SenderCounts counts{model};
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer) continue;
      const Senders& senders = counts.of(p, t);
      if (senders.devices == 0) continue;
      Sums& sums = axes[moving_axis(model.task(p, t))];
      const Count moved = static_cast<Count>(cost.payload.count()) * static_cast<Count>(senders.hops);
      sums.link_bytes += moved;
      link_bytes += moved;
      sums.transfers += senders.devices;
    }
  if (model.calls != nullptr)
    for (std::uint32_t p = 0; p < model.costs.size(); ++p)
      for (std::size_t t = 0; t < model.costs[p].size(); ++t)
        if (const PlayedCall* call = model.call(p, t))
          for (const PlayedCall::Axis& axis : call->axes) {
            axes[axis.axis].link_bytes += static_cast<Count>(axis.link_bytes);
            axes[axis.axis].transfers += axis.transfers;
            link_bytes += static_cast<Count>(axis.link_bytes);
          }
  metrics.link_bytes = static_cast<double>(link_bytes);
  for (const OperationFlight& flight : busiest.flights)
    if (flight.kind != OperationFlight::Kind::launch)
      axes[flight.kind == OperationFlight::Kind::exchange ? -1 : flight.axis].flights.push_back(flight.when);
  for (auto& [axis, sums] : axes) {
    const std::vector<Interval> flights = merged(std::move(sums.flights));
    const Picoseconds in_flight = covered(flights);
    const Picoseconds exposed = in_flight - covered_by_both(flights, busiest.core);
    metrics.axes.push_back({axis, static_cast<double>(sums.link_bytes), sums.transfers, in_flight, exposed});
  }
  if (!metrics.axes.empty() && metrics.axes.front().axis < 0) std::rotate(metrics.axes.begin(), metrics.axes.begin() + 1, metrics.axes.end());
}

/// Work of the matrix unit other than Matmuls. Not attention: of training steps it counts by formula, as published figures do.
bool counts_as_product(LocalKind kind) { return kind == LocalKind::opaque || traits_of(kind).category == "factorisation"; }

void measure_arithmetic(const Model& model, Metrics& metrics) {
  std::array<Count, product_dtype_count> products{};  // m n k
  SenderCounts counts{model};
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const std::int64_t devices = counts.of(p, t).devices;
      if (const PlayedCall* call = model.call(p, t)) {
        metrics.tasks += call->tasks;
        for (int d = 0; d < product_dtype_count; ++d) products.at(static_cast<std::size_t>(d)) += static_cast<Count>(call->products[static_cast<std::size_t>(d)]);
        continue;
      }
      metrics.tasks += devices;
      const Op& op = model.task(p, t).op;
      if (const auto* local = std::get_if<Local>(&op); local != nullptr && counts_as_product(local->kind)) {
        const bool opaque = local->kind == LocalKind::opaque;
        const DType dtype = opaque ? local->opaque.dtype : model.schedule->programs[p].buffers[local->reads.front().buffer.index()].dtype;
        products.at(static_cast<std::size_t>(dtype)) += static_cast<Count>(flops_of(*local).matrix.count() / 2) * static_cast<Count>(devices);
      }
      const auto* matmul = std::get_if<Matmul>(&op);
      if (matmul == nullptr || devices == 0) continue;
      const MatmulExtents e = extents_of(*matmul);
      const DType dtype = model.schedule->programs[p].buffers[matmul->left.buffer.index()].dtype;  // whose peak the product is held to
      products.at(static_cast<std::size_t>(dtype)) +=
          static_cast<Count>(e.m) * static_cast<Count>(e.n) * static_cast<Count>(e.k) * static_cast<Count>(devices);
    }
  Count all = 0;
  for (int d = 0; d < product_dtype_count; ++d) {
    const Count of_dtype = products.at(static_cast<std::size_t>(d));
    all += of_dtype;
    metrics.products.at(static_cast<std::size_t>(d)) = static_cast<double>(of_dtype);
    if (of_dtype == 0 || !(metrics.makespan > Picoseconds{})) continue;
    metrics.mfu = metrics.mfu.value_or(0) + 2 * static_cast<double>(of_dtype) /
                                                (model.schedule->mesh.devices() * peak_of(*model.machine, static_cast<DType>(d)).count() *
                                                 to_seconds(metrics.makespan).count());
  }
  metrics.flops = Flops{2 * static_cast<double>(all)};
}

}  // namespace

int moving_axis(const Task& task) {
  if (task.origin) return task.origin->axis.axis;
  const auto* shift = std::get_if<Shift>(&task.op);
  return shift != nullptr ? shift->axis.axis : -1;
}

namespace {

std::uint32_t first_of_longest(const std::vector<Picoseconds>& busy) {
  return static_cast<std::uint32_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
}

/// The timeline has what the busiest node does and receives.
Metrics metrics_of(const Model& model, const Timeline& timeline, std::uint32_t busiest, Picoseconds makespan, const std::vector<Bytes>& peaks) {
  Metrics metrics;
  metrics.makespan = makespan;
  metrics.busiest = model.device_of[busiest];
  const DeviceTimes times = device_times(model, timeline, busiest);
  metrics.split = split_of(times, metrics.makespan);
  measure_axes(model, times, metrics);
  measure_arithmetic(model, metrics);
  for (const Bytes peak : peaks) metrics.peak_memory = std::max(metrics.peak_memory, peak);
  return metrics;
}

std::uint32_t busiest_alone(const Model& model) {
  std::vector<Seconds> busy(model.nodes());
  for (std::uint32_t p = 0; p < model.costs.size(); ++p) {
    const std::vector<std::uint32_t>& devices = model.deployment.programs[p].devices;
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      const Participants& who = model.deployment.who(p, t);
      if (!cost.on_core) continue;
      for (std::size_t l = 0; l < devices.size(); ++l)
        if (who.does(l)) busy[devices[l]] += model.at_speed(cost.work, devices[l]);
    }
  }
  return static_cast<std::uint32_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
}

}  // namespace

Metrics measure(const Model& model, const Timeline& timeline) {
  return metrics_of(model, timeline, first_of_longest(core_times(model, timeline)), timeline.makespan, peak_memory(model, timeline));
}

MetricsReader::MetricsReader(const Model& model) : MetricsReader{model, busiest_alone(model)} {}

MetricsReader::MetricsReader(const Model& model, std::uint32_t node) : model_{model}, node_{node}, cores_{model}, lives_{model} {
  PODSIM_ASSERT(model.calls == nullptr);
}

void MetricsReader::read(std::uint32_t p, std::size_t t, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) {
  cores_.read(p, t, start, sent);
  lives_.read(p, t, start, sent);
  const Participants& who = model_.deployment.who(p, t);
  const auto& [program, local] = model_.deployment.places[node_];
  if (program == p && who.does(local)) keep(p, t, local, start, sent);
  if (model_.costs[p][t].kind != TaskCost::Kind::transfer) return;
  if (who.to_task.empty()) {
    if (program != p || !who.receives(local)) return;
    if (const std::size_t sender = model_.deployment.places[who.from[local]].local; sender != local) keep(p, t, sender, start, sent);
    return;
  }
  for (std::size_t l = 0; l < who.to.size(); ++l)
    if (who.to[l] == node_ && !(program == p && l == local)) keep(p, t, l, start, sent);
}

void MetricsReader::keep(std::uint32_t p, std::size_t t, std::size_t local, std::span<const Picoseconds> start, std::span<const Picoseconds> sent) {
  const bool moves = model_.costs[p][t].kind == TaskCost::Kind::transfer;
  kept_.push_back({model_.deployment.activity(p, t, local), start[local], sent[local], moves ? ceil_to_clock(model_.reduction(p, t, local)) : Picoseconds{}});
}

std::optional<std::uint32_t> MetricsReader::still_to_read() {
  busy_ = cores_.totals();
  const std::uint32_t busiest = first_of_longest(busy_);
  if (busiest == node_) return std::nullopt;
  return busiest;
}

MetricsReader::Measured MetricsReader::measured(Picoseconds makespan) {
  std::ranges::sort(kept_, {}, &Kept::activity);
  std::vector<std::uint32_t> activities;
  std::vector<Picoseconds> start, sent;
  std::vector<Timeline::Reduction> reductions;
  for (const Kept& kept : kept_) {
    activities.push_back(kept.activity);
    start.push_back(kept.start);
    sent.push_back(kept.sent);
    reductions.push_back({kept.activity, kept.reduction});
  }
  Timeline timeline{std::move(activities), std::move(start), std::move(sent), std::move(reductions)};
  timeline.makespan = makespan;
  Metrics metrics = metrics_of(model_, timeline, node_, makespan, lives_.peaks());
  return {std::move(metrics), std::move(timeline)};
}

std::vector<DeviceMetrics> measure_devices(const Model& model, const Timeline& timeline) {
  std::vector<DeviceMetrics> devices;
  const std::vector<Bytes> peaks = peak_memory(model, timeline);
  for (std::uint32_t node = 0; node < model.nodes(); ++node)
    devices.push_back(
        {model.device_of[node], model.devices_in[node], split_of(device_times(model, timeline, node), timeline.makespan), {}, {}, peaks[node]});
  for (std::uint32_t node = 0; node < model.nodes(); ++node)
    each_call(model, node, [&](const PlayedCall& call) { devices[node].sent += call.sent, devices[node].received += call.received; });
  each_transfer(model, [&](const Task&, const TaskCost& cost, const Path&, std::uint32_t sender, std::uint32_t receiver) {
    devices[sender].sent += cost.payload;
    devices[receiver].received += cost.payload;
  });
  return devices;
}

namespace {

/// What works and transfers move through each memory, whether they share its bandwidth or not.
std::vector<LinkMetrics> measure_memories(const Model& model, const Timeline& timeline) {
  const Chip& chip = model.machine->chip;
  std::vector<LinkMetrics> memories;
  if (is_unlimited(chip.hbm_bandwidth)) return memories;
  std::vector<Count> quarters(model.nodes(), 0);  // of bytes, as passes are
  const auto passes = static_cast<Count>(4 * chip.transfer_memory_passes);
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const Participants& who = model.deployment.who(p, t);
      const auto bytes = static_cast<Count>(std::llround(model.costs[p][t].memory_bytes));
      if (bytes == 0) continue;
      for (std::size_t l = 0; l < who.to.size(); ++l)
        if (who.does(l)) quarters[model.deployment.programs[p].devices[l]] += 4 * bytes;
    }
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer) continue;
      const Participants& who = model.deployment.who(p, t);
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const auto moved = static_cast<Count>(cost.payload.count()) * passes;
        quarters[model.deployment.programs[p].devices[l]] += moved;
        quarters[who.to[l]] += arrival_adds(model, p, t, l) ? 2 * moved : moved;
      }
    }
  const double makespan = to_seconds(timeline.makespan).count();
  for (std::uint32_t node = 0; node < model.nodes(); ++node) {
    if (quarters[node] == 0) continue;
    const double bytes = static_cast<double>(quarters[node]) / 4;
    memories.push_back(
        {{}, model.device_of[node], model.devices_in[node], bytes, makespan > 0 ? bytes / (chip.hbm_bandwidth.count() * makespan) : 0});
  }
  return memories;
}

}  // namespace

std::vector<LinkMetrics> measure_links(const Model& model, const Timeline& timeline) {
  std::vector<Count> bytes(model.links.size(), 0);
  each_transfer(model, [&](const Task&, const TaskCost& cost, const Path& path, std::uint32_t, std::uint32_t) {
    for (const PathLink& link : model.links_of(path))
      if (!model.links[link.link].is_memory) bytes[link.link] += static_cast<Count>(cost.payload.count()) * link.weight;
  });
  std::vector<LinkMetrics> links;
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    if (bytes[l] == 0) continue;
    const ModelLink& link = model.links[l];
    const auto carried = static_cast<double>(bytes[l]);
    const double makespan = to_seconds(timeline.makespan).count();
    links.push_back({link.representative, {}, link.links, carried, makespan > 0 ? carried / (link.bandwidth.count() * makespan) : 0});
  }
  std::sort(links.begin(), links.end(), [](const LinkMetrics& a, const LinkMetrics& b) { return a.link < b.link; });  // classes are in any order
  for (LinkMetrics& memory : measure_memories(model, timeline)) links.push_back(std::move(memory));
  return links;
}

}  // namespace podsim
