// Small training schedules written by hand, with their claims: a sharded language-model head, a sharded embedding, training steps of an MLP on one
// device.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/schedule/reference_builder.hpp"

namespace podsim::hand_built {

/// Appends tasks to a program, with the edges that their buffers imply: after what wrote an operand, and after what still uses a result's old value.
class OrderedWriter {
 public:
  explicit OrderedWriter(Program& program) : program_{program} {}

  int buffer(Buffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  [[nodiscard]] Region whole(int buffer) const { return hand_built::whole(program_, buffer); }

  void local(const std::string& label, Local op) {
    const std::vector<Region> reads = op.reads, writes = op.writes;
    add(label, std::move(op), reads, writes);
  }
  /// out = left . right
  void product(const std::string& label, int left, int right, int out, bool transpose_left = false, bool transpose_right = false) {
    add(label, Matmul{whole(left), whole(right), whole(out), 1, 1, 1, transpose_left, transpose_right, false}, {whole(left), whole(right)},
        {whole(out)});
  }
  void collective(const std::string& label, const Collective& op) { add(label, op, {op.input}, {op.output}); }

 private:
  struct Uses {
    int written = -1;
    std::vector<int> read{};  // since then
  };

  void add(const std::string& label, Op op, const std::vector<Region>& reads, const std::vector<Region>& writes) {
    std::vector<int> after;
    for (const Region& read : reads)
      if (const int writer = uses_[read.buffer.value].written; writer >= 0) after.push_back(writer);
    for (const Region& write : writes) {
      const Uses& uses = uses_[write.buffer.value];
      after.insert(after.end(), uses.read.begin(), uses.read.end());
      if (uses.written >= 0) after.push_back(uses.written);
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    const int task = hand_built::add(program_, label, std::move(op), after);
    for (const Region& read : reads) uses_[read.buffer.value].read.push_back(task);
    for (const Region& write : writes) uses_[write.buffer.value] = {task, {}};
  }

  Program& program_;
  std::map<int, Uses> uses_;  // by buffer
};

/// The loss of logits [tokens, classes] and its gradient, the classes on P devices in adjacent blocks; padded if P does not divide them.
inline Schedule sharded_cross_entropy(int P, std::int64_t tokens, std::int64_t classes, DType dtype = DType::f32) {
  Schedule schedule{"cross-entropy", mesh_of({{"x", P, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  const std::int64_t columns = (classes + P - 1) / P;
  Program program{every_device(schedule.mesh),
                  {input("logits", {tokens, columns}, {{}, {x}}, dtype), input("targets", {tokens}, {{}}, DType::s32), output("loss", {1}, {{}}),
                   output("dlogits", {tokens, columns}, {{}, {x}}, dtype), scratch("statistics", {P, tokens, 2})},
                  {}};
  if (P * columns != classes)
    for (const std::size_t b : {0, 3}) program.buffers[b].unpadded = {tokens, classes};
  program.buffers[2].unreduced = {x};
  Local statistics{LocalKind::softmax_statistics, {whole(program, 0)}, {{BufferId{4}, {block(own(x), 1), all(tokens), all(2)}}}};
  Local loss{LocalKind::cross_entropy, {whole(program, 0), whole(program, 4), whole(program, 1)}, {whole(program, 2)}, static_cast<double>(tokens)};
  statistics.classes = loss.classes = classes;
  loss.numbering = statistics.numbering = {{Affine{{AxisTerm{x, columns}}}}};
  Local gradient = loss;
  gradient.kind = LocalKind::cross_entropy_grad, gradient.writes = {whole(program, 3)};
  const int gathered = ring_gather(program, x, 4, 0, add(program, "statistics", statistics));
  add(program, "loss", loss, {gathered}), add(program, "gradient", gradient, {gathered});
  schedule.programs.push_back(std::move(program));
  ReferenceBuilder g;
  const int logits = g.input("logits", {tokens, classes}), targets = g.input("targets", {tokens}, classes);
  const auto [mean, slope] = g.cross_entropy(logits, targets, static_cast<double>(tokens));
  g.output("loss", mean), g.output("dlogits", slope);
  schedule.computes = std::move(g).finish("cross-entropy and its gradient");
  return schedule;
}

/// Rows of a table [rows, width] on P devices by token numbers, as partial sums, and the gradient of the table.
inline Schedule sharded_embedding(int P, std::int64_t rows, std::int64_t width, std::int64_t tokens, DType dtype = DType::f32) {
  Schedule schedule{"embedding", mesh_of({{"x", P, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  const std::int64_t own_rows = rows / P;
  Program program{
      every_device(schedule.mesh),
      {input("E", {own_rows, width}, {{x}, {}}, dtype), input("tokens", {tokens}, {{}}, DType::s32), input("dX", {tokens, width}, {{}, {}}, dtype),
       output("X", {tokens, width}, {{}, {}}, dtype), output("dE", {own_rows, width}, {{x}, {}})},
      {}};
  program.buffers[3].unreduced = {x};
  Local take{LocalKind::gather_rows, {whole(program, 0), whole(program, 1)}, {whole(program, 3)}, static_cast<double>(rows)};
  Local add_up{LocalKind::add_rows, {whole(program, 2), whole(program, 1)}, {whole(program, 4)}, static_cast<double>(rows)};
  take.numbering = add_up.numbering = {{Affine{{AxisTerm{x, own_rows}}}}};
  add(program, "embed", take), add(program, "gradient", add_up);
  schedule.programs.push_back(std::move(program));
  ReferenceBuilder g;
  const int table = g.input("E", {rows, width}), index = g.input("tokens", {tokens}, rows), dx = g.input("dX", {tokens, width});
  g.output("X", g.take_rows(table, index)), g.output("dE", g.add_rows(dx, index, rows));
  schedule.computes = std::move(g).finish("rows of E by tokens, and the gradient of E");
  return schedule;
}

struct MlpTraining {
  std::vector<std::int64_t> widths{6, 8, 5};  // of the input and of each layer
  std::int64_t samples = 8, microbatches = 1;
  int steps = 3;
  bool adam = true;
  bool recompute = false;  // activations are computed again before the backward pass of their microbatch, from its input
  Optimiser optimiser{0.05, 0.9, 0.95, 1e-3, 0.1};
  DType dtype = DType::f32;  // of parameters, activations and gradients of a microbatch; sums of gradients and moments are f32
};

/// Steps of an MLP with gelu between its layers, on one device: forward and backward per microbatch with gradients added up, mean square loss,
/// optimiser. Outputs: `loss s` of every step s (a part per microbatch, added up), `dW s l` of every layer l, and the parameters `W l` after the
/// last.
class MlpTrainingWriter {
 public:
  explicit MlpTrainingWriter(const MlpTraining& of) : of_{of} {}

  Schedule write() {
    schedule_ = {"mlp training", mesh_of({{"x", 1, false}}), {}, {}};
    Program program{every_device(schedule_.mesh), {}, {}};
    OrderedWriter w{program};
    write_tasks(w);
    schedule_.programs.push_back(std::move(program));
    schedule_.computes = claim();
    return std::move(schedule_);
  }

 private:
  using Buffers = std::vector<int>;

  [[nodiscard]] std::size_t layers() const { return of_.widths.size() - 1; }
  [[nodiscard]] std::int64_t rows() const { return of_.samples / of_.microbatches; }
  [[nodiscard]] double elements() const { return static_cast<double>(of_.samples * of_.widths.back()); }
  [[nodiscard]] std::vector<std::int64_t> weight(std::size_t l) const { return {of_.widths[l], of_.widths[l + 1]}; }
  [[nodiscard]] Optimiser optimiser(int step) const {
    Optimiser optimiser = of_.optimiser;
    optimiser.step = step;
    return optimiser;
  }
  static std::string text(const std::string& what, int step) { return what + " " + std::to_string(step); }
  static std::string text(const std::string& what, int step, std::size_t l) { return text(what, step) + " " + std::to_string(l); }

  void write_tasks(OrderedWriter& w) {
    const std::vector<std::vector<AxisView>> replicated(2);
    for (std::size_t l = 0; l < layers(); ++l) {
      const std::string name = std::to_string(l);
      given_.push_back(w.buffer(input("W given " + name, weight(l), replicated, of_.dtype)));
      weights_.push_back(w.buffer(output("W " + name, weight(l), replicated, of_.dtype)));
      w.local("begin W " + name, copy(w.whole(given_.back()), w.whole(weights_.back())));
      if (of_.adam)
        for (Buffers* moments : {&m_, &v_}) {
          const std::string of = moments == &m_ ? "m " : "v ";
          const int zero = w.buffer(input(of + name, weight(l), replicated));
          moments->push_back(w.buffer(scratch(of + "now " + name, weight(l))));
          w.local("begin " + of + name, copy(w.whole(zero), w.whole(moments->back())));
        }
      parts_.push_back(w.buffer(scratch("dW of a microbatch " + name, weight(l), of_.dtype)));
      wide_.push_back(w.buffer(scratch("the same in f32 " + name, weight(l))));
    }
    x_ = w.buffer(input("X", {of_.samples, of_.widths.front()}, replicated, of_.dtype));
    target_ = w.buffer(input("T", {of_.samples, of_.widths.back()}, replicated, of_.dtype));
    part_loss_ = w.buffer(scratch("loss of a microbatch", {1}));
    for (std::size_t l = 0; l < layers(); ++l) {
      const std::vector<std::int64_t> in{rows(), of_.widths[l]}, out{rows(), of_.widths[l + 1]};
      in_.push_back(w.buffer(scratch("in " + std::to_string(l), in, of_.dtype)));
      out_.push_back(w.buffer(scratch("out " + std::to_string(l), out, of_.dtype)));
      d_in_.push_back(w.buffer(scratch("d in " + std::to_string(l), in, of_.dtype)));
      d_out_.push_back(w.buffer(scratch("d out " + std::to_string(l), out, of_.dtype)));
    }
    for (int s = 1; s <= of_.steps; ++s) write_step(w, s);
  }

  void write_step(OrderedWriter& w, int s) {
    const int loss = w.buffer(output(text("loss", s), {1}, {{}}));
    Buffers gradients;
    for (std::size_t l = 0; l < layers(); ++l)
      gradients.push_back(w.buffer(output(text("dW", s, l), weight(l), std::vector<std::vector<AxisView>>(2))));
    for (std::int64_t b = 0; b < of_.microbatches; ++b) {
      const auto rows_of = [&](int buffer, std::int64_t width) { return Region{BufferId{buffer}, {span(b * rows(), rows()), all(width)}}; };
      w.local(text("X", s), copy(rows_of(x_, of_.widths.front()), w.whole(in_[0])));
      forward(w, s);
      if (of_.recompute) forward(w, s);
      const Region y = w.whole(out_.back()), target = rows_of(target_, of_.widths.back());
      w.local(text("loss", s), Local{LocalKind::mean_square, {y, target}, {w.whole(b == 0 ? loss : part_loss_)}, elements()});
      if (b > 0) w.local(text("add loss", s), Local{LocalKind::add, {w.whole(loss), w.whole(part_loss_)}, {w.whole(loss)}});
      w.local(text("d loss", s), Local{LocalKind::mean_square_grad, {y, target}, {w.whole(d_out_.back())}, elements()});
      for (std::size_t l = layers(); l-- > 0;) backward(w, s, l, gradients[l], b == 0);
    }
    for (std::size_t l = 0; l < layers(); ++l) {
      const Region p = w.whole(weights_[l]), g = w.whole(gradients[l]);
      Local update{of_.adam ? LocalKind::adamw : LocalKind::sgd, {p, g}, {p}};
      if (of_.adam)
        for (const int moment : {m_[l], v_[l]}) update.reads.push_back(w.whole(moment)), update.writes.push_back(w.whole(moment));
      update.optimiser = optimiser(s);
      w.local(text("update", s, l), std::move(update));
    }
  }

  void forward(OrderedWriter& w, int s) {
    for (std::size_t l = 0; l < layers(); ++l) {
      w.product(text("forward", s, l), in_[l], weights_[l], out_[l]);
      if (l + 1 < layers()) w.local(text("gelu", s, l), Local{LocalKind::gelu, {w.whole(out_[l])}, {w.whole(in_[l + 1])}});
    }
  }

  void backward(OrderedWriter& w, int s, std::size_t l, int gradient, bool first) {
    w.product(text("dW", s, l), in_[l], d_out_[l], parts_[l], true);
    w.local(text("widen dW", s, l), Local{LocalKind::convert, {w.whole(parts_[l])}, {w.whole(first ? gradient : wide_[l])}});
    if (!first) w.local(text("add dW", s, l), Local{LocalKind::add, {w.whole(gradient), w.whole(wide_[l])}, {w.whole(gradient)}});
    if (l == 0) return;
    w.product(text("dX", s, l), d_out_[l], weights_[l], d_in_[l], false, true);
    w.local(text("d gelu", s, l), Local{LocalKind::gelu_grad, {w.whole(d_in_[l]), w.whole(out_[l - 1])}, {w.whole(d_out_[l - 1])}});
  }

  /// On the whole batch: microbatches and recomputation change no result.
  [[nodiscard]] ReferenceProgram claim() const {
    ReferenceBuilder g;
    const int x = g.input("X", {of_.samples, of_.widths.front()}), target = g.input("T", {of_.samples, of_.widths.back()});
    std::vector<int> weights;
    std::vector<ReferenceBuilder::Moments> moments;
    for (std::size_t l = 0; l < layers(); ++l) {
      weights.push_back(g.input("W given " + std::to_string(l), weight(l)));
      if (of_.adam) moments.push_back({g.input("m " + std::to_string(l), weight(l), 1), g.input("v " + std::to_string(l), weight(l), 1)});
    }
    for (int s = 1; s <= of_.steps; ++s) {
      std::vector<int> in{x}, out;
      for (std::size_t l = 0; l < layers(); ++l) {
        out.push_back(g.product(in[l], weights[l]));
        in.push_back(g.each(ReferenceKind::gelu, out[l]));
      }
      auto [loss, d_out] = g.mean_square(out.back(), target, elements());
      g.output(text("loss", s), loss);
      std::vector<int> gradients(layers());
      for (std::size_t l = layers(); l-- > 0;) {
        gradients[l] = g.product(in[l], d_out, true);
        g.output(text("dW", s, l), gradients[l]);
        if (l > 0)
          d_out = g.elementwise(ReferenceKind::multiply, g.product(d_out, weights[l], false, true), g.each(ReferenceKind::gelu_slope, out[l - 1]));
      }
      for (std::size_t l = 0; l < layers(); ++l)
        weights[l] = of_.adam ? g.adamw(optimiser(s), weights[l], gradients[l], moments[l]) : g.sgd(optimiser(s), weights[l], gradients[l]);
    }
    for (std::size_t l = 0; l < layers(); ++l) g.output("W " + std::to_string(l), weights[l]);
    return std::move(g).finish("steps of an MLP");
  }

  MlpTraining of_;
  Schedule schedule_;
  Buffers given_, weights_, m_, v_, parts_, wide_, in_, out_, d_in_, d_out_;
  int x_ = 0, target_ = 0, part_loss_ = 0;
};

inline Schedule mlp_training(const MlpTraining& of) { return MlpTrainingWriter{of}.write(); }

}  // namespace podsim::hand_built
