#include "workloads/scenario/problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/base/blame.hpp"
#include "workloads/collectives.hpp"
#include "workloads/hlo/module_axes.hpp"
#include "workloads/hlo_values/interpret.hpp"
#include "workloads/hlo_values/module_source.hpp"
#include "workloads/scenario/cut_bound.hpp"
#include "workloads/scenario/one_axis.hpp"
#include "workloads/sharded/write.hpp"

namespace podsim {

namespace {

/// Whether a collective that names its algorithm runs by that.
bool says_algorithms(const CollectivePolicy& policy) { return policy.algorithm == by_dimension_name || policy.algorithm == direct_between_slices_name; }

Expected<Problem> make(const System& system, const GemmSpec& spec) {
  const Mesh& mesh = system.mesh;
  const GemmAlgorithmEntry& algorithm = *spec.algorithm;
  GemmProblem problem = spec.problem;
  ProblemSummary summary;
  if (spec.pad) {
    const auto multiples = required_multiples(algorithm, mesh, problem.dataflow, spec.pass, spec.options);
    if (!multiples) return multiples.error();
    const auto volume = [](const GemmProblem& p) { return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k); };
    problem = padded(problem, *multiples);
    summary.padding = 1 - volume(spec.problem) / volume(problem);
  }
  auto schedule = make_layer(algorithm, mesh, problem, spec.pass, spec.options);
  if (!schedule) return schedule.error();
  summary.replicated = replicated_tensors(*schedule);
  if (spec.given) {
    schedule = gather_inputs(*std::move(schedule), *spec.given);
    if (!schedule) return schedule.error();
    for (Replicated& tensor : summary.replicated)
      tensor.gathered = tensor.role == Role::input && std::find(spec.given->begin(), spec.given->end(), tensor.tensor) == spec.given->end();
  }
  summary.algorithm = algorithm.name;
  summary.dataflow = name_of(problem.dataflow);
  if (algorithm.takes_slice_count) summary.slice_count = spec.options.slice_count;
  if (summary.slice_count == 0) summary.slice_count = std::lcm(mesh.axes()[0].size, mesh.axes()[1].size);  // summa's own
  return Problem{*std::move(schedule), spec.collectives, std::move(summary)};
}

CollectiveSummary summary_of(const System& system, const Collective& collective, Bytes input) {
  std::string names;
  std::int64_t devices = 1;
  for (const AxisView& axis : collective.axes) {
    names += (names.empty() ? "" : ",") + system.mesh.name(axis);
    devices *= axis.size;
  }
  CutBound bound = cut_bound(system, collective, input);
  return {collective.kind, names, input, devices, bound.least, std::move(bound.none)};
}

Expected<Problem> make(const System& system, const CollectiveSpec& spec) {
  if (auto name = lowered_as_one_axis(spec.policy.algorithm)) {  // on system_for()
    CollectiveSpec along = spec;
    along.axes.clear();
    along.policy.algorithm = *std::move(name);
    auto problem = make(system, along);
    if (problem) problem->summary.algorithm = spec.policy.algorithm;
    return problem;
  }
  const auto axes = axes_of(spec.axes, system.mesh);
  if (!axes) return axes.error();
  auto schedule = collective_schedule(system.mesh, spec.kind, *axes, spec.input, spec.dtype, spec.details);
  if (!schedule) return Diagnostic{of_field("collective"), schedule.error().message};
  ProblemSummary summary;
  summary.algorithm = !spec.policy.algorithm.empty() ? spec.policy.algorithm : spec.kind == CollectiveKind::permute ? "direct" : "ring or line";
  summary.collective = summary_of(system, std::get<Collective>(schedule->computes), spec.input);
  return Problem{*std::move(schedule), spec.policy, std::move(summary)};
}

Expected<Problem> make(const System& system, const PlannedWorkload& planned) {
  auto schedule = block_schedule(system.mesh, planned.workload, planned.plan, planned.pass);
  if (!schedule) return schedule.error();
  ProblemSummary summary;
  std::set<std::string> algorithms;
  for (const StagePlan& stage : planned.plan.stages)
    if (stage.product) algorithms.insert(stage.product->algorithm), summary.layers.emplace_back(stage.name, *stage.product);
  summary.algorithm = fmt::format("{}", fmt::join(algorithms, "+"));
  summary.blocks = planned.workload.block ? planned.workload.block->layers : 1;
  summary.tokens = tokens_of(planned.workload);
  return Problem{*std::move(schedule), {planned.plan.collectives, {}}, std::move(summary)};
}

Expected<Problem> make(const System&, const WorkloadSpec&) {
  return Diagnostic{of_field("plan"), "a workload whose plan is open has no schedule yet: choose the plan first"};
}

Expected<Problem> make(const System&, const ProgramSpec&) {
  return Diagnostic{of_field("program"), "a program whose collectives are open has no schedule yet: insert them first"};
}

Expected<Problem> make(const System& system, const PlannedProgram& planned) {
  if (planned.program.mesh != system.mesh)
    return Diagnostic{of_field("program"), fmt::format("the program's mesh is {}, the system's is {}", to_text(planned.program.mesh), to_text(system.mesh))};
  ProblemSummary summary;
  summary.algorithm = planned.chosen_by;
  summary.padding = planned.summary.padding;
  summary.program = planned.summary;
  return Problem{write_program(planned.program, planned.plan), planned.collectives, std::move(summary)};
}

Expected<Problem> make(const System&, const TrainingSpec&) {
  return Diagnostic{of_field("training"), "a training step whose layers are open has no schedule yet: choose them first"};
}

/// "collective", "meshslice S=8"
std::string layers_of(const Plan& plan) {
  std::set<std::string> names;
  for (const StagePlan& stage : plan.stages)
    if (stage.product) names.insert(stage.product->algorithm + (stage.product->slice_count > 0 ? fmt::format(" S={}", stage.product->slice_count) : ""));
  return fmt::format("{}", fmt::join(names, ", "));
}

Expected<Problem> make(const System& system, const PlannedTraining& planned) {
  auto made = training_schedule(planned.divided.step, system.mesh, planned.plan, planned.options);
  if (!made) return made.error();
  ProblemSummary summary;
  summary.algorithm = planned.divided.step.pipeline.empty() ? "training" : planned.divided.step.pipeline;
  summary.training = std::make_shared<const TrainingSummary>(
      TrainingSummary{planned.given, planned.divided, planned.options.steps, layers_of(planned.plan), std::move(made->pipeline), std::move(made->memory), std::move(made->outputs)});
  return Problem{std::move(made->schedule), {planned.collectives, {}}, std::move(summary)};
}

/// Makes the inputs and outputs of a module's schedule those of a program, in order, and its claim what that computes.
Status name_tensors(Schedule& schedule, const ShardedProgram& program) {
  std::vector<int> inputs;
  for (std::size_t i = 0; i < program.operations.size(); ++i)
    if (program.operations[i].op == ArrayOp::input) inputs.push_back(static_cast<int>(i));
  const auto bind = [&](Role role, const std::vector<int>& operations, std::string_view what) -> Status {
    std::vector<Buffer*> buffers;
    for (Buffer& buffer : schedule.programs.front().buffers)
      if (buffer.role == role) buffers.push_back(&buffer);
    if (buffers.size() != operations.size()) return Diagnostic{of_field("equals"), fmt::format("expected as many {} as the module has arrays of them, {}; found {}", what, buffers.size(), operations.size())};
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      const Operation& array = program.operations[static_cast<std::size_t>(operations[b])];
      Sharding sharding = array.sharding.value_or(Sharding{});
      if (const auto out = program.out.find(operations[b]); out != program.out.end()) sharding = out->second;
      if (sharding.dims.size() < array.extents.size()) sharding.dims.resize(array.extents.size());
      Extents block = block_extents(array.extents, sharding, schedule.mesh);
      if (block.empty()) block = {1};
      Buffer& buffer = *buffers[b];
      if (block != buffer.extents)
        return Diagnostic{of_field("equals"), fmt::format("expected a block of {} with the dimensions of {}, {}; found {}", array.name, buffer.name, fmt::join(buffer.extents, "x"), fmt::join(block, "x"))};
      buffer.tensor = array.name;
      buffer.sharding.assign(buffer.extents.size(), {});
      for (std::size_t d = 0; d < sharding.dims.size(); ++d)
        for (const int axis : sharding.dims[d]) buffer.sharding[d].push_back(schedule.mesh.whole(axis));
      if (role == Role::output)
        for (const int axis : sharding.unreduced) buffer.unreduced.push_back(schedule.mesh.whole(axis));
    }
    return success();
  };
  if (Status bound = bind(Role::input, inputs, "inputs"); !bound) return bound;
  if (Status bound = bind(Role::output, program.outputs, "results"); !bound) return bound;
  schedule.computes = reference_of(program);
  return success();
}

bool communicates(const HloModule& module) {
  return std::ranges::any_of(module.computations, [](const HloComputation& computation) {
    return std::ranges::any_of(computation.instructions, [](const HloInstruction& instruction) { return is_collective(instruction.opcode); });
  });
}

Expected<Problem> make(const System& system, const HloSpec& spec) {
  HloScheduleOptions options = spec.options;
  const Machine& machine = system.machine;
  options.rates = {peak_of(machine, DType::bf16).count() * machine.chip.matmul_efficiency, machine.chip.hbm_bandwidth.count(), machine.link.front().bandwidth.count()};
  options.machine = &machine;
  options.cells = cells_along(system);
  if (spec.estimated_cycles && !options.clock_hz && machine.chip.cycle > Seconds{}) options.clock_hz = 1 / machine.chip.cycle.count();
  if (spec.estimated_cycles && !options.clock_hz) return Diagnostic{of_field("hlo_cost"), fmt::format("estimated-cycles needs `clock` here: that of {} is not known", machine.name)};
  if (spec.equals && !options.values) return Diagnostic{of_field("equals"), "belongs to checks on numbers, so not to those of the structure only"};
  if (options.rewrite_bf16_reductions && options.values) return Diagnostic{of_field("rewrite"), "bf16-reductions makes other numbers: it belongs to runs, not to checks"};
  auto made = hlo_schedule(*spec.module, system.mesh, options);
  if (!made) return made.error();
  if (options.values) {
    made->schedule.source = module_source({spec.module, spec.original ? spec.original : spec.module}, std::move(made->kernels), options.counts.branches);
    made->schedule.computes = SourceResults{};
  }
  if (spec.equals) {
    const auto program = read_program(*spec.equals, system.mesh);
    if (!program) return program.error();
    if (Status named = name_tensors(made->schedule, *program); !named) return named.error();
  }
  const CollectivePolicy policy = spec.collectives.value_or(usual_collectives(system, spec));
  ProblemSummary summary;
  const bool overlapped = order_of(*spec.module, spec.options) == HloScheduleOptions::Order::overlap;
  summary.algorithm = overlapped ? "overlapped" : spec.module->is_scheduled ? "as compiled" : "in text order";
  std::vector<std::string> notes = spec.assumed;
  std::ranges::copy(spec.rewritten, std::back_inserter(notes));
  if (std::string order = spec.order_given ? "" : other_jax_order(system); !order.empty())
    notes.push_back(fmt::format("device order row-major; JAX's own for this mesh is another: {}", order));
  if (overlapped && spec.module->is_scheduled) notes.emplace_back("collectives begin when their operands are there, not where the compiler put them; memory is that of the compiler's order");
  std::ranges::move(made->notes, std::back_inserter(notes));
  if (!spec.collectives && policy.is_auto() && communicates(*spec.module)) notes.emplace_back("each collective by the algorithm that is fastest for it alone, as NCCL chooses its own; --collectives names another");
  HloTrust trust = trust_of(*spec.module, machine, options.counts, options.clock_hz);
  for (const HloAttributeCount& attribute : trust.unknown_attributes)
    notes.push_back(fmt::format("unknown attribute {} x {}, first on line {}: it changes nothing", quoted(attribute.name), attribute.count, attribute.first.line));
  std::vector<std::string> not_checked;
  if (options.values)
    for (const HloInstruction* call : calls_without_values(*spec.module))
      not_checked.push_back(to_text(Diagnostic{spec.module->where(*call), fmt::format("{}: what custom-call {} computes is not known; other numbers stand in for its results", call->name, quoted(call->attributes->custom_call_target))}));
  HloOrigins origins = origins_of_communication(*made);
  summary.hlo = std::make_shared<const HloRunSummary>(HloRunSummary{spec.module->name, made->instructions, spec.module->is_scheduled, std::move(made->opaque), says_algorithms(policy) ? std::move(made->stated) : std::vector<HloStatedAlgorithm>{}, std::move(notes), std::move(not_checked), peak_memory_of(*spec.module), std::move(trust),
                                                                    system.devices.empty() ? to_text(system.order) : "listed", !spec.order_given, std::move(origins)});
  return Problem{std::move(made->schedule), policy, std::move(summary), std::move(made->tasks)};
}

Expected<Problem> make(const System& system, const ScheduleSpec& spec) {
  if (spec.schedule.mesh.devices() != system.mesh.devices())
    return Diagnostic{of_field("schedule"), fmt::format("the schedule's mesh is {}, the system's is {}: they must have as many devices",
                                                        to_text(spec.schedule.mesh), to_text(system.mesh))};
  ProblemSummary summary;
  summary.algorithm = spec.name;
  if (const auto* collective = std::get_if<Collective>(&spec.schedule.computes); collective != nullptr && spec.input)
    summary.collective = summary_of(system, *collective, *spec.input);
  return Problem{spec.schedule, spec.collectives, std::move(summary)};
}

}  // namespace

Expected<std::vector<AxisView>> axes_of(const std::vector<std::string>& names, const Mesh& mesh) {
  std::vector<AxisView> axes;
  if (names.empty()) {
    for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a)
      if (mesh.whole(a).size > 1) axes.push_back(mesh.whole(a));
    if (axes.empty() && !mesh.axes().empty()) axes.push_back(mesh.whole(0));
    return axes;
  }
  for (const std::string& name : names) {
    const auto axis = mesh.axis(name);
    if (!axis) return Diagnostic{of_field("axis"), axis.error().message};
    if (std::find(axes.begin(), axes.end(), *axis) != axes.end()) return Diagnostic{of_field("axis"), "mesh axis " + quoted(name) + " is named twice"};
    axes.push_back(*axis);
  }
  return axes;
}

std::optional<TokenCount> tokens_of(const Workload& workload) {
  if (!workload.block) return std::nullopt;
  return TokenCount{workload.block->batch, workload.block->sequence};
}

CollectivePolicy usual_collectives(const System& system, const HloSpec& spec) {
  const bool by_nccl = system.machine.interconnect == Interconnect::rail && !spec.options.values;
  return {std::string{by_nccl ? auto_name : by_dimension_name}, {}};
}

namespace {

/// The axes that the module's collectives tell apart, by the names of the mesh: "x,y" for two that none does, "x/8:2" for a part. NCCL knows devices, not the mesh that the program has laid
/// over them. Empty: the collectives have no such axes, or parts that do not divide those of the mesh.
MeshSizes axes_told_apart(const Mesh& mesh, const HloModule& module) {
  const auto told = axes_of_collectives(module);
  if (!told) return {};
  MeshSizes axes;
  auto axis = mesh.axes().begin();
  int left = axis->size;  // of this one, its least significant part
  for (const auto& [name, size] : *told) {
    auto& [names, product] = axes.emplace_back("", 1);
    while (product < size) {
      for (; left == 1 && ++axis != mesh.axes().end();) left = axis->size;
      const int part = std::gcd(left, size / product);
      if (part == 1 || (part != left && product * part != size)) return {};
      left /= part;
      names += (names.empty() ? "" : ",") + (part == axis->size ? axis->name : fmt::format("{}/{}:{}", axis->name, left, part));
      product *= part;
    }
  }
  return axes;
}

}  // namespace

Expected<System> system_for(const ProblemSpec& spec, const System& system) {
  if (const auto* gemm = std::get_if<GemmSpec>(&spec))
    return gemm->algorithm->mesh == MeshUse::row_col || system.mesh.axes().size() == 1 ? system : on_axes(system, {{"ring", system.mesh.devices()}});
  if (const auto* collective = std::get_if<CollectiveSpec>(&spec); collective != nullptr && lowered_as_one_axis(collective->policy.algorithm)) {
    const auto axes = axes_over_all(system, *collective);
    auto one = axes ? on_one_axis(system, *axes) : std::nullopt;
    if (one) return *std::move(one);
    return Diagnostic{of_field("algorithm"), fmt::format("`{}` is for collectives along all of several axes of a row-major mesh, found mesh {}", collective->policy.algorithm, to_text(system.mesh))};
  }
  const auto* hlo = std::get_if<HloSpec>(&spec);
  if (hlo == nullptr || hlo->options.values || !hlo->collectives.value_or(usual_collectives(system, *hlo)).is_auto()) return system;
  const bool is_row_major = std::holds_alternative<RowMajorOrder>(system.order);
  const MeshSizes axes = is_row_major && devices_of(*hlo->module) == system.mesh.devices() ? axes_told_apart(system.mesh, *hlo->module) : MeshSizes{};
  return axes.empty() ? system : on_axes(system, axes);
}

Expected<Problem> make_problem(const System& system, const ProblemSpec& spec) {
  return std::visit([&](const auto& one) { return make(system, one); }, spec);
}

}  // namespace podsim
