#include "workloads/training/step_ends.hpp"

#include <algorithm>

namespace podsim {

namespace {

using Use = StepParameter::Use;

Local of_vocabulary(const FunctionWriter& w, Local op) {
  const AxisView& col = w.parts().axes.col;
  if (col.size > 1) op.numbering = {{Affine{{AxisTerm{col, w.model().vocabulary / col.size}}}}};
  return op;
}

/// [tokens, own classes]: what picks the rows of tokens by a product.
std::pair<Region, Edges> write_one_hot(FunctionWriter& w, const Region& index) {
  const auto classes = static_cast<double>(w.model().vocabulary);
  const Region picks = w.scratch("one-hot rows", {lengths_of(index)[0], w.parts().embedding.front().block()[0]});
  return {picks, w.local("one-hot", of_vocabulary(w, {LocalKind::one_hot, {index}, {picks}, classes}), {})};
}

/// The sequences of a microbatch that a device has.
std::int64_t sequences(const FunctionWriter& w) { return w.parts().activation()[0] / w.model().sequence; }
Region rows_of(const FunctionWriter& w, const Region& tokens, std::int64_t sequence) {
  return with(tokens, 0, span(sequence * w.model().sequence, w.model().sequence));
}

/// y += positions
void write_positions(FunctionWriter& w, const Region& y, const Edges& after) {
  if (w.model().positions == 0) return;
  const Region positions = with(w.reads({Use::weight, &w.parts().embedding[1]}, w.parts().embedding[1].block()), 0, span(0, w.model().sequence));
  for (std::int64_t s = 0; s < sequences(w); ++s) {
    const Region rows = rows_of(w, y, s);
    w.local("add positions", {LocalKind::add, {rows, positions}, {rows}}, after);
  }
}

/// The sum over sequences, also those of other rows; 0 behind the longest sequence.
void write_positions_gradient(FunctionWriter& w, const Region& dy) {
  if (w.model().positions == 0) return;
  const std::int64_t sequence = w.model().sequence, tokens = lengths_of(dy)[0];
  const Region gradient = w.makes({Use::weight_gradient, &w.parts().embedding[1]}, w.parts().embedding[1].block()), used = with(gradient, 0, span(0, sequence));
  for (std::int64_t row = sequence; row < w.model().positions; row += tokens) {
    const std::int64_t rows = std::min(tokens, w.model().positions - row);
    w.local("zero d positions", {LocalKind::scale, {with(dy, 0, span(0, rows))}, {with(gradient, 0, span(row, rows))}, 0}, {});
  }
  Edges summed = w.local("d positions", {LocalKind::copy, {rows_of(w, dy, 0)}, {used}}, {});
  for (std::int64_t s = 1; s < sequences(w); ++s) summed = w.local("add d positions", {LocalKind::add, {used, rows_of(w, dy, s)}, {used}}, summed);
  const AxisView& row = w.parts().axes.row;
  if (row.size > 1) w.collective("sum d positions", CollectiveKind::all_reduce, {row}, used, used, sequence % row.size == 0 ? 0 : 1, summed);
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
  const Region weights = w.reads({Use::weight, &parts.logits.front()}, parts.logits.front().block()), gradient = w.makes({Use::weight_gradient, &parts.logits.front()}, parts.logits.front().block());
  const Region targets = w.reads({Use::targets}, {tokens}, DType::s32);
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
  const Region target = w.reads({Use::targets}, w.parts().activation());
  const auto count = static_cast<double>(w.parts().step.tokens()) * static_cast<double>(w.model().width);
  const Edges lost = w.local("loss", {LocalKind::mean_square, {y, target}, {loss}, count}, after);
  return join(w.local("d loss", {LocalKind::mean_square_grad, {y, target}, {dy}, count}, after), lost);
}

}  // namespace

// Rows are [tokens, width] of all features; sums of the devices along col, each of which has rows of other tokens.
void write_embedding(FunctionWriter& w) {
  const StepParts& parts = w.parts();
  const AxisView& col = parts.axes.col;
  const std::int64_t tokens = parts.activation()[0], width = parts.step.model.width;
  const Region table = w.reads({Use::weight, &parts.embedding.front()}, parts.embedding.front().block()), index = w.reads({Use::tokens}, {tokens}, DType::s32);
  const Region y = w.makes({Use::output}, parts.activation());
  const Region rows = col.size > 1 ? w.scratch("rows", {tokens, width}) : y;
  Edges took;
  if (parts.step.embedding_by_product) {
    const auto [picks, made] = write_one_hot(w, index);
    took = w.builder().step("embed", Matmul{picks, table, rows}, made);
  } else {
    took = w.local("embed", of_vocabulary(w, {LocalKind::gather_rows, {table, index}, {rows}, static_cast<double>(parts.step.model.vocabulary)}), {});
  }
  if (col.size > 1) took = w.collective("scatter features", CollectiveKind::reduce_scatter, {col}, rows, y, 1, took);
  write_positions(w, y, took);
}

void write_embedding_gradient(FunctionWriter& w) {
  const StepParts& parts = w.parts();
  const AxisView& col = parts.axes.col;
  const std::int64_t tokens = parts.activation()[0], width = parts.step.model.width;
  const Region dy = w.reads({Use::output_gradient}, parts.activation()), index = w.reads({Use::tokens}, {tokens}, DType::s32);
  const Region gradient = w.makes({Use::weight_gradient, &parts.embedding.front()}, parts.embedding.front().block());
  const Region rows = col.size > 1 ? w.scratch("rows", {tokens, width}) : dy;
  Edges ready;
  if (col.size > 1) ready = w.collective("gather features", CollectiveKind::all_gather, {col}, dy, rows, 1, {});
  write_positions_gradient(w, dy);
  if (!parts.step.embedding_by_product) {
    w.local("d embed", of_vocabulary(w, {LocalKind::add_rows, {rows, index}, {gradient}, static_cast<double>(parts.step.model.vocabulary)}), ready);
    return;
  }
  const auto [picks, made] = write_one_hot(w, index);
  w.builder().step("d embed", Matmul{picks, rows, gradient, 1, 1, 1, true}, join(ready, made));
}

Status write_loss(FunctionWriter& w) {
  const StepParts& parts = w.parts();
  const bool normed = parts.step.model.norm != Norm::none;
  const Region x = w.reads({Use::input}, parts.activation()), dx = w.makes({Use::input_gradient}, parts.activation()), loss = w.makes({Use::loss}, {1}, DType::f32);
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
  w.append(part->programs.front().tasks, part->programs.front().buffers, {{"dY", dy}, {"X", x}, {"sums", sums}, {"dX", dx}},
           "final_norm backward: ", after);
  return success();
}

}  // namespace podsim
