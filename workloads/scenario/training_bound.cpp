#include "workloads/scenario/training_bound.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "algorithms/pipeline/pipeline_times.hpp"
#include "workloads/training/counts.hpp"

namespace podsim {

namespace {

/// A call beside others is slowed down by what shares its memory and links, and never helped; but of two chunks that are ready within a picosecond
/// another one may go first there (workloads/tuning/lone_collectives.hpp has the figure).
constexpr double least_of_alone = 0.995;

double number(std::int64_t value) { return static_cast<double>(value); }

std::int64_t product_parameters(const TrainingModel& model) {
  std::int64_t count = 0;
  for (const Stage& stage : layer_stages(model))
    if (stage.kind == Stage::Kind::product) count += stage.inputs * stage.outputs;
  return count;
}

bool last_stage_is_first_ranks(const TrainingStep& step) { return step.mesh.stage > 1 && step.pipeline == name_of(PipelineSchedule::dual_pipe_v); }

std::size_t index(WeightGroup group) { return static_cast<std::size_t>(group); }

/// What a rank has from step to step, and the gradients of all of it.
struct RankState {
  Bytes stored, gradients;
  double update = 0;
};
RankState state_of(const TrainingStep& step, const PipelineSpec& spec, int rank, const WeightTimes& weights) {
  const std::vector<int> stages = stages_of_rank(spec, rank);
  RankState state;
  const auto hold = [&](WeightGroup group, std::int64_t count) {
    state.stored += count * (weights.weights[index(group)] + weights.optimizer[index(group)]);
    state.gradients += count * weights.gradients[index(group)];
    state.update += number(count) * weights.update[index(group)];
  };
  const auto has = [&](int stage) { return std::find(stages.begin(), stages.end(), stage) != stages.end(); };
  hold(WeightGroup::layer, static_cast<std::int64_t>(stages.size()) * step.layers_per_stage());
  if (step.model.vocabulary > 0 && has(0)) hold(WeightGroup::embedding, 1);
  if (step.model.vocabulary > 0 && has(spec.stages - 1) && !(step.model.tied && has(0))) hold(WeightGroup::logits, 1);
  return state;
}

/// What a rank holds at the ends of its forwards, without what another time exceeds in all.
std::vector<PipelineHolding> holdings_of(const std::vector<PipelineUnit>& list) {
  std::vector<PipelineHolding> most;
  PipelineHolding now;
  std::set<int> differentiated;
  const auto add = [&] {
    const auto within = [](const PipelineHolding& a, const PipelineHolding& b) {
      return a.live <= b.live && a.half <= b.half && a.gradients <= b.gradients;
    };
    if (std::any_of(most.begin(), most.end(), [&](const PipelineHolding& other) { return within(now, other); })) return;
    std::erase_if(most, [&](const PipelineHolding& other) { return within(other, now); });
    most.push_back(now);
  };
  for (const PipelineUnit& unit : list)
    for (const PipelineTask& task : unit) {
      if (task.kind == PipelineTaskKind::forward) {
        ++now.live;
        add();
        continue;
      }
      if (task.kind == PipelineTaskKind::backward_weights)
        --now.half;
      else
        --now.live;
      if (task.kind == PipelineTaskKind::backward_inputs)
        ++now.half;
      else
        differentiated.insert(task.stage);  // all of its gradients are there when the next task has ended
      now.gradients = static_cast<int>(differentiated.size());
    }
  return most;
}

Bytes memory_bound(const TrainingStep& step, const PipelineShape& shape, const LayerTimes& layer, const WeightTimes& weights) {
  const std::int64_t layers = step.layers_per_stage();
  Bytes gathered;  // the first forward has gathered into both buffers of layers, and the last backward reads both
  if (layers >= 2 && weights.fetched[index(WeightGroup::layer)]) gathered = 2 * weights.block[index(WeightGroup::layer)];
  Bytes most;
  for (std::size_t rank = 0; rank < shape.holdings.size(); ++rank) {
    const RankState state = state_of(step, shape.lists.spec, static_cast<int>(rank), weights);
    most = std::max(most, state.stored + state.gradients);
    for (const PipelineHolding& holding : shape.holdings[rank])
      most = std::max(most, state.stored + gathered +
                                layers * (holding.gradients * weights.gradients[index(WeightGroup::layer)] + holding.live * layer.kept +
                                          holding.half * layer.kept_for_weights));
  }
  return most;
}

}  // namespace

Seconds pipeline_bound(const TrainingStep& step, const TaskTimes& tasks) {
  const double microbatches = number(step.microbatches), stages = number(step.mesh.stage);
  const double busy = microbatches * number(step.virtual_stages) * (tasks.forward + tasks.backward), losses = microbatches * tasks.loss;
  const double around = (stages - 1) * (tasks.forward + (splits_backward(step) ? 0 : tasks.backward));
  if (last_stage_is_first_ranks(step)) return Seconds{std::max(busy + losses, busy + around)};
  return Seconds{busy + losses + around};
}

TaskTimes arithmetic_times(const TrainingStep& step, const Machine& machine) {
  const TrainingCounts counts = counts_of(step, AttentionFlops::causal);
  TaskTimes tasks;
  for (const PartCount& part : counts.parts) {
    if (!part.in_model) continue;
    if (part.name == "logits")
      tasks.loss += (part.forward + part.backward).count();
    else
      tasks.forward += part.forward.count(), tasks.backward += (part.backward + part.recomputed).count();
  }
  const double rate =
      peak_of(machine, step.model.activations).count() * machine.chip.matmul_efficiency * number(step.mesh.devices()) * number(step.microbatches);
  tasks.forward /= rate * number(step.virtual_stages), tasks.backward /= rate * number(step.virtual_stages);
  tasks.loss *= number(step.mesh.stage) / rate;
  return tasks;
}

Seconds arithmetic_bound(const TrainingStep& step, const Machine& machine) { return pipeline_bound(step, arithmetic_times(step, machine)); }

StepBound quick_bound(const TrainingStep& step, const PipelineShape& shape, const LayerTimes& layer, const WeightTimes& weights) {
  const std::size_t group = index(WeightGroup::layer);
  const double layers = number(step.layers_per_stage()), fetch = weights.fetch[group], reduce = weights.reduce[group];
  const double backward = splits_backward(step) ? std::min(layer.backward, layer.inputs + layer.weights) : layer.backward;
  // Of the calls of a task all but one gather another layer's weights.
  const TaskTimes tasks{least_of_alone * std::max(layers * layer.forward, (layers - 1) * fetch),
                        least_of_alone * std::max(layers * backward, (layers - 1) * (fetch + reduce)), least_of_alone * layer.loss};
  const double updates = layers * number(step.virtual_stages) * weights.update[group];
  return {pipeline_bound(step, tasks) + Seconds{least_of_alone * updates}, memory_bound(step, shape, layer, weights)};
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
  auto lists =
      executed_lists({schedule, ranks * static_cast<int>(step.virtual_stages), ranks, static_cast<int>(step.microbatches), fuse_steady_state});
  if (!lists) return lists.error();
  auto times = pipeline_times(*lists);
  if (!times) return times.error();
  std::vector<std::vector<PipelineHolding>> holdings;
  for (const auto& list : lists->ranks) holdings.push_back(holdings_of(list));
  return std::make_shared<const PipelineShape>(PipelineShape{*std::move(lists), std::move(times->order), std::move(holdings)});
}

// ---- The step ---------------------------------------------------------------------------------------------------------------------------

namespace {

struct Weights {
  WeightGroup group = WeightGroup::none;
  std::int64_t layer = 0;
  friend bool operator==(const Weights&, const Weights&) = default;
};
/// The calls of a rank, as training_schedule() writes them.
class RankCalls {
 public:
  RankCalls(const TrainingStep& step, const PipelineLists& lists, int rank, const LayerTimes& layer, const WeightTimes& weights)
      : step_{step}, spec_{lists.spec}, layer_{layer}, weights_{weights}, layers_{step.layers_per_stage()} {
    for (const PipelineUnit& unit : lists.ranks[static_cast<std::size_t>(rank)])
      for (const PipelineTask& task : unit) {
        list(task);
        ends_.push_back(calls_.size());
      }
  }

  /// When the first task can begin: its weights are gathered before, whatever else it waits for.
  double begin() {
    if (calls_.empty() || !is_fetched(calls_.front().reads)) return 0;
    held_ = calls_.front().reads;
    return least_of_alone * weights_.fetch[index(held_.group)];
  }
  /// What the next task of the rank takes at least.
  double next() {
    double time = 0;
    const std::size_t end = ends_[task_++];
    for (; at_ < end; ++at_) time += time_of_call();
    return time;
  }
  /// The reduction of what the last call made; nobody waits for it but the optimiser.
  [[nodiscard]] double finish() const { return least_of_alone * time_of_reduction(); }
  /// The optimiser waits for the sum of that over data too; its update at least comes behind it.
  [[nodiscard]] double last_sum() const { return made_ == WeightGroup::none ? 0 : least_of_alone * (weights_.sum[index(made_)] + weights_.update[index(made_)]); }

 private:
  struct StepItem {
    double work = 0;
    Weights reads{};
    WeightGroup makes = WeightGroup::none;
  };

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
      return;
    }
    if (task.kind == PipelineTaskKind::backward_weights) {
      return each(layer_.weights, false, false, true);
    }
    const WeightGroup logits = vocabulary ? WeightGroup::logits : WeightGroup::none;
    const bool whole = task.kind == PipelineTaskKind::backward;
    if (last) calls_.push_back({layer_.loss, {logits, 0}, logits});
    each(whole ? layer_.backward : layer_.inputs, false, true, whole);
    if (embeds) calls_.push_back({layer_.embed_gradient, {}, WeightGroup::embedding});
  }

  [[nodiscard]] bool is_fetched(const Weights& weights) const { return weights.group != WeightGroup::none && weights_.fetched[index(weights.group)]; }

  [[nodiscard]] double time_of_reduction() const { return made_ == WeightGroup::none ? 0 : weights_.reduce[index(made_)]; }

  double time_of_call() {
    const StepItem& item = calls_[at_];
    double beside = 0;
    if (at_ + 1 < calls_.size())
      if (const Weights& next = calls_[at_ + 1].reads; is_fetched(next) && held_ != next) {
        held_ = next;
        beside = weights_.fetch[index(next.group)];
      }
    beside += time_of_reduction();
    made_ = item.makes;
    return least_of_alone * std::max(item.work, beside);
  }

  const TrainingStep& step_;
  const PipelineSpec& spec_;
  const LayerTimes& layer_;
  const WeightTimes& weights_;
  std::int64_t layers_;
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
      : stages_{static_cast<std::size_t>(spec.stages)},
        microbatches_{static_cast<std::size_t>(spec.microbatches)},
        ends_(4 * stages_ * microbatches_) {}
  double& operator[](const PipelineTask& task) {
    return ends_[(static_cast<std::size_t>(task.kind) * stages_ + static_cast<std::size_t>(task.stage)) * microbatches_ +
                 static_cast<std::size_t>(task.microbatch)];
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
  std::vector<double> free;
  for (RankCalls& rank : ranks) free.push_back(rank.begin());
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
  Seconds time;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const double updates = least_of_alone * state_of(step, spec, static_cast<int>(r), weights).update;
    time = std::max(time, Seconds{free[r] + ranks[r].finish() + std::max(updates, ranks[r].last_sum())});
  }
  return {time, memory_bound(step, shape, layer, weights)};
}

}  // namespace podsim
