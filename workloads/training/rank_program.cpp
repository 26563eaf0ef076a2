#include "workloads/training/rank_program.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "algorithms/pipeline/write_pipeline.hpp"
#include "sim/base/invariant.hpp"
#include "workloads/training/rank_items.hpp"

namespace podsim {

namespace {

using Kind = PipelineCommand::Kind;
using Value = PipelineValue::Kind;
using Use = StepParameter::Use;

using Instance = WeightInstance;

/// Blocks of weights that a call hands to the next.
struct Gathered {
  Instance of;
  int number = 0;  // counts
};

/// Gradients of an item.
struct Made {
  Instance of;
  StepWork by = StepWork::nothing;
  int number = 0;  // counts
  bool begins = false, begins_positions = false;  // their sums
  bool completes = false;                         // they are the last addend
};

/// Writes the program of one rank.
class RankProgram {
 public:
  RankProgram(const StepParts& parts, StepFunctions& functions, const PipelineStep& pipeline, const TrainingScheduleOptions& options, int rank,
              std::vector<MemoryKind>& memory)
      : parts_{parts}, functions_{functions}, spec_{pipeline.lists.spec}, options_{options}, layers_per_stage_{pipeline.layers / spec_.stages}, rank_{rank}, memory_{memory}, items_{items_of(pipeline, rank, has_vocabulary())} {
    for (const StepItem& item : items_) ++addends_[gradient_of(item.differentiates)];
    addends_.erase(Instance{});
  }

  Edges write(PipelineProgram& program, const PipelineCommand& command, const Edges& after) {
    program_ = &program;
    if (program.step() != step_) begin_step(program.step());
    switch (command.kind) {
      case Kind::execute: return execute(command.task, after);
      case Kind::update: return update(command.task.stage);
      default: return last_;
    }
  }

 private:
  // ---- What there is to do ----

  [[nodiscard]] bool is_last(int stage) const { return stage + 1 == spec_.stages; }
  [[nodiscard]] bool has_vocabulary() const { return parts_.step.model.vocabulary > 0; }
  [[nodiscard]] int first_layer(int stage) const { return stage * layers_per_stage_; }

  /// Tied weights of one rank are one matrix.
  [[nodiscard]] bool ends_meet() const { return rank_of_stage(spec_, 0) == rank_of_stage(spec_, spec_.stages - 1); }
  [[nodiscard]] Instance gradient_of(const Instance& weights) const {
    return weights.group == WeightGroup::logits && parts_.step.model.tied && ends_meet() ? Instance{WeightGroup::embedding, 0} : weights;
  }
  [[nodiscard]] std::string tensor_of(const Instance& weights, const StepWeight& weight) const {
    return prefix_of(weights) + (parts_.step.model.tied && &weight == parts_.logits.data() ? parts_.embedding.front().name : weight.name);
  }

  // ---- Buffers ----

  BufferId add(Buffer buffer, MemoryKind kind) {
    const BufferId id = program_->builder.add_buffer(std::move(buffer));
    memory_.resize(id.index() + 1, MemoryKind::activations);
    memory_[id.index()] = kind;
    return id;
  }
  [[nodiscard]] Region whole(BufferId buffer) const { return program_->builder.whole(buffer); }
  [[nodiscard]] DType activations() const { return parts_.step.model.activations; }

  /// The buffer of this name, made as `like` if there is none yet.
  BufferId named(const std::string& name, const std::function<Buffer()>& like, MemoryKind kind) {
    const auto found = buffers_.find(name);
    if (found != buffers_.end()) return found->second;
    return buffers_[name] = add(like(), kind);
  }
  BufferId scratch(const std::string& name, const std::vector<std::int64_t>& extents, DType dtype, MemoryKind kind) {
    return named(name, [&] { return Buffer{name, extents, dtype, Role::scratch, {}, {}}; }, kind);
  }
  /// What lives from step to step: weights, and what the optimiser has of the part that it updates.
  BufferId shard(const Instance& of, const StepWeight& weight) {
    const std::string name = tensor_of(of, weight) + ".W";
    return named(name, [&] { return Buffer{name, weight.shard(), parts_.step.model.weights, Role::input, name, weight.shard_axes()}; }, MemoryKind::weights);
  }
  BufferId optimiser_state(const Instance& of, const StepWeight& weight, const std::string& suffix, DType dtype) {
    const std::string name = tensor_of(of, weight) + suffix;
    return named(name, [&] { return Buffer{name, weight.part(), dtype, Role::input, name, weight.part_axes()}; }, MemoryKind::optimizer);
  }
  /// The sum of a gradient over all devices: what the optimiser reads.
  BufferId complete_gradient(const Instance& of, const StepWeight& weight) {
    const std::string name = fmt::format("d {}.W {}", tensor_of(of, weight), step_ + 1);
    return named(
        name,
        [&] {
          const DType dtype = parts_.step.model.gradients;
          return options_.claims ? Buffer{name, weight.part(), dtype, Role::output, name, weight.part_axes()} : Buffer{name, weight.part(), dtype, Role::scratch, {}, {}};
        },
        MemoryKind::gradients);
  }
  /// The sum over microbatches, which becomes the complete one in place unless each device of `data` takes a part.
  BufferId gradient(const Instance& of, const StepWeight& weight) {
    if (weight.updated.empty()) return complete_gradient(of, weight);
    return scratch(fmt::format("own d {}.W {}", tensor_of(of, weight), step_ + 1), weight.shard(), parts_.step.model.gradients, MemoryKind::gradients);
  }
  BufferId loss() {
    const std::string name = fmt::format("loss {}", step_ + 1);
    return named(
        name,
        [&] {
          Buffer buffer{name, {1}, DType::f32, options_.claims ? Role::output : Role::scratch, options_.claims ? name : "", {}};
          if (options_.claims) buffer.sharding.resize(1), buffer.unreduced = parts_.axes.loss();
          return buffer;
        },
        MemoryKind::working);
  }
  BufferId loss_of_microbatch() { return scratch("loss of a microbatch", {1}, DType::f32, MemoryKind::working); }
  /// A block of weights that a call is given: the shard itself, or where it is gathered. Each time another buffer, which lives until its last use.
  BufferId block(const Gathered& of, const StepWeight& weight) {
    return scratch(fmt::format("gathered {}{} {}", prefix_of(of.of), weight.name, of.number), weight.block(), activations(), MemoryKind::working);
  }
  BufferId block_gradient(const Made& of, const StepWeight& weight) {
    return scratch(fmt::format("whole d {}{} {}", prefix_of(of.of), weight.name, of.number), weight.block(), activations(), MemoryKind::working);
  }
  BufferId activation(const std::string& what, const PipelineTask& task, int layer) {
    return scratch(fmt::format("step {} layer {} microbatch {} {}", step_ + 1, layer, task.microbatch, what), parts_.activation(), activations(), MemoryKind::activations);
  }

  [[nodiscard]] BufferId value(Value kind, int stage, int microbatch) { return program_->buffer({kind, stage, microbatch}); }
  /// What a layer reads: the output of the layer before.
  BufferId input_of(const StepItem& item) {
    const auto [kind, s, k] = item.task;
    if (item.layer > first_layer(s)) return activation("Y", item.task, item.layer - 1);
    if (s > 0) return value(Value::activation, s - 1, k);
    return has_vocabulary() ? activation("embedding", item.task, 0) : value(Value::inputs, 0, k);
  }
  BufferId output_of(const StepItem& item) {
    const bool leaves = item.layer + 1 == first_layer(item.task.stage + 1) && !is_last(item.task.stage);
    return leaves ? value(Value::activation, item.task.stage, item.task.microbatch) : activation("Y", item.task, item.layer);
  }
  BufferId output_gradient_of(const StepItem& item) {
    const bool came = item.layer + 1 == first_layer(item.task.stage + 1) && !is_last(item.task.stage);
    return came ? value(Value::activation_gradient, item.task.stage, item.task.microbatch) : activation("dY", item.task, item.layer);
  }
  BufferId input_gradient_of(const StepItem& item) {
    if (item.layer > first_layer(item.task.stage)) return activation("dY", item.task, item.layer - 1);
    if (item.task.stage > 0) return value(Value::activation_gradient, item.task.stage - 1, item.task.microbatch);
    return activation("dX", item.task, 0);
  }

  // ---- Calls ----

  /// What an item reads from the host, on the device.
  struct Retrieved {
    std::size_t item = 0;
    int slot = 0;
  };
  /// What a call does beside its work.
  struct Beside {
    std::optional<Gathered> fetched;
    std::optional<Made> reduced;
    std::optional<Retrieved> retrieved;
  };

  void begin_step(int step) {
    step_ = step;
    next_ = 0;
    sums_.clear();
    summed_.clear();
    updated_ = false;
    loss_of_ = embedded_ = 0;
    held_.reset();
    back_.reset();
    if (parts_.step.optimizer_shards() > 1) gather_updated();
  }

  /// Gathers over `data` the weights that the step before updated in parts, in the order of their first use, beside the work that does not need them yet, as
  /// Megatron-LM does with `--overlap-param-gather`. The first step does so too: it stands for any.
  void gather_updated() {
    Edges queue = last_;
    for (const int stage : stages_of_rank(spec_, rank_))
      for (const Instance& of : groups_of(stage)) {
        for (const StepWeight& weight : parts_.weights(of.group)) {
          const Region all = whole(shard(of, weight));
          queue = program_->builder.step(fmt::format("gather updated {}", tensor_of(of, weight)), Collective{CollectiveKind::all_gather, weight.updated, weight.part_of(all), all, weight.dim}, queue);
        }
        updated_weights_[of] = queue;
      }
  }
  /// What the first work that reads these weights in a step waits for.
  Edges weights_gathered(const Instance& of) {
    const auto found = updated_weights_.find(gradient_of(of));
    return found == updated_weights_.end() ? Edges{} : std::exchange(found->second, {});
  }

  /// The gradients that an item makes. Calls reduce them in the order in which they are made.
  Made count(const StepItem& item) {
    const Instance& of = item.differentiates;
    const Instance sum = gradient_of(of);
    const int addends = ++sums_[sum];
    Made made{of, item.work, ++made_so_far_, addends == 1, false, addends == addends_.at(sum)};
    if (of.group == WeightGroup::embedding && parts_.step.model.positions > 0) made.begins_positions = ++embedded_ == 1;
    return made;
  }

  /// Adds up over `data` the gradients that a call has reduced, if they are complete: beside the calls behind it; only the optimiser waits for that. Each device
  /// gets the part that it updates. Slices add up theirs later (join_slices()), over `data` too unless parts are asked for.
  void sum_replicas(const Made& of, const std::vector<const StepWeight*>& weights) {
    const AxisView& data = parts_.axes.data;
    const Instance sum = gradient_of(of.of);
    const bool in_parts = parts_.step.optimizer_shards() > 1;
    if (data.size == 1 || (parts_.axes.slice.size > 1 && !in_parts) || !of.completes) return;
    for (const StepWeight* weight : weights) {
      const Region own = whole(gradient(sum, *weight)), complete = whole(complete_gradient(sum, *weight));
      const CollectiveKind kind = in_parts ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
      const Edges ends = program_->builder.step(fmt::format("sum d {}", tensor_of(sum, *weight)), Collective{kind, {data}, own, complete, weight->dim}, last_);
      summed_[sum] = join(std::move(summed_[sum]), ends);
    }
  }

  /// The buffer for a parameter.
  using Argument = std::function<BufferId(const StepParameter&, const Buffer&)>;

  Edges call(const std::string& label, const StepCall& what, const Argument& argument, const Edges& after, const std::vector<const StepWeight*>& joined = {}) {
    Call op{functions_.number(what, joined), {}};
    const StepFunction& function = functions_.at(op.function);
    for (std::size_t p = 0; p < function.uses.size(); ++p) op.arguments.push_back(argument(function.uses[p], function.parameters[p]));
    return last_ = program_->builder.step(label, std::move(op), join(after, last_));
  }

  /// The buffers of what a call gathers and reduces beside its work.
  BufferId beside(const StepParameter& of, const Buffer& parameter, const Beside& what) {
    switch (of.part) {
      case StepParameter::Part::fetch: return of.use == Use::shard ? shard(what.fetched->of, *of.weight) : block(*what.fetched, *of.weight);
      case StepParameter::Part::reduce: return of.use == Use::gradient ? gradient(gradient_of(what.reduced->of), *of.weight) : block_gradient(*what.reduced, *of.weight);
      case StepParameter::Part::retrieve:
        return of.use == Use::retrieved ? on_device(parameter, of.tensor, what.retrieved->slot) : kept(parameter, of.tensor, items_[what.retrieved->item]);
      case StepParameter::Part::work: break;
    }
    PODSIM_ASSERT(false && "the work has its own arguments");
    return {};
  }
  /// What the forward pass of a layer keeps.
  BufferId kept(const Buffer& parameter, const std::string& tensor, const StepItem& item) {
    const std::string name = fmt::format("step {} layer {} microbatch {} {}", step_ + 1, item.layer, item.task.microbatch, tensor);
    return named(
        name,
        [&] {
          Buffer buffer{name, parameter.extents, parameter.dtype, Role::scratch, {}, {}};
          buffer.on_host = parameter.on_host;
          return buffer;
        },
        MemoryKind::activations);
  }
  /// Where what the host kept comes back to. Layers take turns in two buffers.
  BufferId on_device(const Buffer& parameter, const std::string& tensor, int slot) {
    return scratch(fmt::format("retrieved {} {}", tensor, slot), parameter.extents, parameter.dtype, MemoryKind::working);
  }

  BufferId argument(const StepParameter& of, const Buffer& parameter, const StepItem& item, const std::optional<Made>& made) {
    const int k = item.task.microbatch;
    const auto at_end = [&](const char* what) { return activation(what, item.task, first_layer(spec_.stages) - 1); };
    switch (of.use) {
      case Use::weight: return held_ && parts_.is_fetched(*of.weight) ? block(*held_, *of.weight) : shard(item.reads, *of.weight);
      case Use::weight_gradient: return block_gradient(*made, *of.weight);
      case Use::shard: return shard(item.reads, *of.weight);
      case Use::gradient: return gradient(gradient_of(item.differentiates), *of.weight);
      case Use::tokens: return value(Value::inputs, 0, k);
      case Use::targets: return value(Value::targets, 0, k);
      case Use::loss: return loss_of_ == 0 ? loss() : loss_of_microbatch();
      case Use::input: return item.work == StepWork::loss ? at_end("Y") : input_of(item);
      case Use::output: return item.work == StepWork::embed ? activation("embedding", item.task, 0) : output_of(item);
      case Use::output_gradient: return item.work == StepWork::embed_gradient ? activation("dX", item.task, 0) : output_gradient_of(item);
      case Use::input_gradient: return item.work == StepWork::loss ? at_end("dY") : input_gradient_of(item);
      case Use::retrieved: return on_device(parameter, of.tensor, back_->slot);
      case Use::kept: return kept(parameter, of.tensor, item);
      default: PODSIM_ASSERT(false && "of an update"); return {};
    }
  }

  Edges execute(const PipelineTask& task, const Edges& after) {
    Edges ends;
    PODSIM_ASSERT(next_ < items_.size() && items_[next_].task == task);
    for (; next_ < items_.size() && items_[next_].task == task; ++next_) ends = perform(items_[next_], after);
    if (next_ == items_.size()) flush();
    return ends;
  }

  [[nodiscard]] bool is_fetched(const Instance& weights) const { return weights.group != WeightGroup::none && parts_.is_fetched(weights.group); }

  Edges perform(const StepItem& item, const Edges& after) {
    if (is_fetched(item.reads) && !held_) {  // nothing ran before that could have gathered them
      held_ = Gathered{item.reads, ++gathered_so_far_};
      const StepCall fetch{.fetch = item.work};
      call(fmt::format("gather weights of {}", name_of(item.task)), fetch, [&](const StepParameter& of, const Buffer& p) { return beside(of, p, {held_, {}, {}}); }, weights_gathered(item.reads));
    }
    if (reads_host(item) && !(back_ && back_->item == next_)) {  // the call before made it, or there is none
      back_ = Retrieved{next_, 0};
      const StepCall retrieve{.retrieve = item.work};
      call(fmt::format("retrieve for {}", name_of(item.task)), retrieve, [&](const StepParameter& of, const Buffer& p) { return beside(of, p, {{}, {}, back_}); }, {});
    }
    StepCall what{.work = item.work};
    Beside with;
    auto& [fetched, reduced, retrieved] = with;
    if (next_ + 1 < items_.size() && is_fetched(items_[next_ + 1].reads)) {
      fetched = Gathered{items_[next_ + 1].reads, ++gathered_so_far_};
      what.fetch = items_[next_ + 1].work;
    }
    if (next_ + 1 < items_.size() && reads_host(items_[next_ + 1]) && !keeps_what_is_read(item, items_[next_ + 1])) {
      retrieved = Retrieved{next_ + 1, back_ && back_->item == next_ ? 1 - back_->slot : 0};
      what.retrieve = items_[next_ + 1].work;
    }
    reduced = std::exchange(made_, {});
    if (reduced) reduce(what, *reduced);
    if (item.differentiates.group != WeightGroup::none) made_ = count(item);
    Edges ready = join(after, weights_gathered(item.reads));
    if (fetched) ready = join(std::move(ready), weights_gathered(fetched->of));
    what.first_own = made_ && made_->begins && item.differentiates.group == WeightGroup::layer;
    const Edges ends = call(
        fmt::format("{} {}", name_of(item.task), label_of(item)), what,
        [&](const StepParameter& of, const Buffer& p) { return of.part == StepParameter::Part::work ? argument(of, p, item, made_) : beside(of, p, with); }, ready);
    if (reduced) sum_replicas(*reduced, parts_.makes_last(reduced->by));
    if (made_) sum_replicas(*made_, parts_.makes_first(item.work));
    if (item.work == StepWork::loss && loss_of_++ > 0)
      last_ = program_->builder.step("add loss", Local{LocalKind::add, {whole(loss()), whole(loss_of_microbatch())}, {whole(loss())}}, last_);
    held_ = fetched;
    if (retrieved) back_ = retrieved;
    return ends;
  }

  static void reduce(StepCall& call, const Made& made) { call.reduce = made.by, call.first = made.begins, call.first_positions = made.begins_positions; }

  [[nodiscard]] bool reads_host(const StepItem& item) const { return !parts_.retrieved(item.work).empty(); }
  static bool keeps_what_is_read(const StepItem& item, const StepItem& next) {
    return item.work == StepWork::layer_forward && item.layer == next.layer && item.task.microbatch == next.task.microbatch;
  }

  /// Reduces the gradients that the last call made.
  void flush() {
    if (!made_) return;
    const std::optional<Made> reduced = std::exchange(made_, {});
    StepCall what;
    reduce(what, *reduced);
    call("reduce gradients", what, [&](const StepParameter& of, const Buffer& p) { return beside(of, p, {{}, reduced, {}}); }, {});
    sum_replicas(*reduced, parts_.makes_last(reduced->by));
  }

  // ---- After the loop ----

  /// The groups of this rank's stages, each once.
  [[nodiscard]] std::vector<Instance> groups_of(int stage) const {
    std::vector<Instance> groups;
    if (stage == 0 && has_vocabulary()) groups.push_back({WeightGroup::embedding, 0});
    for (int layer = first_layer(stage); layer < first_layer(stage + 1); ++layer) groups.push_back({WeightGroup::layer, layer});
    const Instance logits{WeightGroup::logits, 0};
    if (is_last(stage) && has_vocabulary() && gradient_of(logits) == logits) groups.push_back(logits);
    return groups;
  }

  void before_updates() {
    if (updated_) return;
    updated_ = true;
    exchange_tied();
    if (parts_.axes.slice.size > 1) join_slices();
  }

  /// Adds up all gradients of the rank over slices, in one call.
  void join_slices() {
    std::vector<const StepWeight*> joined;
    std::vector<BufferId> gradients;
    for (const int stage : stages_of_rank(spec_, rank_))
      for (const Instance& of : groups_of(stage))
        for (const StepWeight& weight : parts_.weights(of.group)) joined.push_back(&weight), gradients.push_back(complete_gradient(of, weight));
    std::size_t next = 0;
    for (const auto& [of, ends] : summed_) last_ = join(last_, ends);
    call("sum gradients over slices", {.work = StepWork::join_slices}, [&](const StepParameter&, const Buffer&) { return gradients[next++]; }, {}, joined);
  }

  /// An embedding that is also the weights of the logits, on two ranks: both add up what both have.
  void exchange_tied() {
    const int first = rank_of_stage(spec_, 0), last = rank_of_stage(spec_, spec_.stages - 1);
    if (!parts_.step.model.tied || first == last || (rank_ != first && rank_ != last)) return;
    const bool is_first = rank_ == first;
    const int peer = is_first ? last : first, channel = spec_.ranks * spec_.ranks;
    const StepWeight& weight = is_first ? parts_.embedding.front() : parts_.logits.front();
    const Instance tied{is_first ? WeightGroup::embedding : WeightGroup::logits, 0};
    const Region own = whole(complete_gradient(tied, weight));
    last_ = join(last_, summed_[tied]);
    const Region other = whole(scratch("d embedding of the other end", weight.part(), parts_.step.model.gradients, MemoryKind::working));
    ProgramBuilder& builder = program_->builder;
    const Edges sent = builder.step("send d embedding", Send{channel + (is_first ? 0 : 1), peer_on_rank(parts_.mesh, parts_.axes.stage, peer), own, {}}, last_);
    const Edges received = builder.step("recv d embedding", Recv{channel + (is_first ? 1 : 0), peer_on_rank(parts_.mesh, parts_.axes.stage, peer), other, Combine::replace}, last_);
    last_ = builder.step("add d embedding", Local{LocalKind::add, {own, other}, {own}}, join(sent, received));
  }

  Edges update(int stage) {
    before_updates();
    for (const Instance& of : groups_of(stage)) {
      const StepCall what{.work = StepWork::update, .of = of.group, .step = step_ + 1};
      call(fmt::format("update {}", of.group == WeightGroup::layer ? fmt::format("layer {}", of.layer) : tensor_of(of, parts_.weights(of.group).front())), what,
           [&](const StepParameter& parameter, const Buffer&) { return argument_of_update(parameter, of); }, summed_[of]);
      if (options_.claims && step_ + 1 == options_.steps) claim(of);
    }
    return last_;
  }

  BufferId argument_of_update(const StepParameter& parameter, const Instance& of) {
    const DType moments = parts_.step.model.moments;
    switch (parameter.use) {
      case Use::shard: return shard(of, *parameter.weight);
      case Use::gradient: return complete_gradient(of, *parameter.weight);
      case Use::master: return optimiser_state(of, *parameter.weight, ".master", DType::f32);
      case Use::first_moment: return optimiser_state(of, *parameter.weight, ".m", moments);
      case Use::second_moment: return optimiser_state(of, *parameter.weight, ".v", moments);
      default: PODSIM_ASSERT(false && "an update has no other parameters"); return {};
    }
  }

  /// New values as outputs.
  void claim(const Instance& of) {
    for (const StepWeight& weight : parts_.weights(of.group)) {
      const BufferId from = shard(of, weight);
      Buffer to = program_->builder.buffer(from);
      to.name = to.tensor = "new " + to.tensor;
      to.role = Role::output;
      to.extents = weight.part(), to.sharding = weight.part_axes();
      const Region out = whole(add(to, MemoryKind::weights));
      last_ = join(last_, {Edge{program_->builder.alias("place " + to.name, weight.part_of(whole(from)), out, last_)}});
    }
  }

  const StepParts& parts_;
  StepFunctions& functions_;
  const PipelineSpec& spec_;
  const TrainingScheduleOptions& options_;
  int layers_per_stage_, rank_;
  std::vector<MemoryKind>& memory_;
  std::vector<StepItem> items_;      // of a step
  std::map<Instance, int> addends_;  // of each gradient, in a step

  PipelineProgram* program_ = nullptr;
  int step_ = -1;
  std::size_t next_ = 0;
  std::map<std::string, BufferId> buffers_;
  std::map<Instance, int> sums_;      // addends so far
  std::map<Instance, Edges> summed_;  // the ends of their sums over `data`
  std::map<Instance, Edges> updated_weights_;  // the ends of their gathers, until a work waits for them
  std::optional<Gathered> held_;  // the weights that the next call is given
  std::optional<Made> made_;      // gradients that the next call reduces
  int gathered_so_far_ = 0, made_so_far_ = 0;
  std::optional<Retrieved> back_;  // what the host kept, of the item that reads it first or read it last
  bool updated_ = false;
  int loss_of_ = 0;   // microbatches whose loss was computed
  int embedded_ = 0;  // gradients of the embedding by tokens that were reduced
  Edges last_;
};

}  // namespace

RankWriter rank_writer(const StepParts& parts, StepFunctions& functions, const PipelineStep& pipeline, const TrainingScheduleOptions& options, int rank, std::vector<MemoryKind>& memory) {
  auto program = std::make_shared<RankProgram>(parts, functions, pipeline, options, rank, memory);
  return [program](PipelineProgram& into, const PipelineCommand& command, const Edges& after) { return program->write(into, command, after); };
}

}  // namespace podsim
