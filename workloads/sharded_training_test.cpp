// Whole training steps of a small language model on a mesh of data and tensor: every device's losses, gradients and parameters against one device in
// float64.
//
// The vocabulary, heads of the MLP and their gradients are sharded over `tensor`, the tokens over `data`. Gradients are reduce-scattered over `data`,
// the optimiser updates the own rows, whose new values are all-gathered (as ZeRO's first stages do).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/test_training.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim {
namespace {

using hand_built::OrderedWriter;

struct LanguageModel {
  int data = 1, tensor = 1;
  std::int64_t tokens = 16, vocabulary = 24, width = 8, inner = 16;
  int steps = 2;
  Optimiser optimiser{0.02, 0.9, 0.95, 1e-3, 0.1};
  DType dtype = DType::f32;
};

/// x = E[tokens]; x += gelu(norm(x) W1) W2; logits = norm(x) E^T.
class LanguageModelWriter {
 public:
  explicit LanguageModelWriter(const LanguageModel& of)
      : of_{of}, mesh_{hand_built::mesh_of({{"data", of.data, true}, {"tensor", of.tensor, true}})}, data_{mesh_.whole(0)}, tensor_{mesh_.whole(1)} {}

  Schedule write() {
    Schedule schedule{"language model", mesh_, {{every_device(mesh_), {}, {}}}, {}};
    OrderedWriter writer{schedule.programs[0]};
    w_ = &writer;
    tokens_ = given("tokens", {own_tokens()}, {{data_}}, DType::s32), targets_ = given("targets", {own_tokens()}, {{data_}}, DType::s32);
    table_ = parameter("E", {own_classes(), of_.width}, {{tensor_}, {}});
    up_ = parameter("W1", {of_.width, own_inner()}, {{}, {tensor_}});
    down_ = parameter("W2", {own_inner(), of_.width}, {{tensor_}, {}});
    for (int s = 1; s <= of_.steps; ++s) step(s);
    schedule.computes = claim();
    return schedule;
  }

 private:
  using Lengths = std::vector<std::int64_t>;
  using Shardings = std::vector<std::vector<AxisView>>;
  struct Parameter {
    std::string name;
    Lengths extents;  // of a device's part
    Shardings sharding;
    int values, m, v;
  };

  [[nodiscard]] std::int64_t own_tokens() const { return of_.tokens / of_.data; }
  [[nodiscard]] std::int64_t own_classes() const { return of_.vocabulary / of_.tensor; }
  [[nodiscard]] std::int64_t own_inner() const { return of_.inner / of_.tensor; }
  [[nodiscard]] Lengths activations(std::int64_t features) const { return {own_tokens(), features}; }

  // ---- Buffers ----

  int given(const std::string& name, Lengths extents, Shardings sharding, DType dtype) {
    return w_->buffer(hand_built::input(name, std::move(extents), std::move(sharding), dtype));
  }
  int room(const std::string& name, Lengths extents) { return w_->buffer(hand_built::scratch(name, std::move(extents), of_.dtype)); }
  int room_f32(const std::string& name, Lengths extents) { return w_->buffer(hand_built::scratch(name, std::move(extents))); }
  [[nodiscard]] Region whole(int buffer) const { return w_->whole(buffer); }
  /// The rows that this device's optimiser updates.
  [[nodiscard]] Region own_rows(int buffer, const Lengths& extents) const {
    Region region = whole(buffer);
    region.dims[0] = block(own(data_), extents[0] / of_.data);
    return region;
  }
  [[nodiscard]] Lengths shard_of(const Lengths& extents) const { return {extents[0] / of_.data, extents[1]}; }
  [[nodiscard]] Shardings with_data(Shardings sharding) const {
    sharding[0].push_back(data_);
    return sharding;
  }

  /// In float32 whatever the dtype of activations, with its moments.
  Parameter parameter(const std::string& name, const Lengths& extents, const Shardings& sharding) {
    Parameter made{name,
                   extents,
                   sharding,
                   w_->buffer(hand_built::output(name, extents, sharding)),
                   room_f32("m now " + name, shard_of(extents)),
                   room_f32("v now " + name, shard_of(extents))};
    w_->local("begin " + name, hand_built::copy(whole(given(name + " given", extents, sharding, DType::f32)), whole(made.values)));
    for (const auto& [of, held] : {std::pair{"m ", made.m}, {"v ", made.v}})
      w_->local("begin " + (of + name), hand_built::copy(whole(given(of + name, shard_of(extents), with_data(sharding), DType::f32)), whole(held)));
    return made;
  }

  // ---- Tasks ----

  int product(const std::string& label, int left, int right, Lengths extents, bool turn_left = false, bool turn_right = false) {
    const int out = room(label, std::move(extents));
    w_->product(label, left, right, out, turn_left, turn_right);
    return out;
  }
  int local(const std::string& label, LocalKind kind, const std::vector<int>& reads, int out, double factor = 1) {
    Local op{kind, {}, {whole(out)}, factor};
    for (const int read : reads) op.reads.push_back(whole(read));
    w_->local(label, std::move(op));
    return out;
  }
  void all_reduce(const std::string& label, int buffer, std::vector<AxisView> axes) {
    w_->collective(label, Collective{CollectiveKind::all_reduce, std::move(axes), whole(buffer), whole(buffer)});
  }
  int norm_sums(int x) {
    const int sums = room_f32("sums", {own_tokens(), 1});
    return local("sums", LocalKind::norm_sums, {x}, sums);
  }
  int norm_gradient(int dy, int x, int sums) {
    const auto width = static_cast<double>(of_.width);
    const int slopes = local("sums of the gradient", LocalKind::norm_grad_sums, {dy, x, sums}, room_f32("slopes", {own_tokens(), 1}), width);
    return local("d norm", LocalKind::norm_grad, {dy, x, sums, slopes}, room("d norm", activations(of_.width)), width);
  }
  /// In the dtype of activations.
  int cast(const Parameter& of) {
    if (of_.dtype == DType::f32) return of.values;
    return local("cast " + of.name, LocalKind::convert, {of.values}, room("cast " + of.name, of.extents));
  }
  Local of_rows(LocalKind kind, int first, int index, int out) const {
    Local op{kind, {whole(first), whole(index)}, {whole(out)}, static_cast<double>(of_.vocabulary)};
    op.numbering = {{Affine{{AxisTerm{tensor_, own_classes()}}}}};
    return op;
  }

  void step(int s) {
    const auto width = static_cast<double>(of_.width);
    const std::string number = " " + std::to_string(s);
    const int e = cast(table_), up = cast(up_), down = cast(down_);
    const int x0 = room("x0", activations(of_.width));
    w_->local("embed", of_rows(LocalKind::gather_rows, e, tokens_, x0));
    all_reduce("reduce x0", x0, {tensor_});
    const int sums0 = norm_sums(x0), n0 = local("norm", LocalKind::norm, {x0, sums0}, room("n0", activations(of_.width)), width);
    const int h = product("up", n0, up, activations(own_inner())), a = local("gelu", LocalKind::gelu, {h}, room("a", activations(own_inner())));
    const int y = product("down", a, down, activations(of_.width));
    all_reduce("reduce y", y, {tensor_});
    const int x1 = local("residual", LocalKind::add, {x0, y}, room("x1", activations(of_.width)));
    const int sums1 = norm_sums(x1), n1 = local("norm", LocalKind::norm, {x1, sums1}, room("n1", activations(of_.width)), width);
    const int logits = product("logits", n1, e, activations(own_classes()), false, true);
    const int d_logits = loss(logits, number);

    const int dn1 = product("d n1", d_logits, e, activations(of_.width));
    all_reduce("reduce d n1", dn1, {tensor_});
    const int through_logits = product("dE of logits", d_logits, n1, {own_classes(), of_.width}, true);
    const int dx1 = norm_gradient(dn1, x1, sums1);
    const int d_down = product("dW2", a, dx1, {own_inner(), of_.width}, true);
    const int da = product("d a", dx1, down, activations(own_inner()), false, true);
    const int dh = local("d gelu", LocalKind::gelu_grad, {da, h}, room("d h", activations(own_inner())));
    const int d_up = product("dW1", n0, dh, {of_.width, own_inner()}, true);
    const int dn0 = product("d n0", dh, up, activations(of_.width), false, true);
    all_reduce("reduce d n0", dn0, {tensor_});
    const int dx0 = local("d residual", LocalKind::add, {norm_gradient(dn0, x0, sums0), dx1}, room("d x0", activations(of_.width)));
    const int through_rows = room("dE of rows", {own_classes(), of_.width});
    w_->local("d embed", of_rows(LocalKind::add_rows, dx0, tokens_, through_rows));
    const int d_table = local("dE", LocalKind::add, {through_logits, through_rows}, room("dE", {own_classes(), of_.width}));
    update(table_, d_table, s), update(up_, d_up, s), update(down_, d_down, s);
  }

  int loss(int logits, const std::string& number) {
    const int statistics = room_f32("statistics", {of_.tensor, own_tokens(), 2});
    const Region own_statistics{BufferId{statistics}, {block(own(tensor_), 1), all(own_tokens()), all(2)}};
    const auto of_classes = [&](Local op) {
      op.classes = of_.vocabulary, op.numbering = {{Affine{{AxisTerm{tensor_, own_classes()}}}}};
      return op;
    };
    w_->local("statistics", of_classes({LocalKind::softmax_statistics, {whole(logits)}, {own_statistics}}));
    w_->collective("gather statistics", Collective{CollectiveKind::all_gather, {tensor_}, own_statistics, whole(statistics), 0});
    const int loss = w_->buffer(hand_built::output("loss" + number, {1}, {{}})), d_logits = room("d logits", activations(own_classes()));
    for (const auto& [kind, out] : {std::pair{LocalKind::cross_entropy, loss}, {LocalKind::cross_entropy_grad, d_logits}})
      w_->local(std::string{traits_of(kind).name},
                of_classes({kind, {whole(logits), whole(statistics), whole(targets_)}, {whole(out)}, static_cast<double>(of_.tokens)}));
    all_reduce("reduce loss", loss, {data_, tensor_});
    return d_logits;
  }

  void update(const Parameter& of, int gradient, int s) {
    const Lengths shard = shard_of(of.extents);
    const int summed = w_->buffer(hand_built::output("d" + of.name + " " + std::to_string(s), shard, with_data(of.sharding)));
    if (of_.dtype != DType::f32) gradient = local("widen d" + of.name, LocalKind::convert, {gradient}, room_f32("wide d" + of.name, of.extents));
    w_->collective("scatter d" + of.name, Collective{CollectiveKind::reduce_scatter, {data_}, whole(gradient), whole(summed), 0});
    const Region rows = own_rows(of.values, of.extents);
    Local step{LocalKind::adamw, {rows, whole(summed), whole(of.m), whole(of.v)}, {rows, whole(of.m), whole(of.v)}};
    step.optimiser = optimiser(s);
    w_->local("update " + of.name, std::move(step));
    w_->collective("gather " + of.name, Collective{CollectiveKind::all_gather, {data_}, rows, whole(of.values), 0});
  }

  [[nodiscard]] Optimiser optimiser(int step) const {
    Optimiser optimiser = of_.optimiser;
    optimiser.step = step;
    return optimiser;
  }

  // ---- What it claims ----

  static int norm(ReferenceBuilder& g, ReferenceKind kind, std::vector<int> operands, Extents extents) {
    ReferenceNode node;
    node.kind = kind, node.operands = std::move(operands), node.extents = std::move(extents);
    return g.add(std::move(node));
  }

  [[nodiscard]] ReferenceProgram claim() const {
    ReferenceBuilder g;
    const Extents x{of_.tokens, of_.width};
    const int index = g.input("tokens", {of_.tokens}, of_.vocabulary), targets = g.input("targets", {of_.tokens}, of_.vocabulary);
    const std::vector<std::pair<std::string, Extents>> all{
        {"E", {of_.vocabulary, of_.width}}, {"W1", {of_.width, of_.inner}}, {"W2", {of_.inner, of_.width}}};
    std::vector<int> p;
    std::vector<ReferenceBuilder::Moments> moments;
    for (const auto& [name, extents] : all) {
      p.push_back(g.input(name + " given", extents));
      moments.push_back({g.input("m " + name, extents, 1), g.input("v " + name, extents, 1)});
    }
    for (int s = 1; s <= of_.steps; ++s) {
      const int x0 = g.take_rows(p[0], index), sums0 = norm(g, ReferenceKind::norm_sums, {x0}, {of_.tokens, 1}),
                n0 = norm(g, ReferenceKind::norm, {x0, sums0}, x);
      const int h = g.product(n0, p[1]), a = g.each(ReferenceKind::gelu, h), x1 = g.elementwise(ReferenceKind::add, x0, g.product(a, p[2]));
      const int sums1 = norm(g, ReferenceKind::norm_sums, {x1}, {of_.tokens, 1}), n1 = norm(g, ReferenceKind::norm, {x1, sums1}, x);
      const auto [loss, d_logits] = g.cross_entropy(g.product(n1, p[0], false, true), targets, static_cast<double>(of_.tokens));
      const int dx1 = norm(g, ReferenceKind::norm_grad, {g.product(d_logits, p[0]), x1, sums1}, x);
      const int dh = g.elementwise(ReferenceKind::multiply, g.product(dx1, p[2], false, true), g.each(ReferenceKind::gelu_slope, h));
      const int dx0 = g.elementwise(ReferenceKind::add, norm(g, ReferenceKind::norm_grad, {g.product(dh, p[1], false, true), x0, sums0}, x), dx1);
      const std::vector<int> gradients{g.elementwise(ReferenceKind::add, g.product(d_logits, n1, true), g.add_rows(dx0, index, of_.vocabulary)),
                                       g.product(n0, dh, true), g.product(a, dx1, true)};
      g.output("loss " + std::to_string(s), loss);
      for (std::size_t i = 0; i < p.size(); ++i) {
        g.output("d" + all[i].first + " " + std::to_string(s), gradients[i]);
        p[i] = g.adamw(optimiser(s), p[i], gradients[i], moments[i]);
      }
    }
    for (std::size_t i = 0; i < p.size(); ++i) g.output(all[i].first, p[i]);
    return std::move(g).finish("training steps of a language model");
  }

  LanguageModel of_;
  Mesh mesh_;
  AxisView data_, tensor_;
  OrderedWriter* w_ = nullptr;
  int tokens_ = 0, targets_ = 0;
  Parameter table_, up_, down_;
};

Schedule lowered_model(const LanguageModel& of) {
  const Expected<Schedule> lowered = lower(LanguageModelWriter{of}.write(), ring_or_line());
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  return lowered ? *lowered : Schedule{};
}

CheckReport report_of_model(const Schedule& schedule) {
  const Expected<CheckReport> report = check(schedule, {});
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

/// Of the outputs whose names begin so, on uniform data: the largest difference, relative to the largest element of the output.
double error_of_model(Schedule schedule, std::string_view begin) {
  auto& program = std::get<ReferenceProgram>(schedule.computes);
  std::erase_if(program.outputs, [&](const auto& output) { return !output.first.starts_with(begin); });
  NumericOptions options;
  options.filling = Filling::uniform;
  const auto tensors = make_numeric_engine(options)->run(schedule);
  const auto reference = Reference::make(schedule, options);
  EXPECT_TRUE(tensors && reference);
  return reference->compare(*tensors).max_rel_error;
}

TEST(ShardedTraining, StepsOfALanguageModelAreThoseOfOneDeviceInFloat64) {
  for (const auto& [data, tensor] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 4}, {4, 2}}) {
    SCOPED_TRACE(::testing::Message() << "data " << data << ", tensor " << tensor);
    const Schedule schedule = lowered_model({.data = data, .tensor = tensor});
    const CheckReport report = report_of_model(schedule);
    EXPECT_TRUE(report.ok) << to_text(report.problems);
    EXPECT_LE(error_of_model(schedule, "loss"), 1e-6);
    EXPECT_LE(error_of_model(schedule, "d"), 1e-5);
  }
}

TEST(ShardedTraining, ParametersAreFloat32WhereActivationsAreNot) {
  const CheckReport report = report_of_model(lowered_model({.data = 2, .tensor = 2, .dtype = DType::bf16}));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
}

TEST(ShardedTraining, WhatIsMissingOrOfAnotherDeviceIsFound) {
  const Schedule right = LanguageModelWriter{{.data = 2, .tensor = 2}}.write();
  const auto task = [](Schedule& schedule, const std::string& label) -> Op& {
    for (Task& one : schedule.programs[0].tasks)
      if (one.label == label) return one.op;
    ADD_FAILURE() << label;
    return schedule.programs[0].tasks[0].op;
  };
  const AxisView data = right.mesh.whole(0);
  const std::vector<std::pair<std::string, std::function<void(Schedule&)>>> mistakes{
      {"tokens of another part of the vocabulary",
       [&](Schedule& s) {
         std::get<Local>(task(s, "embed")).numbering = {{Affine{{AxisTerm{data, 12}}}}};
       }},
      {"rows of another part of the vocabulary", [&](Schedule& s) { std::get<Local>(task(s, "d embed")).numbering.clear(); }},
      {"a loss of one shard", [&](Schedule& s) { std::get<Collective>(task(s, "reduce loss")).axes = {data}; }},
      {"a sum over the other axis", [&](Schedule& s) { std::get<Collective>(task(s, "reduce d n1")).axes = {data}; }},
      {"an optimiser on another device's rows",
       [&](Schedule& s) { std::get<Local>(task(s, "update W1")).reads[0].dims[0] = block(own(data, 1), 4); }},
      {"a mean over the tokens of one device", [&](Schedule& s) { std::get<Local>(task(s, "cross-entropy-grad")).factor /= 2; }},
  };
  for (const auto& [what, make] : mistakes) {
    Schedule wrong = right;
    make(wrong);
    const Expected<Schedule> lowered = lower(wrong, ring_or_line());
    ASSERT_TRUE(lowered) << what;
    EXPECT_FALSE(report_of_model(*lowered).ok) << what;
  }
}

}  // namespace
}  // namespace podsim
