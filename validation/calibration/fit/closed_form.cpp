#include "validation/calibration/fit/closed_form.hpp"

#include <algorithm>
#include <array>

#include "algorithms/collectives/collectives.hpp"
#include "workloads/collectives.hpp"

namespace podsim {

namespace {

/// One slice without faults, on chips of one device.
bool is_plain(const System& system) {
  if (system.joined_by.kind != TopologySpec::Kind::as_built || system.slices != 1 || !system.faults.none()) return false;
  return system.machine.chip.devices == 1 && system.placement.speed.empty();
}

/// The dimension of the slice that an axis of a rail lies along: the mesh has an axis for each, row-major.
std::optional<std::size_t> dimension_of_rail(const System& system, const AxisView& axis) {
  if (system.mesh.axes().size() != system.slice.extents.size()) return std::nullopt;
  for (std::size_t d = 0; d < system.slice.extents.size(); ++d)
    if (system.mesh.axes()[d].size != system.slice.extents[d]) return std::nullopt;
  for (std::size_t d = 0; d < system.placement.chip_of.size(); ++d)
    if (system.placement.chip_of[d].index() != d) return std::nullopt;
  return static_cast<std::size_t>(axis.axis);
}

/// The dimension of a grid that an axis lies along, from its first chip to its last, in every place of the mesh; none if it folds several.
std::optional<std::size_t> dimension_of_grid(const System& system, const AxisView& axis) {
  const Grid* grid = system.topology->grid();
  if (grid == nullptr || grid->chips() != system.mesh.devices()) return std::nullopt;
  std::optional<std::size_t> dimension;
  for (int d = 0; d < system.mesh.devices(); ++d) {
    const int at = system.mesh.coordinate(DeviceId{d}, axis);
    if (at + 1 == axis.size) continue;
    const std::vector<int> here = grid->coordinates(system.placement.chip_of[static_cast<std::size_t>(d)]),
                           next = grid->coordinates(system.placement.chip_of[system.mesh.shifted(DeviceId{d}, axis, 1).index()]);
    const auto along = static_cast<std::size_t>(std::mismatch(here.begin(), here.end(), next.begin()).first - here.begin());
    if (along == here.size() || dimension.value_or(along) != along) return std::nullopt;
    if (here[along] != at || next[along] != at + 1 ||
        !std::equal(here.begin() + static_cast<std::ptrdiff_t>(along) + 1, here.end(), next.begin() + static_cast<std::ptrdiff_t>(along) + 1))
      return std::nullopt;
    dimension = along;
  }
  return dimension && grid->dimensions()[*dimension].extent == axis.size ? dimension : std::nullopt;
}

/// A step of the algorithm on the machine's dimension that its axis is laid over.
CostStep cost_step_of(const CollectiveStep& step, int dimension, bool over_switch) {
  CostStep cost;
  cost.times = step.times;
  cost.dimension = dimension;
  cost.hops.at(static_cast<std::size_t>(dimension)) = step.distance * (over_switch ? 2 : 1);  // up to the switch and down
  cost.link_bytes = step.link_bytes;
  cost.injected = over_switch ? 0 : step.injected;  // networks of switches have no injection limit
  cost.reduced = step.reduced;
  cost.in_switch = step.in_switch;
  return cost;
}

/// Whether the formula holds on machines where nothing is free: no adds left out, and no flows of different routes that share links.
bool has_formula(const CollectiveSteps& steps, bool over_switch) {
  return std::none_of(steps.begin(), steps.end(), [&](const CollectiveStep& step) { return step.adds_left_out || (step.shares && !over_switch); });
}

}  // namespace

std::optional<ClosedForm> closed_form(const Observation& observation, const System& system, const PredictOptions& options) {
  if (is_composite(observation)) return std::nullopt;
  const auto schedule = schedule_of(observation, system);
  if (!schedule || !system.placement.speed.empty()) return std::nullopt;
  ClosedForm form;
  if (is_fft(observation)) return std::nullopt;
  if (observation.op == ObservedOp::matmul || observation.op == ObservedOp::hbm_copy) {
    form.kind = observation.op == ObservedOp::matmul ? CostKind::matmul : CostKind::local;
    form.one_task = std::make_shared<const Schedule>(*schedule);
    return form;
  }
  const auto& collective = std::get<Collective>(schedule->computes);
  const bool rail = system.machine.interconnect == Interconnect::rail;
  if (!is_plain(system)) return std::nullopt;
  form.kind = cost_kind_of(collective.kind);
  form.links_out = rail ? 1 : 2;
  form.input = bytes_of(schedule->programs.front(), collective.input);
  if (collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce) return std::nullopt;
  std::vector<CollectiveAxis> axes;
  std::vector<int> dimensions;
  for (const AxisView& axis : collective.axes) {
    if (axis.size == 1) continue;
    const auto along = rail ? dimension_of_rail(system, axis) : dimension_of_grid(system, axis);
    if (!along) return std::nullopt;
    const int dimension = link_dimension(system, *along);
    const bool adds = rail && system.machine.link.at(static_cast<std::size_t>(dimension)).in_switch_efficiency > 0;
    axes.push_back({axis.size, rail ? AxisLinks::one_switch : system.mesh.wraps(axis) ? AxisLinks::ring : AxisLinks::line, adds});
    dimensions.push_back(dimension);
  }
  const std::string name = algorithm_of(collective.kind, system, options);
  if (!observation.in_place && form.input > Bytes{}) form.own_block = own_block_of(schedule->programs.front(), collective);
  const DType dtype = schedule->programs.front().buffers.front().dtype;
  CollectiveSize size{collective.kind, static_cast<double>(form.input.count()), static_cast<double>(size_of(dtype).count())};
  const CollectiveAlgorithmEntry* algorithm = collective_algorithm_named(name);
  if (algorithm != nullptr && algorithm->needs.in_switch) {
    form.in_switch = true;
    for (const AxisView& axis : collective.axes)
      if (axis.size > 1) size.chunks = chunk_rule(system)(system.mesh, in_switch_stages(axis, form.input));
  }
  if (!name.empty() && (algorithm == nullptr || algorithm->needs.axes > 1)) return std::nullopt;  // axes at once share the injection limit
  const auto steps = name.empty() ? usual_closed_form(axes, size) : closed_form_of(*algorithm, axes, size);
  if (!steps || !has_formula(*steps, rail)) return std::nullopt;
  for (const CollectiveStep& step : *steps) form.steps.push_back(cost_step_of(step, dimensions[static_cast<std::size_t>(step.axis)], rail));
  return form;
}

bool has_memory_to_spare(const ClosedForm& form, const Machine& machine) {
  if (form.one_task || !machine.chip.memory_shared || is_unlimited(machine.chip.hbm_bandwidth)) return true;
  std::array<bool, max_dimensions> used{};
  for (const CostStep& step : form.steps) used.at(static_cast<std::size_t>(step.dimension)) = true;
  constexpr int reads_and_writes = 1 + 2;  // of what leaves; of what arrives and is added
  double demand = 0;
  for (std::size_t d = 0; d < used.size(); ++d)
    if (used.at(d)) demand += form.links_out * reads_and_writes * machine.link.at(d).bandwidth.count() * machine.chip.transfer_memory_passes;
  return demand <= machine.chip.hbm_bandwidth.count();
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
  double seconds = machine.software.launch.at(kind).count() + (form.in_switch ? machine.software.in_switch_launch.count() : 0) + form.own_block.count() / machine.chip.own_block_bandwidth.count();
  for (const CostStep& step : form.steps) {
    const LinkParameters& link = machine.link.at(static_cast<std::size_t>(step.dimension));
    double once = machine.software.per_message.count() + step.reduced / machine.chip.reduce_bandwidth.count();
    for (std::size_t d = 0; d < step.hops.size(); ++d) once += step.hops.at(d) * machine.link.at(d).latency.count();
    const double rate = link.bandwidth.count() * (step.in_switch ? link.in_switch_efficiency : 1);
    once += std::max(step.link_bytes / rate, step.injected / injection) / efficiency;
    seconds += step.times * once;
  }
  return Seconds{seconds};
}

}  // namespace podsim
