#include "workloads/scenario/training_bound.hpp"

#include <algorithm>
#include <optional>
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
    if (stage.kind == Stage::Kind::product) count += stage.experts * stage.inputs * stage.outputs;
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
  Bytes gathered;  // while the last product of a forward runs, all that its layer keeps is there
  if (weights.fetched[index(WeightGroup::layer)]) gathered = weights.transfers[index(WeightGroup::layer)][layer.forward_last].block;
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
  const double layers = number(step.layers_per_stage()), gather = weights.gather[group], reduce = weights.reduce[group];
  const double backward = splits_backward(step) ? std::min(layer.backward, layer.inputs + layer.weights) : layer.backward;
  // Its calls gather their own weights but for the first, which the call before gathers; and reduce all gradients but the last.
  const TaskTimes tasks{least_of_alone * std::max(layers * layer.forward, (layers - 1) * gather),
                        least_of_alone * std::max(layers * backward, (layers - 1) * (gather + reduce)), least_of_alone * layer.loss};
  const double updates = layers * number(step.virtual_stages) * weights.update[group];
  return {pipeline_bound(step, tasks) + Seconds{least_of_alone * updates}, memory_bound(step, shape, layer, weights)};
}

Bytes state_bound(const TrainingStep& step) {
  const TrainingModel& model = step.model;
  const std::int64_t parts = step.mesh.parameter_parts();
  std::int64_t each = size_of(model.gradients).count();  // of what a device updates
  if (step.optimizer == Optimizer::adamw) each += 2 * size_of(model.moments).count();
  if (model.master_weights) each += size_of(DType::f32).count();
  const std::int64_t layers = model.layers / step.mesh.stage * product_parameters(model), table = model.vocabulary * model.width;
  // One rank has the embedding; the same or another one the logits.
  const bool both_ends = step.mesh.stage == 1 || last_stage_is_first_ranks(step);
  const std::int64_t stored = layers / parts + (both_ends && !model.tied ? 2 : 1) * (table / parts);
  return Bytes{stored * size_of(model.weights).count() + stored / step.optimizer_shards() * each};
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
    return calls_.empty() ? 0 : least_of_alone * calls_.front().before;
  }
  /// What the next task of the rank takes at least.
  double next() {
    double time = 0;
    const std::size_t end = ends_[task_++];
    for (; at_ < end; ++at_) time += time_of_call();
    return time;
  }
  /// The reduction of what the last call made; nobody waits for it but the optimiser.
  [[nodiscard]] double finish() const { return at_ == 0 ? 0 : least_of_alone * calls_[at_ - 1].behind; }
  /// The optimiser waits for the sum of that over data too; its update at least comes behind it.
  [[nodiscard]] double last_sum() const { return at_ == 0 ? 0 : least_of_alone * calls_[at_ - 1].summed; }

 private:
  struct StepItem {
    double work = 0;                          // of the call
    double beside = 0;                        // what it gathers and reduces of its own
    double before = 0, behind = 0;            // what the call before gathers for it, and the call behind reduces
    double summed = 0;                        // the sum over data of that, and the update that waits for it
  };

  void list(const PipelineTask& task) {
    const bool vocabulary = step_.model.vocabulary > 0, embeds = vocabulary && task.stage == 0, last = task.stage + 1 == spec_.stages;
    if (task.kind == PipelineTaskKind::forward) {
      if (embeds) add_end(layer_.embed, WeightGroup::embedding, true, false);
      return add_layers(layer_.forward, layer_.forward_first, false);
    }
    if (task.kind == PipelineTaskKind::backward_weights) return add_layers(layer_.weights, std::nullopt, true);
    if (last) add_end(layer_.loss, vocabulary ? WeightGroup::logits : WeightGroup::none, vocabulary, vocabulary);
    if (task.kind == PipelineTaskKind::backward)
      add_layers(layer_.backward, layer_.backward_first, true);
    else
      add_layers(layer_.inputs, layer_.inputs_first, false);
    if (embeds) add_end(layer_.embed_gradient, WeightGroup::embedding, false, true);
  }

  /// A work at an end of the model, which is given all its weights as blocks, and hands over all gradients.
  void add_end(double work, WeightGroup group, bool reads, bool makes) {
    StepItem item{work};
    for (const TransferTimes& weight : weights_.transfers[index(group)]) {
      if (reads) item.before += weight.gather;
      if (makes) item.behind += weight.reduce, item.summed += weight.sum;
    }
    if (makes) item.summed += weights_.update[index(group)];
    calls_.push_back(item);
  }

  /// `reads_first`: of a work that reads weights.
  void add_layers(double work, std::optional<std::size_t> reads_first, bool makes) {
    const std::vector<TransferTimes>& transfers = weights_.transfers[index(WeightGroup::layer)];
    StepItem item{work};
    if (reads_first) item.before = transfers[*reads_first].gather, item.beside += weights_.gather[index(WeightGroup::layer)] - item.before;
    if (makes) {
      const TransferTimes& last = transfers[layer_.made_last];
      item.behind = last.reduce, item.beside += weights_.reduce[index(WeightGroup::layer)] - item.behind;
      item.summed = last.sum + weights_.update[index(WeightGroup::layer)];
    }
    calls_.insert(calls_.end(), static_cast<std::size_t>(layers_), item);
  }

  double time_of_call() const {
    double beside = calls_[at_].beside;
    if (at_ + 1 < calls_.size()) beside += calls_[at_ + 1].before;
    if (at_ > 0) beside += calls_[at_ - 1].behind;
    return least_of_alone * std::max(calls_[at_].work, beside);
  }

  const TrainingStep& step_;
  const PipelineSpec& spec_;
  const LayerTimes& layer_;
  const WeightTimes& weights_;
  std::int64_t layers_;
  std::vector<StepItem> calls_;
  std::vector<std::size_t> ends_;  // of each task in calls_
  std::size_t at_ = 0, task_ = 0;
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
