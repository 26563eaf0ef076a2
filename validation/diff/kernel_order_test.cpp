#include "validation/diff/kernel_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podsim {
namespace {

using ::testing::ElementsAre;

StepOperation instruction(const std::string& name, const std::string& category, double count = 1) { return {name, category, count, Seconds{1e-3}, {}, {}, {}, 0}; }

StepOperation graph_kernel(const std::string& name, const std::string& category, double count = 1) {
  StepOperation operation = instruction(name, category, count);
  operation.of_kernels = operation.is_kernel = true;
  return operation;
}

/// "measured as" of each predicted one.
std::vector<std::vector<std::size_t>> kernels_found(const std::vector<StepOperation>& instructions, const std::vector<StepOperation>& kernels) {
  std::vector<std::vector<std::size_t>> result(instructions.size());
  for (const KernelPair& pair : kernels_in_order(instructions, kernels)) result[pair.predicted.front()] = pair.measured;
  return result;
}

TEST(KernelOrder, KernelsHaveTheNamesOfInstructionsOrOfEqualOnes) {
  EXPECT_THAT(kernels_found({instruction("wrapped_convert.4", "elementwise"), instruction("loop_add_fusion.1", "elementwise"), instruction("wrapped_convert.8", "elementwise")},
                    {graph_kernel("wrapped_convert_4", "elementwise"), graph_kernel("loop_add_fusion_1", "elementwise"), graph_kernel("wrapped_convert_4", "elementwise")}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(KernelOrder, ProductsOfALibraryAreInOrder) {
  EXPECT_THAT(kernels_found({instruction("custom-call.7", "matmul", 4), instruction("loop_fusion.2", "opaque", 4), instruction("custom-call.3", "matmul", 4), instruction("custom-call.9", "matmul")},
                    {graph_kernel("Memset", "copy", 4), graph_kernel("nvjet_a", "matmul", 4), graph_kernel("loop_fusion_2", "elementwise", 4), graph_kernel("nvjet_b", "matmul", 4), graph_kernel("nvjet_a", "matmul")}),
              ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3), ElementsAre(4)));
}

TEST(KernelOrder, AttentionRunsSeveralKernels) {
  EXPECT_THAT(kernels_found({instruction("attention.1", "attention", 4), instruction("fusion.1", "elementwise", 4)},
                    {graph_kernel("compute_dot", "attention", 4), graph_kernel("Memset", "copy", 4), graph_kernel("flash_bprop", "attention", 4), graph_kernel("reduce_head", "attention", 8), graph_kernel("fusion_1", "elementwise", 4)}),
              ElementsAre(ElementsAre(0, 2, 3), ElementsAre(4)));
}

TEST(KernelOrder, TripsOfALoopAreOneInstruction) {
  const auto pairs = kernels_in_order({instruction("while.1 0 fusion.1", "elementwise"), instruction("while.1 1 fusion.1", "elementwise")}, {graph_kernel("fusion_1", "elementwise", 2)});
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_THAT(pairs[0].predicted, ElementsAre(0, 1));
  EXPECT_THAT(pairs[0].measured, ElementsAre(0));
}

TEST(KernelOrder, WhatOccursMoreOftenOrHasAnInstructionIsNotAligned) {
  EXPECT_TRUE(kernels_in_order({instruction("fusion.1", "elementwise", 2)}, {graph_kernel("fusion_1", "elementwise", 3)}).empty());
  EXPECT_TRUE(kernels_in_order({instruction("fusion.1", "elementwise")}, {instruction("fusion_1", "elementwise")}).empty());
  EXPECT_TRUE(kernels_in_order({}, {graph_kernel("fusion_1", "elementwise")}).empty());
  EXPECT_TRUE(kernels_in_order({instruction("fusion.1", "elementwise")}, {}).empty());
}

TEST(KernelOrder, TheCategoryIsThatOfTheInstructionIfItIsKnown) {
  const StepTimes step{Seconds{2e-3}, {instruction("loop_gather_fusion", "opaque"), instruction("fusion.5", "copy")}};
  const StepTimes measured{Seconds{2e-3}, {graph_kernel("loop_gather_fusion", "elementwise"), graph_kernel("fusion_5", "elementwise")}};
  const StepDiff diff = diff_steps(step, measured);
  ASSERT_EQ(diff.operations.size(), 2U);
  EXPECT_TRUE(diff.unmatched.empty());
  EXPECT_EQ(diff.operations[0].category, "elementwise");
  EXPECT_EQ(diff.operations[1].category, "copy");
}

}  // namespace
}  // namespace podsim
