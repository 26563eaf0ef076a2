#include "workloads/scenario/training_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "algorithms/pipeline/pipeline.hpp"
#include "sim/base/units.hpp"
#include "sim/schedule/program_builder.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

bool splits_backward(const TrainingStep& step) {
  if (step.mesh.stage == 1) return false;
  const auto schedule = pipeline_schedule_named(step.pipeline);
  return schedule && splits_backward(*schedule);
}

std::int64_t sequences_of(const TrainingStep& divided) {
  const TrainingMesh& mesh = divided.mesh;
  return divided.batch / divided.microbatches / (mesh.slice * mesh.data * mesh.fsdp * mesh.expert);
}

// ---- Calls alone ------------------------------------------------------------------------------------------------------------------------

namespace {

Bytes bytes_of(const Buffer& buffer) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : buffer.extents) elements *= extent;
  return Bytes{elements * size_of(buffer.dtype).count()};
}

/// Simulates functions of a step, each by itself.
class LoneCalls {
 public:
  LoneCalls(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options)
      : system_{system}, parts_{parts}, functions_{parts}, policy_{collectives, {}}, options_{options} {
    options_.engine = &des_engine();
    options_.control.progress = {};
    options_.doing = {};
  }

  /// nullopt: an error, which `problem` has.
  std::optional<double> seconds(const StepCall& call) {
    const StepFunction& function = functions_.at(functions_.number(call));
    ProgramBuilder program{parts_.mesh, parts_.layer_mesh.devices};
    Call op{0, {}};
    for (const Buffer& parameter : function.parameters)
      op.arguments.push_back(program.add_buffer({parameter.name, parameter.extents, parameter.dtype, Role::scratch, {}, {}}));
    program.step(function.function.name, std::move(op), {});
    Schedule schedule{function.function.name, parts_.mesh, {}, {}};
    schedule.functions.push_back(function.function);
    schedule.programs.push_back(std::move(program).finish());
    return seconds_of(schedule);
  }

  /// Of a weight, without conversions and sums on the core. nullopt: an error, which `problem` has.
  std::optional<TransferTimes> transfers(const StepWeight& weight) {
    const TrainingModel& model = parts_.step.model;
    const AxisView& data = parts_.axes.data;
    TransferTimes times{0, 0, 0, Bytes{weight.block()[0] * weight.block()[1] * size_of(model.activations).count()}};
    const auto alone = [&](CollectiveKind kind, const std::vector<AxisView>& axes, const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to, DType dtype, double& time) {
      ProgramBuilder program{parts_.mesh, parts_.layer_mesh.devices};
      const Region input = program.scratch(weight.name, from, dtype), output = from == to ? input : program.scratch(weight.name + " there", to, dtype);
      program.step(weight.name, Collective{kind, axes, input, output, weight.dim}, {});
      const auto seconds = seconds_of({weight.name, parts_.mesh, {std::move(program).finish()}, {}});
      time = seconds.value_or(0);
      return seconds.has_value();
    };
    if (!weight.gathered.empty() && !(alone(CollectiveKind::all_gather, weight.gathered, weight.shard(), weight.block(), model.activations, times.gather) &&
                                      alone(CollectiveKind::reduce_scatter, weight.gathered, weight.block(), weight.shard(), model.activations, times.reduce)))
      return std::nullopt;
    const bool in_parts = !weight.updated.empty(), is_summed = data.size > 1 && (parts_.axes.slice.size == 1 || in_parts);  // by programs
    const CollectiveKind kind = in_parts ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    if (is_summed && !alone(kind, {data}, weight.shard(), weight.part(), model.gradients, times.sum)) return std::nullopt;
    return times;
  }

  Diagnostic problem;

 private:
  std::optional<double> seconds_of(const Schedule& schedule) {
    const auto run = simulate(system_, schedule, options_, policy_);
    if (!run)
      problem = run.error();
    else if (run->timeline.interrupted)
      problem = cancelled_work();
    else
      return to_seconds(run->metrics.makespan).count();
    return std::nullopt;
  }

  const System& system_;
  const StepParts& parts_;
  StepFunctions functions_;
  CollectivePolicy policy_;
  RunOptions options_;
};

}  // namespace

Status add_layer(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options, LayerTimes& times) {
  LoneCalls calls{system, parts, collectives, options};
  const auto forward = calls.seconds({.work = StepWork::layer_forward, .alone = true}), backward = calls.seconds({.work = StepWork::layer_backward, .alone = true});
  if (!forward || !backward) return calls.problem;
  times.forward = *forward, times.backward = *backward;
  return success();
}

Status add_halves(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options, LayerTimes& times) {
  LoneCalls calls{system, parts, collectives, options};
  const auto inputs = calls.seconds({.work = StepWork::layer_inputs, .alone = true}), weights = calls.seconds({.work = StepWork::layer_weights, .alone = true});
  if (!inputs || !weights) return calls.problem;
  times.inputs = *inputs, times.weights = *weights;
  return success();
}

Status add_ends(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options, LayerTimes& times) {
  LoneCalls calls{system, parts, collectives, options};
  const auto loss = calls.seconds({.work = StepWork::loss});
  if (!loss) return calls.problem;
  times.loss = *loss;
  if (parts.step.model.vocabulary == 0) return success();
  const auto embed = calls.seconds({.work = StepWork::embed}), embed_gradient = calls.seconds({.work = StepWork::embed_gradient});
  if (!embed || !embed_gradient) return calls.problem;
  times.embed = *embed, times.embed_gradient = *embed_gradient;
  return success();
}

void add_kept(const StepParts& parts, LayerTimes& times) {
  times.kept = times.kept_for_weights = Bytes{};
  const auto use_of = [&](const Buffer& parameter) { return parts.functions.tensors.at(parameter.tensor).use; };
  const auto is_weight = [&](const Buffer& parameter) { return use_of(parameter) == LayerTensor::Use::weight || use_of(parameter) == LayerTensor::Use::weight_gradient; };
  // A saved output that no backward pass reads is freed at once.
  const std::vector<Buffer>& read = parts.functions.backward.parameters;
  for (const Buffer& parameter : parts.functions.forward.parameters)
    if (!is_weight(parameter) && use_of(parameter) != LayerTensor::Use::output &&
        std::any_of(read.begin(), read.end(), [&](const Buffer& other) { return other.tensor == parameter.tensor; }))
      times.kept += bytes_of(parameter);
  for (const Buffer& parameter : parts.functions.backward_weights.parameters)
    if (!is_weight(parameter)) times.kept_for_weights += bytes_of(parameter);
  const auto order = [&](StepWork work) -> const WeightOrder& { return parts.orders.at(work); };
  times.forward_first = order(StepWork::layer_forward).read.front(), times.forward_last = order(StepWork::layer_forward).read.back();
  times.backward_first = order(StepWork::layer_backward).read.front(), times.inputs_first = order(StepWork::layer_inputs).read.front();
  times.made_last = order(StepWork::layer_backward).made.back();
}

Expected<WeightTimes> weight_times(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options) {
  LoneCalls calls{system, parts, collectives, options};
  WeightTimes times;
  std::vector<WeightGroup> groups{WeightGroup::layer};
  if (parts.step.model.vocabulary > 0) groups.insert(groups.end(), {WeightGroup::embedding, WeightGroup::logits});
  for (const WeightGroup group : groups) {
    const auto g = static_cast<std::size_t>(group);
    times.fetched[g] = parts.is_fetched(group);
    const auto update = calls.seconds({.work = StepWork::update, .of = group, .step = 1});
    if (!update) return calls.problem;
    times.update[g] = *update;
    const TrainingModel& model = parts.step.model;
    for (const StepWeight& weight : parts.weights(group)) {
      const auto transfers = calls.transfers(weight);
      if (!transfers) return calls.problem;
      times.transfers[g].push_back(*transfers);
      times.gather[g] += transfers->gather, times.reduce[g] += transfers->reduce;
      const std::int64_t shard = weight.shard()[0] * weight.shard()[1], part = weight.part()[0] * weight.part()[1];
      times.weights[g] += Bytes{shard * size_of(model.weights).count()};
      times.gradients[g] += Bytes{part * size_of(model.gradients).count()};
      times.optimizer[g] += Bytes{part * ((parts.step.optimizer == Optimizer::adamw ? 2 * size_of(model.moments).count() : 0) +
                                           (model.master_weights ? size_of(DType::f32).count() : 0))};
    }
  }
  return times;
}

// ---- Keys -------------------------------------------------------------------------------------------------------------------------------

namespace {

/// Whether rings of equal size are equal, wherever they lie.
bool rings_are_alike(const System& system) {
  const Machine& machine = system.machine;
  for (std::size_t d = 1; d < system.slice.extents.size(); ++d)
    if (machine.link[d] != machine.link[0]) return false;
  return machine.interconnect == Interconnect::grid && system.joined_by.kind == TopologySpec::Kind::as_built && system.faults.none() &&
         machine.chip.devices == 1 && std::holds_alternative<RowMajorOrder>(system.order) && system.devices.empty() && !machine.slices.any_shape;
}

/// What lies under the axes of these names: two systems with equal texts are the same network, and the devices that differ along these axes alone are the
/// same groups of its devices.
std::string rings_under(const System& system, std::size_t number, std::initializer_list<std::string_view> names) {
  const bool alike = rings_are_alike(system);
  // Wherever else rings are not alike, those between the same devices are: in row-major order these follow from an axis's size and stride.
  if (!alike && !(std::holds_alternative<RowMajorOrder>(system.order) && system.devices.empty())) return fmt::format("system {} ", number);
  std::string text = alike ? std::string{} : fmt::format("{} slices of {} ", system.slices, to_text(system.slice));
  const std::vector<MeshAxis>& axes = system.mesh.axes();
  int stride = system.mesh.devices();
  for (int a = 0; a < static_cast<int>(axes.size()); ++a) {
    const MeshAxis& axis = axes[static_cast<std::size_t>(a)];
    stride /= axis.size;
    if (std::find(names.begin(), names.end(), axis.name) == names.end()) continue;
    text += fmt::format("{}=", axis.name);
    for (const MeshFactor& factor : axis.factors) text += fmt::format("{}{}.", factor.size, factor.wraps ? "o" : "-");
    text += fmt::format("{}{} ", axis.size, system.mesh.wraps(system.mesh.whole(a)) ? "o" : "-");
    if (!alike && axis.size > 1) text += fmt::format("by {} ", stride);
  }
  return text;
}

std::string extents_of(const TrainingStep& divided) {
  const TrainingModel& model = divided.model;
  return fmt::format("{} {} {} {} {} {} {} {}", model.width, model.heads, model.kv_heads, model.mlp, model.vocabulary, divided.mesh.expert, divided.mesh.row,
                     divided.mesh.col);
}

}  // namespace

std::string rings_key(const System& system, std::size_t number, const TrainingStep& divided) {
  return rings_under(system, number, {"expert", "row", "col"}) + extents_of(divided);
}

std::string layer_key(const System& system, std::size_t number, const TrainingStep& divided) {
  return fmt::format("{} sequences {} {}", rings_key(system, number, divided), sequences_of(divided), to_text(divided.remat));
}

std::string weight_key(const System& system, std::size_t number, const TrainingStep& divided) {
  return fmt::format("{}{} {}", rings_under(system, number, {"data", "fsdp", "expert", "row", "col"}), extents_of(divided),
                     fmt::format("{} {} {} {}", divided.mesh.data, divided.mesh.fsdp, divided.mesh.slice, divided.optimizer_shards()));
}

}  // namespace podsim
