#include "workloads/part.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/blame.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

using Dimensions = std::vector<ShardedDimension>;

/// Writes one program of tensors that lie in one layout, on the devices along the tokens and along the features.
class PartWriter {
 public:
  PartWriter(const Submesh& submesh, const WorkloadPart& part)
      : builder_{submesh.mesh, submesh.devices},
        name_{part.name + (part.pass == Pass::backward ? ", backward" : "")},
        layout_{part.layout},
        tokens_{submesh.rows},
        features_{submesh.columns},
        dtype_{part.dtype} {
    if (layout_ == ActivationLayout::features_by_row) std::swap(tokens_, features_);
  }

  [[nodiscard]] const AxisView& tokens() const { return tokens_; }
  [[nodiscard]] const AxisView& features() const { return features_; }
  [[nodiscard]] bool features_first() const { return layout_ == ActivationLayout::features_by_row; }

  /// [tokens..., features...], or the other way round.
  Region tensor(const std::string& name, Role role, const Dimensions& tokens, const Dimensions& features, std::optional<DType> dtype = {}) {
    return buffer_of(name, role, features_first() ? features : tokens, features_first() ? tokens : features, dtype);
  }
  /// The same in the other layout.
  Region transposed_tensor(const std::string& name, Role role, const Dimensions& tokens, const Dimensions& features) {
    return buffer_of(name, role, features_first() ? tokens : features, features_first() ? features : tokens, {});
  }

  TaskId add(std::string label, Op op, const Tasks& after) { return builder_.add(std::move(label), std::move(op), after); }

  TaskId local(LocalKind kind, std::vector<Region> reads, std::vector<Region> writes, const std::vector<TaskId>& after, double factor = 1,
               bool causal = false) {
    return add(std::string{traits_of(kind).name}, Local{kind, std::move(reads), std::move(writes), factor, Unit::core, features_first(), causal},
               after);
  }

  Expected<Schedule> finish() && {
    if (!problem_.message.empty()) return problem_;
    return Schedule{std::move(name_), builder_.mesh(), {std::move(builder_).finish()}, {}};
  }

 private:
  Region buffer_of(const std::string& name, Role role, Dimensions dimensions, const Dimensions& second, std::optional<DType> dtype) {
    dimensions.insert(dimensions.end(), second.begin(), second.end());
    for (ShardedDimension& dimension : dimensions) {
      std::int64_t extent = dimension.extent, devices = 1;
      for (const AxisView& axis : dimension.axes) {
        if (extent % axis.size != 0 && problem_.message.empty())
          problem_.message =
              fmt::format("{}: {} must be a multiple of {}, the devices along {}", name, extent, axis.size, builder_.mesh().name(axis));
        extent = std::max<std::int64_t>(extent / axis.size, 1);
        devices *= axis.size;
      }
      dimension.extent = extent * devices;  // as it was, unless there is a problem
    }
    return builder_.whole(builder_.add_buffer(sharded_buffer(name, dtype.value_or(dtype_), role, dimensions)));
  }

  ProgramBuilder builder_;
  std::string name_;
  ActivationLayout layout_;
  AxisView tokens_, features_;
  DType dtype_;
  Diagnostic problem_;
};

/// The sums of every token, added up over the devices along the features.
TaskId all_reduce(PartWriter& writer, const Region& partial, const Region& total, TaskId after) {
  const int dim = writer.features_first() ? 1 : 0;  // tokens
  return writer.add("sum over features", Collective{CollectiveKind::all_reduce, {writer.features()}, partial, total, dim, 0, 0, {}}, {after});
}

void write_norm(PartWriter& writer, const WorkloadPart& part) {
  const Dimensions tokens{{part.tokens, {writer.tokens()}}}, features{{part.inputs, {writer.features()}}};
  const Dimensions width{{part.norm == Norm::layer ? 2 : 1}};
  const auto n = static_cast<double>(part.inputs);
  const bool split = writer.features().size > 1;
  if (part.pass == Pass::forward) {
    const Region x = writer.tensor("X", Role::input, tokens, features), y = writer.tensor("Y", Role::output, tokens, features);
    const Region sums = writer.tensor("sums", Role::output, tokens, width, DType::f32);
    const Region partial = split ? writer.tensor("partial sums", Role::scratch, tokens, width, DType::f32) : sums;
    TaskId last = writer.local(LocalKind::norm_sums, {x}, {partial}, {});
    if (split) last = all_reduce(writer, partial, sums, last);
    writer.local(LocalKind::norm, {x, sums}, {y}, {last}, n);
    return;
  }
  const Region dy = writer.tensor("dY", Role::input, tokens, features), x = writer.tensor("X", Role::input, tokens, features);
  const Region sums = writer.tensor("sums", Role::input, tokens, width, DType::f32), dx = writer.tensor("dX", Role::output, tokens, features);
  const Region total = writer.tensor("gradient sums", Role::scratch, tokens, width, DType::f32);
  const Region partial = split ? writer.tensor("partial sums", Role::scratch, tokens, width, DType::f32) : total;
  TaskId last = writer.local(LocalKind::norm_grad_sums, {dy, x, sums}, {partial}, {}, n);
  if (split) last = all_reduce(writer, partial, total, last);
  writer.local(LocalKind::norm_grad, {dy, x, sums, total}, {dx}, {last}, n);
}

void write_attention(PartWriter& writer, const WorkloadPart& part) {
  const Dimensions tokens{{part.tokens / part.sequence, {writer.tokens()}}, {part.sequence}};
  const Dimensions qkv{{part.groups, {writer.features()}}, {part.queries + 2}, {part.head}};
  const Dimensions o{{part.groups, {writer.features()}}, {part.queries}, {part.head}};
  if (part.pass == Pass::forward) {
    const Region x = writer.tensor("X", Role::input, tokens, qkv), y = writer.tensor("Y", Role::output, tokens, o);
    writer.local(LocalKind::attention, {x}, {y}, {}, 1, part.causal);
    return;
  }
  const Region dy = writer.tensor("dY", Role::input, tokens, o), x = writer.tensor("X", Role::input, tokens, qkv);
  writer.local(LocalKind::attention_grad, {dy, x}, {writer.tensor("dX", Role::output, tokens, qkv)}, {}, 1, part.causal);
}

/// Of a gated MLP the columns of gate and up lie side by side on each device: [devices along the features, gate | up, own].
void write_activation(PartWriter& writer, const WorkloadPart& part) {
  const std::int64_t P = writer.features().size;
  const Dimensions tokens{{part.tokens, {writer.tokens()}}}, narrow{{part.outputs, {writer.features()}}};
  const Dimensions wide = part.gated ? Dimensions{{2 * P, {writer.features()}}, {part.outputs / P}} : narrow;
  const auto half = [&](const Region& region, std::int64_t which) {
    Region result = region;
    result.dims[writer.features_first() ? 0 : 1] = span(which, 1);
    return result;
  };
  const bool forward = part.pass == Pass::forward;
  const Region y = writer.tensor(forward ? "Y" : "dY", forward ? Role::output : Role::input, tokens, narrow);
  const Region x = writer.tensor("X", Role::input, tokens, wide);
  if (forward) {
    if (part.gated)
      writer.local(LocalKind::swiglu, {half(x, 0), half(x, 1)}, {y}, {});
    else
      writer.local(LocalKind::gelu, {x}, {y}, {});
    return;
  }
  const Region dx = writer.tensor("dX", Role::output, tokens, wide);
  if (part.gated)
    writer.local(LocalKind::swiglu_grad, {y, half(x, 0), half(x, 1)}, {half(dx, 0), half(dx, 1)}, {});
  else
    writer.local(LocalKind::gelu_grad, {y, x}, {dx}, {});
}

void write_residual(PartWriter& writer, const WorkloadPart& part) {
  const Dimensions tokens{{part.tokens, {writer.tokens()}}}, features{{part.inputs, {writer.features()}}};
  const Region x = writer.tensor("X", Role::input, tokens, features), skip = writer.tensor("skip", Role::input, tokens, features);
  writer.local(LocalKind::add, {x, skip}, {writer.tensor("Y", Role::output, tokens, features)}, {});
}

/// What the parts of experts have in common. See the header.
struct ExpertTokens {
  ExpertTokens(const Submesh& submesh, const WorkloadPart& part)
      : axis{submesh.experts}, P{axis.size}, each{part.experts_per_token}, experts{part.experts}, groups{experts / each} {}
  /// The extents of tokens at their experts, or sorted by expert before they are sent, or as groups with the same experts.
  [[nodiscard]] Dimensions sent(std::int64_t tokens) const { return {{P}, {experts / P}, {tokens * each / experts}}; }
  [[nodiscard]] Dimensions sorted(std::int64_t tokens) const { return {{experts}, {tokens * each / experts}}; }
  [[nodiscard]] Dimensions grouped(std::int64_t tokens, std::int64_t copies) const { return {{groups}, {copies}, {tokens / groups}}; }

  AxisView axis;
  std::int64_t P, each, experts, groups;
};

void write_exchange(PartWriter& writer, const ExpertTokens& of, const Region& from, const Region& to, const Tasks& after, const char* label, Tasks& last) {
  last = {of.P > 1 ? writer.add(label, Collective{CollectiveKind::all_to_all, {of.axis}, from, to, 0, 0, 0, {}}, after)
                   : writer.add("place", Local{LocalKind::alias, {from}, {to}}, after)};
}

/// part.tokens counts copies.
void write_dispatch(PartWriter& writer, const ExpertTokens& of, const WorkloadPart& part) {
  const std::int64_t tokens = part.tokens / of.each;
  const Dimensions features{{part.inputs}};
  const bool forward = part.pass == Pass::forward;
  const Region x = writer.tensor(forward ? "X" : "dX", forward ? Role::input : Role::output, of.grouped(tokens, 1), features);
  const Region y = writer.tensor(forward ? "Y" : "dY", forward ? Role::output : Role::input, of.sent(tokens), features);
  const Region copies = writer.tensor("copies", Role::scratch, of.grouped(tokens, of.each), features), sorted = writer.tensor("sorted", Role::scratch, of.sent(tokens), features);
  Tasks last;
  if (forward) {
    last = {writer.local(LocalKind::broadcast_in_dim, {x}, {copies}, {})};
    last = {writer.add("place", Local{LocalKind::alias, {copies}, {sorted}}, last)};
    write_exchange(writer, of, sorted, y, last, "dispatch", last);
    return;
  }
  write_exchange(writer, of, y, sorted, {}, "combine", last);
  last = {writer.add("place", Local{LocalKind::alias, {sorted}, {copies}}, last)};
  writer.local(LocalKind::sum_along, {copies}, {x}, last);
}

void write_combine(PartWriter& writer, const ExpertTokens& of, const WorkloadPart& part) {
  const std::int64_t tokens = part.tokens;
  const Dimensions features{{part.inputs}}, of_gates{{of.each}}, of_logits{{of.experts}}, own{{tokens}};
  const bool forward = part.pass == Pass::forward;
  const Region received = writer.tensor("received", forward ? Role::output : Role::input, of.sorted(tokens), features);
  const Region y = writer.tensor(forward ? "Y" : "dY", forward ? Role::output : Role::input, own, features);
  const Region gates = writer.tensor("gates", forward ? Role::output : Role::input, own, of_gates);
  Tasks last;
  if (forward) {
    const Region x = writer.tensor("X", Role::input, of.sent(tokens), features), sent = writer.tensor("sent back", Role::scratch, of.sent(tokens), features);
    write_exchange(writer, of, x, sent, {}, "combine", last);
    last = {writer.add("place", Local{LocalKind::alias, {sent}, {received}}, last)};
    const Region logits = writer.tensor("logits", Role::input, own, of_logits);
    last.push_back(writer.local(LocalKind::expert_gates, {logits}, {gates}, {}));
    writer.local(LocalKind::expert_combine, {received, gates}, {y}, last);
    return;
  }
  const Region d_sorted = writer.tensor("d sorted", Role::scratch, of.sorted(tokens), features), d_sent = writer.tensor("d received", Role::scratch, of.sent(tokens), features);
  const Region d_gates = writer.tensor("dgates", Role::scratch, own, of_gates), d_logits = writer.tensor("dlogits", Role::output, own, of_logits);
  const TaskId grads = writer.local(LocalKind::expert_combine_grad, {y, received, gates}, {d_sorted, d_gates}, {});
  writer.local(LocalKind::expert_gates_grad, {d_gates, gates}, {d_logits}, {grads});
  last = {writer.add("place", Local{LocalKind::alias, {d_sorted}, {d_sent}}, {grads})};
  write_exchange(writer, of, d_sent, writer.tensor("dX", Role::output, of.sent(tokens), features), last, "dispatch", last);
}

/// A product of each expert of a device.
void write_expert_products(PartWriter& writer, const ExpertTokens& of, const WorkloadPart& part) {
  const std::int64_t tokens = part.tokens / of.each, own = of.experts / of.P;
  const Dimensions at = of.sent(tokens), inputs{{part.inputs}}, outputs{{part.outputs}}, rows{{own * part.inputs}};
  const bool forward = part.pass == Pass::forward;
  const Region x = writer.tensor("X", Role::input, at, inputs), w = writer.tensor("W", Role::input, rows, outputs);
  const Region y = writer.tensor(forward ? "Y" : "dY", forward ? Role::output : Role::input, at, outputs);
  const auto of_expert = [&](const Region& region, std::int64_t e) { return with(region, 1, span(e, 1)); };
  const auto weights_of = [&](const Region& region, std::int64_t e) { return with(region, 0, span(e * part.inputs, part.inputs)); };
  if (forward) {
    for (std::int64_t e = 0; e < own; ++e) writer.add(fmt::format("expert {}", e), Matmul{of_expert(x, e), weights_of(w, e), of_expert(y, e), 3, 1, 3}, {});
    return;
  }
  const Region dx = writer.tensor("dX", Role::output, at, inputs), dw = writer.tensor("dW", Role::output, rows, outputs);
  for (std::int64_t e = 0; e < own; ++e) writer.add(fmt::format("expert {} dX", e), Matmul{of_expert(y, e), weights_of(w, e), of_expert(dx, e), 3, 1, 3, false, true}, {});
  for (std::int64_t e = 0; e < own; ++e) writer.add(fmt::format("expert {} dW", e), Matmul{of_expert(x, e), of_expert(y, e), weights_of(dw, e), 3, 3, 1, true}, {});
}

Expected<Schedule> expert_schedule(const Submesh& submesh, const WorkloadPart& part) {
  const ExpertTokens of{submesh, part};
  const std::int64_t tokens = part.kind == WorkloadPart::Kind::combine ? part.tokens : part.tokens / of.each;
  if (part.layout != ActivationLayout::tokens_by_row) return Diagnostic{{}, fmt::format("{}: expected tokens by row beside experts", part.name)};
  if (submesh.group_size() > 1) return Diagnostic{{}, fmt::format("{}: expected one device along rows and columns beside experts, found {}", part.name, submesh.group_size())};
  if (of.experts % of.P != 0) return Diagnostic{{}, fmt::format("{}: {} experts must be a multiple of {} devices", part.name, of.experts, of.P)};
  if (of.experts % of.each != 0 || tokens % of.groups != 0)
    return Diagnostic{{}, fmt::format("{}: balanced tokens need experts that are a multiple of the {} of a token, and tokens of a device that are a multiple of their quotient, found {} experts and {} tokens",
                                      part.name, of.each, of.experts, tokens)};
  PartWriter writer{submesh, part};
  if (part.kind == WorkloadPart::Kind::dispatch) write_dispatch(writer, of, part);
  else if (part.kind == WorkloadPart::Kind::combine) write_combine(writer, of, part);
  else write_expert_products(writer, of, part);
  return std::move(writer).finish();
}

/// See the header. P devices along the tokens, Q along the features; f features of a block of both. The backward pass is the inverse.
Expected<Schedule> relayout_schedule(const Submesh& submesh, const WorkloadPart& part) {
  PartWriter writer{submesh, part};
  const AxisView along_tokens = writer.tokens(), along_features = writer.features();
  const std::int64_t P = along_tokens.size, Q = along_features.size, f = part.inputs / (P * Q);
  for (const auto& [what, extent, devices] : {std::tuple{"features", part.inputs, P * Q}, {"tokens", part.tokens, P}, {"tokens", part.tokens, Q}})
    if (extent % devices != 0) return Diagnostic{{}, fmt::format("{}: {} {} must be a multiple of {} devices", part.name, extent, what, devices)};
  const bool forward = part.pass == Pass::forward, first = writer.features_first();
  const Role from = forward ? Role::input : Role::output, to = forward ? Role::output : Role::input;
  const int token_dim = first ? 3 : 0, by_features = first ? 0 : 1, by_tokens = first ? 1 : 2;

  const Region before = writer.tensor(forward ? "X" : "dX", from, {{part.tokens, {along_tokens}}}, {{Q, {along_features}}, {P}, {f}});
  const Region all_tokens = P > 1 ? writer.tensor("all tokens", Role::scratch, {{part.tokens}}, {{1}, {1}, {f}}) : before;
  const Region turning = Q > 1 ? writer.tensor("own tokens", Role::scratch, {{part.tokens / Q}}, {{Q}, {1}, {f}}) : all_tokens;
  const Region after = writer.transposed_tensor(forward ? "Y" : "dY", to, {{part.tokens, {along_features}}}, {{P * Q, {along_tokens}}, {1}, {f}});
  std::vector<TaskId> last;
  const auto exchange = [&](const AxisView& axis, const Region& a, const Region& b, int dim, int split_dim) {
    if (axis.size > 1)
      last = {writer.add(fmt::format("exchange along {}", submesh.mesh.name(axis)),
                         Collective{CollectiveKind::all_to_all, {axis}, a, b, dim, split_dim, 0, {}}, last)};
  };
  if (forward) {
    exchange(along_tokens, before, all_tokens, token_dim, by_tokens);
    exchange(along_features, all_tokens, turning, by_features, token_dim);
    writer.add("transpose", Local{LocalKind::transpose, {turning}, {after}, 1, Unit::core, first}, last);
  } else {
    last = {writer.add("transpose", Local{LocalKind::transpose, {after}, {turning}, 1, Unit::core, !first}, last)};
    exchange(along_features, turning, all_tokens, token_dim, by_features);
    exchange(along_tokens, all_tokens, before, by_tokens, token_dim);
  }
  return std::move(writer).finish();
}

Expected<Schedule> product_schedule(const Submesh& submesh, const WorkloadPart& part, const PartOptions& options) {
  const auto algorithm = gemm_algorithm(part.product.algorithm);
  if (!algorithm) return algorithm.error();
  const LayerOperands operands = part.product.transposed ? LayerOperands{"W", "X", "Y"} : LayerOperands{"X", "W", "Y"};
  auto schedule = make_layer(**algorithm, submesh, gemm_problem_of(part), part.pass, gemm_options(options, part.product.slice_count), operands);
  if (!schedule) return in_context(part.name, schedule.error());
  if (!part.product.collectives.empty()) state_collectives(*schedule, part.product.collectives);
  return schedule;
}

}  // namespace

std::string_view name_of(ActivationLayout layout) { return layout == ActivationLayout::tokens_by_row ? "tokens-by-row" : "features-by-row"; }

ActivationLayout input_layout(Dataflow dataflow, bool transposed) {
  // Stored [tokens, features]: X as the left operand is [m, k]; X^T as the right one is [k, n], so its transpose.
  const DataflowTraits& flow = traits_of(dataflow);
  return (transposed ? flow.transpose_right : !flow.transpose_left) ? ActivationLayout::tokens_by_row : ActivationLayout::features_by_row;
}
ActivationLayout output_layout(Dataflow, bool transposed) { return transposed ? ActivationLayout::features_by_row : ActivationLayout::tokens_by_row; }
bool weights_transposed(Dataflow dataflow, bool transposed) {
  // W is the right operand, [k, n], or the left one of a transposed product, where W^T is [m, k].
  const DataflowTraits& flow = traits_of(dataflow);
  return transposed ? !flow.transpose_left : flow.transpose_right;
}

Expected<Submesh> workload_submesh(const Mesh& mesh) {
  if (mesh.axes().size() == 2 && mesh.axes()[0].name == "row" && mesh.axes()[1].name == "col") return submesh_of(mesh, mesh.whole(0), mesh.whole(1));
  return Diagnostic{{}, "a workload needs a mesh of two axes, row and col, in this order; found " + to_text(mesh)};
}

GemmOptions gemm_options(const PartOptions& options, std::int64_t slice_count) {
  GemmOptions gemm;
  gemm.slice_count = slice_count;
  gemm.block = options.block;
  gemm.prefetch = options.prefetch;
  gemm.slice_copies = options.slice_copies;
  return gemm;
}

GemmProblem gemm_problem_of(const WorkloadPart& part) {
  const ProductChoice& choice = part.product;
  if (choice.transposed) return {part.outputs, part.tokens, part.inputs, part.dtype, choice.dataflow};
  return {part.tokens, part.outputs, part.inputs, part.dtype, choice.dataflow};
}

std::string key_of(const WorkloadPart& part) {
  const ProductChoice& p = part.product;
  return fmt::format("{} {} {} {} {}.{}.{} {}.{}.{}.{}.{} {}.{}.{} {}.{}.{}.{} {}.{}", static_cast<int>(part.kind), static_cast<int>(part.pass),
                     static_cast<int>(part.layout), static_cast<int>(part.dtype), part.tokens, part.inputs, part.outputs, p.algorithm,
                     static_cast<int>(p.dataflow), p.transposed, p.slice_count, p.collectives, static_cast<int>(part.norm), part.gated, part.causal, part.sequence,
                     part.groups, part.queries, part.head, part.experts, part.experts_per_token);
}

void state_collectives(Schedule& schedule, const std::string& algorithm) {
  for (Program& program : schedule.programs)
    for (Task& task : program.tasks)
      if (auto* collective = std::get_if<Collective>(&task.op)) collective->algorithm = algorithm;
}

bool states_auto(const Schedule& schedule) {
  const auto states = [](const Task& task) {
    const auto* collective = std::get_if<Collective>(&task.op);
    return collective != nullptr && collective->algorithm == auto_name;
  };
  return std::any_of(schedule.programs.begin(), schedule.programs.end(), [&](const Program& program) { return std::any_of(program.tasks.begin(), program.tasks.end(), states); });
}

Expected<Schedule> part_schedule(const Mesh& mesh, const WorkloadPart& part, const PartOptions& options) {
  const auto submesh = workload_submesh(mesh);
  if (!submesh) return submesh.error();
  return part_schedule(*submesh, part, options);
}

Expected<Schedule> part_schedule(const Submesh& submesh, const WorkloadPart& part, const PartOptions& options) {
  if (part.experts > 0) return expert_schedule(submesh, part);
  if (part.kind == WorkloadPart::Kind::product) return product_schedule(submesh, part, options);
  if (part.kind == WorkloadPart::Kind::relayout) return relayout_schedule(submesh, part);
  PartWriter writer{submesh, part};
  switch (part.kind) {
    case WorkloadPart::Kind::norm: write_norm(writer, part); break;
    case WorkloadPart::Kind::attention: write_attention(writer, part); break;
    case WorkloadPart::Kind::activation: write_activation(writer, part); break;
    case WorkloadPart::Kind::residual: write_residual(writer, part); break;
    case WorkloadPart::Kind::product:
    case WorkloadPart::Kind::dispatch:
    case WorkloadPart::Kind::combine:
    case WorkloadPart::Kind::relayout: break;
  }
  return std::move(writer).finish();
}

}  // namespace podsim
