#include "workloads/scenario/training_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "algorithms/pipeline/pipeline_times.hpp"
#include "sim/base/units.hpp"
#include "sim/schedule/program_builder.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/training/counts.hpp"

namespace podsim {

namespace {

/// A call beside others is slowed down by what shares its memory and links, and never helped; but of two chunks that are ready within a picosecond another one may go
/// first there (workloads/tuning/lone_collectives.hpp has the figure).
constexpr double least_of_alone = 0.995;

double number(std::int64_t value) { return static_cast<double>(value); }

std::int64_t product_parameters(const TrainingModel& model) {
  std::int64_t count = 0;
  for (const Stage& stage : layer_stages(model))
    if (stage.kind == Stage::Kind::product) count += stage.inputs * stage.outputs;
  return count;
}

bool splits_backward(const TrainingStep& step) {
  if (step.mesh.stage == 1) return false;
  const auto schedule = pipeline_schedule_named(step.pipeline);
  return schedule && podsim::splits_backward(*schedule);
}

bool last_stage_is_first_ranks(const TrainingStep& step) { return step.mesh.stage > 1 && step.pipeline == name_of(PipelineSchedule::dual_pipe_v); }

}  // namespace

Seconds arithmetic_bound(const TrainingStep& step, const Machine& machine) {
  const TrainingCounts counts = counts_of(step, AttentionFlops::causal);
  double forward = 0, backward = 0, logits = 0;
  for (const PartCount& part : counts.parts) {
    if (!part.in_model) continue;
    if (part.name == "logits") {
      logits += (part.forward + part.backward).count();
      continue;
    }
    forward += part.forward.count();
    backward += (part.backward + part.recomputed).count();
  }
  const double rate = peak_of(machine, step.model.activations).count() * machine.chip.matmul_efficiency;
  const double microbatches = number(step.microbatches), devices = number(step.mesh.devices()), stages = number(step.mesh.stage);
  // Of one microbatch on a device: a virtual stage, and the logits.
  const double f = forward / devices / microbatches / number(step.virtual_stages) / rate, b = backward / devices / microbatches / number(step.virtual_stages) / rate;
  const double l = logits * stages / devices / microbatches / rate;
  const double busy = microbatches * number(step.virtual_stages) * (f + b);
  const bool split = splits_backward(step);
  const double at_end = (stages - 1) * (f + (split ? 0 : b));  // before and after the tasks of the rank whose stages begin latest
  if (last_stage_is_first_ranks(step)) return Seconds{std::max(busy + microbatches * l, busy + at_end)};
  return Seconds{busy + microbatches * l + at_end};
}

Bytes state_bound(const TrainingStep& step) {
  const TrainingModel& model = step.model;
  const std::int64_t parts = step.mesh.parameter_parts();
  std::int64_t each = size_of(model.weights).count() + size_of(model.gradients).count();
  if (step.optimizer == Optimizer::adamw) each += 2 * size_of(model.moments).count();
  if (model.master_weights) each += size_of(DType::f32).count();
  const std::int64_t layers = model.layers / step.mesh.stage * product_parameters(model), table = model.vocabulary * model.width;
  // One rank has the embedding; the same or another one the logits.
  const bool both_ends = step.mesh.stage == 1 || last_stage_is_first_ranks(step);
  return Bytes{(layers / parts + (both_ends && !model.tied ? 2 : 1) * (table / parts)) * each};
}

Expected<std::shared_ptr<const PipelineShape>> pipeline_shape(const TrainingStep& step, bool fuse_steady_state) {
  auto schedule = PipelineSchedule::one_f_one_b;
  if (step.mesh.stage > 1) {
    const auto named = pipeline_schedule_named(step.pipeline, of_field("pipeline"));
    if (!named) return named.error();
    schedule = *named;
  }
  const auto ranks = static_cast<int>(step.mesh.stage);
  auto lists = executed_lists({schedule, ranks * static_cast<int>(step.virtual_stages), ranks, static_cast<int>(step.microbatches), fuse_steady_state});
  if (!lists) return lists.error();
  auto times = pipeline_times(*lists);
  if (!times) return times.error();
  return std::make_shared<const PipelineShape>(PipelineShape{*std::move(lists), std::move(times->order)});
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
    const TensorFunction& function = functions_.at(functions_.number(call));
    ProgramBuilder program{parts_.mesh, parts_.layer_mesh.devices};
    Call op{0, {}};
    for (const Buffer& parameter : function.parameters) op.arguments.push_back(program.add_buffer({parameter.name, parameter.extents, parameter.dtype, Role::scratch, {}, {}}));
    program.step(function.function.name, std::move(op), {});
    Schedule schedule{function.function.name, parts_.mesh, {}, {}};
    schedule.functions.push_back(function.function);
    schedule.programs.push_back(std::move(program).finish());
    const auto run = simulate(system_, schedule, options_, policy_);
    if (!run) problem = run.error();
    else if (run->timeline.interrupted) problem = cancelled_work();
    else return to_seconds(run->metrics.makespan).count();
    return std::nullopt;
  }

  Diagnostic problem;

 private:
  const System& system_;
  const StepParts& parts_;
  StepFunctions functions_;
  CollectivePolicy policy_;
  RunOptions options_;
};

bool is_weight_of(const std::string& name) { return name.ends_with(".W") || name.ends_with(".dW"); }

}  // namespace

Expected<LayerTimes> layer_times(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options) {
  LoneCalls calls{system, parts, collectives, options};
  LayerTimes times;
  std::vector<std::pair<StepWork, double LayerTimes::*>> wanted{{StepWork::layer_forward, &LayerTimes::forward}};
  if (splits_backward(parts.step)) wanted.insert(wanted.end(), {{StepWork::layer_inputs, &LayerTimes::inputs}, {StepWork::layer_weights, &LayerTimes::weights}});
  wanted.emplace_back(StepWork::layer_backward, &LayerTimes::backward);
  wanted.emplace_back(StepWork::loss, &LayerTimes::loss);
  if (parts.step.model.vocabulary > 0) wanted.insert(wanted.end(), {{StepWork::embed, &LayerTimes::embed}, {StepWork::embed_gradient, &LayerTimes::embed_gradient}});
  for (const auto& [work, member] : wanted) {
    const auto seconds = calls.seconds({.work = work});
    if (!seconds) return calls.problem;
    times.*member = *seconds;
  }
  for (const Buffer& parameter : parts.functions.forward.parameters)
    if (!is_weight_of(parameter.tensor) && parameter.tensor != "Y") times.kept += bytes_of(parameter);
  for (const Buffer& parameter : parts.functions.backward_weights.parameters)
    if (!is_weight_of(parameter.tensor)) times.kept_for_weights += bytes_of(parameter);
  return times;
}

Expected<WeightTimes> weight_times(const System& system, const StepParts& parts, const std::string& collectives, const RunOptions& options) {
  LoneCalls calls{system, parts, collectives, options};
  WeightTimes times;
  std::vector<WeightGroup> groups{WeightGroup::layer};
  if (parts.step.model.vocabulary > 0) groups.insert(groups.end(), {WeightGroup::embedding, WeightGroup::logits});
  for (const WeightGroup group : groups) {
    const auto g = static_cast<std::size_t>(group);
    times.fetched[g] = parts.is_fetched(group);
    std::optional<double> fetch = 0;
    if (times.fetched[g]) fetch = calls.seconds({.fetch = group});
    const auto reduce = calls.seconds({.reduce = group, .first = true}), update = calls.seconds({.work = StepWork::update, .of = group, .step = 1});
    if (!fetch || !reduce || !update) return calls.problem;
    times.fetch[g] = *fetch, times.reduce[g] = *reduce, times.update[g] = *update;
    const TrainingModel& model = parts.step.model;
    for (const StepWeight& weight : parts.weights(group)) {
      const std::int64_t shard = weight.shard()[0] * weight.shard()[1];
      times.weights[g] += Bytes{shard * size_of(model.weights).count()};
      times.gradients[g] += Bytes{shard * size_of(model.gradients).count()};
      times.optimizer[g] += Bytes{shard * ((parts.step.optimizer == Optimizer::adamw ? 2 * size_of(model.moments).count() : 0) + (model.master_weights ? size_of(DType::f32).count() : 0))};
      times.block[g] += Bytes{weight.block()[0] * weight.block()[1] * size_of(model.activations).count()};
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
  return machine.interconnect == Interconnect::grid && system.joined_by.kind == TopologySpec::Kind::as_built && system.faults.none() && machine.chip.devices == 1 &&
         std::holds_alternative<RowMajorOrder>(system.order) && system.devices.empty() && !machine.slices.any_shape;
}

/// What lies under the axes of these names.
std::string rings_under(const System& system, std::size_t number, std::initializer_list<std::string_view> names) {
  if (!rings_are_alike(system)) return fmt::format("system {} ", number);
  std::string text;
  const Mesh& mesh = system.mesh;
  for (const std::string_view name : names)
    for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a) {
      const MeshAxis& axis = mesh.axes()[static_cast<std::size_t>(a)];
      if (axis.name != name) continue;
      text += fmt::format("{}=", name);
      for (const MeshFactor& factor : axis.factors) text += fmt::format("{}{}.", factor.size, factor.wraps ? "o" : "-");
      text += fmt::format("{}{} ", axis.size, mesh.wraps(mesh.whole(a)) ? "o" : "-");
    }
  return text;
}

}  // namespace

std::string layer_key(const System& system, std::size_t number, const TrainingStep& divided) {
  const TrainingModel& model = divided.model;
  const TrainingMesh& mesh = divided.mesh;
  return fmt::format("{}{} {} {} {} {} {} {} sequences {} {} {}", rings_under(system, number, {"row", "col"}), model.width, model.heads, model.kv_heads, model.mlp, model.vocabulary,
                     mesh.row, mesh.col, divided.batch / divided.microbatches / (mesh.slice * mesh.data * mesh.fsdp), to_text(divided.remat), splits_backward(divided));
}

std::string weight_key(const System& system, std::size_t number, const TrainingStep& divided, const Plan& plan) {
  const TrainingModel& model = divided.model;
  std::string layers;
  for (const StagePlan& stage : plan.stages)
    if (stage.product) layers += fmt::format("{} {} ", stage.product->algorithm, stage.product->slice_count);
  return fmt::format("{}{} {} {} {} {} {} {} {} {}", rings_under(system, number, {"fsdp", "row", "col"}), model.width, model.heads, model.kv_heads, model.mlp, model.vocabulary,
                     divided.mesh.fsdp, divided.mesh.row, divided.mesh.col, layers);
}

// ---- The step ---------------------------------------------------------------------------------------------------------------------------

namespace {

struct Weights {
  WeightGroup group = WeightGroup::none;
  std::int64_t layer = 0;
  friend bool operator==(const Weights&, const Weights&) = default;
};
std::size_t index(WeightGroup group) { return static_cast<std::size_t>(group); }

/// The calls of a rank, as training_schedule() writes them.
class RankCalls {
 public:
  RankCalls(const TrainingStep& step, const PipelineLists& lists, int rank, const LayerTimes& layer, const WeightTimes& weights)
      : step_{step}, spec_{lists.spec}, layer_{layer}, weights_{weights}, layers_{step.layers_per_stage()} {
    hold_state(stages_of_rank(spec_, rank));
    for (const PipelineUnit& unit : lists.ranks[static_cast<std::size_t>(rank)])
      for (const PipelineTask& task : unit) {
        list(task);
        ends_.push_back(calls_.size());
      }
  }

  /// What the next task of the rank takes at least.
  double next() {
    double time = 0;
    const std::size_t end = ends_[task_++];
    for (; at_ < end; ++at_) time += time_of_call();
    if (at_ == calls_.size() && made_ != WeightGroup::none) time += least_of_alone * weights_.reduce[index(std::exchange(made_, WeightGroup::none))];
    return time;
  }

  [[nodiscard]] double update() const { return least_of_alone * update_; }
  [[nodiscard]] Bytes memory() const { return memory_; }

 private:
  struct StepItem {
    double work = 0;
    Weights reads{};
    WeightGroup makes = WeightGroup::none;
  };

  void hold_state(const std::vector<int>& stages) {
    const auto hold = [&](WeightGroup group, std::int64_t count) {
      fixed_ += count * (weights_.weights[index(group)] + weights_.optimizer[index(group)]);
      all_gradients_ += count * weights_.gradients[index(group)];
      update_ += number(count) * weights_.update[index(group)];
    };
    hold(WeightGroup::layer, static_cast<std::int64_t>(stages.size()) * layers_);
    const auto has = [&](int stage) { return std::find(stages.begin(), stages.end(), stage) != stages.end(); };
    if (step_.model.vocabulary > 0 && has(0)) hold(WeightGroup::embedding, 1);
    if (step_.model.vocabulary > 0 && has(spec_.stages - 1) && !(step_.model.tied && has(0))) hold(WeightGroup::logits, 1);
    // The first forward has gathered into both buffers, and the last backward reads both.
    if (layers_ >= 2 && weights_.fetched[index(WeightGroup::layer)]) gathered_ = 2 * weights_.block[index(WeightGroup::layer)];
    memory_ = fixed_ + all_gradients_;
    had_backward_.resize(static_cast<std::size_t>(spec_.stages));
  }

  void list(const PipelineTask& task) {
    const bool vocabulary = step_.model.vocabulary > 0, embeds = vocabulary && task.stage == 0, last = task.stage + 1 == spec_.stages;
    const auto each = [&](double work, bool forwards, bool reads, bool differentiates) {
      for (std::int64_t i = 0; i < layers_; ++i) {
        const Weights own{WeightGroup::layer, task.stage * layers_ + (forwards ? i : layers_ - 1 - i)};
        calls_.push_back({work, reads ? own : Weights{}, differentiates ? WeightGroup::layer : WeightGroup::none});
      }
    };
    if (task.kind == PipelineTaskKind::forward) {
      if (embeds) calls_.push_back({layer_.embed, {WeightGroup::embedding, 0}, WeightGroup::none});
      each(layer_.forward, true, true, false);
      ++live_;
      memory_ = std::max(memory_, fixed_ + gathered_ + gradients_ + layers_ * (live_ * layer_.kept + half_ * layer_.kept_for_weights));
      return;
    }
    if (task.kind == PipelineTaskKind::backward_weights) {
      each(layer_.weights, false, false, true);
      --half_;
      return end_of_backward(task.stage);
    }
    const WeightGroup logits = vocabulary ? WeightGroup::logits : WeightGroup::none;
    const bool whole = task.kind == PipelineTaskKind::backward;
    if (last) calls_.push_back({layer_.loss, {logits, 0}, logits});
    each(whole ? layer_.backward : layer_.inputs, false, true, whole);
    if (embeds) calls_.push_back({layer_.embed_gradient, {}, WeightGroup::embedding});
    --live_;
    if (whole) end_of_backward(task.stage);
    else ++half_;
  }

  /// A rank's gradients of a stage are all written when the first task behind a backward of the stage has ended.
  void end_of_backward(int stage) {
    auto&& had = had_backward_[static_cast<std::size_t>(stage)];
    if (!had) gradients_ += layers_ * weights_.gradients[index(WeightGroup::layer)];
    had = true;
  }

  [[nodiscard]] bool is_fetched(const Weights& weights) const { return weights.group != WeightGroup::none && weights_.fetched[index(weights.group)]; }

  double time_of_call() {
    const StepItem& item = calls_[at_];
    double before = 0, beside = 0;
    if (is_fetched(item.reads) && held_ != item.reads) {
      held_ = item.reads;
      before = weights_.fetch[index(item.reads.group)];
    }
    if (at_ + 1 < calls_.size())
      if (const Weights& next = calls_[at_ + 1].reads; is_fetched(next) && held_ != next) {
        held_ = next;
        beside = weights_.fetch[index(next.group)];
      }
    if (made_ != WeightGroup::none) beside += weights_.reduce[index(made_)];
    made_ = item.makes;
    return least_of_alone * (before + std::max(item.work, beside));
  }

  const TrainingStep& step_;
  const PipelineSpec& spec_;
  const LayerTimes& layer_;
  const WeightTimes& weights_;
  std::int64_t layers_, live_ = 0, half_ = 0;  // microbatches of stages whose backward is to come, or half done
  Bytes fixed_, gathered_, all_gradients_, gradients_, memory_;
  std::vector<bool> had_backward_;
  double update_ = 0;
  std::vector<StepItem> calls_;
  std::vector<std::size_t> ends_;  // of each task in calls_
  std::size_t at_ = 0, task_ = 0;
  Weights held_{};
  WeightGroup made_ = WeightGroup::none;
};

/// When tasks end.
class TaskEnds {
 public:
  explicit TaskEnds(const PipelineSpec& spec)
      : stages_{static_cast<std::size_t>(spec.stages)}, microbatches_{static_cast<std::size_t>(spec.microbatches)}, ends_(4 * stages_ * microbatches_) {}
  double& operator[](const PipelineTask& task) {
    return ends_[(static_cast<std::size_t>(task.kind) * stages_ + static_cast<std::size_t>(task.stage)) * microbatches_ + static_cast<std::size_t>(task.microbatch)];
  }

 private:
  std::size_t stages_, microbatches_;
  std::vector<double> ends_;
};

}  // namespace

StepBound step_bound(const TrainingStep& step, const PipelineShape& shape, const LayerTimes& layer, const WeightTimes& weights) {
  const PipelineSpec& spec = shape.lists.spec;
  std::vector<RankCalls> ranks;
  for (int rank = 0; rank < spec.ranks; ++rank) ranks.emplace_back(step, shape.lists, rank, layer, weights);
  std::vector<double> free(ranks.size());
  TaskEnds ends{spec};
  for (const auto& [rank, number] : shape.order) {
    const auto r = static_cast<std::size_t>(rank);
    const PipelineUnit& unit = shape.lists.ranks[r][static_cast<std::size_t>(number)];
    double now = free[r];
    for (auto member = unit.begin(); member != unit.end(); ++member)
      for (const PipelineTask& needed : dependencies_of(*member, spec))
        if (std::find(unit.begin(), member, needed) == member) now = std::max(now, ends[needed]);
    for (const PipelineTask& task : unit) ends[task] = now += ranks[r].next();
    free[r] = now;
  }
  StepBound bound;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    bound.time = std::max(bound.time, Seconds{free[r] + ranks[r].update()});
    bound.memory = std::max(bound.memory, ranks[r].memory());
  }
  return bound;
}

}  // namespace podsim
