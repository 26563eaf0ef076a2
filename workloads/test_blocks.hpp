// Small transformer blocks, plans of them, and what a plan of one computes, by plain float64. Not for production code.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "workloads/plan.hpp"
#include "workloads/testing.hpp"

namespace podsim::testing {

/// 4 heads of 8, 4 sequences of 8 tokens; float32.
inline TransformerBlock small_block() {
  TransformerBlock block;
  block.name = "small";
  block.heads = block.kv_heads = 4, block.head_dim = 8, block.hidden = 32, block.ff = 64;
  block.sequence = 8, block.batch = 4;
  block.dtype = DType::f32;
  return block;
}
/// With gate and up, RMS norms and half as many heads of keys and values.
inline TransformerBlock small_gated_block() {
  TransformerBlock block = small_block();
  block.name = "small gated";
  block.kv_heads = 2, block.gated = true, block.norm = Norm::rms;
  return block;
}

/// A plan with these choices for the products in order; everything else stays where it is left, norms and residuals in the layout of the stream.
inline Plan plan_with(const Workload& workload, const std::vector<ProductChoice>& choices, ActivationLayout stream) {
  Plan plan;
  plan.options = {2, 1, true};
  ActivationLayout left = stream;
  std::size_t product = 0;
  for (const Stage& stage : workload.stages) {
    StagePlan planned{stage.name, left};
    if (stage.kind == Stage::Kind::product) {
      const ProductChoice& choice = choices[product++ % choices.size()];
      planned.layout = input_layout(choice.dataflow, choice.transposed);
      planned.product = choice;
      left = output_layout(choice.dataflow, choice.transposed);
    } else if (stage.kind == Stage::Kind::residual || stage.kind == Stage::Kind::norm) {
      planned.layout = left = stream;
    }
    plan.stages.push_back(std::move(planned));
  }
  return plan;
}

struct NamedPlan {
  std::string name;
  Plan plan;
};

/// The same with a re-layout before a stage that is neither product, norm nor residual.
inline Plan turned_before(Plan plan, const std::string& stage) {
  for (StagePlan& planned : plan.stages)
    if (planned.name == stage) planned.layout = other(planned.layout);
  return plan;
}

/// Each dataflow, all algorithms; weight-stationary pairs (transposed ls, then rs) turn the layout twice without a re-layout.
inline std::vector<NamedPlan> plans_for(const Workload& workload) {
  using enum Dataflow;
  constexpr ActivationLayout tokens = ActivationLayout::tokens_by_row, features = ActivationLayout::features_by_row;
  const ProductChoice sliced_os{"meshslice", os, false, 2}, sliced_ls{"meshslice", ls, false, 2}, w_first{"meshslice", ls, true, 2},
      w_second{"meshslice", rs, false, 2}, turned{"collective", os, true, 0}, turned_rs{"wang", rs, true, 0};
  return {
      {"os", plan_with(workload, {{"collective", os, false, 0}}, tokens)},
      {"sliced os and ls", plan_with(workload, {sliced_os, sliced_ls, {"wang", os, false, 0}}, tokens)},
      {"weight-stationary pairs", plan_with(workload, {w_first, w_second}, tokens)},
      {"transposed", plan_with(workload, {turned, turned_rs}, features)},
      {"weight-stationary pairs the other way round", plan_with(workload, {w_second, w_first}, features)},
      {"re-layouts between products", plan_with(workload, {sliced_os, turned, w_second, w_first}, tokens)},
      {"a re-layout before attention", turned_before(plan_with(workload, {sliced_os, turned}, tokens), "attention")},
      {"a re-layout before the activation", turned_before(plan_with(workload, {w_first, w_second, sliced_os, turned}, tokens), "activation")},
      {"re-layouts before residuals", plan_with(workload, {w_first, turned_rs, turned, turned}, tokens)},
  };
}

inline ActivationLayout left_by_stage(const StagePlan& stage) {
  return stage.product ? output_layout(stage.product->dataflow, stage.product->transposed) : stage.layout;
}

/// The stages of a block one after the other, and their gradients backwards.
class PlainBlock {
 public:
  PlainBlock(const Workload& workload, const Plan& plan, const Mesh& mesh) : workload_{workload}, plan_{plan}, mesh_{mesh} {}

  std::map<std::string, Matrix> weights;             // by stage
  std::map<std::string, Matrix> weight_gradients{};  // after backward()

  Matrix forward(const Matrix& x) {
    read_.clear();
    Matrix at = x, stream = x;
    for (std::size_t s = 0; s < workload_.stages.size(); ++s) {
      if (turns(s)) at = plain_relayout(order(s), at);
      read_.push_back(at);
      switch (workload_.stages[s].kind) {
        case Stage::Kind::product: at = at * weights.at(name(s)); break;
        case Stage::Kind::norm: at = plain_norm(layer_norm(), at); break;
        case Stage::Kind::attention: at = plain_attention(heads(s), at); break;
        case Stage::Kind::activation: at = plain_activation(workload_.block->gated, across(plan_.stages[s].layout), at); break;
        case Stage::Kind::residual: stream = at = at + stream; break;
      }
    }
    return at;
  }

  /// After forward().
  Matrix backward(const Matrix& dy) {
    Matrix gradient = dy, skipped;  // skipped: of the stream beside the branch
    for (std::size_t s = workload_.stages.size(); s-- > 0;) {
      switch (workload_.stages[s].kind) {
        case Stage::Kind::product:
          weight_gradients[name(s)] = transposed(read_[s]) * gradient;
          gradient = gradient * transposed(weights.at(name(s)));
          break;
        case Stage::Kind::norm: gradient = plain_norm_gradient(layer_norm(), gradient, read_[s]); break;
        case Stage::Kind::attention: gradient = plain_attention_gradient(heads(s), gradient, read_[s]); break;
        case Stage::Kind::activation:
          gradient = plain_activation_gradient(workload_.block->gated, across(plan_.stages[s].layout), gradient, read_[s]);
          break;
        case Stage::Kind::residual: skipped = gradient; break;
      }
      if (turns(s)) gradient = plain_relayout_gradient(order(s), gradient);
      const bool begins = s == 0 || workload_.stages[s - 1].kind == Stage::Kind::residual;
      if (begins && skipped.rows > 0) gradient = gradient + skipped;
    }
    return gradient;
  }

 private:
  [[nodiscard]] const std::string& name(std::size_t s) const { return workload_.stages[s].name; }
  [[nodiscard]] bool layer_norm() const { return workload_.block->norm == Norm::layer; }
  [[nodiscard]] bool turns(std::size_t s) const { return s > 0 && left_by_stage(plan_.stages[s - 1]) != plan_.stages[s].layout; }
  /// Devices along the features.
  [[nodiscard]] std::size_t across(ActivationLayout layout) const {
    return static_cast<std::size_t>(mesh_.axes()[layout == ActivationLayout::tokens_by_row ? 1 : 0].size);
  }
  [[nodiscard]] std::vector<std::size_t> order(std::size_t s) const {
    const ActivationLayout to = plan_.stages[s].layout;
    return relayout_order(read_.size() > s ? read_[s].columns : static_cast<std::size_t>(workload_.stages[s].inputs), across(to), across(other(to)));
  }
  [[nodiscard]] Heads heads(std::size_t s) const {
    const TransformerBlock& block = *workload_.block;
    const std::size_t groups = std::max(static_cast<std::size_t>(block.kv_heads), across(plan_.stages[s].layout));
    return {static_cast<std::size_t>(block.sequence), groups, static_cast<std::size_t>(block.heads) / groups,
            static_cast<std::size_t>(block.head_dim), block.causal};
  }

  const Workload& workload_;
  const Plan& plan_;
  const Mesh& mesh_;
  std::vector<Matrix> read_;  // by stage
};

}  // namespace podsim::testing
