#include "workloads/training/step_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/invariant.hpp"
#include "workloads/training/function_writer.hpp"
#include "workloads/training/step_ends.hpp"

namespace podsim {

namespace {

using Lengths = FunctionWriter::Lengths;
using Part = StepParameter::Part;
using Use = StepParameter::Use;

// ---- Layers ---------------------------------------------------------------------------------------------------------------------------

std::string host_name(const std::string& tensor) { return tensor + ".host"; }

bool writes(const Op& op, BufferId buffer) {
  const auto is = [&](const Region& region) { return region.buffer == buffer; };
  if (const auto* matmul = std::get_if<Matmul>(&op)) return is(matmul->out);
  if (const auto* shift = std::get_if<Shift>(&op)) return is(shift->target);
  if (const auto* collective = std::get_if<Collective>(&op)) return is(collective->output);
  const auto* local = std::get_if<Local>(&op);
  return local != nullptr && std::any_of(local->writes.begin(), local->writes.end(), is);
}

struct Offloaded {
  const Buffer* parameter = nullptr;
  Region made;
  Tasks writers{};
};

/// Hands what the tasks from `first` on made to the host, each as soon as it is complete, one copy after the other.
void write_to_host(FunctionWriter& w, std::vector<Offloaded> offloaded, std::size_t first) {
  for (Offloaded& each : offloaded)
    for (std::size_t t = first; t < w.builder().task_count(); ++t)
      if (writes(w.builder().task(TaskId{t}).op, each.made.buffer)) each.writers.push_back(TaskId{t});
  std::ranges::sort(offloaded, {}, [](const Offloaded& each) { return each.writers.back(); });
  Edges queue;
  for (const auto& [parameter, made, writers] : offloaded) {
    const Region there = w.tensor({Use::kept, nullptr, Part::work, host_name(parameter->tensor)}, parameter->extents, parameter->dtype, Role::output, true);
    queue = w.local("offload " + parameter->tensor, {LocalKind::to_host, {made}, {there}, 1, Unit::dma}, join(edges_to(writers), queue));
  }
}

/// Takes back what the next call reads, one copy after the other.
void write_retrieval(FunctionWriter& w, StepWork work) {
  Edges queue;
  for (const Buffer& kept : w.parts().retrieved(work)) {
    const Region there = w.tensor({Use::kept, nullptr, Part::retrieve, host_name(kept.tensor)}, kept.extents, kept.dtype, Role::input, true);
    const Region here = w.makes({Use::retrieved, nullptr, Part::retrieve, kept.tensor}, kept.extents, kept.dtype);
    queue = w.local("retrieve " + kept.tensor, {LocalKind::from_host, {there}, {here}, 1, Unit::dma}, queue);
  }
}

void write_layer(FunctionWriter& w, const TensorFunction& function) {
  const StepParts& parts = w.parts();
  std::map<std::string, Region> given;
  std::vector<Offloaded> offloaded;
  std::vector<const Buffer*> kept;
  for (const Buffer& parameter : function.parameters) {
    const LayerTensor& tensor = parts.functions.tensors.at(parameter.tensor);
    const StepWeight* const weight = tensor.use == LayerTensor::Use::kept || tensor.stage.empty() ? nullptr : &*std::ranges::find(parts.layer_weights, tensor.stage, &StepWeight::name);
    Region& region = given[parameter.tensor];
    switch (tensor.use) {
      case LayerTensor::Use::weight: region = w.reads({Use::weight, weight}, weight->block()); break;
      case LayerTensor::Use::weight_gradient: region = w.makes({Use::weight_gradient, weight}, weight->block()); break;
      case LayerTensor::Use::input: region = w.reads({Use::input}, parts.activation()); break;
      case LayerTensor::Use::output: region = w.makes({Use::output}, parts.activation()); break;
      case LayerTensor::Use::output_gradient: region = w.reads({Use::output_gradient}, parts.activation()); break;
      case LayerTensor::Use::input_gradient: region = w.makes({Use::input_gradient}, parts.activation()); break;
      case LayerTensor::Use::kept:
        if (parameter.role == Role::output && parts.is_on_host(parameter.tensor))
          region = w.scratch(parameter.tensor, parameter.extents, parameter.dtype), offloaded.push_back({&parameter, region});
        else
          kept.push_back(&parameter);
    }
  }
  for (const Buffer* parameter : kept) {
    const bool came_back = parameter->role == Role::input && parts.is_on_host(parameter->tensor);
    given[parameter->tensor] = w.tensor({came_back ? Use::retrieved : Use::kept, nullptr, Part::work, parameter->tensor}, parameter->extents, parameter->dtype, parameter->role);
  }
  const std::size_t first = w.builder().task_count();
  w.append(function, given);
  write_to_host(w, std::move(offloaded), first);
}

// ---- Weights and gradients ------------------------------------------------------------------------------------------------------------

/// Gathers run one after the other, like all collectives along an axis.
Edges write_fetch(FunctionWriter& w, WeightGroup group, Edges queue) {
  if (group == WeightGroup::none || !w.parts().is_fetched(group)) return queue;
  for (const StepWeight& weight : w.parts().weights(group)) {
    Region shard = w.reads({Use::shard, &weight, Part::fetch}, weight.shard(), w.model().weights);
    const Region block = w.makes({Use::weight, &weight, Part::fetch}, weight.block());
    Edges ready = queue;
    if (w.model().weights != w.model().activations) {
      const Region converted = weight.gathered.empty() ? block : w.scratch("converted " + weight.name, weight.shard());
      ready = join(std::move(ready), w.local("convert " + weight.name, {LocalKind::convert, {shard}, {converted}}, {}));
      shard = converted;
    }
    if (weight.gathered.empty() && w.model().weights == w.model().activations) w.builder().alias("place " + weight.name, shard, block, queue);
    if (!weight.gathered.empty()) queue = w.collective("gather " + weight.name, CollectiveKind::all_gather, weight.gathered, shard, block, weight.dim, ready);
  }
  return queue;
}

/// Adds a gradient to a sum, or begins it. Sums of layers in a loop are one array: a copy more.
Edges write_sum(FunctionWriter& w, WeightGroup of, const std::string& name, Region gradient, const Region& sum, bool first, Edges after) {
  const bool stacked = of == WeightGroup::layer && w.parts().step.scan && w.parts().step.model.layers > 1;
  const DType from = w.builder().buffer(gradient.buffer).dtype, to = w.model().gradients;
  const Lengths extents = lengths_of(gradient);
  if (from != to) {
    const Region wide = first && !stacked ? sum : w.scratch("converted d " + name, extents, to);
    after = w.local("convert d " + name, {LocalKind::convert, {gradient}, {wide}}, after);
    gradient = wide;
  }
  if (first && stacked) return w.local("stack d " + name, {LocalKind::stack, {gradient}, {sum}}, after);
  if (first) return gradient == sum ? after : Edges{Edge{w.builder().alias("place d " + name, gradient, sum, after)}};
  return w.local("add d " + name, {LocalKind::add, {sum, gradient}, {sum}}, after);
}

/// Behind `queue`, the gathers of this call.
void write_reduce(FunctionWriter& w, const StepCall& call, Edges queue) {
  const StepParts& parts = w.parts();
  if (call.reduce == WeightGroup::none) return;
  for (const StepWeight& weight : parts.weights(call.reduce)) {
    Region gradient = w.reads({Use::weight_gradient, &weight, Part::reduce}, weight.block());
    const Region sum = w.makes({Use::gradient, &weight, Part::reduce}, weight.shard(), w.model().gradients);
    Edges ready;
    if (!weight.gathered.empty()) {
      const Region shard = w.scratch("d " + weight.name, weight.shard());
      ready = queue = w.collective("scatter d " + weight.name, CollectiveKind::reduce_scatter, weight.gathered, gradient, shard, weight.dim, queue);
      gradient = shard;
    }
    write_sum(w, call.reduce, weight.name, gradient, sum, weight.name == positions_weight ? call.first_positions : call.first, ready);
  }
}

/// Adds up an array over data and over slices: along data each device takes its part to the other slices, then the parts are gathered.
Edges write_sum_over_slices(FunctionWriter& w, const Region& sum, const Edges& ready) {
  const StepAxes& axes = w.parts().axes;
  if (axes.data.size == 1) return w.collective("sum d all", CollectiveKind::all_reduce, {axes.slice}, sum, sum, 0, ready);
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
    gradients.push_back(w.makes({Use::joined, nullptr, Part::work, fmt::format("gradient.{}", gradients.size())}, weight->shard(), w.model().gradients));
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
    const Lengths shard = weight.shard();
    const Region stored = w.makes({Use::shard, &weight}, shard, model.weights), gradient = w.reads({Use::gradient, &weight}, shard, model.gradients);
    const Region values = model.master_weights ? w.makes({Use::master, &weight}, shard, DType::f32) : stored;
    Local update{adam ? LocalKind::adamw : LocalKind::sgd, {values, gradient}, {values}};
    if (adam)
      for (const Use moment : {Use::first_moment, Use::second_moment}) {
        const Region held = w.makes({moment, &weight}, shard, model.moments);
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
  constexpr std::array<std::string_view, 4> groups{"", "layer", "embedding", "logits"};
  const auto group = [&](WeightGroup of) { return groups[static_cast<std::size_t>(of)]; };
  std::string name{works[static_cast<std::size_t>(call.work)]};
  const auto also = [&](std::string text) { name += (name.empty() ? "" : " + ") + std::move(text); };
  if (call.work == StepWork::update) name += fmt::format(" {} {}", group(call.of), call.step);
  if (call.fetch != WeightGroup::none) also(fmt::format("gather {}", group(call.fetch)));
  if (call.retrieve != StepWork::nothing) also(fmt::format("retrieve for {}", works[static_cast<std::size_t>(call.retrieve)]));
  if (call.reduce != WeightGroup::none)
    also(fmt::format("reduce {}{}", group(call.reduce),
                     call.first             ? ", first"
                     : call.first_positions ? ", first of positions"
                                            : ""));
  return step.model.name.empty() ? name : step.model.name + ": " + name;
}

}  // namespace

const StepWeights& StepParts::weights(WeightGroup group) const {
  PODSIM_ASSERT(group != WeightGroup::none);
  return group == WeightGroup::layer ? layer_weights : group == WeightGroup::embedding ? embedding : logits;
}

bool StepParts::is_fetched(WeightGroup group) const {
  return step.model.weights != step.model.activations || !weights(group).front().gathered.empty();
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
  if (step.optimizer == Optimizer::adamw && step.model.moments != DType::f32)
    return Diagnostic{of_field("moments"), fmt::format("expected f32, found {}: updates of moments in other dtypes are not simulated", name_of(step.model.moments))};
  const std::int64_t groups = step.mesh.slice * step.mesh.data * step.mesh.fsdp;
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
  if (parts.activation()[0] % step.loss_chunks != 0)
    return Diagnostic{of_field("loss_chunks"), fmt::format("expected a divisor of the {} tokens of a device, found {}", parts.activation()[0], step.loss_chunks)};
  return parts;
}

int StepFunctions::number(const StepCall& call, const std::vector<const StepWeight*>& joined) {
  std::vector<std::vector<std::int64_t>> shards;  // of ranks with as many weights they may still differ
  for (const StepWeight* weight : joined) shards.push_back(weight->shard());
  const auto [known, added] = numbers_.try_emplace({call, std::move(shards)}, static_cast<int>(made_.size()));
  if (!added) return known->second;
  FunctionWriter w{parts_, name_of(call, parts_.step)};
  const Edges fetched = write_fetch(w, call.fetch, {});  // first: the core converts shards in program order, and gathers begin before the work
  write_retrieval(w, call.retrieve);
  switch (call.work) {
    case StepWork::nothing: break;
    case StepWork::embed: write_embedding(w); break;
    case StepWork::layer_forward:
    case StepWork::layer_backward:
    case StepWork::layer_inputs:
    case StepWork::layer_weights: write_layer(w, *parts_.layer_function(call.work)); break;
    case StepWork::loss: {
      const Status written = write_loss(w);
      PODSIM_ASSERT(written);  // the norms of layers have the same extents
      break;
    }
    case StepWork::embed_gradient: write_embedding_gradient(w); break;
    case StepWork::join_slices: write_join(w, joined); break;
    case StepWork::update: write_update(w, call); break;
  }
  write_reduce(w, call, fetched);
  made_.push_back(std::move(w).finish());
  return known->second;
}

std::vector<Function> StepFunctions::take() && {
  std::vector<Function> functions;
  for (StepFunction& made : made_) functions.push_back(std::move(made.function));
  return functions;
}

}  // namespace podsim
