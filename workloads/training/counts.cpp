#include "workloads/training/counts.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

constexpr double times_backward = 2;  // the gradients of both operands

Flops product_flops(std::int64_t tokens, std::int64_t inputs, std::int64_t outputs) {
  return Flops{2.0 * static_cast<double>(tokens) * static_cast<double>(inputs) * static_cast<double>(outputs)};
}

Flops attention_flops_of(const TrainingStep& step, AttentionFlops attention) {
  const TrainingModel& model = step.model;
  const double scores = static_cast<double>(step.tokens()) * static_cast<double>(model.sequence) * static_cast<double>(model.heads);
  return Flops{4 * scores * static_cast<double>(model.head_dim) * (model.causal && attention == AttentionFlops::causal ? 0.5 : 1)};
}

/// Of one norm: a scale, and an offset of layer norms with biases.
std::int64_t norm_parameters(const TrainingModel& model) {
  if (model.norm == Norm::none) return 0;
  return model.width * (model.norm == Norm::layer && model.biases ? 2 : 1);
}

std::int64_t stage_parameters(const TrainingModel& model, const Stage& stage) {
  if (stage.kind == Stage::Kind::product) return stage.experts * (stage.inputs + (model.biases ? 1 : 0)) * stage.outputs;
  return stage.kind == Stage::Kind::norm ? norm_parameters(model) : 0;
}

std::int64_t layer_parameters(const TrainingModel& model) {
  std::int64_t count = 0;
  for (const Stage& stage : layer_stages(model)) count += stage_parameters(model, stage);
  return count;
}

bool is_saved(const Remat& remat, const std::string& name) {
  return std::any_of(remat.saved.begin(), remat.saved.end(), [&](const SavedStage& saved) { return saved.name == name; });
}

/// What a stage writes for each token of the model: with experts a token has several copies.
std::int64_t features_of(const TrainingModel& model, const Stage& stage) { return stage.tokens / model.sequence * stage.outputs; }

/// Which stages' outputs each stage of a layer reads, by position; -1 is the layer's input. Residuals read two, and so do dispatch (tokens, logits) and combine.
std::vector<std::vector<int>> operands_of(const std::vector<Stage>& stages, bool parallel) {
  std::vector<std::vector<int>> operands;
  int stream = -1, last = -1, norm = -1, router = -1;  // what the residuals add to; the stage before; the norm that both branches of a parallel layer read
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    if (parallel && stage.name == "ff1") last = norm;
    if (stage.kind == Stage::Kind::dispatch) router = last, last = operands.back().front();
    operands.push_back({last});
    if (stage.kind == Stage::Kind::dispatch || stage.kind == Stage::Kind::combine) operands.back().push_back(router);
    if (stage.kind == Stage::Kind::norm) norm = static_cast<int>(s);
    if (stage.kind == Stage::Kind::residual) operands.back().push_back(stream);
    last = static_cast<int>(s);
    if (stage.kind == Stage::Kind::residual) stream = last;
  }
  return operands;
}

/// The elements per token that a layer keeps without rematerialisation, by stage; its own input under "".
std::map<std::string, std::int64_t> kept_features(const TrainingModel& model) {
  const std::vector<Stage> stages = layer_stages(model);
  const std::vector<std::vector<int>> operands = operands_of(stages, model.parallel);
  std::map<std::string, std::int64_t> kept{{"", model.width}};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].kind == Stage::Kind::residual) continue;
    for (const int operand : operands[s])
      if (operand >= 0) kept[stages[static_cast<std::size_t>(operand)].name] = features_of(model, stages[static_cast<std::size_t>(operand)]);
  }
  return kept;
}

Bytes of_elements(double elements, std::int64_t parts, DType dtype) {
  const double each = elements / static_cast<double>(parts);
  const auto whole = static_cast<std::int64_t>(each);
  return Bytes{(whole + (static_cast<double>(whole) < each ? 1 : 0)) * size_of(dtype).count()};
}

template <class Value>
auto sum_of(const std::vector<PartCount>& parts, Value value) {
  decltype(value(parts.front())) sum{};
  for (const PartCount& part : parts) sum = sum + value(part);
  return sum;
}

}  // namespace

std::int64_t TrainingCounts::parameters() const {
  return sum_of(parts, [](const PartCount& part) { return part.parameters; });
}
Flops TrainingCounts::forward() const {
  return sum_of(parts, [](const PartCount& part) { return part.in_model ? part.forward : Flops{}; });
}
Flops TrainingCounts::backward() const {
  return sum_of(parts, [](const PartCount& part) { return part.in_model ? part.backward : Flops{}; });
}
Flops TrainingCounts::recomputed() const {
  return sum_of(parts, [](const PartCount& part) { return part.recomputed; });
}
Flops TrainingCounts::hardware_flops() const {
  return sum_of(parts, [](const PartCount& part) { return part.forward + part.backward + part.recomputed; });
}

std::vector<std::string> recomputed_stages(const TrainingModel& model, const Remat& remat) {
  if (remat.kind == Remat::Kind::none) return {};
  const std::vector<Stage> stages = layer_stages(model);
  const std::vector<std::vector<int>> operands = operands_of(stages, model.parallel);
  std::vector<bool> needed(stages.size(), remat.kind == Remat::Kind::layer);
  const auto need = [&](int operand) {
    if (operand >= 0) needed[static_cast<std::size_t>(operand)] = true;
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].kind == Stage::Kind::residual) continue;
    for (const int operand : operands[s]) need(operand);
    if (stages[s].kind == Stage::Kind::attention) need(static_cast<int>(s));
  }
  std::vector<std::string> names;
  for (std::size_t s = stages.size(); s-- > 0;) {  // operands come before what reads them
    if (!needed[s] || is_saved(remat, stages[s].name)) continue;
    names.push_back(stages[s].name);
    for (const int operand : operands[s]) need(operand);
  }
  std::reverse(names.begin(), names.end());
  return names;
}

std::int64_t active_parameters(const TrainingStep& step) {
  const TrainingModel& model = step.model;
  std::int64_t expert = 0;  // what one has in a layer
  for (const Stage& stage : layer_stages(model))
    if (stage.experts > 1) expert += stage_parameters(model, stage) / stage.experts;
  return counts_of(step).parameters() - model.layers * (model.experts - model.experts_per_token) * expert;
}

TrainingCounts counts_of(const TrainingStep& step, AttentionFlops attention) {
  const TrainingModel& model = step.model;
  const std::int64_t tokens = step.tokens();
  const std::vector<std::string> again = recomputed_stages(model, step.remat);
  const double layers = static_cast<double>(model.layers);
  TrainingCounts counts;
  if (model.vocabulary > 0) {
    counts.parts.push_back({"embedding", model.vocabulary * model.width});
    if (step.embedding_by_product) {
      const Flops product = product_flops(tokens, model.vocabulary, model.width);
      counts.parts.push_back({"embedding_product", 0, product, product, Flops{}, false});
    }
  }
  if (model.positions > 0) counts.parts.push_back({"positions", model.positions * model.width});
  for (const Stage& stage : layer_stages(model)) {
    PartCount part{stage.name, model.layers * stage_parameters(model, stage)};
    if (stage.kind == Stage::Kind::product) part.forward = layers * product_flops(step.batch * stage.tokens, stage.inputs, stage.outputs);
    if (stage.kind == Stage::Kind::attention) part.forward = layers * attention_flops_of(step, attention);
    part.backward = times_backward * part.forward;
    if (std::find(again.begin(), again.end(), stage.name) != again.end()) part.recomputed = part.forward;
    counts.parts.push_back(std::move(part));
  }
  if (model.norm != Norm::none) counts.parts.push_back({"final_norm", norm_parameters(model)});
  if (model.vocabulary > 0) {
    const Flops product = product_flops(tokens, model.width, model.vocabulary);
    counts.parts.push_back({"logits", model.tied ? 0 : model.vocabulary * model.width, product, times_backward * product});
  }
  return counts;
}

Flops maxtext_flops(const TrainingStep& step, AttentionFlops attention) {
  const TrainingModel& model = step.model;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double attended = number(model.heads) * number(model.head_dim), kept = number(model.kv_heads) * number(model.head_dim);
  const double mlps = (model.experts > 0 ? number(model.experts_per_token) : 1) * (model.gated ? 3 : 2) * number(model.mlp) + number(model.experts);
  const double layer = number(model.width) * (2 * attended + 2 * kept + mlps);
  const double weights = number(model.layers) * layer + number(model.width) * number(model.vocabulary);
  const double scores = 4 * number(step.batch) * number(model.sequence) * number(model.sequence) * attended * number(model.layers);
  return Flops{3 * (2 * number(step.tokens()) * weights + (attention == AttentionFlops::causal ? scores / 2 : scores))};
}

std::vector<PaddedCount> padding_waste(const TrainingStep& given, const TrainingStep& padded) {
  const TrainingCounts before = counts_of(given), after = counts_of(padded);
  PODSIM_ASSERT(before.parts.size() == after.parts.size());
  std::vector<PaddedCount> waste;
  for (std::size_t p = 0; p < before.parts.size(); ++p) {
    const auto all = [](const PartCount& part) { return (part.forward + part.backward + part.recomputed).count(); };
    const PaddedCount part{after.parts[p].name, after.parts[p].parameters - before.parts[p].parameters, Flops{all(after.parts[p]) - all(before.parts[p])}};
    if (part.parameters != 0 || part.flops.count() != 0) waste.push_back(part);
  }
  return waste;
}

namespace {

/// The working memory of a device, by formulas.
struct WorkingMemory {
  Bytes layer{};                // the most of a layer's gathered weights and unreduced gradients in its backward pass
  Bytes first_read{};           // what that reads first, which the call before gathers
  Bytes last_gradient{};        // what it makes last, which the call behind reduces
  Bytes embedding{}, logits{};  // as gradients, whole
  Bytes embedding_gathered{}, logits_gathered{};
  Bytes loss{}, backward{}, embed{};  // of the calls themselves
};

/// Gathered weights and gradients that are not reduced while the backward pass of a layer goes from its last product to its first: of each the gradient of
/// its inputs, then that of its weights, which reads no weights.
void add_blocks(const TrainingStep& step, WorkingMemory& working) {
  const TrainingModel& model = step.model;
  const std::vector<std::string> computed_again = recomputed_stages(model, step.remat);
  std::vector<Bytes> blocks;
  std::vector<bool> again, divided, gathered;  // divided: into shards; gathered: a block of its own is read
  for (const Stage& stage : layer_stages(model)) {
    if (stage.kind != Stage::Kind::product) continue;
    const bool of_experts = stage.experts > 1;  // which have a block on each device of expert, and not a shard
    blocks.push_back(of_elements(static_cast<double>(stage.experts * stage.inputs * stage.outputs), step.mesh.row * step.mesh.col * (of_experts ? step.mesh.expert : 1), model.activations));
    divided.push_back(step.mesh.fsdp * (of_experts ? 1 : step.mesh.expert) > 1);
    gathered.push_back(model.weights != model.activations || divided.back());
    again.push_back(std::find(computed_again.begin(), computed_again.end(), stage.name) != computed_again.end());
  }
  // Products whose weights are read, by their first use: those that are computed again, then the rest from the last on.
  std::vector<std::size_t> read;
  for (std::size_t p = 0; p < blocks.size(); ++p)
    if (again[p]) read.push_back(p);
  std::size_t used = read.size();  // of `read`, those that are used or have been
  for (std::size_t p = blocks.size(); p-- > 0;)
    if (!again[p]) read.push_back(p);
  if (gathered[read.front()]) working.first_read = blocks[read.front()];
  working.last_gradient = blocks.front();
  /// What is gathered, of the products before `end`; the first of the next layer when one is left.
  const auto weights = [&](std::size_t end, std::size_t known, bool next) {
    Bytes sum = next ? working.first_read : Bytes{};
    for (std::size_t r = 0; r < std::min(known, read.size()); ++r)
      if (read[r] < end && gathered[read[r]]) sum += blocks[read[r]];
    return sum;
  };
  for (std::size_t p = blocks.size(); p-- > 0;) {
    const Bytes on_its_way = p + 1 < blocks.size() && divided[p + 1] ? blocks[p + 1] : Bytes{};  // the gradient before
    const std::size_t being_used = again[p] ? used : ++used;
    const Bytes of_inputs = on_its_way + weights(p + 1, being_used + 1, p == 0), of_weights = blocks[p] + weights(p, being_used + 2, p <= 1);
    working.layer = std::max({working.layer, of_inputs, of_weights});
  }
}

WorkingMemory working_memory(const TrainingStep& step, RankEnds ends, double tokens, double computed_again) {
  const TrainingModel& model = step.model;
  const TrainingMesh& mesh = step.mesh;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const auto of_model = [&](double elements, std::int64_t parts) { return of_elements(elements, parts, model.activations); };
  const double width = number(model.width), table = number(model.vocabulary * model.width);
  const Bytes classes = of_model(tokens * number(model.vocabulary), mesh.col);
  const Bytes whole_width = mesh.col > 1 ? of_model(tokens * width, 1) : Bytes{};  // features that are gathered along col
  WorkingMemory working;
  add_blocks(step, working);
  if (ends.embedding) working.embedding = of_model(table + number(model.positions) * width, mesh.col);
  if (ends.logits) working.logits = of_model(table, mesh.col);
  if (model.weights != model.activations || mesh.fsdp * mesh.expert * mesh.row > 1) working.embedding_gathered = working.embedding, working.logits_gathered = working.logits;

  if (ends.logits)
    working.loss =
        of_model(tokens * number(model.vocabulary) / number(step.loss_chunks), mesh.col) + of_model(2 * tokens * width, mesh.col) + 2 * whole_width;
  const std::vector<Stage> stages = layer_stages(model);
  const auto widest = std::max_element(stages.begin(), stages.end(), [&](const Stage& a, const Stage& b) { return features_of(model, a) < features_of(model, b); });
  working.backward = of_model(tokens * (computed_again + number(features_of(model, *widest))), mesh.col) + whole_width;
  if (ends.embedding) working.embed = whole_width + (step.embedding_by_product ? classes : Bytes{});
  return working;
}

/// The moments at which a device may need most. Of several microbatches the gradients of those before are there, and others are live behind a backward pass.
std::vector<TrainingMemory> moments_of(const TrainingStep& step, RankEnds ends, const TrainingMemory& state, const WorkingMemory& working) {
  const bool several = step.microbatches > 1;
  const Bytes complete{state.gradients.count() / step.optimizer_shards()};  // each is scattered when it is complete
  const auto moment = [&](bool backward_done, Bytes needed) {
    return TrainingMemory{state.weights, several ? state.gradients : backward_done ? complete : Bytes{}, state.optimizer, several || !backward_done ? state.activations : Bytes{}, needed};
  };
  std::vector<TrainingMemory> moments{moment(false, working.layer + working.backward),  // the first layers of the backward pass
                                      moment(true, working.layer + working.backward),   // its last layer
                                      moment(true, working.last_gradient + working.embedding + working.embed)};
  // The gathered weights of the logits are read for the last time before their gradient is made.
  if (ends.logits) moments.push_back(moment(false, working.first_read + std::max(working.logits, working.logits_gathered) + working.loss));
  return moments;
}

}  // namespace

TrainingMemory memory_of(const TrainingStep& step, RankEnds ends, std::int64_t live_forwards) {
  const TrainingModel& model = step.model;
  const TrainingMesh& mesh = step.mesh;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const std::int64_t rank_layers = step.layers_per_stage() * step.virtual_stages;
  PODSIM_ASSERT(rank_layers * mesh.stage == model.layers && step.batch % (step.microbatches * mesh.batch_parts()) == 0);
  PODSIM_ASSERT(live_forwards >= 1 && live_forwards <= step.microbatches * step.virtual_stages);
  const std::int64_t table = model.vocabulary * model.width;
  std::int64_t parameters = rank_layers * layer_parameters(model);
  if (ends.embedding) parameters += table + model.positions * model.width;
  if (ends.logits) parameters += norm_parameters(model) + (model.tied && ends.embedding ? 0 : table);

  TrainingMemory memory;
  const std::int64_t parts = mesh.parameter_parts(), updated_parts = parts * step.optimizer_shards();
  memory.weights = of_elements(number(parameters), parts, model.weights);
  memory.gradients = of_elements(number(parameters), parts, model.gradients);
  if (step.optimizer == Optimizer::adamw) memory.optimizer = of_elements(2 * number(parameters), updated_parts, model.moments);
  if (model.master_weights) memory.optimizer = memory.optimizer + of_elements(number(parameters), updated_parts, DType::f32);

  const double tokens = number(step.batch / step.microbatches / mesh.batch_parts() * model.sequence);
  const auto activations = [&](double features) { return of_elements(tokens * features, mesh.col, model.activations); };
  const std::map<std::string, std::int64_t> kept = kept_features(model);
  const double everything = std::accumulate(kept.begin(), kept.end(), 0.0, [&](double sum, const auto& entry) { return sum + number(entry.second); });
  double held = everything;
  if (step.remat.kind != Remat::Kind::none) {
    held = number(model.width);
    for (const Stage& stage : layer_stages(model))
      for (const SavedStage& saved : step.remat.saved)
        if (saved.name == stage.name && !saved.on_host) held += number(features_of(model, stage));
  }
  memory.activations = live_forwards * step.layers_per_stage() * activations(held);
  if (ends.logits) memory.activations = memory.activations + live_forwards * activations(number(model.width));

  const WorkingMemory working = working_memory(step, ends, tokens, std::max(everything - held, 0.0));
  const std::vector<TrainingMemory> moments = moments_of(step, ends, memory, working);
  return *std::max_element(moments.begin(), moments.end(), [](const TrainingMemory& a, const TrainingMemory& b) { return a.total() < b.total(); });
}

}  // namespace podsim
