#include "validation/calibration/fit/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/base/units.hpp"
#include "sim/engine/table/engines.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/program_builder.hpp"
#include "topologies/mesh_placement.hpp"
#include "validation/calibration/fit/fft_schedule.hpp"
#include "workloads/collectives.hpp"
#include "workloads/scenario/collective_candidates.hpp"

namespace podsim {

namespace {

CollectiveKind collective_of(ObservedOp op) {
  switch (op) {
    case ObservedOp::all_gather: return CollectiveKind::all_gather;
    case ObservedOp::reduce_scatter: return CollectiveKind::reduce_scatter;
    case ObservedOp::all_reduce: return CollectiveKind::all_reduce;
    case ObservedOp::all_to_all: return CollectiveKind::all_to_all;
    case ObservedOp::broadcast: return CollectiveKind::broadcast;
    case ObservedOp::reduce: return CollectiveKind::reduce;
    default: return CollectiveKind::permute;
  }
}

std::vector<std::string> named_axes(const std::string& text) {
  std::vector<std::string> names{""};
  for (const char c : text) {
    if (c == '+' || c == ',')
      names.emplace_back();
    else
      names.back() += c;
  }
  return names;
}

std::int64_t devices_on(const std::vector<AxisView>& axes) {
  std::int64_t devices = 1;
  for (const AxisView& axis : axes) devices *= axis.size;
  return devices;
}

/// A schedule of one task on every device, on buffers of its own that every device has whole.
Schedule one_task(std::string name, ProgramBuilder builder, Op op) {
  builder.add(name, std::move(op), Edges{});
  return {std::move(name), builder.mesh(), {std::move(builder).finish()}, {}};
}

Schedule matmul_schedule(const Mesh& mesh, const Observation& o, DType dtype) {
  ProgramBuilder builder{mesh, every_device(mesh)};
  Matmul matmul;
  matmul.left = builder.whole(builder.add_buffer(sharded_buffer("X", dtype, Role::input, {{o.m}, {o.k}})));
  matmul.right = builder.whole(builder.add_buffer(sharded_buffer("W", dtype, Role::input, {{o.k}, {o.n}})));
  matmul.out = builder.whole(builder.add_buffer(sharded_buffer("Y", dtype, Role::output, {{o.m}, {o.n}})));
  return one_task("matmul", std::move(builder), std::move(matmul));
}

Schedule copy_schedule(const Mesh& mesh, Bytes bytes, DType dtype) {
  const std::int64_t elements = std::max<std::int64_t>((bytes.count() + size_of(dtype).count() - 1) / size_of(dtype).count(), 1);
  ProgramBuilder builder{mesh, every_device(mesh)};
  Local copy;
  copy.reads = {builder.whole(builder.add_buffer(sharded_buffer("X", dtype, Role::input, {{elements}})))};
  copy.writes = {builder.whole(builder.add_buffer(sharded_buffer("Y", dtype, Role::output, {{elements}})))};
  return one_task("hbm_copy", std::move(builder), std::move(copy));
}

/// The GEMM of all devices that an observation of one device's product is part of.
Expected<Schedule> collective_matmul(const Observation& o, const System& system, DType dtype, ObservedSchedule unknown) {
  const std::int64_t devices = o.devices, size = size_of(dtype).count(), bytes = o.bytes.count();
  std::string family;
  GemmProblem problem{o.m, o.n, o.k, dtype, Dataflow::os};
  if (o.op == ObservedOp::all_gather && o.m * o.k * size == bytes * devices) {
    family = "tp-ag", problem.n *= devices;
  } else if (o.op == ObservedOp::all_gather && o.k * o.n * size == bytes * devices) {
    family = "jax-ag", problem.m *= devices;
  } else if (o.op == ObservedOp::reduce_scatter && o.m * o.n * size == bytes) {
    family = "jax-rs", problem.k *= devices, problem.dataflow = Dataflow::rs;
  } else {
    return Diagnostic{o.where,
                      fmt::format("expected an all-gather of the rows of a {}x{}x{} product in {}, or a reduce-scatter of its result; found {} "
                                  "of {} on {} devices",
                                  o.m, o.n, o.k, name_of(dtype), name_of(o.op), to_exact_text(o.bytes), devices)};
  }
  const auto algorithm = gemm_algorithm(fmt::format("{}-{}", family, name_of(o.schedule == ObservedSchedule::unknown ? unknown : o.schedule)));
  if (!algorithm) return Diagnostic{o.where, algorithm.error().message};
  const auto axes = axes_of(o, system);
  if (!axes) return axes.error();
  if (axes->size() != 1) return Diagnostic{o.where, fmt::format("a collective matmul is along one axis of a mesh, found {}", axes->size())};
  const auto ring = submesh_of(system.mesh, axes->front(), one_device);
  if (!ring) return Diagnostic{o.where, ring.error().message};
  auto schedule = make_gemm(**algorithm, *ring, problem, {});
  if (!schedule) return Diagnostic{o.where, schedule.error().message};
  return schedule;
}

/// "hierarchical", or "hierarchical over row,col" for a collective that has several axes.
Expected<CollectiveChooser> chooser_named(std::string_view name, const Schedule& schedule, const System& system) {
  const auto lowering = lowering_named(name);
  if (!lowering) return lowering.error();
  const auto* collective = std::get_if<Collective>(&schedule.computes);
  if (*lowering == Lowering{lowering->algorithm} || collective == nullptr) return always(name, chunk_rule(system));
  if (!fits(*lowering, schedule.mesh, *collective)) return Diagnostic{{}, fmt::format("{} needs a collective along several axes", quoted(name))};
  return chooser_of(*lowering, chunk_rule(system));
}

/// A node of GPUs, on the switch that they share.
bool is_one_node(const System& system) {
  if (system.machine.interconnect != Interconnect::rail || system.slices != 1) return false;
  return system.slice.extents.size() == 1 || system.slice.extents.front() == 1;
}

}  // namespace

std::string slice_of(const Observation& observation, const System& system) {
  if (!observation.slice.empty()) return observation.slice;
  const bool collective = observation.op != ObservedOp::matmul && observation.op != ObservedOp::hbm_copy && !is_fft(observation);
  if (!collective || !observation.axis.empty() || !is_one_node(system) || observation.devices < 2 || observation.devices >= system.mesh.devices()) return {};
  return fmt::format("1x{}", observation.devices);
}

int link_dimension(const System& system, std::size_t slice_dimension) {
  return system.machine.interconnect == Interconnect::rail && system.slice.extents.size() == 1 ? 1 : static_cast<int>(slice_dimension);
}

Expected<System> system_of(const Observation& observation, const System& system) {
  const std::string own_slice = slice_of(observation, system);
  if (own_slice.empty()) return system;
  auto slice = parse_slice(own_slice, system.machine, {});
  if (!slice) return Diagnostic{observation.where, slice.error().message};
  const std::int64_t devices = std::int64_t{observation.groups} * observation.devices;
  if (observation.groups > 1 && chips_of(*slice) * system.machine.chip.devices != devices)
    return Diagnostic{observation.where, fmt::format("{} groups of {} devices do not fill the slice {}", observation.groups, observation.devices, observation.slice)};
  SystemSpec spec;
  spec.machine = system.machine;
  if (is_fft(observation))
    spec.mesh = fft_mesh(observation, *slice);
  else if (system.machine.interconnect == Interconnect::rail && slice->extents.front() == 1)
    slice->extents.back() = observation.devices;
  else if (observation.groups > 1)
    spec.mesh = {{"group", observation.groups}, {"ring", observation.devices}};
  spec.slice = *std::move(slice);
  auto result = make_system(spec);
  if (!result) return Diagnostic{observation.where, result.error().message};
  return result;
}

Expected<std::shared_ptr<const System>> Systems::of(const Observation& observation) {
  const std::string slice = slice_of(observation, *whole_);
  if (slice.empty()) return whole_;
  std::shared_ptr<const System>& made = made_[{slice, observation.groups, observation.devices, observation.mesh}];
  if (made == nullptr) {
    auto system = system_of(observation, *whole_);
    if (!system) return system.error();
    made = std::make_shared<const System>(*std::move(system));
  }
  return made;
}

std::string algorithm_of(CollectiveKind kind, const System& system, const PredictOptions& options) {
  const std::string& name = options.algorithm.at(static_cast<std::size_t>(kind));
  return name.empty() && kind == CollectiveKind::all_to_all && is_one_node(system) ? "direct" : name;
}

std::vector<PredictOptions> ways_to_run(const Observation& observation, const System& system, const PredictOptions& options) {
  std::vector<PredictOptions> ways{options};
  constexpr auto all_reduce = static_cast<std::size_t>(CollectiveKind::all_reduce);
  if (observation.op != ObservedOp::all_reduce || observation.m > 0 || !options.algorithm.at(all_reduce).empty() || !is_one_node(system)) return ways;
  if (!(system.machine.link[1].in_switch_efficiency > 0)) return ways;
  ways.push_back(options);
  ways.back().algorithm.at(all_reduce) = "in-switch";
  return ways;
}

Expected<std::vector<AxisView>> axes_of(const Observation& observation, const System& system) {
  const Mesh& mesh = system.mesh;
  std::vector<AxisView> axes;
  if (!observation.axis.empty()) {
    for (const std::string& name : named_axes(observation.axis)) {
      const auto axis = mesh.axis(name);
      if (!axis) return Diagnostic{observation.where, axis.error().message};
      axes.push_back(*axis);
    }
    if (devices_on(axes) == observation.devices) return axes;
    return Diagnostic{observation.where,
                      fmt::format("axis {} has {} devices, the observation {}", quoted(observation.axis), devices_on(axes), observation.devices)};
  }
  if (const auto ring = mesh.axis("ring"); observation.groups > 1 && ring) return std::vector{*ring};  // of system_of()
  for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a)
    if (mesh.whole(a).size > 1) axes.push_back(mesh.whole(a));
  if (devices_on(axes) == observation.devices) {
    if (system.machine.interconnect == Interconnect::rail) std::reverse(axes.begin(), axes.end());
    return axes;
  }
  if (observation.devices > mesh.devices())
    return Diagnostic{observation.where, fmt::format("the log has {} devices, the slice {}", observation.devices, mesh.devices())};
  std::erase_if(axes, [&](const AxisView& axis) { return axis.size != observation.devices; });
  if (axes.size() == 1) return axes;
  return Diagnostic{observation.where, fmt::format("{} axis of the mesh has {} devices; the observation should name its axis, or its slice",
                                                   axes.empty() ? "no" : "more than one", observation.devices)};
}

Expected<Schedule> schedule_of(const Observation& observation, const System& system, ObservedSchedule unknown_matmul) {
  const DType dtype = observation.dtype.value_or(DType::bf16);
  if (is_run(observation)) return Diagnostic{observation.where, "a run is predicted with the study of its dataset: `podsim validate`"};
  if (is_training_step(observation)) return Diagnostic{observation.where, "a training step is predicted with the study of its dataset: `podsim validate`"};
  if (observation.op == ObservedOp::matmul) return matmul_schedule(system.mesh, observation, dtype);
  if (observation.op == ObservedOp::hbm_copy) return copy_schedule(system.mesh, observation.bytes, dtype);
  if (is_fft(observation)) return fft_schedule(observation, system.mesh);
  if (observation.m > 0) return collective_matmul(observation, system, dtype, unknown_matmul);
  const auto axes = axes_of(observation, system);
  if (!axes) return axes.error();
  const CollectiveKind kind = collective_of(observation.op);
  const bool divides = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all;
  const std::int64_t unit = size_of(dtype).count() * (divides ? observation.devices : 1);
  const Bytes bytes{std::max<std::int64_t>((observation.bytes.count() + unit - 1) / unit, 1) * unit};
  auto schedule = collective_schedule(system.mesh, kind, *axes, bytes, dtype);
  if (!schedule) return Diagnostic{observation.where, schedule.error().message};
  return schedule;
}

Expected<Schedule> lowered_schedule_of(const Observation& observation, const System& system, const PredictOptions& options) {
  const auto schedule = schedule_of(observation, system, options.unknown_matmul);
  if (!schedule || observation.op == ObservedOp::matmul || observation.op == ObservedOp::hbm_copy) return schedule;
  // NCCL's all-to-all: every GPU with every other at once, those of other nodes over the rails.
  const bool over_switches = is_fft(observation) && system.machine.interconnect == Interconnect::rail;
  const std::string name = over_switches ? "direct" : algorithm_of(is_fft(observation) ? CollectiveKind::all_to_all : collective_of(observation.op), system, options);
  const auto chooser = name.empty() ? ring_or_line(chunk_rule(system)) : chooser_named(name, *schedule, system);
  if (!chooser) return chooser.error();
  auto lowered = lower(*schedule, *chooser);
  if (!lowered) return Diagnostic{observation.where, lowered.error().message};
  if (observation.in_place)
    for (Program& program : lowered->programs)
      for (Task& task : program.tasks)
        if (task.origin) task.origin->own_block = {};
  return lowered;
}

Expected<Seconds> simulated_time(const Schedule& lowered, const System& system, Cancellation stop) {
  const auto model = make_folded_model(lowered, system.machine, *system.topology, system.placement);
  if (!model) return model.error();
  return simulated_time(*model, stop);
}

Expected<Seconds> simulated_time(const Model& model, Cancellation stop) {
  RunControl control;
  control.record = false;
  control.stop = stop;
  const auto timeline = des_engine().run(model, control);
  if (!timeline) return timeline.error();
  if (timeline->interrupted) return cancelled_work();
  return to_seconds(timeline->makespan);
}

Expected<Seconds> predict(const Observation& observation, const System& system, const PredictOptions& options) {
  const auto own = system_of(observation, system);
  if (!own) return own.error();
  std::optional<Seconds> fastest;
  for (const PredictOptions& way : ways_to_run(observation, *own, options)) {
    const auto lowered = lowered_schedule_of(observation, *own, way);
    if (!lowered) return lowered.error();
    const auto time = simulated_time(*lowered, *own);
    if (!time) return time.error();
    fastest = fastest ? std::min(*fastest, *time) : *time;
  }
  return *fastest;
}

Expected<System> system_of_slice(const Machine& machine, const std::string& slice, MeshSizes sizes, bool snake) {
  auto parsed = parse_slice(slice, machine, {});
  if (!parsed) return parsed.error();
  SystemSpec spec;
  spec.machine = machine;
  spec.slice = *std::move(parsed);
  spec.mesh = std::move(sizes);
  if (snake) spec.order = SnakeOrder{};
  auto system = make_system(spec);
  if (!system) return Diagnostic{{}, system.error().message, system.error().cause};
  return system;
}

}  // namespace podsim
