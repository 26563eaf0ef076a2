// Small transformer blocks and plans of them. Not for production code.
#pragma once

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

}  // namespace podsim::testing
