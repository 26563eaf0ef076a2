#include "algorithms/gemm/dataflow.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

// The table states the same facts from several sides; they must agree.
TEST(Dataflow, TheTableAgreesWithItself) {
  for (const Dataflow dataflow : all_dataflows) {
    const DataflowTraits& flow = traits_of(dataflow);
    SCOPED_TRACE(flow.name);
    EXPECT_EQ(dataflow_named(flow.name), dataflow);
    const OperandShape still = shape_of(dataflow, flow.stationary);
    EXPECT_EQ(still.rows, flow.by_rows);
    EXPECT_EQ(still.columns, flow.by_columns);
    EXPECT_EQ(still.absent, flow.moving);
    EXPECT_LT(flow.moves[0].operand, flow.moves[1].operand);
    EXPECT_EQ(flow.reduces, flow.moves[1].operand == Operand::out);
    for (const Move& move : flow.moves) {
      EXPECT_NE(move.operand, flow.stationary);
      const OperandShape shape = shape_of(dataflow, move.operand);
      EXPECT_EQ(move.dim == 0 ? shape.rows : shape.columns, flow.moving);
      // The dimension that stays is split along the same axis as in the matrix that stands still.
      EXPECT_EQ(move.dim == 0 ? shape.columns : shape.rows, move.dim == 0 ? flow.by_columns : flow.by_rows);
    }
  }
}

// dX = dY.W^T and dW = X^T.dY, whatever is stored transposed: shapes of gradients are those of what they are the gradient of.
TEST(Dataflow, GradientsMultiplyWhatHasTheRightShape) {
  const GemmProblem forward{2, 3, 5, DType::f32};
  for (const Dataflow dataflow : all_dataflows)
    for (const Operand of : {Operand::left, Operand::right}) {
      SCOPED_TRACE(std::string{name_of(dataflow)} + (of == Operand::left ? " dX" : " dW"));
      const GradientRule& rule = traits_of(dataflow).gradients[of == Operand::left ? 0 : 1];
      const auto stored = [&](Dataflow flow, Operand operand, const GemmProblem& problem) {
        const OperandShape shape = shape_of(flow, operand);
        return std::pair{problem.*shape.rows, problem.*shape.columns};
      };
      const OperandShape shape = shape_of(dataflow, of);
      const GemmProblem gradient{forward.*shape.rows, forward.*shape.columns, forward.*shape.absent, DType::f32};
      EXPECT_EQ(stored(rule.dataflow, Operand::left, gradient), stored(dataflow, rule.left, forward));
      EXPECT_EQ(stored(rule.dataflow, Operand::right, gradient), stored(dataflow, rule.right, forward));
    }
}

}  // namespace
}  // namespace podsim
