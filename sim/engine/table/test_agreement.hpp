// What tests of several folders hold engines and folded models to: random pods, and the comparisons themselves. Not for production code.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/model/costed_graph.hpp"
#include "sim/model/fold.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/topology/damaged.hpp"
#include "sim/schedule/test_random.hpp"

namespace podsim::testing {

// ---- Random pods ----------------------------------------------------------------------------------------------------------------------

/// Everything takes time, links of each dimension differently; `scale` as of the schedule, so that arithmetic does not drown transfers.
inline Machine costly_machine(Rng& rng, double scale = 1) {
  Machine machine = ideal_machine();
  for (LinkParameters& link : machine.link) link = {BytesPerSecond{rng.between(1, 20) * 1e8}, Seconds{rng.between(0, 3) * 1e-7}};
  if (rng.below(8) == 0) machine.link[rng.below(2)].bandwidth = unlimited<BytesPerSecond>;
  machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e9};
  machine.chip.peak.fill(FlopsPerSecond{rng.between(1, 9) * 1e9 * scale});
  machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.chip.overlap_hbm = rng.uniform();
  if (rng.below(2) == 0) machine.chip.injection_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  if (rng.below(2) == 0) machine.chip.ejection_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.software.per_message = Seconds{rng.between(0, 3) * 1e-8};
  machine.software.launch.fill(Seconds{rng.between(0, 3) * 1e-8});
  if (rng.below(4) == 0) machine.software.core_share.fill(rng.uniform());
  machine.chip.memory_shared = rng.below(4) > 0;
  if (rng.below(2) == 0) machine.chip.transfer_memory_passes = rng.between(0, 10) * 0.25;
  return machine;
}

/// About what a TPU v4 has, overheads included.
inline Machine overhead_machine() {
  Machine machine = ideal_machine(45e9, 0.2e-6);
  machine.chip.peak.fill(FlopsPerSecond{2e12});
  machine.chip.matmul_tile_m = machine.chip.matmul_tile_n = 8;
  machine.chip.hbm_bandwidth = BytesPerSecond{1.2e12};
  machine.chip.reduce_bandwidth = BytesPerSecond{3e11};
  machine.chip.overlap_hbm = 0.7;
  machine.software.per_message = Seconds{0.73e-6};
  machine.software.launch.fill(Seconds{1.1e-6});
  machine.software.core_share.fill(0.01);
  machine.software.efficiency.fill({{Bytes{64}, 0.3}, {Bytes{1 << 20}, 0.9}});
  return machine;
}

struct World {
  Machine machine;
  std::shared_ptr<const Topology> topology;
  Placement placement;
  int dimensions = 0;  // of the grid
};

/// Breaks both directions of the cable that leaves a chip along a dimension, +1 or -1; without one there nothing happens.
inline void cut(Damage& damage, const Grid& grid, ChipId chip, int dimension, int sign) {
  const auto link = grid.link_from(chip, dimension, sign);
  if (!link) return;
  damage.broken.insert(*link);
  for (const OutLink& out : grid.out_links(chip))
    if (out.link == *link) damage.broken.insert(*grid.link_from(out.to, dimension, -sign));
}

inline std::shared_ptr<const Topology> damaged(const Grid& grid, Damage damage) {
  return std::make_shared<DamagedTopology>(std::make_shared<Grid>(grid), std::move(damage));
}

/// `devices` as one to three extents, each 1 or more.
inline std::vector<int> random_extents(int devices, Rng& rng) {
  std::vector<int> extents;
  for (int d = 0, count = rng.between(1, 3); d + 1 < count; ++d) {
    std::vector<int> divisors;
    for (int e = 1; e <= devices; ++e)
      if (devices % e == 0) divisors.push_back(e);
    extents.push_back(divisors[rng.below(divisors.size())]);
    devices /= extents.back();
  }
  extents.push_back(devices);
  return extents;
}

struct WorldOptions {
  bool symmetric = false;  // every dimension wraps, nothing is cut, devices stand in order: much of it can fold
};

/// A topology for a mesh: of its own shape or another one, each dimension open or wrapped whatever the mesh says, now and then with cables cut (chips
/// may then not reach each other) or slow, devices in any order, or two on each chip;
/// some of them slower.
inline World random_world(const Mesh& mesh, const Machine& machine, Rng& rng, const WorldOptions& options = {}) {
  World world;
  world.machine = machine;
  std::vector<int> extents;
  for (const MeshAxis& axis : mesh.axes()) extents.push_back(axis.size);
  if (rng.below(2) == 0) extents = random_extents(mesh.devices(), rng);
  const bool pairs = extents.back() % 2 == 0 && rng.below(10) == 0;
  if (pairs) extents.back() /= 2;
  std::vector<GridDimension> dimensions;
  for (std::size_t d = 0; d < extents.size(); ++d) dimensions.push_back({extents[d], options.symmetric || rng.below(2) == 0, machine.link[d]});
  world.dimensions = static_cast<int>(extents.size());
  const bool inner = pairs && rng.below(2) == 0;
  const auto grid = Grid::make(dimensions, machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth,
                               inner ? std::optional{LinkParameters{BytesPerSecond{1e9}, Seconds{1e-8}}} : std::nullopt);
  const bool speeds = rng.below(6) == 0;
  for (int d = 0; d < mesh.devices(); ++d) {
    world.placement.chip_of.push_back(ChipId{pairs ? d / 2 : d});
    if (pairs) world.placement.core_of.push_back(d % 2);
    if (speeds) world.placement.speed.push_back(d % mesh.axes().back().size == 0 ? 0.7 : 1);
  }
  if (options.symmetric) {
    world.topology = std::make_shared<Grid>(*grid);
    return world;
  }
  if (rng.below(3) == 0)
    for (std::size_t d = world.placement.chip_of.size(); d > 1; --d) std::swap(world.placement.chip_of[d - 1], world.placement.chip_of[rng.below(d)]);
  if (rng.below(3) > 0) {
    world.topology = std::make_shared<Grid>(*grid);
    return world;
  }
  Damage damage;
  const auto random_chip = [&] { return ChipId{rng.between(0, grid->chips() - 1)}; };
  const auto random_dimension = [&] { return rng.between(0, static_cast<int>(extents.size()) - 1); };
  for (int cables = rng.between(1, 3); cables > 0; --cables) cut(damage, *grid, random_chip(), random_dimension(), rng.below(2) == 0 ? 1 : -1);
  if (const auto link = grid->link_from(random_chip(), random_dimension(), 1); link && rng.below(2) == 0) damage.slowed[*link] = 0.3;
  world.topology = damaged(*grid, std::move(damage));
  return world;
}

/// Now and then another order of dimensions for a transfer.
inline void turn_routes(Schedule& schedule, int dimensions, Rng& rng) {
  for (Program& program : schedule.programs)
    for (Task& task : program.tasks) {
      if (rng.below(3) > 0) continue;
      std::vector<int> order(static_cast<std::size_t>(dimensions));
      std::iota(order.begin(), order.end(), 0);
      std::reverse(order.begin(), order.end());
      if (auto* shift = std::get_if<Shift>(&task.op)) shift->route_order = order;
      if (auto* send = std::get_if<Send>(&task.op)) send->route_order = order;
    }
}

/// The devices of the first part of the first axis run the schedule's program, the others one like it; or no program, if nobody names them. Shifts
/// along the first axis become copies.
inline void split_program(Schedule& schedule, bool others_idle, Rng& rng) {
  const int size = schedule.mesh.axes().front().size, slab = schedule.mesh.devices() / size, first = slab * rng.between(1, size - 1);
  Program& program = schedule.programs.front();
  for (Task& task : program.tasks)
    if (const auto* shift = std::get_if<Shift>(&task.op); shift != nullptr && shift->axis.axis == 0) {
      const Region source = shift->source, target = shift->target;
      task.op = copy(source, target, Unit::dma);
      for (Edge& edge : task.after) edge.gates = Half::both;
    }
  const auto is_one_piece = [&](const Task& task) { return std::holds_alternative<Local>(task.op) || std::holds_alternative<Matmul>(task.op); };
  for (Task& task : program.tasks)
    for (Edge& edge : task.after)
      if (is_one_piece(program.tasks[edge.task.index()])) edge.done = Half::both;
  program.devices = {{{0, first}}};
  if (others_idle) return;
  Program other = program;
  other.devices = {{{first, schedule.mesh.devices()}}};
  while (!other.tasks.empty() && is_one_piece(other.tasks.back())) other.tasks.pop_back();
  schedule.programs.push_back(std::move(other));
}

/// One to three axes and 2 to 30 devices; those of 4, 6, 8 and so on are folded, whatever their dimensions are in the world.
inline std::vector<MeshAxis> random_axes(Rng& rng) {
  const int count = rng.between(1, 3), largest = count == 1 ? 12 : count == 2 ? 5 : 3;
  std::vector<MeshAxis> axes;
  for (int a = 0; a < count; ++a) axes.push_back({std::string(1, static_cast<char>('x' + a)), rng.between(2, largest), rng.below(3) > 0});
  for (MeshAxis& axis : axes)
    if (axis.size >= 4 && axis.size % 2 == 0) axis.factors = {{axis.size / 2, axis.wraps}, {2, true}};
  return axes;
}

// ---- Engines agree --------------------------------------------------------------------------------------------------------------------

/// Sets of activities.
class Sets {
 public:
  Sets(std::size_t sets, std::size_t members) : words_{(members + 63) / 64}, bits_(sets * words_) {}
  void put(std::size_t set, std::size_t member) { bits_[set * words_ + member / 64] |= std::uint64_t{1} << member % 64; }
  /// Puts all of `from` into `to`; whether that grew.
  bool join(std::size_t to, std::size_t from) {
    bool grew = false;
    for (std::size_t w = 0; w < words_; ++w) {
      std::uint64_t& target = bits_[to * words_ + w];
      const std::uint64_t sum = target | bits_[from * words_ + w];
      grew |= sum != target;
      target = sum;
    }
    return grew;
  }
  [[nodiscard]] std::int64_t weigh(std::size_t set, const std::vector<std::int64_t>& weights) const {
    std::int64_t sum = 0;
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t left = bits_[set * words_ + w]; left != 0; left &= left - 1)
        sum += weights[w * 64 + static_cast<std::size_t>(std::countr_zero(left))];
    return sum;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// How often the clock is rounded on the ways that lead to each activity's start, and to its end: through what its gates wait for, through the core,
/// and, to its end, through the flows that share links with it, directly or by others, as far as they start or end before. An activity rounds once
/// for each of its delay, flow, reduction, work and core shares that takes any.
struct Roundings {
  std::vector<std::int64_t> start, end;
};

/// The route of the flow that an activity is or has.
inline std::optional<std::uint32_t> flow_route(const CostedGraph& costs, std::size_t activity) {
  if (costs.graph.activities[activity].kind == Activity::Kind::transfer)
    return costs.transfers[activity].flow_bytes > 0 ? std::optional{costs.transfers[activity].route} : std::nullopt;
  return !costs.memory.empty() && costs.memory[activity].bytes > 0 ? std::optional{costs.memory[activity].route} : std::nullopt;
}

inline Roundings roundings_of(const CostedGraph& costs, const Timeline& timeline) {
  const ActivityGraph& graph = costs.graph;
  const std::size_t n = graph.activities.size();
  std::vector<std::int64_t> own(n);
  for (std::size_t a = 0; a < n; ++a) {
    const TransferCost& transfer = costs.transfers[a];
    own[a] = (costs.work_time[a] > Seconds{}) + (transfer.delay > Seconds{}) + (transfer.flow_bytes > 0) + (transfer.reduction > Seconds{});
    if (costs.shares_behind[a] > Seconds{}) ++own[a];
    if (!costs.memory.empty() && costs.memory[a].bytes > 0) own[a] += 2;  // launch and rest
  }
  // Components of flows that meet: that share a limited link while both last.
  std::vector<std::size_t> root(n);
  std::iota(root.begin(), root.end(), 0U);
  const auto find = [&](std::size_t a) {
    while (root[a] != a) a = root[a] = root[root[a]];
    return a;
  };
  std::vector<std::vector<std::size_t>> on_link(costs.links.size());
  for (std::size_t a = 0; a < n; ++a)
    if (const std::optional<std::uint32_t> route = flow_route(costs, a))
      for (const LinkId link : costs.routes[*route])
        if (!is_unlimited(costs.links[link.index()])) on_link[link.index()].push_back(a);
  for (const auto& flows : on_link)
    for (std::size_t i = 0; i < flows.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (timeline.start(flows[i]) < timeline.sent(flows[j]) && timeline.start(flows[j]) < timeline.sent(flows[i])) root[find(flows[i])] = find(flows[j]);
  std::vector<std::vector<std::size_t>> component(n);
  for (std::size_t a = 0; a < n; ++a) component[find(a)].push_back(a);

  std::vector<std::vector<std::size_t>> before(n);  // whose ends start it
  for (std::size_t a = 0; a < n; ++a)
    for (const Gate gate : {Gate::start, Gate::receive})
      for (const Dependency& wait : graph.waits_for(a, gate)) before[a].push_back(wait.activity);
  for (std::size_t d = 0; d + 1 < graph.order_rows.size(); ++d) {
    std::size_t previous = n;
    for (const std::uint32_t a : graph.program_order(DeviceId{d})) {
      if (!costs.on_core[a]) continue;
      if (previous != n) before[a].push_back(previous);
      previous = a;
    }
  }

  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return timeline.start(a) < timeline.start(b); });
  Sets sets{2 * n, n};  // a: before its start; n + a: before its end
  for (std::size_t a = 0; a < n; ++a) sets.put(n + a, a);
  for (bool grew = true; grew;) {
    grew = false;
    for (const std::size_t a : order) {
      for (const std::size_t b : before[a]) grew |= sets.join(a, n + b);
      grew |= sets.join(n + a, a);
      for (const std::size_t b : component[find(a)]) {
        if (a == b || timeline.start(b) >= timeline.sent(a)) continue;
        grew |= sets.join(n + a, b);
        sets.put(n + a, b);
        if (timeline.sent(b) < timeline.sent(a)) grew |= sets.join(n + a, n + b);
      }
    }
  }
  Roundings result;
  for (std::size_t a = 0; a < n; ++a) result.start.push_back(sets.weigh(a, own)), result.end.push_back(sets.weigh(n + a, own));
  return result;
}

struct Agreement {
  int compared = 0, contended = 0;  // contended: later than where nobody shares a link, by more than rounding
  double worst = 0;                 // difference / bound, of any activity
};

/// des and simgrid give each activity the same start, `sent` and `received`, and the same makespan: within `relative` times the time and one
/// picosecond for each rounding before, and one for simgrid's own. Or both give none.
inline ::testing::AssertionResult engines_agree(const Model& model, double relative, Agreement& seen) {
  const auto des = (*timing_engine("des"))->run(model, {}), simgrid = (*timing_engine("simgrid"))->run(model, {});
  const auto analytic = (*timing_engine("analytic"))->run(model, {});
  if (des.has_value() != simgrid.has_value() || des.has_value() != analytic.has_value())
    return ::testing::AssertionFailure() << "one engine finds an error: " << to_text(des ? simgrid.error() : des.error());
  if (!des) {
    if (to_text(des.error()) != to_text(simgrid.error())) return ::testing::AssertionFailure() << to_text(des.error()) << " but " << to_text(simgrid.error());
    return ::testing::AssertionSuccess();
  }
  const CostedGraph costs = write_out(model);
  const Roundings roundings = roundings_of(costs, *des);
  std::int64_t most = 0;
  for (std::size_t a = 0; a < des->size(); ++a) {
    const ActivityTimes x = des->at(a), y = simgrid->at(a);
    for (const auto& [part, one, other, count] :
         {std::tuple{"start", x.start, y.start, roundings.start[a]}, {"sent", x.sent, y.sent, roundings.end[a]}, {"received", x.received, y.received, roundings.end[a]}}) {
      const double difference = std::abs(static_cast<double>((one - other).count()));
      const double bound = relative * static_cast<double>(other.count()) + static_cast<double>(count) + 1;
      seen.worst = std::max(seen.worst, difference / bound);
      if (difference > bound)
        return ::testing::AssertionFailure() << part << " of activity " << a << " (task " << costs.graph.activities[a].task.value << " on device "
                                             << costs.graph.activities[a].device.value << "): des " << one.count() << " ps, simgrid " << other.count() << " ps, "
                                             << count << " roundings before";
    }
    most = std::max(most, roundings.end[a]);
  }
  const double difference = std::abs(static_cast<double>((des->makespan - simgrid->makespan).count()));
  if (difference > relative * static_cast<double>(simgrid->makespan.count()) + static_cast<double>(most) + 1)
    return ::testing::AssertionFailure() << "makespan: des " << des->makespan.count() << " ps, simgrid " << simgrid->makespan.count() << " ps";
  if (analytic->makespan > des->makespan + Picoseconds{most}) return ::testing::AssertionFailure() << "analytic is above des";
  ++seen.compared;
  seen.contended += des->makespan > analytic->makespan + Picoseconds{most + analytic->makespan.count() / 1000};
  return ::testing::AssertionSuccess();
}

// ---- Folded is unfolded ---------------------------------------------------------------------------------------------------------------

struct Folds {
  int compared = 0, partly = 0, into_one = 0;  // partly: 1 < classes < devices
};

inline ::testing::AssertionResult same_metrics(const Model& model, const Timeline& all, const Model& folded, const Timeline& once) {
  const auto differ = [](const char* what) { return ::testing::AssertionFailure() << what << " differs"; };
  const Metrics x = measure(model, all), y = measure(folded, once);
  if (x.makespan != y.makespan || x.busiest != y.busiest || !(x.split == y.split)) return differ("time split");
  if (x.flops != y.flops || x.mfu != y.mfu) return differ("flops or mfu");
  if (x.link_bytes != y.link_bytes || x.axes != y.axes || x.tasks != y.tasks) return differ("traffic or count of tasks");
  if (x.peak_memory != y.peak_memory) return differ("peak memory");

  const auto devices = measure_devices(model, all), classes = measure_devices(folded, once);
  std::vector<std::uint32_t> members(classes.size());
  for (const DeviceMetrics& device : devices) {
    const std::uint32_t node = folded.node_of[device.device.index()];
    const DeviceMetrics& like = classes[node];
    if (members[node]++ == 0 && like.device != device.device) return differ("lowest device of a class");
    if (!(device.split == like.split) || device.sent != like.sent || device.received != like.received || device.peak_memory != like.peak_memory)
      return differ("what a device did");
  }
  for (std::size_t node = 0; node < classes.size(); ++node)
    if (classes[node].devices != members[node]) return differ("size of a class");

  // Which links a class holds is not told, but how many and what each carried is.
  const auto links = measure_links(model, all), link_classes = measure_links(folded, once);
  std::vector<std::pair<double, double>> each, expanded;
  for (const LinkMetrics& link : links) each.emplace_back(link.bytes, link.utilisation);
  std::size_t next = 0;
  for (const LinkMetrics& link : link_classes) {
    for (std::uint32_t i = 0; i < link.links; ++i) expanded.emplace_back(link.bytes, link.utilisation);
    const auto place = [](const LinkMetrics& m) { return std::pair{m.memory_of, m.link}; };  // links by number, then memories by device
    while (next < links.size() && place(links[next]) < place(link)) ++next;
    if (next == links.size() || place(links[next]) != place(link) || links[next].bytes != link.bytes || links[next].utilisation != link.utilisation)
      return differ("what the lowest link of a class carried, or their order,");
  }
  std::sort(each.begin(), each.end());
  std::sort(expanded.begin(), expanded.end());
  if (each != expanded) return differ("what links carried");
  return ::testing::AssertionSuccess();
}

/// Each task on each device at the same picoseconds, and the same metrics. Or an error of both.
inline ::testing::AssertionResult folded_is_unfolded(const Model& model, const Model& folded, Folds& seen) {
  const auto all = (*timing_engine("des"))->run(model, {}), once = (*timing_engine("des"))->run(folded, {});
  if (all.has_value() != once.has_value()) return ::testing::AssertionFailure() << "one finds an error: " << to_text(all ? once.error() : all.error());
  if (!all) return ::testing::AssertionSuccess();
  if (all->makespan != once->makespan)
    return ::testing::AssertionFailure() << "makespan " << all->makespan.count() << " ps, folded " << once->makespan.count() << " ps";
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t)
      for (std::size_t l = 0; l < model.deployment.programs[p].devices.size(); ++l) {
        const std::uint32_t device = model.deployment.programs[p].devices[l];
        const Deployment::Place place = folded.deployment.places[folded.node_of[device]];
        const bool does = model.deployment.who(p, t).does(l);
        if (place.program != p || does != folded.deployment.who(p, t).does(place.local))
          return ::testing::AssertionFailure() << "task " << t << " is not folded with its device " << device;
        if (!does) continue;
        const ActivityTimes x = all->at(model.deployment.activity(p, t, l)), y = once->at(folded.deployment.activity(p, t, place.local));
        if (x == y) continue;
        return ::testing::AssertionFailure() << "task " << t << " on device " << device << ": " << x.start.count() << ", " << x.sent.count() << ", "
                                             << x.received.count() << " ps, folded " << y.start.count() << ", " << y.sent.count() << ", "
                                             << y.received.count() << " ps; " << folded.nodes() << " classes";
      }
  ++seen.compared;
  seen.partly += folded.nodes() > 1 && folded.folded() ? 1 : 0;
  seen.into_one += folded.nodes() == 1 && folded.folded() ? 1 : 0;
  return same_metrics(model, *all, folded, *once);
}

/// make_folded_model() against make_model(): errors are the same.
inline ::testing::AssertionResult folding_changes_nothing(const Schedule& schedule, const World& world, Folds& seen) {
  const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
  const auto folded = make_folded_model(schedule, world.machine, *world.topology, world.placement);
  if (model.has_value() != folded.has_value()) return ::testing::AssertionFailure() << "only one has a model";
  if (!model)
    return to_text(model.error()) == to_text(folded.error()) ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << to_text(folded.error());
  return folded_is_unfolded(*model, *folded, seen);
}

inline World world_of(const SmallSystem& pod) { return {pod.machine, std::make_shared<Grid>(pod.grid), pod.placement}; }

}  // namespace podsim::testing
