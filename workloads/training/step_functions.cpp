#include "workloads/training/step_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/invariant.hpp"
#include "workloads/training/function_writer.hpp"
#include "workloads/training/step_ends.hpp"
#include "workloads/training/step_layer.hpp"

namespace podsim {

namespace {

using Lengths = FunctionWriter::Lengths;
using Part = StepParameter::Part;
using Use = StepParameter::Use;

// ---- After the loop -------------------------------------------------------------------------------------------------------------------

/// Adds up an array over data and over slices: along data each device takes its part to the other slices, then the parts are gathered. Where the optimizer is
/// divided over data, programs have scattered the gradients (RankProgram::sum_replicas()), and parts are all that is needed.
Edges write_sum_over_slices(FunctionWriter& w, const Region& sum, const Edges& ready) {
  const StepAxes& axes = w.parts().axes;
  if (axes.data.size == 1 || w.parts().step.optimizer_shards() > 1) return w.collective("sum d all", CollectiveKind::all_reduce, {axes.slice}, sum, sum, 0, ready);
  if (lengths_of(sum).front() % axes.data.size != 0) {  // no part is a device's own
    const Edges own_slice = w.collective("sum over data d all", CollectiveKind::all_reduce, {axes.data}, sum, sum, 0, ready);
    return w.collective("sum d all", CollectiveKind::all_reduce, {axes.slice}, sum, sum, 0, own_slice);
  }
  const Region own_part = w.scratch("part of d all", {lengths_of(sum).front() / axes.data.size}, w.model().gradients);
  Edges after = w.collective("scatter over data d all", CollectiveKind::reduce_scatter, {axes.data}, sum, own_part, 0, ready);
  after = w.collective("sum d all", CollectiveKind::all_reduce, {axes.slice}, own_part, own_part, 0, after);
  return w.collective("gather over data d all", CollectiveKind::all_gather, {axes.data}, own_part, sum, 0, after);
}

/// All in one array, as XLA combines all-reduces: collectives on one axis run one after the other, and each would pay the latency between slices.
void write_join(FunctionWriter& w, const std::vector<const StepWeight*>& weights) {
  std::vector<Region> gradients, places;
  std::int64_t total = 0;
  for (const StepWeight* weight : weights) {
    gradients.push_back(w.makes({Use::joined, nullptr, Part::work, fmt::format("gradient.{}", gradients.size())}, weight->part(), w.model().gradients));
    total += elements_of(gradients.back());
  }
  const Region all = w.scratch("gradients", {total}, w.model().gradients);
  std::int64_t offset = 0;
  Edges placed;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    places.push_back(with(all, 0, span(offset, elements_of(gradients[i]))));
    offset += elements_of(gradients[i]);
    placed = join(std::move(placed), {Edge{w.builder().alias("place d " + weights[i]->name, gradients[i], places[i], Edges{})}});
  }
  const Edges summed = write_sum_over_slices(w, all, placed);
  for (std::size_t i = 0; i < weights.size(); ++i) w.builder().alias("sum of d " + weights[i]->name, places[i], gradients[i], summed);
}

void write_update(FunctionWriter& w, const StepCall& call) {
  const TrainingModel& model = w.model();
  const bool adam = w.parts().step.optimizer == Optimizer::adamw;
  for (const StepWeight& weight : w.parts().weights(call.of)) {
    const Lengths part = weight.part();
    const Region stored = weight.part_of(w.makes({Use::shard, &weight}, weight.shard(), model.weights)), gradient = w.reads({Use::gradient, &weight}, part, model.gradients);
    const Region values = model.master_weights ? w.makes({Use::master, &weight}, part, DType::f32) : stored;
    Local update{adam ? LocalKind::adamw : LocalKind::sgd, {values, gradient}, {values}};
    if (adam)
      for (const Use moment : {Use::first_moment, Use::second_moment}) {
        const Region held = w.makes({moment, &weight}, part, model.moments);
        update.reads.push_back(held), update.writes.push_back(held);
      }
    update.optimiser = w.parts().optimiser;
    update.optimiser.step = call.step;
    const Edges updated = w.local("update " + weight.name, std::move(update), {});
    if (model.master_weights) w.local("round " + weight.name, {LocalKind::convert, {values}, {stored}}, updated);
  }
}

// ---- Functions ------------------------------------------------------------------------------------------------------------------------

std::string name_of(const StepCall& call, const TrainingStep& step) {
  constexpr std::array<std::string_view, 10> works{"",     "embedding",        "layer forward", "layer backward", "layer backward, inputs", "layer backward, weights",
                                                   "loss", "embedding backward", "sum over slices", "update"};
  const auto work_named = [&](StepWork work) { return works[static_cast<std::size_t>(work)]; };
  constexpr std::array<std::string_view, 4> groups{"", "layer", "embedding", "logits"};
  const auto group = [&](WeightGroup of) { return groups[static_cast<std::size_t>(of)]; };
  std::string name{work_named(call.work)};
  const auto also = [&](std::string text) { name += (name.empty() ? "" : " + ") + std::move(text); };
  if (call.work == StepWork::update) name += fmt::format(" {} {}", group(call.of), call.step);
  if (call.first_own) name += ", first";
  if (call.fetch != StepWork::nothing) also(fmt::format("gather for {}", work_named(call.fetch)));
  if (call.retrieve != StepWork::nothing) also(fmt::format("retrieve for {}", work_named(call.retrieve)));
  if (call.reduce != StepWork::nothing)
    also(fmt::format("reduce for {}{}", work_named(call.reduce),
                     call.first             ? ", first"
                     : call.first_positions ? ", first of positions"
                                            : ""));
  return step.model.name.empty() ? name : step.model.name + ": " + name;
}

/// What is no layer's.
void write_work(FunctionWriter& w, const StepCall& call, const std::vector<const StepWeight*>& joined) {
  switch (call.work) {
    case StepWork::embed: return write_embedding(w);
    case StepWork::loss: {
      const Status written = write_loss(w);
      PODSIM_ASSERT(written);  // the norms of layers have the same extents
      return;
    }
    case StepWork::embed_gradient: return write_embedding_gradient(w);
    case StepWork::join_slices: return write_join(w, joined);
    case StepWork::update: return write_update(w, call);
    default: return;
  }
}

WeightOrder order_of(const StepParts& parts, StepWork work) {
  const TensorFunction& function = *parts.layer_function(work);
  std::map<std::size_t, std::size_t> read, made;  // the weight, by the task
  for (std::size_t p = 0; p < function.parameters.size(); ++p) {
    const LayerTensor& tensor = parts.functions.tensors.at(function.parameters[p].tensor);
    const bool is_weight = tensor.use == LayerTensor::Use::weight;
    if (!is_weight && tensor.use != LayerTensor::Use::weight_gradient) continue;
    const auto weight = static_cast<std::size_t>(std::ranges::find(parts.layer_weights, tensor.stage, &StepWeight::name) - parts.layer_weights.begin());
    const std::vector<std::size_t> users = users_of(function, p);
    (is_weight ? read[users.front()] : made[users.back()]) = weight;
  }
  WeightOrder order;
  for (const auto& [task, weight] : read) order.read.push_back(weight);
  for (const auto& [task, weight] : made) order.made.push_back(weight);
  return order;
}

}  // namespace

WeightGroup group_of(StepWork work) {
  switch (work) {
    case StepWork::embed:
    case StepWork::embed_gradient: return WeightGroup::embedding;
    case StepWork::layer_forward:
    case StepWork::layer_backward:
    case StepWork::layer_inputs:
    case StepWork::layer_weights: return WeightGroup::layer;
    case StepWork::loss: return WeightGroup::logits;
    default: return WeightGroup::none;
  }
}

std::vector<std::size_t> users_of(const TensorFunction& function, std::size_t parameter) {
  const std::vector<Task>& tasks = function.function.body.tasks;
  std::vector<std::size_t> users;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    Op op = tasks[t].op;
    if (std::ranges::any_of(regions_of(op), [&](const Region* region) { return region->buffer.index() == parameter; })) users.push_back(t);
  }
  return users;
}

const StepWeights& StepParts::weights(WeightGroup group) const {
  PODSIM_ASSERT(group != WeightGroup::none);
  return group == WeightGroup::layer ? layer_weights : group == WeightGroup::embedding ? embedding : logits;
}

bool StepParts::is_fetched(WeightGroup group) const {
  return std::ranges::any_of(weights(group), [&](const StepWeight& weight) { return is_fetched(weight); });
}

std::vector<const StepWeight*> StepParts::in_order(StepWork work, std::vector<std::size_t> WeightOrder::*of_layer, StepWork of_embedding) const {
  std::vector<const StepWeight*> found;
  if (const auto order = orders.find(work); order != orders.end())
    for (const std::size_t w : order->second.*of_layer) found.push_back(&layer_weights[w]);
  if (work == of_embedding || work == StepWork::loss)
    for (const StepWeight& weight : weights(group_of(work))) found.push_back(&weight);
  return found;
}

std::vector<const StepWeight*> StepParts::reads(StepWork work) const {
  std::vector<const StepWeight*> weights = in_order(work, &WeightOrder::read, StepWork::embed);
  if (group_of(work) == WeightGroup::layer) std::erase_if(weights, [&](const StepWeight* weight) { return !is_fetched(*weight); });
  return weights;
}

std::vector<const StepWeight*> StepParts::makes(StepWork work) const { return in_order(work, &WeightOrder::made, StepWork::embed_gradient); }

std::vector<const StepWeight*> StepParts::reads_first(StepWork work) const {
  std::vector<const StepWeight*> weights = reads(work);
  if (group_of(work) == WeightGroup::layer && weights.size() > 1) weights.resize(1);
  return weights;
}

std::vector<const StepWeight*> StepParts::makes_last(StepWork work) const {
  std::vector<const StepWeight*> weights = makes(work);
  if (group_of(work) == WeightGroup::layer && weights.size() > 1) weights.erase(weights.begin(), weights.end() - 1);
  return weights;
}

std::vector<const StepWeight*> StepParts::makes_first(StepWork work) const {
  if (group_of(work) != WeightGroup::layer) return {};
  std::vector<const StepWeight*> weights = makes(work);
  if (!weights.empty()) weights.pop_back();
  return weights;
}

const TensorFunction* StepParts::layer_function(StepWork work) const {
  switch (work) {
    case StepWork::layer_forward: return &functions.forward;
    case StepWork::layer_backward: return &functions.backward;
    case StepWork::layer_inputs: return &functions.backward_inputs;
    case StepWork::layer_weights: return &functions.backward_weights;
    default: return nullptr;
  }
}

bool StepParts::is_on_host(const std::string& tensor) const {
  const LayerTensor& of = functions.tensors.at(tensor);
  return of.use == LayerTensor::Use::kept && std::ranges::any_of(step.remat.saved, [&](const SavedStage& saved) { return saved.on_host && saved.name == of.stage; });
}

std::vector<Buffer> StepParts::retrieved(StepWork work) const {
  std::vector<Buffer> kept;
  if (const TensorFunction* function = layer_function(work); function != nullptr)
    for (const Buffer& parameter : function->parameters)
      if (parameter.role == Role::input && is_on_host(parameter.tensor)) kept.push_back(parameter);
  return kept;
}

Expected<StepParts> step_parts(const TrainingStep& step, const Mesh& mesh, const Plan& plan, const Optimiser& optimiser) {
  const auto axes = step_axes(mesh);
  if (!axes) return axes.error();
  PODSIM_ASSERT(sizes_of(*axes) == step.mesh);
  auto submesh = submesh_of(mesh, axes->row, axes->col);
  if (!submesh) return submesh.error();
  if (step.model.experts > 0 && submesh->group_size() > 1) return Diagnostic{of_field("mesh"), fmt::format("expected row and col of 1 with experts, found {}", to_text(step.mesh))};
  submesh->experts = axes->expert;
  const std::int64_t groups = step.mesh.slice * step.mesh.data * step.mesh.fsdp * step.mesh.expert;
  auto layer = workload_of(layer_of(step.model, step.batch / step.microbatches / groups), 1);
  if (!layer) return layer.error();
  LayerOptions options{step.remat.kind != Remat::Kind::none, {}, step.remat.kind == Remat::Kind::layer};
  for (const SavedStage& saved : step.remat.saved) options.saved.push_back(saved.name);
  auto functions = layer_functions(*submesh, *layer, plan, options);
  if (!functions) return functions.error();
  auto weights = layer_weights(*axes, *submesh, *layer, plan);
  if (!weights) return weights.error();
  StepParts parts{step, mesh, *axes, *std::move(submesh), plan, *std::move(layer), *std::move(functions), *std::move(weights), {}, {}, optimiser};
  if (step.model.vocabulary > 0) {
    parts.embedding = embedding_weights(*axes, step.model);
    parts.logits = vocabulary_weights(*axes, step.model, "logits");
  }
  if (step.optimizer_shards() > 1)
    for (StepWeights* group : {&parts.layer_weights, &parts.embedding, &parts.logits})
      for (StepWeight& weight : *group) weight.updated = {axes->data};
  for (const StepWork work : {StepWork::layer_forward, StepWork::layer_backward, StepWork::layer_inputs, StepWork::layer_weights}) parts.orders[work] = order_of(parts, work);
  if (parts.activation()[0] % step.loss_chunks != 0)
    return Diagnostic{of_field("loss_chunks"), fmt::format("expected a divisor of the {} tokens of a device, found {}", parts.activation()[0], step.loss_chunks)};
  return parts;
}

int StepFunctions::number(const StepCall& call, const std::vector<const StepWeight*>& joined) {
  std::vector<std::vector<std::int64_t>> shards;  // of ranks with as many weights they may still differ
  for (const StepWeight* weight : joined) shards.push_back(weight->part());
  const auto [known, added] = numbers_.try_emplace({call, std::move(shards)}, static_cast<int>(made_.size()));
  if (!added) return known->second;
  FunctionWriter w{parts_, name_of(call, parts_.step)};
  write_retrieval(w, call.retrieve);
  WeightTransfers transfers{w};
  if (parts_.layer_function(call.work) != nullptr) {
    write_layer(w, transfers, call);
  } else {
    transfers.fetch(call.fetch, {});  // first: the core converts shards in program order, and gathers begin before the work
    write_work(w, call, joined);
    transfers.reduce(call);
  }
  transfers.finish();
  made_.push_back(std::move(w).finish());
  return known->second;
}

std::vector<Function> StepFunctions::take() && {
  std::vector<Function> functions;
  for (StepFunction& made : made_) functions.push_back(std::move(made.function));
  return functions;
}

}  // namespace podsim
