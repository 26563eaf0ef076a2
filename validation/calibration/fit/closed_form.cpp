#include "validation/calibration/fit/closed_form.hpp"

#include <algorithm>

namespace podsim {

namespace {

/// One axis of a collective: the dimension it is laid over, and how.
struct Ring {
  int size = 1, dimension = 0;
  bool wraps = true, over_switch = false;
  [[nodiscard]] double hops() const { return over_switch ? 2 : 1; }  // up to the switch and down
};

/// The mesh has one axis per dimension of a plain grid or rail, row-major, on chips of one device.
bool is_plain(const Pod& pod) {
  const bool rail = pod.machine.interconnect == Interconnect::rail;
  if (pod.joined_by.kind != TopologySpec::Kind::as_built || pod.slices != 1 || !pod.faults.none()) return false;
  if (pod.machine.chip.devices != 1 || !pod.placement.speed.empty() || (!rail && pod.topology->grid() == nullptr)) return false;
  if (pod.mesh.axes().size() != pod.slice.extents.size()) return false;
  for (std::size_t d = 0; d < pod.slice.extents.size(); ++d)
    if (pod.mesh.axes()[d].size != pod.slice.extents[d]) return false;
  for (std::size_t d = 0; d < pod.placement.chip_of.size(); ++d)
    if (pod.placement.chip_of[d].index() != d) return false;
  return true;
}

CostStep step_of(const Ring& ring, double times, double link_bytes, double injected, double reduced = 0) {
  CostStep step;
  step.times = times;
  step.dimension = ring.dimension;
  step.hops.at(static_cast<std::size_t>(ring.dimension)) = ring.hops();
  step.link_bytes = ring.over_switch ? injected : link_bytes;  // a device has one link to its switch
  step.injected = ring.over_switch ? 0 : injected;             // networks of switches have no injection limit
  step.reduced = reduced;
  return step;
}

/// Of whole elements, the larger half.
double larger_half(double bytes, double element) {
  const double elements = bytes / element;
  return (elements - static_cast<double>(static_cast<std::int64_t>(elements / 2))) * element;
}

/// An all-gather of `shard` bytes per device, or a reduce-scatter to so many.
std::optional<CostStep> ring_step(const Ring& ring, bool one_way, double shard, double element, bool reduces) {
  const double times = ring.size - 1;
  if (one_way || ring.size == 2) return step_of(ring, times, shard, shard, reduces ? shard : 0);
  const double half = larger_half(shard, element);
  // Of two unequal flows over one link the smaller one makes way early, and the rounds drift: no formula.
  if (half * 2 != shard && ring.over_switch) return std::nullopt;
  return step_of(ring, times, half, shard, reduces ? half : 0);
}

/// Both ways by store and forward: `block` bytes for each device.
bool add_ring_all_to_all(const Ring& ring, double block, double element, std::vector<CostStep>& steps) {
  if (ring.size == 2) {
    steps.push_back(step_of(ring, 1, block, block));
    return true;
  }
  const bool even = ring.size % 2 == 0;
  if (even && larger_half(block, element) * 2 != block) return false;  // nor is a bundle the same size both ways
  const int rounds = ring.size / 2;
  for (int s = 1; s <= rounds; ++s) {
    const double bundle = block * (rounds - s + (even ? 0.5 : 1));
    steps.push_back(step_of(ring, 1, bundle, 2 * bundle));
  }
  return true;
}

/// One axis of a collective; `input` is on each device as this axis begins, of `blocks` blocks. False: no formula.
bool add_axis(const Ring& ring, CollectiveKind kind, const std::string& algorithm, double input, double element, std::vector<CostStep>& steps) {
  const double size = ring.size;
  const bool by_ring = algorithm == "ring" || (algorithm.empty() && ring.wraps), one_way = algorithm == "ring-one-way";
  const bool by_line = algorithm == "line" || (algorithm.empty() && !ring.wraps);
  if (kind == CollectiveKind::all_to_all) {
    if (by_ring && ring.wraps) return add_ring_all_to_all(ring, input / size, element, steps);
    if (algorithm != "direct" || !ring.over_switch) return false;
    steps.push_back(step_of(ring, 1, input / size * (size - 1), input / size * (size - 1)));
    return true;
  }
  const bool reduces = kind == CollectiveKind::reduce_scatter;
  const double shard = reduces ? input / size : input;
  if (algorithm == "direct" && ring.over_switch && !reduces) {
    steps.push_back(step_of(ring, 1, shard * (size - 1), shard * (size - 1)));
    return true;
  }
  if (by_line && !reduces && !ring.over_switch) {
    CostStep step = step_of(ring, size - 1, shard, 2 * shard);
    if (ring.size == 2) step.injected = shard;
    steps.push_back(step);
    return true;
  }
  if ((!by_ring && !one_way) || !ring.wraps) return false;
  const auto step = ring_step(ring, one_way, shard, element, reduces);
  if (step) steps.push_back(*step);
  return step.has_value();
}

/// A reduce-scatter the first axis first, an all-gather the last first, an all-reduce both, an all-to-all axis by axis.
bool add_phases(const std::vector<Ring>& rings, CollectiveKind kind, const std::string& algorithm, double input, double element,
                std::vector<CostStep>& steps) {
  if (kind == CollectiveKind::all_reduce) {
    double devices = 1;
    for (const Ring& ring : rings) devices *= ring.size;
    return add_phases(rings, CollectiveKind::reduce_scatter, algorithm, input, element, steps) &&
           add_phases(rings, CollectiveKind::all_gather, algorithm, input / devices, element, steps);
  }
  std::vector<Ring> order = rings;
  if (kind == CollectiveKind::all_gather) std::reverse(order.begin(), order.end());
  double bytes = input;
  for (const Ring& ring : order) {
    if (!add_axis(ring, kind, algorithm, bytes, element, steps)) return false;
    if (kind == CollectiveKind::all_gather) bytes *= ring.size;
    if (kind == CollectiveKind::reduce_scatter) bytes /= ring.size;
  }
  return true;
}

/// A shift by 1 along one axis: the last device's data goes back over all hops of an open one.
CostStep permute_step(const Ring& ring, double bytes) {
  CostStep step = step_of(ring, 1, bytes, bytes);
  if (!ring.wraps) step.hops.at(static_cast<std::size_t>(ring.dimension)) = std::max(ring.size - 1, 1);
  return step;
}

}  // namespace

std::optional<ClosedForm> closed_form(const Observation& observation, const Pod& pod, const PredictOptions& options) {
  if (is_composite(observation)) return std::nullopt;
  const auto schedule = schedule_of(observation, pod);
  if (!schedule || !pod.placement.speed.empty()) return std::nullopt;
  ClosedForm form;
  if (observation.op == ObservedOp::matmul || observation.op == ObservedOp::hbm_copy) {
    form.kind = observation.op == ObservedOp::matmul ? CostKind::matmul : CostKind::local;
    form.one_task = std::make_shared<const Schedule>(*schedule);
    return form;
  }
  const auto& collective = std::get<Collective>(schedule->computes);
  const bool rail = pod.machine.interconnect == Interconnect::rail;
  if (!is_plain(pod)) return std::nullopt;
  form.kind = cost_kind_of(collective.kind);
  form.input = bytes_of(schedule->programs.front(), collective.input);
  std::vector<Ring> rings;
  for (const AxisView& axis : collective.axes) {
    if (axis.size == 1) continue;
    const bool wraps = pod.mesh.wraps(axis);
    rings.push_back({axis.size, axis.axis, wraps, rail});
  }
  const auto bytes = static_cast<double>(form.input.count());
  const auto element = static_cast<double>(size_of(schedule->programs.front().buffers.front().dtype).count());
  const std::string& algorithm = options.algorithm.at(static_cast<std::size_t>(collective.kind));
  if (collective.kind == CollectiveKind::permute) {
    if (rings.size() != 1 || !algorithm.empty()) return std::nullopt;
    form.steps.push_back(permute_step(rings.front(), bytes));
    return form;
  }
  if (collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce) return std::nullopt;
  if (!add_phases(rings, collective.kind, algorithm, bytes, element, form.steps)) return std::nullopt;
  return form;
}

Seconds evaluate(const ClosedForm& form, const Machine& machine) {
  if (form.one_task) {
    const Program& program = form.one_task->programs.front();
    const Task& task = program.tasks.front();
    if (const auto* matmul = std::get_if<Matmul>(&task.op)) return matmul_time(machine, *matmul, program.buffers[matmul->out.buffer.index()].dtype);
    return local_time(machine, program, task);
  }
  const auto kind = static_cast<std::size_t>(form.kind);
  const double efficiency = efficiency_at(machine.software.efficiency.at(kind), form.input);
  const double injection = std::min(machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth).count();
  double seconds = machine.software.launch.at(kind).count();
  for (const CostStep& step : form.steps) {
    const LinkParameters& link = machine.link.at(static_cast<std::size_t>(step.dimension));
    double once = machine.software.per_message.count() + step.reduced / machine.chip.reduce_bandwidth.count();
    for (std::size_t d = 0; d < step.hops.size(); ++d) once += step.hops.at(d) * machine.link.at(d).latency.count();
    once += std::max(step.link_bytes / link.bandwidth.count(), step.injected / injection) / efficiency;
    seconds += step.times * once;
  }
  return Seconds{seconds};
}

}  // namespace podsim
