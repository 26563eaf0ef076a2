// What labels say.
#include "workloads/ledger/label_place.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

using Layers = std::vector<std::string>;
using Microbatch = LabelPlace::Microbatch;

void expect_place(std::string_view label, StepPass pass, std::optional<Microbatch> microbatch, const Layers& layers, std::string_view operation) {
  const LabelPlace place = place_of(label);
  EXPECT_EQ(place.pass, pass) << label;
  EXPECT_EQ(place.microbatch, microbatch) << label;
  EXPECT_EQ(place.layers, layers) << label;
  EXPECT_EQ(place.operation, operation) << label;
}

TEST(LabelPlace, OfABlockTheSectionsAreLayersAndSayWhichAreBackward) {
  expect_place("ff1: gather W s0", StepPass::none, {}, {"ff1"}, "gather W s0");
  expect_place("ff1 backward: dX: gather W s0", StepPass::backward, {}, {"ff1 backward", "dX"}, "gather W s0");
  expect_place("norm1 backward: norm-grad", StepPass::backward, {}, {"norm1 backward"}, "norm-grad");
  expect_place("dW: matmul s1", StepPass::backward, {}, {"dW"}, "matmul s1");
}

TEST(LabelPlace, OfATrainingStepTheTaskOfThePipelineAndTheLayer) {
  expect_place("fwd_0__3 layer 7", StepPass::forward, Microbatch{3, 0}, {"layer 7"}, "");
  expect_place("bwd_12__0 layer 31 ff2 backward: dX: matmul", StepPass::backward, Microbatch{0, 12}, {"layer 31", "ff2 backward", "dX"}, "matmul");
  expect_place("bwdA_1__2 loss", StepPass::backward_inputs, Microbatch{2, 1}, {"loss"}, "");
  expect_place("bwdW_1__2", StepPass::backward_weights, Microbatch{2, 1}, {}, "");
  expect_place("fwd_0__0 embedding embed", StepPass::forward, Microbatch{0, 0}, {"embedding"}, "embed");
  expect_place("gather weights of fwd_0__1", StepPass::forward, Microbatch{1, 0}, {}, "gather weights");
  expect_place("retrieve for bwd_2__0", StepPass::backward, Microbatch{0, 2}, {}, "retrieve");
  expect_place("update layer 7", StepPass::optimiser, {}, {"layer 7"}, "");
  expect_place("update logits", StepPass::optimiser, {}, {"logits"}, "");
  expect_place("update_2", StepPass::optimiser, {}, {}, "update_2");
  expect_place("reduce gradients", StepPass::backward, {}, {}, "reduce gradients");
}

TEST(LabelPlace, OfACompiledModuleTheTripsOfLoops) {
  expect_place("while.1 0 all-gather.2", StepPass::none, {}, {"while.1 0"}, "all-gather.2");
  expect_place("while.1 0 while.7 12 fusion.3", StepPass::none, {}, {"while.1 0", "while.7 12"}, "fusion.3");
}

TEST(LabelPlace, OfOtherLabelsEverythingIsTheOperation) {
  for (const char* label : {"", " ", "gather X s0", "all-to-all a col place", "send act_0__3 to 1", "fwd_0__", "fwd", "layer 7", "layer", "while.1",
                            "while.1 0", "update", "update_x", ":", "a:b", "gather weights of", "gather weights of X"})
    expect_place(label, StepPass::none, {}, {}, label);
}

}  // namespace
}  // namespace podsim
