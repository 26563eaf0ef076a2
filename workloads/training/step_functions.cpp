#include "workloads/training/step_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

using Lengths = std::vector<std::int64_t>;

/// A function while it is written: tensors become parameters when they are first named.
class FunctionWriter {
 public:
  FunctionWriter(const StepParts& parts, std::string name) : parts_{parts}, name_{std::move(name)}, builder_{parts.mesh, parts.layer_mesh.devices} {}

  [[nodiscard]] const StepParts& parts() const { return parts_; }
  [[nodiscard]] const TrainingModel& model() const { return parts_.step.model; }
  [[nodiscard]] ProgramBuilder& builder() { return builder_; }

  /// A parameter. `writes`: of one that the function also reads, whether it writes it.
  Region tensor(const std::string& name, Lengths extents, DType dtype, Role role) {
    const auto [known, added] = tensors_.try_emplace(name);
    if (added) {
      Buffer buffer{name, std::move(extents), dtype, role, name, {}};
      buffer.sharding.resize(buffer.extents.size());
      known->second = builder_.add_buffer(std::move(buffer));
    }
    return builder_.whole(known->second);
  }
  Region reads(const std::string& name, Lengths extents, DType dtype) { return tensor(name, std::move(extents), dtype, Role::input); }
  Region makes(const std::string& name, Lengths extents, DType dtype) { return tensor(name, std::move(extents), dtype, Role::output); }
  /// In the dtype of activations.
  Region reads(const std::string& name, Lengths extents) { return reads(name, std::move(extents), model().activations); }
  Region makes(const std::string& name, Lengths extents) { return makes(name, std::move(extents), model().activations); }
  Region scratch(const std::string& name, Lengths extents) { return builder_.scratch(name, std::move(extents), model().activations); }
  Region scratch(const std::string& name, Lengths extents, DType dtype) { return builder_.scratch(name, std::move(extents), dtype); }

  Edges local(const std::string& label, Local op, const Edges& after) { return builder_.step(label, std::move(op), after); }
  Edges collective(const std::string& label, CollectiveKind kind, std::vector<AxisView> axes, const Region& in, const Region& out, int dim, const Edges& after) {
    return builder_.step(label, Collective{kind, std::move(axes), in, out, dim}, after);
  }

  /// Appends the tasks of a program whose inputs and outputs are in `given`, or else parameters of their names. A view of other extents is placed, which is
  /// free in time.
  Edges append(const std::vector<Task>& tasks, const std::vector<Buffer>& buffers, const std::map<std::string, Region>& given, const std::string& prefix,
               const Edges& after) {
    std::vector<BufferId> now;
    std::vector<std::pair<Region, Region>> results;  // as written here, and where they belong
    Tasks start;
    for (const Edge& edge : after) start.push_back(edge.task);
    for (const Buffer& buffer : buffers) {
      if (buffer.role == Role::scratch) {
        now.push_back(builder_.add_buffer({prefix + buffer.name, buffer.extents, buffer.dtype, Role::scratch, {}, {}}));
        continue;
      }
      const auto found = given.find(buffer.tensor);
      const Region whole = found != given.end() ? found->second : tensor(buffer.tensor, buffer.extents, buffer.dtype, buffer.role);
      if (builder_.buffer(whole.buffer).extents == buffer.extents) {
        now.push_back(whole.buffer);
        continue;
      }
      const Region view = scratch(prefix + buffer.name, buffer.extents, buffer.dtype);
      if (buffer.role == Role::input) start.push_back(builder_.alias("place " + buffer.tensor, whole, view, after));
      else results.emplace_back(view, whole);
      now.push_back(view.buffer);
    }
    const auto offset = static_cast<int>(builder_.task_count());
    builder_.begin_section(prefix, start);
    for (Task task : tasks) {
      for (Edge& edge : task.after) edge.task.value += offset;
      for (Region* region : regions_of(task.op)) region->buffer = now[region->buffer.index()];
      builder_.add(std::move(task));
    }
    builder_.begin_section({}, {});
    Edges ends = edges_to(builder_.last_tasks(TaskId{offset}));
    Edges placed;
    for (const auto& [view, whole] : results) placed = join(std::move(placed), {Edge{builder_.alias("place", view, whole, ends)}});
    return placed.empty() ? ends : placed;
  }
  Edges append(const TensorFunction& function, const std::map<std::string, Region>& given, const std::string& prefix = {}, const Edges& after = {}) {
    std::vector<Buffer> buffers = function.function.body.buffers;
    std::copy(function.parameters.begin(), function.parameters.end(), buffers.begin());
    return append(function.function.body.tasks, buffers, given, prefix, after);
  }

  TensorFunction finish() && {
    Schedule schedule{std::move(name_), parts_.mesh, {std::move(builder_).finish()}, {}};
    return tensor_function(std::move(schedule));
  }

 private:
  const StepParts& parts_;
  std::string name_;
  ProgramBuilder builder_;
  std::map<std::string, BufferId> tensors_;
};

// ---- Layers ---------------------------------------------------------------------------------------------------------------------------

void write_layer(FunctionWriter& w, const TensorFunction& function) {
  std::map<std::string, Region> given;
  for (const Buffer& parameter : function.parameters) {
    for (const StepWeight& weight : w.parts().layer_weights) {
      if (parameter.tensor == weight.name + ".W") given[parameter.tensor] = w.reads(parameter.tensor, weight.block());
      if (parameter.tensor == weight.name + ".dW") given[parameter.tensor] = w.makes(parameter.tensor, weight.block());
    }
    if (parameter.tensor == "X" || parameter.tensor == "dY") given[parameter.tensor] = w.reads(parameter.tensor, w.parts().activation());
    if (parameter.tensor == "Y" || parameter.tensor == "dX") given[parameter.tensor] = w.makes(parameter.tensor, w.parts().activation());
  }
  w.append(function, given);
}

// ---- Both ends of the model -----------------------------------------------------------------------------------------------------------

Local of_vocabulary(const FunctionWriter& w, Local op) {
  const AxisView& col = w.parts().axes.col;
  if (col.size > 1) op.numbering = {{Affine{{AxisTerm{col, w.model().vocabulary / col.size}}}}};
  return op;
}

/// [tokens, width] of all features; sums of the devices along col, each of which has rows of other tokens.
void write_embedding(FunctionWriter& w) {
  const StepParts& parts = w.parts();
  const AxisView& col = parts.axes.col;
  const std::int64_t tokens = parts.activation()[0], width = parts.step.model.width;
  const Region table = w.reads("embedding.W", parts.embedding.front().block()), index = w.reads("tokens", {tokens}, DType::s32);
  const Region y = w.makes("Y", parts.activation());
  const Region rows = col.size > 1 ? w.scratch("rows", {tokens, width}) : y;
  const Edges took = w.local("embed", of_vocabulary(w, {LocalKind::gather_rows, {table, index}, {rows}, static_cast<double>(parts.step.model.vocabulary)}), {});
  if (col.size > 1) w.collective("scatter features", CollectiveKind::reduce_scatter, {col}, rows, y, 1, took);
}

void write_embedding_gradient(FunctionWriter& w) {
  const StepParts& parts = w.parts();
  const AxisView& col = parts.axes.col;
  const std::int64_t tokens = parts.activation()[0], width = parts.step.model.width;
  const Region dy = w.reads("dY", parts.activation()), index = w.reads("tokens", {tokens}, DType::s32);
  const Region gradient = w.makes("embedding.dW", parts.embedding.front().block());
  const Region rows = col.size > 1 ? w.scratch("rows", {tokens, width}) : dy;
  Edges ready;
  if (col.size > 1) ready = w.collective("gather features", CollectiveKind::all_gather, {col}, dy, rows, 1, {});
  w.local("d embed", of_vocabulary(w, {LocalKind::add_rows, {rows, index}, {gradient}, static_cast<double>(parts.step.model.vocabulary)}), ready);
}

WorkloadPart final_norm(const StepParts& parts, Pass pass) {
  WorkloadPart part;
  part.kind = WorkloadPart::Kind::norm;
  part.name = "final_norm";
  part.pass = pass;
  part.dtype = parts.step.model.activations;
  part.tokens = parts.tokens();
  part.inputs = part.outputs = parts.step.model.width;
  part.norm = parts.step.model.norm;
  return part;
}

/// Part of write_loss(): the logits of the model, cross-entropy and their gradients, in pieces.
Edges write_cross_entropy(FunctionWriter& w, const Region& x, const Region& dx, const Region& loss, Edges after) {
  const StepParts& parts = w.parts();
  const TrainingModel& model = parts.step.model;
  const AxisView& col = parts.axes.col;
  const std::int64_t tokens = parts.activation()[0], pieces = parts.step.loss_chunks, piece = tokens / pieces, classes = model.vocabulary / col.size;
  const Region weights = w.reads("logits.W", parts.logits.front().block()), gradient = w.makes("logits.dW", parts.logits.front().block());
  const Region targets = w.reads("targets", {tokens}, DType::s32);
  Region all = x, partial = dx;  // [tokens, width]
  if (col.size > 1) {
    all = w.scratch("all features", {tokens, model.width}), partial = w.scratch("partial dX", {tokens, model.width});
    after = w.collective("gather features", CollectiveKind::all_gather, {col}, x, all, 1, after);
  }
  const auto part_of = [&](const Region& region, std::int64_t p) { return with(region, 0, span(p * piece, piece)); };
  for (std::int64_t p = 0; p < pieces; ++p) {
    const Region logits = w.scratch("logits", {piece, classes}), statistics = w.scratch("statistics", {col.size, piece, 2}, DType::f32);
    const Region own_statistics = col.size > 1 ? with(statistics, 0, block(own(col), 1)) : statistics;
    after = w.builder().step("logits", Matmul{part_of(all, p), weights, logits, 1, 1, 1, false, true}, after);
    const auto of_classes = [&](Local op) {
      op = of_vocabulary(w, std::move(op));
      op.classes = model.vocabulary;
      return op;
    };
    after = w.local("statistics", of_classes({LocalKind::softmax_statistics, {logits}, {own_statistics}}), after);
    if (col.size > 1) after = w.collective("gather statistics", CollectiveKind::all_gather, {col}, own_statistics, statistics, 0, after);
    const auto mean = static_cast<double>(parts.step.tokens());
    const Region own_loss = p == 0 ? loss : w.scratch("loss of a piece", {1}, DType::f32);
    after = w.local("loss", of_classes({LocalKind::cross_entropy, {logits, statistics, part_of(targets, p)}, {own_loss}, mean}), after);
    if (p > 0) after = w.local("add loss", {LocalKind::add, {loss, own_loss}, {loss}}, after);
    after = w.local("d logits", of_classes({LocalKind::cross_entropy_grad, {logits, statistics, part_of(targets, p)}, {logits}, mean}), after);
    const Edges inner = w.builder().step("d features", Matmul{logits, weights, part_of(partial, p)}, after);
    after = join(w.builder().step("d logits.W", Matmul{logits, part_of(all, p), gradient, 1, 1, 1, true, false, p > 0}, after), inner);
  }
  if (col.size > 1) after = w.collective("scatter features", CollectiveKind::reduce_scatter, {col}, partial, dx, 1, after);
  return after;
}

Edges write_mean_square(FunctionWriter& w, const Region& y, const Region& dy, const Region& loss, const Edges& after) {
  const Region target = w.reads("targets", w.parts().activation());
  const auto count = static_cast<double>(w.parts().step.tokens()) * static_cast<double>(w.model().width);
  const Edges lost = w.local("loss", {LocalKind::mean_square, {y, target}, {loss}, count}, after);
  return join(w.local("d loss", {LocalKind::mean_square_grad, {y, target}, {dy}, count}, after), lost);
}

Status write_loss(FunctionWriter& w) {
  const StepParts& parts = w.parts();
  const bool normed = parts.step.model.norm != Norm::none;
  const Region x = w.reads("X", parts.activation()), dx = w.makes("dX", parts.activation()), loss = w.makes("loss", {1}, DType::f32);
  const Region y = normed ? w.scratch("final_norm.Y", parts.activation()) : x, dy = normed ? w.scratch("final_norm.dY", parts.activation()) : dx;
  Edges after;
  Region sums;
  if (normed) {
    const auto part = part_schedule(parts.layer_mesh, final_norm(parts, Pass::forward), parts.plan.options);
    if (!part) return part.error();
    const Program& program = part->programs.front();
    for (const Buffer& buffer : program.buffers)
      if (buffer.tensor == "sums") sums = w.scratch("final_norm.sums", buffer.extents, buffer.dtype);
    after = w.append(program.tasks, program.buffers, {{"X", x}, {"Y", y}, {"sums", sums}}, "final_norm: ", {});
  }
  after = parts.step.model.vocabulary > 0 ? write_cross_entropy(w, y, dy, loss, after) : write_mean_square(w, y, dy, loss, after);
  if (!normed) return success();
  const auto part = part_schedule(parts.layer_mesh, final_norm(parts, Pass::backward), parts.plan.options);
  if (!part) return part.error();
  w.append(part->programs.front().tasks, part->programs.front().buffers, {{"dY", dy}, {"X", x}, {"sums", sums}, {"dX", dx}}, "final_norm backward: ", after);
  return success();
}

// ---- Weights and gradients ------------------------------------------------------------------------------------------------------------

/// Gathers run one after the other, like all collectives along an axis.
Edges write_fetch(FunctionWriter& w, WeightGroup group, Edges queue) {
  if (group == WeightGroup::none || !w.parts().is_fetched(group)) return queue;
  for (const StepWeight& weight : w.parts().weights(group)) {
    Region shard = w.reads("fetch." + weight.name + ".shard", weight.shard(), w.model().weights);
    const Region block = w.makes("fetch." + weight.name + ".W", weight.block());
    Edges ready = queue;
    if (w.model().weights != w.model().activations) {
      const Region converted = weight.gathered.empty() ? block : w.scratch("converted " + weight.name, weight.shard());
      ready = join(std::move(ready), w.local("convert " + weight.name, {LocalKind::convert, {shard}, {converted}}, {}));
      shard = converted;
    }
    if (!weight.gathered.empty()) queue = w.collective("gather " + weight.name, CollectiveKind::all_gather, weight.gathered, shard, block, weight.dim, ready);
  }
  return queue;
}

/// Appends a gradient to a sum; a copy beside for layers in a loop, whose sums are one array.
Edges write_sum(FunctionWriter& w, const std::string& name, Region gradient, const Region& sum, bool first, Edges after) {
  const bool stacked = w.parts().step.scan && w.parts().step.model.layers > 1;
  const DType from = w.builder().buffer(gradient.buffer).dtype, to = w.model().gradients;
  const Lengths extents = lengths_of(gradient);
  if (from != to) {
    const Region wide = first && !stacked ? sum : w.scratch("converted d " + name, extents, to);
    after = w.local("convert d " + name, {LocalKind::convert, {gradient}, {wide}}, after);
    gradient = wide;
  }
  if (first && stacked) return w.local("stack d " + name, {LocalKind::copy, {gradient}, {sum}}, after);
  if (first) return gradient == sum ? after : Edges{Edge{w.builder().alias("place d " + name, gradient, sum, after)}};
  return w.local("add d " + name, {LocalKind::add, {sum, gradient}, {sum}}, after);
}

/// Behind `queue`, the gathers of this call.
void write_reduce(FunctionWriter& w, const StepCall& call, Edges queue) {
  const StepParts& parts = w.parts();
  if (call.reduce == WeightGroup::none) return;
  const std::vector<AxisView> data = parts.axes.slice.size == 1 ? without_one_device({parts.axes.data}) : std::vector<AxisView>{};
  for (const StepWeight& weight : parts.weights(call.reduce)) {
    Region gradient = w.reads("reduce." + weight.name + ".dW", weight.block());
    const Region sum = w.makes("reduce." + weight.name + ".gradient", weight.shard(), w.model().gradients);
    Edges ready;
    if (!weight.gathered.empty()) {
      const Region shard = w.scratch("d " + weight.name, weight.shard());
      ready = queue = w.collective("scatter d " + weight.name, CollectiveKind::reduce_scatter, weight.gathered, gradient, shard, weight.dim, queue);
      gradient = shard;
    }
    ready = write_sum(w, weight.name, gradient, sum, call.first, ready);
    if (call.last && !data.empty()) queue = w.collective("sum d " + weight.name, CollectiveKind::all_reduce, data, sum, sum, weight.dim, join(ready, queue));
  }
}

/// Along data each device takes its part to the other slices, then the parts are gathered.
void write_slices(FunctionWriter& w, const std::vector<const StepWeight*>& weights) {
  const StepAxes& axes = w.parts().axes;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Lengths shard = weights[i]->shard();
    const Region gradient = w.makes(fmt::format("gradient.{}", i), shard, w.model().gradients);
    const std::string name = weights[i]->name;
    if (axes.data.size == 1) {
      w.collective("sum d " + name, CollectiveKind::all_reduce, {axes.slice}, gradient, gradient, 0, {});
      continue;
    }
    const int dim = shard[0] % axes.data.size == 0 ? 0 : 1;
    Lengths part = shard;
    part[static_cast<std::size_t>(dim)] /= axes.data.size;
    const Region own_part = w.scratch("part of d " + name, part, w.model().gradients);
    Edges ready = w.collective("scatter d " + name, CollectiveKind::reduce_scatter, {axes.data}, gradient, own_part, dim, {});
    ready = w.collective("sum d " + name, CollectiveKind::all_reduce, {axes.slice}, own_part, own_part, dim, ready);
    w.collective("gather d " + name, CollectiveKind::all_gather, {axes.data}, own_part, gradient, dim, ready);
  }
}

void write_update(FunctionWriter& w, const StepCall& call) {
  const TrainingModel& model = w.model();
  const bool adam = w.parts().step.optimizer == Optimizer::adamw;
  for (const StepWeight& weight : w.parts().weights(call.of)) {
    const Lengths shard = weight.shard();
    const Region stored = w.makes(weight.name + ".shard", shard, model.weights), gradient = w.reads(weight.name + ".gradient", shard, model.gradients);
    const Region values = model.master_weights ? w.makes(weight.name + ".master", shard, DType::f32) : stored;
    Local update{adam ? LocalKind::adamw : LocalKind::sgd, {values, gradient}, {values}};
    if (adam)
      for (const char* moment : {".m", ".v"}) {
        const Region held = w.makes(weight.name + moment, shard, model.moments);
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
  if (call.reduce != WeightGroup::none) also(fmt::format("reduce {}{}{}", group(call.reduce), call.first ? ", first" : "", call.last ? ", last" : ""));
  return step.model.name.empty() ? name : step.model.name + ": " + name;
}

}  // namespace

const StepWeights& StepParts::weights(WeightGroup group) const {
  assert(group != WeightGroup::none);
  return group == WeightGroup::layer ? layer_weights : group == WeightGroup::embedding ? embedding : logits;
}

bool StepParts::is_fetched(WeightGroup group) const {
  return step.model.weights != step.model.activations || !weights(group).front().gathered.empty();
}

Expected<StepParts> step_parts(const TrainingStep& step, const Mesh& mesh, const Plan& plan, const Optimiser& optimiser) {
  const auto axes = step_axes(mesh);
  if (!axes) return axes.error();
  assert(sizes_of(*axes) == step.mesh);
  auto submesh = submesh_of(mesh, axes->row, axes->col);
  if (!submesh) return submesh.error();
  const std::int64_t groups = step.mesh.slice * step.mesh.data * step.mesh.fsdp;
  auto layer = workload_of(layer_of(step.model, step.batch / step.microbatches / groups), 1);
  if (!layer) return layer.error();
  LayerOptions options{step.remat.kind != Remat::Kind::none, {}};
  for (const SavedStage& saved : step.remat.saved) {
    if (saved.on_host) return Diagnostic{of_field("remat"), fmt::format("{} is kept on the host, which is not simulated; expected a stage without @host", saved.name)};
    options.saved.push_back(saved.name);
  }
  auto functions = layer_functions(*submesh, *layer, plan, options);
  if (!functions) return functions.error();
  auto weights = layer_weights(*axes, *submesh, *layer, plan);
  if (!weights) return weights.error();
  StepParts parts{step, mesh, *axes, *std::move(submesh), plan, *std::move(layer), *std::move(functions), *std::move(weights), {}, {}, optimiser};
  if (step.model.vocabulary > 0) {
    parts.embedding = vocabulary_weights(*axes, step.model, "embedding");
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
  switch (call.work) {
    case StepWork::nothing: break;
    case StepWork::embed: write_embedding(w); break;
    case StepWork::layer_forward: write_layer(w, parts_.functions.forward); break;
    case StepWork::layer_backward: write_layer(w, parts_.functions.backward); break;
    case StepWork::layer_inputs: write_layer(w, parts_.functions.backward_inputs); break;
    case StepWork::layer_weights: write_layer(w, parts_.functions.backward_weights); break;
    case StepWork::loss: {
      const Status written = write_loss(w);
      assert(written);  // the norms of layers have the same extents
      break;
    }
    case StepWork::embed_gradient: write_embedding_gradient(w); break;
    case StepWork::join_slices: write_slices(w, joined); break;
    case StepWork::update: write_update(w, call); break;
  }
  write_reduce(w, call, fetched);
  made_.push_back(std::move(w).finish());
  return known->second;
}

std::vector<Function> StepFunctions::take() && {
  std::vector<Function> functions;
  for (TensorFunction& made : made_) functions.push_back(std::move(made.function));
  return functions;
}

}  // namespace podsim
