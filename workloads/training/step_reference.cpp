// training_reference(): the steps of a model on one device, microbatch by microbatch, as a graph on whole arrays.
#include <fmt/format.h>

#include "algorithms/pipeline/pipeline_step.hpp"
#include "sim/base/invariant.hpp"
#include "sim/schedule/reference_builder.hpp"
#include "workloads/block_reference.hpp"
#include "workloads/training/step_schedule.hpp"

namespace podsim {

namespace {

class StepsOfOneDevice {
 public:
  explicit StepsOfOneDevice(const StepParts& parts) : parts_{parts}, model_{parts.step.model} {
    TransformerBlock block = layer_of(model_, parts.step.batch / parts.step.microbatches);
    block.routed_apart = parts.step.mesh.batch_parts();
    const auto layer = workload_of(block, 1);
    PODSIM_ASSERT(layer);
    forward_ = block_reference(*layer, parts.plan, parts.layer_mesh, Pass::forward);
    both_ = block_reference(*layer, parts.plan, parts.layer_mesh, Pass::both);
    for (std::int64_t i = 0; i < model_.layers; ++i)
      for (const StepWeight& weight : parts.layer_weights) parameter(fmt::format("layer{}.{}.W", i, weight.name), weight);
    if (model_.vocabulary == 0) return;
    for (const StepWeight& weight : parts.embedding) parameter(weight.name + ".W", weight);
    if (!model_.tied) parameter("logits.W", parts.logits.front());
  }

  TrainingReference write(int steps) {
    for (std::int64_t k = 0; k < parts_.step.microbatches; ++k) {
      inputs_.push_back(given(PipelineValue::Kind::inputs, k));
      targets_.push_back(given(PipelineValue::Kind::targets, k));
    }
    for (int step = 1; step <= steps; ++step) write_step(step);
    for (auto& [name, parameter] : parameters_) output("new " + name, TrainingOutput::parameter, parameter.node);
    ReferenceProgram program = std::move(graph_).finish(fmt::format("{} of {} on one device", steps == 1 ? "a training step" : fmt::format("{} training steps", steps), model_.name));
    return {std::move(program), std::move(outputs_)};
  }

 private:
  struct Parameter {
    int node = 0;
    ReferenceBuilder::Moments moments{};
    int gradient = -1;  // none yet
  };

  void output(const std::string& tensor, TrainingOutput what, int node) {
    graph_.output(tensor, node);
    outputs_.emplace(tensor, what);
  }

  [[nodiscard]] std::int64_t tokens() const { return parts_.step.tokens() / parts_.step.microbatches; }

  int given(PipelineValue::Kind kind, std::int64_t k) {
    const std::string name = name_of(PipelineValue{kind, 0, static_cast<int>(k)});
    return model_.vocabulary > 0 ? graph_.input(name, {tokens()}, model_.vocabulary) : graph_.input(name, {tokens(), model_.width});
  }
  void parameter(const std::string& name, const StepWeight& weight) {
    const Extents extents{weight.extents[0], weight.extents[1]};
    Parameter made{graph_.input(name, extents)};
    // The master copy of weights has their values.
    if (parts_.step.optimizer == Optimizer::adamw) made.moments = {graph_.input(name.substr(0, name.size() - 2) + ".m", extents, 1), graph_.input(name.substr(0, name.size() - 2) + ".v", extents, 1)};
    parameters_.emplace(name, made);
  }
  [[nodiscard]] std::string logits() const { return model_.tied ? "embedding.W" : "logits.W"; }

  void add_gradient(const std::string& name, int node) {
    Parameter& of = parameters_.at(name);
    of.gradient = of.gradient < 0 ? node : graph_.elementwise(ReferenceKind::add, of.gradient, node);
  }

  std::map<std::string, int> operands(std::int64_t layer, int x) const {
    std::map<std::string, int> given{{"X", x}};
    for (const StepWeight& weight : parts_.layer_weights) given[weight.name + ".W"] = parameters_.at(fmt::format("layer{}.{}.W", layer, weight.name)).node;
    return given;
  }

  int norm_node(ReferenceKind kind, std::vector<int> operands, Extents extents) {
    ReferenceNode node;
    node.kind = kind, node.operands = std::move(operands), node.extents = std::move(extents);
    return graph_.add(std::move(node));
  }

  /// The loss of the last layer's output, its gradient, and those of the logits.
  ReferenceBuilder::Loss loss_of(int x, std::size_t k) {
    int y = x, sums = -1;
    const bool normed = model_.norm != Norm::none;
    if (normed) {
      sums = norm_node(ReferenceKind::norm_sums, {x}, {tokens(), model_.norm == Norm::layer ? 2 : 1});
      y = norm_node(ReferenceKind::norm, {x, sums}, graph_.extents(x));
    }
    ReferenceBuilder::Loss loss{};
    if (model_.vocabulary == 0) {
      loss = graph_.mean_square(y, targets_[k], static_cast<double>(parts_.step.tokens()) * static_cast<double>(model_.width));
    } else {
      const int weights = parameters_.at(logits()).node;
      const auto [value, slope] = graph_.cross_entropy(graph_.product(y, weights, false, true), targets_[k], static_cast<double>(parts_.step.tokens()));
      add_gradient(logits(), graph_.product(slope, y, true));
      loss = {value, graph_.product(slope, weights)};
    }
    if (normed) loss.gradient = norm_node(ReferenceKind::norm_grad, {loss.gradient, x, sums}, graph_.extents(x));
    return loss;
  }

  /// The rows of the tokens of microbatch k, and their positions.
  int embedded(std::size_t k) {
    const int rows = graph_.take_rows(parameters_.at("embedding.W").node, inputs_[k]);
    if (model_.positions == 0) return rows;
    const int positions = part_of_rows(parameters_.at("positions.W").node, model_.sequence);
    return graph_.reshape(graph_.elementwise(ReferenceKind::add, graph_.reshape(rows, by_sequence()), positions), graph_.extents(rows));
  }
  void add_embedding_gradients(int slope, std::size_t k) {
    add_gradient("embedding.W", graph_.add_rows(slope, inputs_[k], model_.vocabulary));
    if (model_.positions == 0) return;
    int gradient = graph_.sum(graph_.reshape(slope, by_sequence()), 0);
    if (model_.positions > model_.sequence) {  // no token is there
      const int rest =
          graph_.with_number(ReferenceKind::scale, 0, part_of_rows(parameters_.at("positions.W").node, model_.positions - model_.sequence));
      ReferenceNode both;
      both.kind = ReferenceKind::concatenate, both.operands = {gradient, rest}, both.extents = {model_.positions, model_.width};
      gradient = graph_.add(std::move(both));
    }
    add_gradient("positions.W", gradient);
  }
  [[nodiscard]] Extents by_sequence() const { return {tokens() / model_.sequence, model_.sequence, model_.width}; }
  /// The first rows.
  int part_of_rows(int of, std::int64_t rows) {
    ReferenceNode node;
    node.kind = ReferenceKind::slice, node.operands = {of}, node.extents = {rows, model_.width};
    return graph_.add(std::move(node));
  }

  void write_step(int step) {
    int total = -1;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      std::vector<int> x{model_.vocabulary > 0 ? embedded(k) : inputs_[k]};
      for (std::int64_t i = 0; i < model_.layers; ++i) x.push_back(graph_.append(forward_, operands(i, x.back())).at("Y"));
      auto [loss, slope] = loss_of(x.back(), k);
      total = total < 0 ? loss : graph_.elementwise(ReferenceKind::add, total, loss);
      for (std::int64_t i = model_.layers; i-- > 0;) {
        auto given = operands(i, x[static_cast<std::size_t>(i)]);
        given["dY"] = slope;
        const auto made = graph_.append(both_, given);
        slope = made.at("dX");
        for (const StepWeight& weight : parts_.layer_weights) add_gradient(fmt::format("layer{}.{}.W", i, weight.name), made.at(weight.name + ".dW"));
      }
      if (model_.vocabulary > 0) add_embedding_gradients(slope, k);
    }
    output(fmt::format("loss {}", step), TrainingOutput::loss, total);
    for (auto& [name, parameter] : parameters_) {
      output(fmt::format("d {} {}", name, step), TrainingOutput::gradient, parameter.gradient);
      Optimiser optimiser = parts_.optimiser;
      optimiser.step = step;
      parameter.node = parts_.step.optimizer == Optimizer::adamw ? graph_.adamw(optimiser, parameter.node, parameter.gradient, parameter.moments)
                                                                 : graph_.sgd(optimiser, parameter.node, parameter.gradient);
      parameter.gradient = -1;
    }
  }

  const StepParts& parts_;
  const TrainingModel& model_;
  ReferenceProgram forward_, both_;
  ReferenceBuilder graph_;
  TrainingOutputs outputs_;
  std::map<std::string, Parameter> parameters_;
  std::vector<int> inputs_, targets_;  // by microbatch
};

}  // namespace

TrainingReference training_reference(const StepParts& parts, int steps) { return StepsOfOneDevice{parts}.write(steps); }

}  // namespace podsim
